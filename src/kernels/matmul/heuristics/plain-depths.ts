/** How deep steps of the plain kernel can be. */
import { dtypes } from "../../../formats/dtype.ts";
import type { MatmulProblem } from "../problem.ts";
import { suitsDepth } from "../prologue/prologue.ts";

/** Elements of k in a step of the plain kernel. */
export const plainDepths: readonly number[] = [8, 16, 32, 64, 128];

/** Those of them, or of others, in which no prologue sees numbers of two groups, nor a part of what is stored together. */
export function plainDepthsOf(
  { prologues: { a, b }, accumulator }: MatmulProblem,
  depths: readonly number[] = plainDepths,
): readonly number[] {
  const prologues = [a, b].filter((each) => each !== undefined);
  const least = accumulator === dtypes.f64 ? 8 : 16;
  return depths.filter(
    (depth) => depth >= least && prologues.every((each) => suitsDepth(each, depth)),
  );
}
