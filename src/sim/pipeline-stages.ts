/**
 * Stages of a pipeline, recognised by allocations that share their first extent:
 *
 *   tileA [8, 128, 64]   tileB [8, 64, 128]   full: 8 barriers      8 stages
 *   left  [128, 256]     right [128, 256]                           none: matrices of 128 rows
 */
import type { AnyOp, Kernel, Op } from "../ir/node.ts";
import { walkOps } from "../ir/traverse.ts";

type Staged = Op<"alloc"> | Op<"alloc_barrier">;

export interface Stages {
  /** The allocations whose first extent is the number of stages. */
  readonly ops: readonly AnyOp[];
  readonly given: number;
  readonly count: number;
}

/** The most stages with which the kernel fits, fewer than it has; undefined where it has none or none fit. */
export function fittingStages(
  kernel: Kernel,
  fits: (stages: Stages) => boolean,
): Stages | undefined {
  const groups = new Map<number, Staged[]>();
  walkOps(kernel.body, (op) => {
    const extent = firstExtent(op);
    if (extent !== undefined)
      groups.set(extent.given, [...(groups.get(extent.given) ?? []), extent.op]);
  });
  for (const [given, members] of groups) {
    const ops = stagedOps(members);
    for (let count = given - 1; count >= 1 && ops.length > 1; count--) {
      const stages = { ops, given, count };
      if (fits(stages)) return stages;
    }
  }
  return undefined;
}

function firstExtent(op: AnyOp): { readonly op: Staged; readonly given: number } | undefined {
  if (op.kind === "alloc_barrier") return atLeastTwo(op, op.attributes.count);
  if (op.kind !== "alloc" || op.attributes.space !== "smem") return undefined;
  return op.attributes.shape.length < 2
    ? undefined
    : atLeastTwo(op, Number(op.attributes.shape[0]));
}

function atLeastTwo(op: Staged, given: number) {
  return given < 2 ? undefined : { op, given };
}

/** Barriers tell an axis of stages from rows; without any, it is the one in front of a matrix. */
function stagedOps(members: readonly Staged[]): readonly Staged[] {
  if (members.some(({ kind }) => kind === "alloc_barrier")) return members;
  return members.filter((op) => op.kind === "alloc" && op.attributes.shape.length > 2);
}
