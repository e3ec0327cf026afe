/**
 * Who shares a copy. A block of data may be copied in parts: by the program threads that run a pipeline together, and by
 * the blocks of a cluster, each of which hands its part to all.
 *
 *   two threads, cluster of two        a: [64, 32]    thread 0     thread 1
 *                                       rank 0        rows 0–15    rows 16–31       every part lands in both blocks
 *                                       rank 1        rows 32–47   rows 48–63
 *
 * Where parts would be too small for a tensor copy, the first of all that share it copies the block for everybody.
 */
import { packedBytes } from "../../formats/dtype.ts";
import type { GridAxis } from "../../ir/node.ts";
import { shapeText } from "../../ir/size.ts";
import { TilewrightError } from "../../support/diagnostics.ts";
import type { Location } from "../../support/location.ts";
import { multicastAxes } from "../async.ts";
import type { Ref } from "../ref.ts";
import type { Scalar } from "../elementwise.ts";
import { clusterRank } from "../sync.ts";
import type { Barrier } from "../sync.ts";
import type { Trace } from "../trace.ts";
import { all, slice } from "../window.ts";
import { partOfBlock } from "./blocks.ts";
import type { BlockPlan, PlacedBlock } from "./blocks.ts";

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
  /** The ranks of these blocks in the cluster. */
  ranks(): readonly Scalar<"i32">[];
}

/** The blocks that a multicast along the given axes reaches; undefined where there is none. */
export function peersAlong(trace: Trace, given: unknown, location: Location): Peers | undefined {
  const axes = multicastAxes(given, location);
  const { grid } = trace.context;
  const shared = grid.filter(({ cluster }) => cluster > 1);
  const blocksAlong = (axis: string): number => {
    const found = shared.find(({ name }) => name === axis);
    if (found !== undefined) return found.cluster;
    throw new TilewrightError({
      code: "TW1107",
      message: `blocks cannot be handed around along ${axis}`,
      location,
      expected: `an axis with several blocks of a cluster: ${shared.map(({ name }) => name).join(", ") || "this kernel has none"}`,
      found: axis,
    });
  };
  const counts = axes.map(blocksAlong);
  if (counts.length === 0) return undefined;
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

/** Arrives on the barrier in this block, or in each of the given ones. */
export function arriveAt(barrier: Barrier, ranks: readonly Scalar<"i32">[] | undefined): void {
  if (ranks === undefined) barrier.arrive();
  else for (const peer of ranks) barrier.arrive({ peer });
}

/** The axis along which a block divides into equal parts. */
export function dividedAxis(
  name: string,
  shape: readonly number[],
  parts: number,
  location: Location,
): number {
  const axis = shape.findIndex((extent) => extent % parts === 0);
  if (axis >= 0) return axis;
  throw new TilewrightError({
    code: "TW1105",
    message: `the block of ${name} cannot be divided into ${parts} equal parts`,
    location,
    expected: `an extent that is a multiple of ${parts}`,
    found: shapeText(shape),
  });
}

/** Where a tensor copy, which multicasts are, can begin in shared memory. */
const tensorGrain = 128;

/**
 * The axis along which the blocks of a cluster divide a block that each of them needs; undefined where one of them copies all
 * of it: its parts would not be equal, or begin where no multicast can.
 */
export function multicastAxis({ dtype, shape }: BlockPlan, parts: number): number | undefined {
  const axis = shape.findIndex((extent) => extent % parts === 0);
  return axis >= 0 && blockBytes(dtype, shape) % (parts * tensorGrain) === 0 ? axis : undefined;
}

/** Slots after the first begin where the one before them ends. */
export function requireMulticastSlots(
  { name, dtype, shape, location }: BlockPlan,
  depth: number,
): void {
  const bytes = blockBytes(dtype, shape);
  if (depth === 1 || bytes % tensorGrain === 0) return;
  throw new TilewrightError({
    code: "TW1105",
    message: `the block of ${name} cannot be multicast: it takes ${bytes} bytes`,
    location,
    expected: `a multiple of ${tensorGrain} bytes, at which each of the ${depth} slots begins`,
    found: `${shapeText(shape)} of ${dtype.name}, ${bytes} bytes`,
    remedy: "choose a larger block, or leave multicast out",
  });
}

function blockBytes(dtype: BlockPlan["dtype"], shape: readonly number[]): number {
  return packedBytes(
    dtype,
    shape.reduce((product, extent) => product * extent, 1),
  );
}

/** Which part of a block is to be copied here: some elements along one axis. */
export interface Part {
  readonly axis: number;
  readonly start: Scalar<"i32">;
  readonly size: number;
}

/** The part of a block of the given extent that the sharers' code here is to copy; undefined for all of it. */
export function partHere(
  axis: number,
  extent: number | undefined,
  sharers: readonly Sharers[],
): Part | undefined {
  const parts = sharers.reduce((product, { count }) => product * count, 1);
  if (parts === 1 || extent === undefined) return undefined;
  const size = extent / parts;
  const number = numberHere(sharers);
  return number === undefined ? undefined : { axis, start: number.mul(size), size };
}

/** Which of all sharers runs the code; undefined where there is only one. */
export function numberHere(sharers: readonly Sharers[]): Scalar<"i32"> | undefined {
  return sharers
    .map((each) => ({ count: each.count, part: each.part() }))
    .reduce<Scalar<"i32"> | undefined>((before, { count, part }) => {
      if (part === undefined) return before;
      return before === undefined ? part : before.mul(count).add(part);
    }, undefined);
}

/** A part of a slot. */
export function partOfSlot(slot: Ref, part: Part | undefined): Ref {
  if (part === undefined) return slot;
  const before = Array.from({ length: part.axis }, () => all);
  return slot.at(...before, slice(part.start, part.size));
}

/** The same part of a block's window. */
export function partOfWindow(block: PlacedBlock, part: Part | undefined): Ref {
  return part === undefined ? block.window : partOfBlock(block, part.axis, part.start, part.size);
}
