/**
 * Who shares a copy. A block of data may be copied in parts: by the program threads that run a pipeline together, and by
 * the blocks of a cluster, each of which hands its part to all.
 *
 *   two threads, cluster of two        a: [64, 32]    thread 0     thread 1
 *                                       rank 0        rows 0–15    rows 16–31       every part lands in both blocks
 *                                       rank 1        rows 32–47   rows 48–63
 */
import type { GridAxis } from "../../ir/node.ts";
import { shapeText } from "../../ir/size.ts";
import { TilewrightError } from "../../support/diagnostics.ts";
import type { Location } from "../../support/location.ts";
import type { Ref } from "../ref.ts";
import type { Scalar } from "../elementwise.ts";
import { clusterRank } from "../sync.ts";
import type { Barrier } from "../sync.ts";
import type { Trace } from "../trace.ts";
import { describe } from "../traced.ts";
import { all, slice } from "../window.ts";
import { partOfBlock } from "./blocks.ts";
import type { PlacedBlock } from "./blocks.ts";

/** Some who divide work evenly: how many they are, and which of them runs the code. */
export interface Sharers {
  readonly count: number;
  /** Undefined where there is only one. */
  part(): Scalar<"i32"> | undefined;
}

export const alone: Sharers = { count: 1, part: () => undefined };

/** Blocks of the cluster along one axis of the grid. */
export interface Peers extends Sharers {
  readonly axis: string;
  /** The ranks of these blocks in the cluster. */
  ranks(): readonly Scalar<"i32">[];
}

export function peersAlong(trace: Trace, axis: unknown, location: Location): Peers {
  const { grid } = trace.context;
  const position = grid.findIndex(({ name }) => name === axis);
  const count = grid[position]?.cluster ?? 1;
  if (typeof axis !== "string" || position < 0 || count === 1) {
    const axes = grid.filter(({ cluster }) => cluster > 1).map(({ name }) => name);
    throw new TilewrightError({
      code: "TW1107",
      message: `blocks cannot be handed around along ${typeof axis === "string" ? axis : describe(axis)}`,
      location,
      expected: `an axis with several blocks of a cluster: ${axes.join(", ") || "this kernel has none"}`,
      found: typeof axis === "string" ? axis : describe(axis),
    });
  }
  return {
    axis,
    count,
    part: () => clusterRank(axis),
    ranks: () => ranksAlong(grid, axis, count),
  };
}

/** Blocks of a cluster are numbered with the last axis fastest. */
function ranksAlong(
  grid: readonly GridAxis[],
  axis: string,
  count: number,
): readonly Scalar<"i32">[] {
  const shared = grid.filter(({ cluster }) => cluster > 1);
  const stride = (name: string): number =>
    shared
      .slice(shared.findIndex((each) => each.name === name) + 1)
      .reduce((product, { cluster }) => product * cluster, 1);
  const own = shared
    .map(({ name }) => clusterRank(name).mul(name === axis ? 0 : stride(name)))
    .reduce((sum, term) => sum.add(term));
  return Array.from({ length: count }, (_, rank) => own.add(rank * stride(axis)));
}

/** Arrives on the barrier in this block, or in each of the peers. */
export function arriveAt(barrier: Barrier, peers: Peers | undefined): void {
  if (peers === undefined) barrier.arrive();
  else for (const peer of peers.ranks()) barrier.arrive({ peer });
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
  const number = sharers
    .map((each) => ({ count: each.count, part: each.part() }))
    .reduce<Scalar<"i32"> | undefined>((before, { count, part }) => {
      if (part === undefined) return before;
      return before === undefined ? part : before.mul(count).add(part);
    }, undefined);
  return number === undefined ? undefined : { axis, start: number.mul(size), size };
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
