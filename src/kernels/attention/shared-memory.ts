/**
 * What the warp-specialized kernel has in shared memory: q, k and v, ones where tensor cores sum powers, and what else there is room for.
 *
 *   heads of 128, two consumers over 128 columns, KiB      q 32   k 2 · 32   v 2 · 32   results 32   q of the next tile 32
 */
import { consumerRows } from "./configuration.ts";
import type { WarpSpecializedAttention } from "./configuration.ts";
import { paddedHead } from "./dimensions.ts";
import type { AttentionForm } from "./dimensions.ts";
import { isNarrow } from "./problem.ts";
import type { AttentionProblem } from "./problem.ts";

/** Bytes of shared memory that the operands of a configuration take. */
export function attentionBytes(
  problem: AttentionProblem,
  { consumers, columns, stages }: WarpSpecializedAttention,
  sizes: { readonly d: number; readonly e: number },
): number {
  const { d, e } = heads(problem, sizes);
  const ones = sumsByProduct(problem) ? consumers * onesColumns * columns : 0;
  const elements = consumers * consumerRows * d + stages * columns * (d + e) + ones;
  return (problem.q.dtype.bits / 8) * elements + 1024;
}

/** Sizes of tiles that hold heads; wgmma sums over 32 numbers of FP8 at a time. */
export function heads(
  problem: AttentionProblem,
  { d, e }: { readonly d: number; readonly e: number },
): { readonly d: number; readonly e: number } {
  return { d: Math.max(paddedHead(d), isNarrow(problem) ? 32 : 0), e: paddedHead(e) };
}

/**
 * Whether tensor cores sum the powers of a step, too, as they were rounded: by a product with ones, of the fewest columns there are, which takes a sixteenth of
 * that with the values of heads of 128 where lanes would take an eighth of all their instructions. Steps are summed by lanes: tensor cores cut what they add
 * to a large sum to fourteen bits, of which a power beside those of many columns has none. The logarithm of a sum is of what was not rounded.
 */
export function sumsByProduct(problem: AttentionProblem): boolean {
  return isNarrow(problem) && problem.logSumExp === undefined && problem.dropout === undefined;
}

/** Columns of ones. */
export const onesColumns = 8;

/** What lies beside the operands where there is room. */
interface Spare {
  /** Tiles of q of a consumer: with two, the rows of the next tile come under the steps of one. */
  readonly queries: 1 | 2;
  /** Whether results leave through memory of their own, so that the tile of q is free while they do. */
  readonly hasOut: boolean;
}

export function spareOf(
  { problem, sizes }: AttentionForm,
  configuration: WarpSpecializedAttention,
): Spare {
  const rows = configuration.consumers * consumerRows;
  const { d, e } = heads(problem, sizes);
  const out = (problem.out.dtype.bits / 8) * rows * e;
  const query = (problem.q.dtype.bits / 8) * rows * d;
  const free = sharedBytes - attentionBytes(problem, configuration, sizes);
  const hasOut = sizes.ends === 0 && out <= free;
  return { queries: query <= free - (hasOut ? out : 0) ? 2 : 1, hasOut };
}

/** What a block has of a processor with wgmma. */
const sharedBytes = 227 * 1024;
