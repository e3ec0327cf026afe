/**
 * Which parts of the heap are taken. Every place ends with a guard that belongs to nobody, so that an access past the end
 * of an array hits nothing; what is given back joins the gaps beside it, and what lies at the end is no gap but the end:
 *
 *   | guard | a a a | guard | gap     | b b | guard | end
 */

const alignment = 512;
/** Behind every place, and before the first. */
const guard = 512;

interface Gap {
  readonly offset: number;
  readonly room: number;
}

/** What some bytes take with the guard behind them. */
function roomOf(bytes: number): number {
  return Math.ceil(Math.max(bytes, 1) / alignment) * alignment + guard;
}

export class Places {
  readonly #largest: number;
  /** By offset; no two touch. */
  #gaps: readonly Gap[] = [];
  #end = guard;

  /** With the bytes that the heap may have. */
  constructor(largest: number) {
    this.#largest = largest;
  }

  /** Bytes from the start of the heap that places lie in: a multiple of 512. */
  get end(): number {
    return this.#end;
  }

  /** The offset of so many bytes; undefined where the heap has no room for them. */
  take(bytes: number): number | undefined {
    const room = roomOf(bytes);
    const position = this.#gaps.findIndex((gap) => gap.room >= room);
    const gap = this.#gaps[position];
    if (gap !== undefined) {
      const rest = { offset: gap.offset + room, room: gap.room - room };
      this.#gaps = this.#gaps.toSpliced(position, 1, ...(rest.room > 0 ? [rest] : []));
      return gap.offset;
    }
    const offset = this.#end;
    if (offset + room > this.#largest) return undefined;
    this.#end += room;
    return offset;
  }

  /** Takes back what `take` gave for so many bytes. */
  giveBack(offset: number, bytes: number): void {
    let [start, end] = [offset, offset + roomOf(bytes)];
    const others = this.#gaps.filter((gap) => {
      const isBeside = gap.offset + gap.room === start || gap.offset === end;
      if (isBeside)
        [start, end] = [Math.min(start, gap.offset), Math.max(end, gap.offset + gap.room)];
      return !isBeside;
    });
    if (end === this.#end) {
      this.#end = start;
      this.#gaps = others;
      return;
    }
    const behind = others.findIndex((gap) => gap.offset > start);
    const position = behind < 0 ? others.length : behind;
    this.#gaps = others.toSpliced(position, 0, { offset: start, room: end - start });
  }
}
