/**
 * Races between lanes of one warp. A warp counts as one agent of the happens-before order, so what its lanes do to each
 * other is found here. Between two points where its lanes converge (see `warp-timeline.ts`) lies a round, and within one round nothing
 * orders two lanes, whatever order they ran in:
 *
 *   st.shared [a], …     lane 3, round 7        a: round 7, written by 3
 *   ld.shared …, [a]     lane 5, round 7        a race
 *   bar.warp.sync        round 8
 *   ld.shared …, [a]     lane 5, round 8        a: round 8, read by 5
 *
 * Each byte knows who has written and who has read it in the round of its word, four bytes in one comparison:
 *
 *   | number    | who                                                 |
 *   |-----------|-----------------------------------------------------|
 *   | 0         | nobody                                              |
 *   | 1 … 32    | lane 0 … 31                                         |
 *   | 65 … 96   | lane 0 … 31 by an atomic, which may meet its like   |
 *   | 127       | several lanes by atomics                            |
 *   | 255       | several lanes                                       |
 *
 * Numbers of rounds are of one warp, so another warp that comes to a word begins it anew: the two warps are held against
 * each other by the shadow memory.
 */
import type { WarpState } from "../machine/warp.ts";

const atomic = 64;
const severalAtomics = 127;
const several = 255;
const lowest = 0x01010101;

export type LaneMode = "read" | "write" | "atomic";

/** What lanes of a warp do by one instruction; their addresses are in a row of the warp's. Filled anew for each. */
export class LaneAccess {
  round = 0;
  site = 0;
  slot = 0;
  mask = 0;
  mode: LaneMode = "read";
}

export interface Met {
  /** In the memory that the shadow is of. */
  readonly offset: number;
  readonly site: number;
  readonly lane: number | undefined;
}

function laneOf(number: number): number | undefined {
  const lane = (number & ~atomic) - 1;
  return lane < 32 ? lane : undefined;
}

function byteOf(word: number, byte: number): number {
  return (word >>> (8 * byte)) & 0xff;
}

export class IntraWarpShadow {
  readonly #rounds: Int32Array;
  readonly #writers: Int32Array;
  readonly #readers: Int32Array;
  readonly #writeSites: Int32Array;
  readonly #readSites: Int32Array;

  constructor(bytes: number) {
    const words = bytes >>> 2;
    this.#rounds = new Int32Array(words);
    this.#writers = new Int32Array(words);
    this.#readers = new Int32Array(words);
    this.#writeSites = new Int32Array(words);
    this.#readSites = new Int32Array(words);
  }

  /** Begins a word anew where it is of another round. */
  #enter(word: number, round: number): void {
    if (this.#rounds[word] === round) return;
    this.#rounds[word] = round;
    this.#writers[word] = 0;
    this.#readers[word] = 0;
  }

  /**
   * Whole words that all lanes of a warp touch, each its own ones in order, or all the same to read them; whether that
   * is all there is to it. The words may have been noted for some lanes where it is not.
   */
  row(start: number, bytes: number, mask: number, length: number, access: LaneAccess): boolean {
    if (bytes < 4 || mask !== -1) return false;
    if (length === 32 * bytes) return this.#ownWords(start >>> 2, bytes >>> 2, access);
    return (
      length === bytes &&
      access.mode === "read" &&
      this.#sameWords(start >>> 2, bytes >>> 2, access)
    );
  }

  #ownWords(first: number, count: number, { round, site, mode }: LaneAccess): boolean {
    const [rounds, writers, readers] = [this.#rounds, this.#writers, this.#readers];
    const isRead = mode === "read";
    const sites = isRead ? this.#readSites : this.#writeSites;
    const end = first + 32 * count;
    let own = lowest;
    let next = first + count;
    for (let word = first; word < end; word++) {
      if (word === next) {
        own += lowest;
        next += count;
      }
      const isKnown = rounds[word] === round;
      const written = isKnown ? (writers[word] as number) : 0;
      const read = isKnown ? (readers[word] as number) : 0;
      if ((written !== 0 && written !== own) || (read !== 0 && read !== own)) return false;
      rounds[word] = round;
      writers[word] = isRead ? written : own;
      readers[word] = isRead ? own : read;
      sites[word] = site;
    }
    return true;
  }

  #sameWords(first: number, count: number, { round, site }: LaneAccess): boolean {
    for (let word = first; word < first + count; word++) {
      this.#enter(word, round);
      if (this.#writers[word] !== 0) return false;
      this.#readers[word] = -1;
      this.#readSites[word] = site;
    }
    return true;
  }

