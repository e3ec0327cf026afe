/**
 * The cost model: what a placement costs, in cycles of a multiprocessor for the four warps of a program
 * thread, as conversions are counted too (see `../relayout/cost.ts`).
 *
 *   | what                                     | costs                                                    |
 *   |------------------------------------------|----------------------------------------------------------|
 *   | computing an element                     | 1 a register, so that copies in many lanes are not free  |
 *   | access to global memory                  | 4 an instruction, and 1 a sector of 32 bytes it touches  |
 *   | access to shared memory                  | 2 an instruction, and 4 a wavefront (four warps share it) |
 *   | conversion: none, or of a splat          | 0                                                        |
 *   | conversion within lanes                  | 1/64 a word; 2 a word where narrow elements are repacked |
 *   | conversion by shuffles                   | 4 a word                                                 |
 *   | conversion through shared memory         | 48 for two meetings, 11 a word                           |
 *   | combining across lanes                   | 4 a word and lane bit                                    |
 *   | combining across warps                   | 100, and 8 a word                                        |
 *   | registers beyond 160 words a lane        | 20 a word                                                |
 *   | a copy by the copy engine                | 0                                                        |
 *   | the same by cp.async, or by plain moves  | 12 each 16 bytes of a lane, or 24                        |
 *
 * Inside a loop everything counts as often as the loop is known to run, 8 times where it is not, and 64
 * at most. A word is 32 bits.
 */
import { isRegister, registerBit } from "../algebra/bits.ts";
import type { Bit } from "../algebra/bits.ts";
import { coversLanes } from "../algebra/lattice.ts";
import { axesLayout, flatLayout } from "../algebra/register-layout.ts";
import type { DistributedLayout, RegisterLayout } from "../algebra/register-layout.ts";
import { packing, wordsPerLane } from "../algebra/vectors.ts";
import { warpBit } from "../algebra/bits.ts";

export const costs = Object.freeze({
  element: 1,
  globalInstruction: 4,
  globalSector: 1,
  sharedInstruction: 2,
  sharedWavefront: 4,
  renamedWord: 1 / 64,
  repackedWord: 2,
  shuffledWord: 4,
  meetings: 48,
  sharedWord: 11,
  laneStep: 4,
  warpMeeting: 100,
  warpWord: 8,
  freeWords: 160,
  spilledWord: 20,
  asynchronousCopy: 12,
  plainCopy: 24,
  unknownTrips: 8,
  mostTrips: 64,
});

/** How a value gets from one layout to another. */
export type ConversionKind = "none" | "registers" | "shuffle" | "shared";

/** What kind of conversion the way from one layout to another needs; undefined where there is none. */
export function conversionKind(
  source: RegisterLayout,
  target: RegisterLayout,
  shape: readonly number[],
): ConversionKind | undefined {
  if (source.text === target.text || source.kind === "splat") return "none";
  if (target.kind === "splat") return undefined;
  if (coversLanes(source, target, shape)) return "registers";
  return coversLanes(withinWarps(source), target, shape) ? "shuffle" : "shared";
}

/** The layout in which every lane of a warp holds what any of them does. */
function withinWarps(layout: DistributedLayout): DistributedLayout {
  let next = layout.axes.flat().filter(isRegister).length;
  const spread = (bit: Bit): Bit =>
    isRegister(bit) || bit <= warpBit(0) ? bit : registerBit(next++);
  const axes = layout.axes.map((axis) => axis.map(spread));
  return layout.kind === "flat" ? flatLayout(axes[0] ?? []) : axesLayout(axes);
}

export function conversionCost(
  source: RegisterLayout,
  target: RegisterLayout,
  shape: readonly number[],
  bits: number,
): number | undefined {
  const kind = conversionKind(source, target, shape);
  if (kind === undefined || kind === "none") return kind && 0;
  const words = Math.max(wordsPerLane(source, shape, bits), wordsPerLane(target, shape, bits));
  if (kind === "shuffle") return costs.shuffledWord * words;
  if (kind === "shared") return costs.meetings + costs.sharedWord * words;
  const packed = packing(source, shape, bits) === packing(target, shape, bits);
  return words * (packed || bits >= 32 ? costs.renamedWord : costs.repackedWord);
}

/** Combining elements along axes: within lanes, then across the lanes and warps that share them. */
export function combineCost(
  layout: RegisterLayout,
  shape: readonly number[],
  axes: readonly number[],
  bits: number,
): number {
  const words = wordsPerLane(layout, shape, bits);
  if (layout.kind === "splat") return words;
  const leading = layout.kind === "flat" ? 0 : shape.length - layout.axes.length;
  const along =
    layout.kind === "flat"
      ? layout.axes.flat()
      : axes.flatMap((axis) => layout.axes[axis - leading] ?? []);
  const threads = along.filter((bit) => !isRegister(bit));
  const warps = threads.filter((bit) => bit <= warpBit(0)).length;
  const lanes = threads.length - warps;
  const left = Math.max(1, words / 2 ** along.filter(isRegister).length);
  const meeting = warps > 0 ? costs.warpMeeting + costs.warpWord * left : 0;
  return words * costs.element + lanes * left * costs.laneStep + meeting;
}

/** Registers that would not fit beside others. */
export function pressureCost(words: number): number {
  return Math.max(0, words - costs.freeWords) * costs.spilledWord;
}
