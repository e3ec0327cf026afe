/**
 * Which bytes of the heap a thread has touched. A byte of marks stands for a word of the heap: its low half
 * for the bytes that were read, its high half for those that were written.
 *
 *   heap     | byte 0    byte 1    byte 2    byte 3 |
 *   marks      bit 0     bit 1     bit 2     bit 3      read
 *              bit 4     bit 5     bit 6     bit 7      written
 *
 * Threads that never wrote what another touched have not disturbed each other, whatever came first.
 */

export const markBits = Object.freeze({ read: 0x0f, write: 0xf0 });

/** In each byte of four. */
const lowHalves = 0x0f0f0f0f;

/** Bytes of marks for a heap: whole quads of words. */
export function marksSize(heapBytes: number): number {
  return 4 * Math.ceil(heapBytes / 16);
}

export class Marks {
  readonly bytes: Uint8Array;
  /** Four words' marks at a time. */
  readonly quads: Int32Array;

  constructor(buffer: ArrayBufferLike, heapBytes: number) {
    const size = marksSize(heapBytes);
    this.bytes = new Uint8Array(buffer, 0, size);
    this.quads = new Int32Array(buffer, 0, size / 4);
  }

  static of(heapBytes: number): Marks {
    return new Marks(new ArrayBuffer(marksSize(heapBytes)), heapBytes);
  }

  touch(offset: number, length: number, mode: keyof typeof markBits): void {
    const bits = markBits[mode];
    const end = offset + length;
    for (let word = Math.floor(offset / 4); 4 * word < end; word++) {
      const skipped = Math.max(0, offset - 4 * word);
      const beyond = Math.max(0, 4 * word + 4 - end);
      const ones = (0x0f >>> (skipped + beyond)) << skipped;
      this.bytes[word] = (this.bytes[word] as number) | (bits & (ones * 0x11));
    }
  }

  clear(): void {
    this.quads.fill(0);
  }
}

/** Whether no byte that one has written was touched by another. */
export function areApart(all: readonly Marks[]): boolean {
  const rows = all.map(({ quads }) => quads);
  const length = rows[0]?.length ?? 0;
  for (let at = 0; at < length; at++) {
    let touched = 0;
    let written = 0;
    for (const row of rows) {
      const marks = row[at] as number;
      if (marks === 0) continue;
      const writes = (marks >>> 4) & lowHalves;
      const touches = (marks & lowHalves) | writes;
      if (((writes & touched) | (touches & written)) !== 0) return false;
      touched |= touches;
      written |= writes;
    }
  }
  return true;
}
