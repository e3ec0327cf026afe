/**
 * Finds races between lanes of one warp: rows of addresses go to the shadow of the memory that they lie in, the block's
 * shared memory or a page of the heap. What counts as a race is in `intra-warp-shadow.ts`.
 */
import { globalBase, sharedBase, windows, wordSize } from "../addresses.ts";
import type { BlockView, Place } from "../collective.ts";
import type { WarpState } from "../machine/warp.ts";
import { LaneAccess, IntraWarpShadow } from "./intra-warp-shadow.ts";
import type { LaneMode, Met } from "./intra-warp-shadow.ts";
import { blockAt, offsetAt } from "./touched-ranges.ts";
import type { Runs } from "./touched-ranges.ts";

const firstShared = windows.shared * wordSize;
const endOfShared = firstShared + wordSize;
const pageBytes = 1 << 16;

/** Two lanes of a warp that nothing orders. */
export interface IntraWarpRace {
  readonly lane: number;
  /** The site of the other's access, and its lane where it was a single one. */
  readonly otherSite: number;
  readonly otherLane: number | undefined;
  readonly block: BlockView | undefined;
  readonly offset: number;
}

export class IntraWarpRaces {
  readonly #shared = new WeakMap<BlockView, IntraWarpShadow>();
  readonly #pages = new Map<number, IntraWarpShadow>();
  readonly #access = new LaneAccess();
  #race: IntraWarpRace | undefined;
  #start = 0;
  /** The bits of its word that each lane touches, where those are not all. */
  #touched: Int32Array | undefined;
  /** The memory that was touched last. */
  #lastPage = -1;
  #lastBlock: BlockView | undefined;
  #pageShadow = new IntraWarpShadow(0);
  #blockShadow = new IntraWarpShadow(0);

