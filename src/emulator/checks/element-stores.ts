/**
 * Elements of 4 bits that kernels of ours store one by one. The compiler stores such an element by two atomic updates of the word around it,
 * so that whoever stores the other half of the byte may do so at any time:
 *
 *   red.and [word], ~(15 << at)        clears the element
 *   red.or  [word], value << at        sets it
 *
 * As atomics they may meet their like, but two stores of one element may not: what stays is one of them, or the two mixed. So the updates
 * that clear are held against each other as plain stores are, half a byte at a time. Loads and wider stores are held against both updates
 * byte by byte, as against any atomic, by the checks of all memory.
 */
import type { Knowledge } from "../../happens-before/knowledge.ts";
import type { Operand } from "../../ptx/module.ts";
import type { BlockView } from "../collective.ts";
import type { BlockState, WarpState } from "../machine/warp.ts";
import type { Site } from "../program/program.ts";
import { LaneAccess, IntraWarpShadow } from "./intra-warp-shadow.ts";
import type { IntraWarpRace } from "./intra-warp-races.ts";
import { eachPlace } from "./touched-ranges.ts";
import { Shadows } from "./shadow-memory.ts";
import type { MemoryAccess, PlacedConflict } from "./shadow-memory.ts";

const pageBytes = 1 << 16;
const halvesPerByte = 2;

/** One of the two updates that store an element. */
export type ElementStorePart = "clears" | "sets";

/** Two lanes that store different values to one element by one instruction. */
export interface StoredTwice {
  readonly lane: number;
  readonly block: BlockState | undefined;
  readonly offset: number;
}

/** Which part of a store of an element the instruction at a site is, by the one that stands beside it. */
export function elementStorePart(
  site: Site,
  before: Site | undefined,
  after: Site | undefined,
): ElementStorePart | undefined {
  if (isPair(site, after)) return "clears";
  return isPair(before, site) ? "sets" : undefined;
}

function isPair(first: Site | undefined, second: Site | undefined): boolean {
  if (first === undefined || second === undefined) return false;
  const [, space] = /^red\.(.+)\.and\.b32$/.exec(first.instruction.opcode) ?? [];
  if (space === undefined || second.instruction.opcode !== `red.${space}.or.b32`) return false;
  const [one, two] = [first.instruction, second.instruction];
  return (
    isSameAddress(one.operands[0], two.operands[0]) &&
    one.guard?.register === two.guard?.register &&
    first.location.position?.line === second.location.position?.line &&
    first.location.position?.column === second.location.position?.column
  );
}

function isSameAddress(one: Operand | undefined, two: Operand | undefined): boolean {
  return (
    one?.kind === "address" &&
    two?.kind === "address" &&
    one.base === two.base &&
    one.offset === two.offset
  );
}

/** The element of its word, from 0 to 7, whose bits and no others are set; undefined for other bits. */
function elementIn(bits: number): number | undefined {
  const element = (31 - Math.clz32(bits)) >>> 2;
  return bits !== 0 && bits >>> (4 * element) === 15 && (bits & ((1 << (4 * element)) - 1)) === 0
    ? element
    : undefined;
}

export class ElementStores {
  readonly #shadows = new Shadows(halvesPerByte);
  readonly #access = new LaneAccess();
  readonly #shared = new WeakMap<BlockView, IntraWarpShadow>();
  readonly #pages = new Map<number, IntraWarpShadow>();
  /** Of the lanes of the update that cleared last: the elements of their words. */
  readonly #cleared = new Int32Array(32);

  /** Takes updates that clear an element of each lane's word, whose bits are in `touched`; what they are not ordered with. */
  clear(
    warp: WarpState,
    mask: number,
    touched: Int32Array,
    access: MemoryAccess,
    known: Knowledge,
  ): readonly PlacedConflict[] {
    const runs = this.#shadows.begin(access, known);
    this.#cleared.fill(-1);
    eachPlace(warp, 0, mask, 0, (block, offset, lane) => {
      const element = elementIn(touched[lane] as number);
      if (element === undefined) return;
      this.#cleared[lane] = element;
      runs.run(block, halvesPerByte * offset + element, 1);
    });
    return runs.conflicts();
  }

  /** The first race among the warp's own lanes that those updates are in. */
  laneRace(warp: WarpState, site: number, mask: number): IntraWarpRace | undefined {
    const access = this.#access;
    access.round = warp.timeline?.round ?? 0;
    access.site = site;
    access.slot = 0;
    access.mask = mask;
    access.mode = "write";
    let race: IntraWarpRace | undefined;
    eachPlace(warp, 0, mask, 0, (block, offset, lane) => {
      const element = this.#cleared[lane] as number;
      if (element < 0) return;
      const start = block === undefined ? offset - (offset % pageBytes) : 0;
      const half = halvesPerByte * (offset - start) + element;
      const shadow = this.#shadowOf(block, start / pageBytes);
      const met = shadow.write(half >>> 2, 0xff << (8 * (half & 3)), lane, access, warp);
      if (met === undefined) return;
      const found = start + met.offset / halvesPerByte;
      race ??= { lane, otherSite: met.site, otherLane: met.lane, block, offset: found };
    });
    return race;
  }

  #shadowOf(block: BlockView | undefined, page: number): IntraWarpShadow {
    const known = block === undefined ? this.#pages.get(page) : this.#shared.get(block);
    if (known !== undefined) return known;
    const made = new IntraWarpShadow(halvesPerByte * (block?.shared.bytes.length ?? pageBytes));
    if (block === undefined) this.#pages.set(page, made);
    else this.#shared.set(block, made);
    return made;
  }

  /** Takes the updates behind those, which set what the same lanes have cleared: whether two of them store different values to one element. */
  set(warp: WarpState, mask: number, values: Int32Array): StoredTwice | undefined {
    const stored = new Map<number, number>();
    let twice: StoredTwice | undefined;
    eachPlace(warp, 0, mask, 0, (block, offset, lane) => {
      const element = this.#cleared[lane] as number;
      if (element < 0) return;
      const place = 8 * (warp.addresses[lane] as number) + element;
      const value = values[lane] as number;
      const other = stored.get(place);
      if (other !== undefined && other !== value)
        twice ??= { lane, block, offset: offset + element / halvesPerByte };
      stored.set(place, value);
    });
    return twice;
  }
}
