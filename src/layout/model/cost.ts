/**
 * The cost model: what a placement costs, in cycles of a multiprocessor for the four warps of a program
 * thread, as conversions are counted too (see `../relayout/cost.ts`).
 *
 *   | what                                     | costs                                                    |
 *   |------------------------------------------|----------------------------------------------------------|
 *   | computing an element                     | 1 a register, so that copies in many lanes are not free  |
 *   | access to global memory                  | 4 an instruction, and 1 a sector of 32 bytes it touches  |
 *   | access to shared memory                  | 2 an instruction, and 4 a wavefront (four warps share it) |
 *   | the same as matrices of 8 × 8            | likewise: four matrices an instruction, of a wavefront each |
 *   | conversion: none, or of a splat          | 0                                                        |
 *   | conversion within lanes                  | 1/64 a word; 2 a word where narrow elements are repacked |
 *   | and where lanes keep different parts     | 2 a word and alternative                                 |
 *   | conversion by shuffles                   | 4 a word                                                 |
 *   | conversion through shared memory         | 48 for two barriers, 11 a word                           |
 *   | combining across lanes                   | 4 a word and lane bit                                    |
 *   | combining across warps                   | 100, and 8 a word                                        |
 *   | registers beyond 160 words a lane        | 20 a word                                                |
 *   | a hint not followed                      | 48, as the barriers of a conversion through shared memory |
 *   | a copy by TMA                | 0                                                        |
 *   | the same by cp.async, or by plain moves  | 12 each 16 bytes of a lane, or 24                        |
 *
 * Inside a loop everything counts as often as the loop is known to run, 8 times where it is not, and 64
 * at most. A word is 32 bits.
 */
import { isRegister, warpBit } from "../algebra/index-bits.ts";
import { copyCounts } from "../algebra/register-layout.ts";
import type { RegisterLayout } from "../algebra/register-layout.ts";
import { wordsPerLane } from "../algebra/vectors.ts";

export const costs = Object.freeze({
  element: 1,
  globalInstruction: 4,
  globalSector: 1,
  sharedInstruction: 2,
  sharedWavefront: 4,
  renamedWord: 1 / 64,
  repackedWord: 2,
  selectedWord: 2,
  shuffledWord: 4,
  barriers: 48,
  sharedWord: 11,
  laneStep: 4,
  warpBarrier: 100,
  warpWord: 8,
  freeWords: 160,
  spilledWord: 20,
  hint: 48,
  asynchronousCopy: 12,
  plainCopy: 24,
  unknownTrips: 8,
  mostTrips: 64,
});

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
  // Registers beyond the layout's own bits, which repeat it, lie along the axes as well.
  const copies = copyCounts(layout, shape);
  const repeats = layout.kind === "flat" ? [copies[0] ?? 1] : axes.map((axis) => copies[axis] ?? 1);
  const inLane = repeats.reduce((all, count) => all * count, 2 ** along.filter(isRegister).length);
  const left = Math.max(1, words / inLane);
  const barrier = warps > 0 ? costs.warpBarrier + costs.warpWord * left : 0;
  return words * costs.element + lanes * left * costs.laneStep + barrier;
}

/** Registers that would not fit beside others. */
export function pressureCost(words: number): number {
  return Math.max(0, words - costs.freeWords) * costs.spilledWord;
}
