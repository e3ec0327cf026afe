/**
 * Who shares a copy. A block of data may be copied in parts: by the program threads that run a pipeline together, and by
 * the blocks of a cluster, each of which hands its part to all.
 *
 *   two threads, cluster of two        a: [64, 32]    thread 0     thread 1
 *                                       rank 0        rows 0–15    rows 16–31       every part lands in both blocks
 *                                       rank 1        rows 32–47   rows 48–63
 */
import { shapeText } from "../../ir/size.ts";
import { TilewrightError } from "../../support/diagnostics.ts";
import type { Location } from "../../support/location.ts";
import { blockBytes, tensorGrain } from "../multicast.ts";
import type { Sharers } from "../multicast.ts";
import type { Ref } from "../ref.ts";
import type { Scalar } from "../elementwise.ts";
import type { Barrier } from "../barriers.ts";
import { all, slice } from "../window.ts";
import { partOfBlock } from "./blocks.ts";
import type { BlockPlan, PlacedBlock } from "./blocks.ts";

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
