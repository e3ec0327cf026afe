/**
 * Which kernel and tiles to use where none were given. What bounds the tiles of the warp-specialized kernel is the register
 * file: a consumer's lane holds its sums, the scores of one step and their powers,
 *
 *   head of 64    32 sums +  64 scores + 32 powers     three consumers of 160 registers
 *   head of 128   64 sums +  64 scores + 32 powers     two of 240; over many columns that all rows see, 192 of them
 *   head of 256  128 sums +  40 scores + 20 powers     two of 240, over as many columns as shared memory has room for
 *
 * FP8 is multiplied in half the time, under which the softmax of one other consumer does not fit: heads of 128 have three consumers,
 *
 *   head of 128   64 sums +  48 scores + 12 powers     three of 160, over fewer columns
 */
import { dtypes } from "../../formats/dtype.ts";
import type { Target } from "../../targets/target.ts";
import type { AttentionConfiguration, PlainAttention } from "./configuration.ts";
import { consumerRows } from "./configuration.ts";
import { paddedHead } from "./dimensions.ts";
import { isNarrow } from "./problem.ts";
import type { AttentionProblem } from "./problem.ts";
import type { AttentionSizes } from "./scores.ts";
import { hasSumsInFlight } from "../../targets/product-instructions.ts";

/** Why the warp-specialized kernel cannot be used, in words for a note; undefined where it can. */
export function warpSpecializedProblem(
  problem: AttentionProblem,
  { t, d, e, ends }: AttentionSizes,
  target: Target,
): string | undefined {
  if (!hasSumsInFlight(target) || !target.features.includes("tma"))
    return `${target.name} has no wgmma`;
  const { dtype } = problem.q;
  if (dtype === dtypes.f32) return "wgmma does not multiply f32 as it is";
  if (isNarrow(problem) && ends > 0)
    return "values of FP8 are turned in whole tiles, which sequences with offsets do not begin with";
  const along = 128 / dtype.bits;
  for (const [name, size] of Object.entries({ d, e }))
    if (size % along !== 0 || size === 0)
      return `${name} = ${size} keeps TMA out: pad it to ${Math.max(along, Math.ceil(size / along) * along)}`;
  if (t === 0) return "there are no columns";
  return undefined;
}

export function chooseAttention(
  problem: AttentionProblem,
  sizes: AttentionSizes,
  target: Target,
): AttentionConfiguration {
  const largest = paddedHead(Math.max(sizes.d, sizes.e));
  if (warpSpecializedProblem(problem, sizes, target) !== undefined)
    return plainTiles(problem, largest);
  // Random bits take two words for each score beside it.
  const hasFewColumns = largest > 128 || problem.dropout !== undefined;
  if (sizes.s <= consumerRows)
    return {
      kernel: "warp-specialized",
      consumers: 1,
      columns: hasFewColumns ? 64 : 128,
      stages: 2,
    };
  // A bias, a mask, a score of one's own or dropout takes registers that three consumers, or wide heads over more columns, do not have.
  const { bias, mask, score, dropout, softCap, querySegmentIds } = problem;
  const isPlain = [bias, mask, score, dropout, querySegmentIds].every((each) => each === undefined);
  if (isPlain && sizes.s > 2 * consumerRows) {
    if (largest <= 64) return { kernel: "warp-specialized", consumers: 3, columns: 128, stages: 2 };
    if (isNarrow(problem) && largest <= 128 && softCap === undefined)
      return { kernel: "warp-specialized", consumers: 3, columns: 96, stages: 2 };
  }
  // FP8 is multiplied by 32 columns at a time, and wide heads of it have not been tried over more.
  const hasRegisters = isPlain && softCap === undefined && sizes.ends === 0 && !isNarrow(problem);
  const columns = (hasFew: number, hasMany: number): number => (hasRegisters ? hasMany : hasFew);
  if (hasFewColumns)
    return { kernel: "warp-specialized", consumers: 2, columns: columns(64, 80), stages: 2 };
  const { left, right } = problem.window;
  const seesAll = left === undefined && right === undefined && sizes.t >= manyColumns;
  return {
    kernel: "warp-specialized",
    consumers: 2,
    columns: seesAll ? columns(128, 192) : 128,
    stages: 2,
  };
}

/** From so many columns on there are steps enough for fewer and longer ones to gain: 2% over 128 or 160 columns. */
const manyColumns = 2048;

/** Tiles whose sums, scores and operands fit the registers of one thread; lanes that multiply f32 hold their factors besides. */
function plainTiles({ q }: AttentionProblem, head: number): PlainAttention {
  if (q.dtype === dtypes.f32) return { kernel: "plain", rows: head > 32 ? 16 : 32, columns: 32 };
  return { kernel: "plain", rows: head > 128 ? 32 : 64, columns: head > 64 ? 32 : 64 };
}
