/**
 * Ranks of blocks in their cluster: those that a multicast reaches, as a mask, and the one that leads a pair.
 *
 *   cluster [2, 2], multicast along the first axis      ranks 0 and 2, or 1 and 3: mask 0b0101 shifted by the own rank along the second
 */
import type { Register } from "../../module.ts";
import { integer } from "../../operands.ts";
import type { EmitContext } from "../context.ts";
import { indexQuotient, indexRemainder } from "../elementwise/division.ts";
import { clusterSize } from "../grid.ts";

/** The own rank. */
function clusterRank({ code, kernel, numbers }: EmitContext): Register {
  return indexRemainder(code, numbers.block, clusterSize(kernel.grid));
}

/** The rank of the block that leads the own pair, and whether that is the own one. */
export function pairLeader(context: EmitContext): {
  readonly rank: Register;
  readonly isOwn: Register;
} {
  const { code } = context;
  const own = clusterRank(context);
  const rank = code.make("b32", "and.b32", own, integer(-2));
  return { rank, isOwn: code.make("pred", "setp.eq.u32", own, rank) };
}

/** Whether blocks of a pair are both reached by a multicast. */
export function reachesPair({ kernel }: EmitContext, axes: readonly string[]): boolean {
  const last = kernel.grid.findLast(({ cluster }) => cluster > 1);
  return last !== undefined && axes.includes(last.name);
}

/** The ranks of a cluster that a multicast reaches, as a mask for rank 0 along its axes, and the shift. */
export function multicastMask(context: EmitContext, axes: readonly string[]): Register {
  const { code, kernel } = context;
  const rank = clusterRank(context);
  // The lowest rank of the group: the own one without its part along the axes.
  let lowest: Register = code.constant("b32", 0);
  let mask = 0;
  for (const other of ranksOf(kernel.grid, axes)) mask |= 1 << other;
  let inner = 1;
  for (const axis of kernel.grid.toReversed()) {
    if (axis.cluster > 1 && !axes.includes(axis.name)) {
      const high = indexQuotient(code, rank, inner);
      const own = indexRemainder(code, high, axis.cluster);
      lowest = code.make("b32", "mad.lo.u32", own, integer(inner), lowest);
    }
    inner *= axis.cluster;
  }
  return code.make("b32", "shl.b32", code.constant("b32", mask), lowest);
}

/** Ranks, relative to the group's lowest, that differ along the axes alone. */
function ranksOf(grid: EmitContext["kernel"]["grid"], axes: readonly string[]): readonly number[] {
  let ranks: readonly number[] = [0];
  let inner = 1;
  for (const axis of grid.toReversed()) {
    if (axes.includes(axis.name)) {
      const step = inner;
      ranks = Array.from({ length: axis.cluster }, (_, index) => index).flatMap((index) =>
        ranks.map((rank) => rank + index * step),
      );
    }
    inner *= axis.cluster;
  }
  return ranks;
}