  #page(number: number): IntraWarpShadow {
    let shadow = this.#pages.get(number);
    if (shadow === undefined) {
      shadow = new IntraWarpShadow(pageBytes);
      this.#pages.set(number, shadow);
    }
    return shadow;
  }

  #ofBlock(block: BlockView): IntraWarpShadow {
    let shadow = this.#shared.get(block);
    if (shadow === undefined) {
      shadow = new IntraWarpShadow(block.shared.bytes.length);
      this.#shared.set(block, shadow);
    }
    return shadow;
  }

  /** The shadow that a run lies in, and where; undefined where it lies in two pages. */
  #whole(
    block: BlockView | undefined,
    offset: number,
    length: number,
  ): IntraWarpShadow | undefined {
    if (block !== undefined) {
      this.#start = offset;
      return this.#shadowOf(block);
    }
    const page = Math.floor(offset / pageBytes);
    this.#start = offset - page * pageBytes;
    return this.#start + length > pageBytes ? undefined : this.#shadowAt(page);
  }

  #shadowAt(page: number): IntraWarpShadow {
    if (page !== this.#lastPage) {
      this.#lastPage = page;
      this.#pageShadow = this.#page(page);
    }
    return this.#pageShadow;
  }

  #shadowOf(block: BlockView): IntraWarpShadow {
    if (block !== this.#lastBlock) {
      this.#lastBlock = block;
      this.#blockShadow = this.#ofBlock(block);
    }
    return this.#blockShadow;
  }

  /** Takes what lanes do to the addresses of a row, which `runs` joins; the first race that it is in. */
  access(
    runs: Runs,
    warp: WarpState,
    site: number,
    slot: number,
    mask: number,
    bytes: number,
    mode: LaneMode,
    touched: Int32Array | undefined,
  ): IntraWarpRace | undefined {
    const access = this.#access;
    this.#touched = touched;
    access.round = warp.timeline?.round ?? 0;
    access.site = site;
    access.slot = slot;
    access.mask = mask;
    access.mode = mode;
    this.#race = undefined;
    if (mode === "read" || mode === "write") {
      const { count, blocks, offsets, lengths } = runs;
      const shadow =
        count === 1
          ? this.#whole(blocks[0], offsets[0] as number, lengths[0] as number)
          : undefined;
      if (shadow?.row(this.#start, bytes, mask, lengths[0] as number, access) === true)
        return undefined;
    }
    const { block } = warp;
    const first = firstShared + sharedBase(block.rank);
    const end = first + block.shared.bytes.length;
    for (let rest = mask; rest !== 0; rest &= rest - 1) {
      const lane = 31 - Math.clz32(rest & -rest);
      const address = warp.addresses[32 * slot + lane] as number;
      if (address >= first && address < end) {
        const met = this.#touch(this.#shadowOf(block), warp, lane, address - first, bytes);
        if (met !== undefined) this.#note(lane, met, block, met.offset);
      } else if (address >= globalBase) this.#inHeap(warp, lane, address - globalBase, bytes);
      else if (address >= firstShared && address < endOfShared)
        this.#inOther(warp, lane, address, bytes);
    }
    return this.#race;
  }

  /**
   * Looks at what an instruction of its own kind (of matrices, or a copy) does for a lane. It is not kept: who waits for
   * it, and how, is not told by rounds.
   */
  look(
    warp: WarpState,
    lane: number,
    { block, offset }: Place,
    bytes: number,
    mode: "read" | "write",
  ): IntraWarpRace | undefined {
    const round = warp.timeline?.round ?? 0;
    for (let at = offset & ~3; at < offset + bytes; at += 4) {
      const shadow = this.#whole(block, at, 4);
      // Of the first word and the last, those bytes that are within.
      const [below, above] = [Math.max(0, offset - at), Math.max(0, at + 4 - offset - bytes)];
      const touched = (-1 << (8 * below)) & (-1 >>> (8 * above));
      const met = shadow?.look(this.#start >>> 2, touched, lane, round, mode === "write");
      if (met === undefined) continue;
      const found = at - this.#start + met.offset;
      return { lane, otherSite: met.site, otherLane: met.lane, block, offset: found };
    }
    return undefined;
  }

  #inHeap(warp: WarpState, lane: number, offset: number, bytes: number): void {
    const page = Math.floor(offset / pageBytes);
    const start = page * pageBytes;
    const met = this.#touch(this.#shadowAt(page), warp, lane, offset - start, bytes);
    if (met !== undefined) this.#note(lane, met, undefined, start + met.offset);
  }

  #inOther(warp: WarpState, lane: number, address: number, bytes: number): void {
    const block = blockAt(warp, address) ?? warp.block;
    const met = this.#touch(this.#shadowOf(block), warp, lane, offsetAt(address, block), bytes);
    if (met !== undefined) this.#note(lane, met, block, met.offset);
  }

  #note(lane: number, met: Met, block: BlockView | undefined, offset: number): void {
    this.#race ??= { lane, otherSite: met.site, otherLane: met.lane, block, offset };
  }

  /** The first byte of an access that another lane has touched. Accesses are whole words, or lie within one. */
  #touch(
    shadow: IntraWarpShadow,
    warp: WarpState,
    lane: number,
    start: number,
    bytes: number,
  ): Met | undefined {
    const access = this.#access;
    const whole = bytes >= 4 ? -1 : ((1 << (8 * bytes)) - 1) << (8 * (start & 3));
    const bits = this.#touched?.[lane];
    const touched = bits === undefined ? whole : wholeBytes(bits);
    const end = (start + bytes + 3) >>> 2;
    let first: Met | undefined;
    for (let word = start >>> 2; word < end; word++) {
      const met =
        access.mode === "read"
          ? shadow.read(word, touched, lane, access)
          : shadow.write(word, touched, lane, access, warp);
      if (met !== undefined) first ??= met;
    }
    return first;
  }
}

/** All bits of the bytes in which one is set. */
function wholeBytes(bits: number): number {
  let bytes = 0;
  for (let mask = 0xff; mask !== 0; mask <<= 8) if ((bits & mask) !== 0) bytes |= mask;
  return bytes;
}
