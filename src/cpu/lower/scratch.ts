/**
 * Scratch memory of a worker, given out while code is emitted: a storage is taken where its tile is made and given back
 * behind its last use, so that tiles whose lives do not meet share bytes.
 *
 *   0 … 255    what faults and calls of the host hand over
 *   256 …      tiles, shared memory, barriers
 */

export interface Storage {
  readonly offset: number;
  readonly bytes: number;
}

/** Bytes at the beginning that are no tile's. */
export const headerBytes = 256;

/** Where the number of a fault lies, 0 where there is none; and the list of addresses of a call of the host. */
export const faultOffset = 4;
export const callListOffset = 64;

const alignment = 64;
/** Loops store whole vectors: the last one may reach so far behind a tile. */
const slack = 64;

export class Scratch {
  #free: { offset: number; bytes: number }[] = [];
  #end = headerBytes;

  /** Bytes that are needed in all. */
  get bytes(): number {
    return this.#end;
  }

  take(bytes: number): Storage {
    const size = Math.ceil((bytes + slack) / alignment) * alignment;
    const place = this.#free.findIndex((hole) => hole.bytes >= size);
    const hole = this.#free[place];
    if (hole === undefined) return this.takeFresh(bytes);
    const storage = { offset: hole.offset, bytes: size };
    if (hole.bytes === size) this.#free.splice(place, 1);
    else this.#free[place] = { offset: hole.offset + size, bytes: hole.bytes - size };
    return storage;
  }

  /** Bytes that nothing else has had: of what other threads use, or what lives on from turn to turn. */
  takeFresh(bytes: number): Storage {
    const size = Math.ceil((bytes + slack) / alignment) * alignment;
    const storage = { offset: this.#end, bytes: size };
    this.#end += size;
    return storage;
  }

  /** What is free now is not given out again: it belongs to a thread that runs in turns with the next. */
  seal(): void {
    this.#free = [];
  }

  give({ offset, bytes }: Storage): void {
    const holes = [...this.#free, { offset, bytes }].sort((a, b) => a.offset - b.offset);
    this.#free = [];
    for (const hole of holes) {
      const last = this.#free.at(-1);
      if (last !== undefined && last.offset + last.bytes === hole.offset) last.bytes += hole.bytes;
      else this.#free.push({ ...hole });
    }
  }
}
