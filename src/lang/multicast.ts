/**
 * Multicasts: copies that land in several blocks of a cluster. One block may copy for all, or, collectively, each of them a part:
 *
 *   collective, cluster of two     rank 0 copies rows 0–31     rank 1 copies rows 32–63     each block has all 64, and one arrival
 *
 * Where parts would be too small for a tensor copy, the first of all that share it copies the block for everybody.
 */
import { packedBytes } from "../formats/dtype.ts";
import type { DType } from "../formats/dtype.ts";
import type { GridAxis } from "../ir/node.ts";
import { TilewrightError } from "../support/diagnostics.ts";
import type { Location } from "../support/location.ts";
import type { Scalar } from "./elementwise.ts";
import { clusterRank } from "./sync.ts";
import type { Trace } from "./trace.ts";
import { wrongKind } from "./traced.ts";

/** The axes of a multicast, of which none is named twice. */
export function multicastAxes(given: unknown, location: Location): readonly string[] {
  if (given === undefined) return [];
  const axes: readonly unknown[] = Array.isArray(given) ? given : [given];
  return axes.map((axis, position) => {
    if (typeof axis === "string" && axes.indexOf(axis) === position) return axis;
    return wrongKind(
      "multicast",
      'an axis of the cluster, "i", or several, ["i", "j"]',
      given,
      location,
    );
  });
}

/** Some who divide work evenly: how many they are, and which of them runs the code. */
export interface Sharers {
  readonly count: number;
  /** Undefined where there is only one. */
  part(): Scalar<"i32"> | undefined;
}

export const alone: Sharers = { count: 1, part: () => undefined };

/** Blocks of the cluster along some axes of the grid. */
export interface Peers extends Sharers {
  readonly axes: readonly string[];
  part(): Scalar<"i32">;
  /** The ranks of these blocks in the cluster. */
  ranks(): readonly Scalar<"i32">[];
}

/** The blocks that a multicast along the axes, one or more, reaches. */
export function peersAlong(trace: Trace, axes: readonly string[], location: Location): Peers {
  const { grid } = trace.context;
  const shared = grid.filter(({ cluster }) => cluster > 1);
  const counts = axes.map((axis) => {
    const found = shared.find(({ name }) => name === axis);
    if (found !== undefined) return found.cluster;
    throw new TilewrightError({
      code: "TW1107",
      message: `blocks cannot be handed around along ${axis}`,
      location,
      expected: `an axis with several blocks of a cluster: ${shared.map(({ name }) => name).join(", ") || "this kernel has none"}`,
      found: axis,
    });
  });
  return {
    axes,
    count: counts.reduce((product, count) => product * count, 1),
    part: () =>
      axes
        .map((axis) => clusterRank(axis))
        .reduce((before, rank, position) => before.mul(counts[position] ?? 1).add(rank)),
    ranks: () => ranksAlong(shared, axes),
  };
}

/** Blocks of a cluster are numbered with the last axis fastest. */
function ranksAlong(
  shared: readonly GridAxis[],
  axes: readonly string[],
): readonly Scalar<"i32">[] {
  const stride = (name: string): number =>
    shared
      .slice(shared.findIndex((each) => each.name === name) + 1)
      .reduce((product, { cluster }) => product * cluster, 1);
  const own = shared
    .map(({ name }) => clusterRank(name).mul(axes.includes(name) ? 0 : stride(name)))
    .reduce((sum, term) => sum.add(term));
  let others: readonly number[] = [0];
  for (const { name, cluster } of shared)
    if (axes.includes(name))
      others = others.flatMap((before) =>
        Array.from({ length: cluster }, (_, rank) => before + rank * stride(name)),
      );
  return others.map((other) => own.add(other));
}

/** Where a tensor copy, which multicasts are, can begin in shared memory. */
export const tensorGrain = 128;

/**
 * The axis along which the blocks of a cluster divide a block that each of them needs; undefined where one of them copies all
 * of it: its parts would not be equal, or begin where no multicast can.
 */
export function multicastAxis(
  { dtype, shape }: { readonly dtype: DType; readonly shape: readonly number[] },
  parts: number,
): number | undefined {
  // A part of an axis within others would leave gaps.
  const axis = shape.findIndex((extent) => extent > 1);
  return (shape[axis] ?? 1) % parts === 0 && blockBytes(dtype, shape) % (parts * tensorGrain) === 0
    ? axis
    : undefined;
}

export function blockBytes(dtype: DType, shape: readonly number[]): number {
  return packedBytes(
    dtype,
    shape.reduce((product, extent) => product * extent, 1),
  );
}
