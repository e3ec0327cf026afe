/**
 * How a tile gets from one register layout to another, as data: a list of steps that an emitter can
 * print one after the other and that `test/support/relayout-execution.ts` runs on simulated lanes.
 *
 * Between steps each lane has a *file* of words. A word is 32 bits wide, or as wide as the element where
 * that is more, and is divided into slots of one element: slot number = word · slots per word + part. The
 * first file is the tile in the source layout, packed in the order of its registers; the last is the
 * tile in the target layout. Every step makes a whole new file:
 *
 *   | step     | word i of the new file                                                     | prints as          |
 *   |----------|----------------------------------------------------------------------------|--------------------|
 *   | pack     | the given slots of the old one, side by side                               | nothing, or `prmt` |
 *   | select   | word `ones[i]` or `zeros[i]`, as a bit of the thread index says              | `selp`             |
 *   | shuffle  | word `words[i].word` of another lane of the warp                            | `shfl.sync`        |
 *   | exchange | what the loads bring, after the stores                                     | `st.shared`, barrier, `ld.shared` |
 *
 * `nothing` stands for slots and words that nobody will look at. Two lanes that trade register bit R0
 * for lane bit L0, on a tile of two rows and two columns in f32, (R0 | L0) to (L0 | R0):
 *
 *   | lane | file        | select L0: (0, 1) or (1, 0) | shuffle: keep 0, 1 from lane ^ 1 | select L0 |
 *   |------|-------------|-----------------------------|----------------------------------|-----------|
 *   | 0    | a00 a10     | a00 a10                     | a00 a01                          | a00 a01   |
 *   | 1    | a01 a11     | a11 a01                     | a11 a10                          | a10 a11   |
 */
import type { RegisterLayout } from "../algebra/register-layout.ts";

/** In place of a slot or word that holds nothing of use. */
export const nothing = -1;

/** Words made of slots. */
export interface PackStep {
  readonly kind: "pack";
  readonly words: readonly (readonly number[])[];
}

/** A choice between two words by a bit of the thread index 32 · warp + lane. */
export interface SelectStep {
  readonly kind: "select";
  readonly bit: number;
  readonly zeros: readonly number[];
  readonly ones: readonly number[];
}

/** Where a bit of the source lane comes from: a bit of the own thread index, or zero; then flipped. */
export interface LaneSource {
  readonly from: number | undefined;
  readonly flip: boolean;
}

/** The lane that each lane reads, bit by bit, L0 first. */
export type LaneMap = readonly LaneSource[];

export interface ShuffleRound {
  readonly word: number;
  /** Undefined: the lane keeps its own word. */
  readonly lanes: LaneMap | undefined;
}

export interface ShuffleStep {
  readonly kind: "shuffle";
  readonly words: readonly ShuffleRound[];
}

/** One vector of every lane that takes part. */
export interface Access {
  /** Words of the file, in the order of their bytes. */
  readonly words: readonly number[];
  /** Combined with the thread's part of the address. */
  readonly offset: number;
  /** Added last. */
  readonly base: number;
  /** The register whose element the lane looks at where the accesses are guarded. */
  readonly register: number;
}

/**
 * The address of a lane's vector: combine(parts of the set bits of its thread index, offset) + base, in
 * bytes.
 */
export interface AccessPattern {
  readonly combine: "xor" | "add";
  /** Part of each bit of the thread index. */
  readonly threadParts: readonly number[];
  /** Threads with one of these bits set take no part. */
  readonly idle: number;
  readonly vectorBytes: number;
  /** Wavefronts of shared memory in all warps and chunks together. */
  readonly wavefronts: number;
  /** Wavefronts if no two lanes were in each other's way. */
  readonly ideal: number;
  /** Instructions of all warps and chunks together. */
  readonly instructions: number;
}

/** What goes through the scratch memory at once. */
export interface Chunk {
  readonly stores: readonly Access[];
  readonly loads: readonly Access[];
  /** Only elements with these row-major numbers take part, from first to before last; no others, and
   * no padding. Undefined: all take part, padding has a place of its own. */
  readonly guard: { readonly first: number; readonly last: number } | undefined;
}

/** Who must have stored before anybody loads, and loaded before anybody stores. */
export type BarrierScope = "warp" | "thread";

export interface ExchangeStep {
  readonly kind: "exchange";
  readonly scope: BarrierScope;
  readonly stores: AccessPattern;
  readonly loads: AccessPattern;
  /** One after the other in the same bytes, with a barrier before the stores and one after. */
  readonly chunks: readonly Chunk[];
  readonly bytes: number;
  /** Distance of the elements of a vector: that of the format, or a byte for lone elements of 4 bits. */
  readonly elementBits: number;
}

export type RelayoutStep = PackStep | SelectStep | ShuffleStep | ExchangeStep;

/**
 * | kind      | what happens                                                      |
 * |-----------|-------------------------------------------------------------------|
 * | none      | nothing: at most words get other names                            |
 * | registers | values stay in their lanes: parts of words move, lanes drop copies |
 * | shuffle   | values move between lanes of a warp                               |
 * | shared    | values move through shared memory                                 |
 */
export type RelayoutKind = "none" | "registers" | "shuffle" | "shared";

/** How a tile comes from one layout of registers to another. */
export interface RelayoutPlan {
  /** Whether values stay in their threads, move between threads of a warp, or go through shared memory. */
  readonly kind: RelayoutKind;
  /** The layout before. */
  readonly source: RegisterLayout;
  /** The layout afterwards. */
  readonly target: RegisterLayout;
  /** The extents of the tile. */
  readonly shape: readonly number[];
  /** Bits of an element. */
  readonly bits: number;
  /** Warps that hold the tile together. */
  readonly warps: number;
  /** The moves, in order. */
  readonly steps: readonly RelayoutStep[];
}

/** Elements that share a word. */
export function slotsPerWord(bits: number): number {
  return Math.max(1, 32 / bits);
}

/** The lane that a thread reads. */
export function sourceLane(lanes: LaneMap, thread: number): number {
  return lanes.reduce((lane, { from, flip }, position) => {
    const own = from === undefined ? 0 : (thread >> from) & 1;
    return lane | ((flip ? 1 - own : own) << position);
  }, 0);
}

/** The mask of `shfl.sync.bfly` where the lanes of a round exchange by one; undefined elsewhere. */
export function butterfly(lanes: LaneMap): number | undefined {
  if (lanes.some(({ from }, position) => from !== position)) return undefined;
  return sourceLane(lanes, 0);
}

/** Bytes of shared memory that the plan needs while it runs. */
export function scratchBytes(plan: RelayoutPlan): number {
  return Math.max(0, ...plan.steps.map((step) => (step.kind === "exchange" ? step.bytes : 0)));
}
