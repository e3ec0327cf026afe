/**
 * Who shares out the elements along axes: the digits of the coordinates (see `../algebra/expansion.ts`)
 * of those axes that a reduction, scan or sort runs over.
 *
 *   (L2 L3 L4 R1 W0 W1 | R0 L0 L1) on [64, 16], along axis 0
 *
 *   | weight | owner             | elements are combined                     |
 *   |--------|-------------------|-------------------------------------------|
 *   | 1      | L2                | across lanes                              |
 *   | 2      | L3                | across lanes                              |
 *   | 4      | L4                | across lanes                              |
 *   | 8      | register stride 2 | within the lane                           |
 *   | 16     | W0                | across warps, through shared memory       |
 *   | 32     | W1                | across warps, through shared memory       |
 *
 * Elements of a flat layout that straddles axes have no digits by axes. Where the axes that stay are
 * neighbours, those before and behind them are taken together; elsewhere there is no answer, and ops
 * that must have one convert their tiles first (`layoutAlong`).
 */
import { bitRun, laneBit, laneBits, product, warpRun } from "../algebra/index-bits.ts";
import { expand } from "../algebra/expansion.ts";
import type { Digit, Expansion } from "../algebra/expansion.ts";
import { axesLayout } from "../algebra/register-layout.ts";
import type { DistributedLayout } from "../algebra/register-layout.ts";

export interface Along {
  /** The tile's axes, or groups of them. */
  readonly expansion: Expansion;
  /** Those of its axes that are run over. */
  readonly axes: readonly number[];
}

/** The digits along the axes; undefined for a flat layout that straddles them. */
export function digitsAlong(
  layout: DistributedLayout,
  shape: readonly number[],
  axes: readonly number[],
): Along | undefined {
  const expansion = expand(layout, shape);
  if (expansion !== undefined) return { expansion, axes };
  const kept = shape.map((_, axis) => axis).filter((axis) => !axes.includes(axis));
  const [firstKept, lastKept] = [kept[0], kept.at(-1)];
  if (firstKept === undefined || lastKept === undefined)
    return grouped(layout, [product(shape)], [0]);
  if (lastKept - firstKept + 1 !== kept.length) return undefined;
  const groups = [
    shape.slice(0, firstKept),
    shape.slice(firstKept, lastKept + 1),
    shape.slice(lastKept + 1),
  ];
  return grouped(layout, groups.map(product), [0, 2]);
}

function grouped(
  layout: DistributedLayout,
  shape: readonly number[],
  axes: readonly number[],
): Along | undefined {
  const expansion = expand(layout, shape);
  return expansion && { expansion, axes };
}

/** A digit of a coordinate and what a step of it adds to the coordinate. */
export interface WeighedDigit extends Digit {
  readonly weight: number;
}

/** The digits of an axis, least significant first. */
export function weighed({ axes }: Expansion, axis: number): readonly WeighedDigit[] {
  let weight = 1;
  return (axes[axis] ?? []).map((digit) => {
    const own = { ...digit, weight };
    weight *= digit.radix;
    return own;
  });
}

/** The value of a digit in a register. */
export function digitOf({ radix, stride }: Digit, register: number): number {
  return Math.floor(register / stride) % radix;
}

/** The coordinate that a register contributes along an axis. */
export function registerPart(digits: readonly WeighedDigit[], register: number): number {
  return digits.reduce(
    (sum, digit) =>
      digit.thread === undefined ? sum + digitOf(digit, register) * digit.weight : sum,
    0,
  );
}

/** Thread bits that share out the axes, the most significant digit of each axis first. */
export function threadsAlong({ expansion, axes }: Along): readonly number[] {
  return axes.flatMap((axis) =>
    (expansion.axes[axis] ?? []).toReversed().flatMap(({ thread }) => thread ?? []),
  );
}

/** Those of them that tell warps apart. */
export function warpsAlong(along: Along): readonly number[] {
  return threadsAlong(along).filter((thread) => thread >= laneBits);
}

/**
 * The layout in which a scan or sort works: the tile's own where it has digits along the axis, bits but
 * for the last one; elsewhere one in which lanes share out the last axes.
 */
export function layoutAlong(
  layout: DistributedLayout,
  shape: readonly number[],
  axis: number,
  warps: number,
): DistributedLayout {
  const along = digitsAlong(layout, shape, [axis]);
  const regular = along?.axes.every((own) =>
    (along.expansion.axes[own] ?? []).slice(0, -1).every(({ radix }) => radix === 2),
  );
  return regular === true ? layout : workingLayout(shape, warps);
}

function workingLayout(shape: readonly number[], warps: number): DistributedLayout {
  const free = [...bitRun(laneBit, 0, laneBits), ...warpRun(warps)];
  const owners = shape.toReversed().map((extent) => {
    const bits = Math.ceil(Math.log2(Math.max(1, extent)));
    return free.splice(0, bits);
  });
  return axesLayout(owners.toReversed());
}