  /** Who of the other lanes has touched bytes of a word in this round, for an access that leaves no trace here. */
  look(
    word: number,
    touched: number,
    lane: number,
    round: number,
    writes: boolean,
  ): Met | undefined {
    if (this.#rounds[word] !== round) return undefined;
    const written = (this.#writers[word] as number) & touched;
    const met = strangerIn(word, written, lane, this.#writeSites[word] as number);
    if (met !== undefined || !writes) return met;
    const read = (this.#readers[word] as number) & touched;
    return strangerIn(word, read, lane, this.#readSites[word] as number);
  }

  /** A lane reads bytes of a word: those whose bits are in `touched`. */
  read(word: number, touched: number, lane: number, { round, site }: LaneAccess): Met | undefined {
    this.#enter(word, round);
    const own = (touched & lowest) * (lane + 1);
    const all = this.#readers[word] as number;
    const read = all & touched;
    if (read === 0) {
      this.#readers[word] = all | own;
      this.#readSites[word] = site;
    } else if (read !== own && read !== touched)
      this.#readers[word] = (all & ~touched) | (joined(read, own, several) & touched);
    const written = (this.#writers[word] as number) & touched;
    if (written === 0 || written === own) return undefined;
    return strangerIn(word, written, lane, this.#writeSites[word] as number);
  }

  write(
    word: number,
    touched: number,
    lane: number,
    access: LaneAccess,
    warp: WarpState,
  ): Met | undefined {
    const { round, site, mode } = access;
    this.#enter(word, round);
    const own = (touched & lowest) * (lane + 1 + (mode === "atomic" ? atomic : 0));
    const all = this.#writers[word] as number;
    const written = all & touched;
    const read = (this.#readers[word] as number) & touched;
    let met: Met | undefined;
    let left = own;
    if (written !== 0 && written !== own) {
      met = this.#strangerAmongWriters(word, written, lane, access, warp);
      if (met === undefined)
        left = joined(written, own, mode === "atomic" ? severalAtomics : several);
    }
    if (read !== 0 && read !== own)
      met ??= strangerIn(word, read, lane, this.#readSites[word] as number);
    this.#writers[word] = (all & ~touched) | (left & touched);
    this.#writeSites[word] = site;
    return met;
  }

  /** Lanes may write one place by one instruction, if it is the same (TW8019), and atomics may meet. */
  #strangerAmongWriters(
    word: number,
    written: number,
    lane: number,
    access: LaneAccess,
    warp: WarpState,
  ): Met | undefined {
    const { mode, site } = access;
    const lastSite = this.#writeSites[word] as number;
    for (let byte = 0; byte < 4; byte++) {
      const number = byteOf(written, byte);
      const other = laneOf(number);
      if (number === 0 || other === lane) continue;
      if (mode === "atomic" && (number & atomic) !== 0 && number !== several) continue;
      const isTogether = other === undefined || isAmong(other, lane, access, warp);
      if (mode === "write" && lastSite === site && isTogether) continue;
      return { offset: 4 * word + byte, site: lastSite, lane: other };
    }
    return undefined;
  }
}

/** Whether another lane has the address of this one in the row. */
function isAmong(
  other: number,
  lane: number,
  { slot, mask }: LaneAccess,
  { addresses }: WarpState,
): boolean {
  const isThere = ((mask >>> other) & 1) === 1;
  return isThere && addresses[32 * slot + other] === addresses[32 * slot + lane];
}

/** The first byte that another lane has touched. */
function strangerIn(word: number, touched: number, lane: number, site: number): Met | undefined {
  for (let byte = 0; byte < 4; byte++) {
    const number = byteOf(touched, byte);
    const other = laneOf(number);
    if (number !== 0 && other !== lane) return { offset: 4 * word + byte, site, lane: other };
  }
  return undefined;
}

/** Of each byte, who has touched it by now; `many` where it was not one lane. */
function joined(before: number, own: number, many: number): number {
  let word = 0;
  for (let byte = 0; byte < 4; byte++)
    word |= either(byteOf(before, byte), byteOf(own, byte), many) << (8 * byte);
  return word;
}

function either(before: number, own: number, many: number): number {
  if (before === 0 || own === 0) return before | own;
  // An atomic does not make the same lane's plain access one that others may meet.
  return laneOf(before) === laneOf(own) ? Math.min(before, own) : many;
}
