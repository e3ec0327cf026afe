/**
 * How a block of the warp-specialized gradients divides its work between two consumers. A lane has registers for 128 numbers of dk and dv
 * together, which is 64 rows of heads of 128. Wider heads are divided instead of columns:
 *
 *   heads up to 128   128 columns of scores, of which each consumer has 64, with the whole rows of dk and dv that belong to them
 *   heads up to 256   64 columns of scores, of which each consumer has half of the rows, and half of the columns of dk and dv
 *
 * Consumers of wide heads put weights and gradients of scores into shared memory, where both read them as factors of dv and dk; what they
 * have in registers instead is dq, under whose sums dk is still multiplied.
 *
 * What shared memory holds of wide heads is one tile of dOut instead of two, and a half of the sums of dq, which then leave in two pieces: the
 * second one under the products of the next turn.
 */
import { consumerRows } from "./configuration.ts";
import { gradientHead } from "./gradient-sums.ts";
import type { AttentionSizes } from "./scores.ts";

/** Consumers of a block. */
export const gradientConsumers = 2;

export interface GradientDivision {
  /** Groups of 64 columns of scores that a block has. */
  readonly groups: 1 | 2;
  /** Among how many consumers the rows of scores, and the columns of dk and dv, are divided. */
  readonly shares: 1 | 2;
  /** Tiles of dOut in shared memory. */
  readonly outStages: 1 | 2;
  /** Pieces in which a consumer's sums of dq leave; scaled, where there are two. */
  readonly pieces: 1 | 2;
}

/** The largest head whose dk and dv a lane holds whole, and whose sums of dq leave in one piece. */
const narrowHead = 128;

type Heads = Pick<AttentionSizes, "d" | "e">;

export function gradientDivision({ d, e }: Heads): GradientDivision {
  if (gradientHead(Math.max(d, e)) <= narrowHead)
    return { groups: 2, shares: 1, outStages: 2, pieces: 1 };
  const pieces = gradientHead(d) <= narrowHead ? 1 : 2;
  return { groups: 1, shares: 2, outStages: 1, pieces };
}

/** Columns of scores of a block. */
export function gradientColumns(sizes: Heads): number {
  return gradientDivision(sizes).groups * consumerRows;
}
