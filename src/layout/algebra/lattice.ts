/**
 * Which lanes hold what, registers aside: the order of layouts by replication.
 *
 * For one shape, layout a *covers* b when every lane that holds an element in b holds it in a too. Then
 * a value in a can be used as one in b without leaving its lane: the registers not needed are dropped.
 * Each lane or warp bit of a layout is a condition on a lane ("L2 equals bit 0 of the row"); a covers b
 * when the conditions of a are among those of b. With no condition at all, `()`, and `splat`, cover
 * everything. In this order
 *
 * - `meetLayouts(a, b)` holds elements where both a and b do: the conditions of both. An operation on
 *   operands in a and b can be computed there with no exchange. Undefined where conditions contradict
 *   each other, because some elements then have no common holder.
 * - `joinLayouts(a, b)` is the least replicated layout that covers both: the conditions they share. A
 *   value in it serves users that want a as well as those that want b.
 *
 *   | a                      | b                      | meet                     | join                |
 *   |------------------------|------------------------|--------------------------|---------------------|
 *   | (L0 L1 |)              | (L2 L3)                | (L0 L1 | L2 L3)          | ()                  |
 *   | (L0 L1 | L2)           | (L0 | L2)              | (L0 L1 | L2)             | (L0 | L2)           |
 *   | (L0 | L1)              | (L1 | L0)              | undefined                | ()                  |
 *   | splat                  | b                      | b                        | splat               |
 *
 * The result is a or b itself where it has the lanes of one; else its registers run the last axis
 * fastest, low bits first.
 */
import { product, threadBit } from "./bits.ts";
import type { Bit } from "./bits.ts";
import { elementTable, padding } from "./elements.ts";
import { binaryDigits, expand, expandFlat } from "./expansion.ts";
import type { Expansion } from "./expansion.ts";
import { axesLayout, flatLayout, registersPerLane, splat } from "./register-layout.ts";
import type { DistributedLayout, RegisterLayout } from "./register-layout.ts";

/** Conditions of a layout: for each thread bit it owns, the place of the coordinate bit. */
type Conditions = ReadonlyMap<number, string>;

/** The place of coordinate bits that are zero in the whole tile. */
const alwaysZero = "zero";

/** Two layouts seen over the same axes. */
interface Pair {
  readonly left: Expansion;
  readonly right: Expansion;
  readonly flat: boolean;
}

function expandBoth(
  left: DistributedLayout,
  right: DistributedLayout,
  shape: readonly number[],
): Pair | undefined {
  const byAxes = pair(expand(left, shape), expand(right, shape), false);
  return byAxes ?? pair(expandFlat(left, shape), expandFlat(right, shape), true);
}

function pair(
  left: Expansion | undefined,
  right: Expansion | undefined,
  flat: boolean,
): Pair | undefined {
  return left === undefined || right === undefined ? undefined : { left, right, flat };
}

function conditionsOf({ shape, axes }: Expansion): Conditions {
  const conditions = new Map<number, string>();
  axes.forEach((digits, axis) => {
    let place = 1;
    for (const { thread, radix } of binaryDigits(digits)) {
      const used = place < (shape[axis] ?? 1);
      if (thread !== undefined)
        conditions.set(thread, used ? placeText(axis, Math.log2(place)) : alwaysZero);
      place *= radix;
    }
  });
  return conditions;
}

function placeText(axis: number, position: number): string {
  return `${axis}:${position}`;
}

function within(inner: Conditions, outer: Conditions): boolean {
  return [...inner].every(([thread, place]) => outer.get(thread) === place);
}

/** Whether every lane that holds an element in `inner` holds it in `outer` too. */
export function coversLanes(
  outer: RegisterLayout,
  inner: RegisterLayout,
  shape: readonly number[],
): boolean {
  if (outer.kind === "splat") return true;
  if (inner.kind === "splat") return false;
  const both = expandBoth(outer, inner, shape);
  if (both === undefined) return coversByTable(outer, inner, shape);
  return within(conditionsOf(both.left), conditionsOf(both.right));
}

function coversByTable(
  outer: DistributedLayout,
  inner: DistributedLayout,
  shape: readonly number[],
): boolean {
  const elements = product(shape);
  const held = (layout: DistributedLayout): Set<number> => {
    const registers = registersPerLane(layout, shape);
    const pairs = new Set<number>();
    elementTable(layout, shape).forEach((element, place) => {
      if (element !== padding) pairs.add(Math.floor(place / registers) * elements + element);
    });
    return pairs;
  };
  const available = held(outer);
  return [...held(inner)].every((needed) => available.has(needed));
}

/** Whether every element has the same lanes in both, in whatever registers. */
export function sameLanes(
  left: RegisterLayout,
  right: RegisterLayout,
  shape: readonly number[],
): boolean {
  return coversLanes(left, right, shape) && coversLanes(right, left, shape);
}

/** The layout that holds elements exactly where both do. */
export function meetLayouts(
  left: RegisterLayout,
  right: RegisterLayout,
  shape: readonly number[],
): RegisterLayout | undefined {
  if (left.kind === "splat") return right;
  if (right.kind === "splat") return left;
  if (coversLanes(left, right, shape)) return right;
  if (coversLanes(right, left, shape)) return left;
  const both = expandBoth(left, right, shape);
  if (both === undefined) return undefined;
  const conditions = new Map(conditionsOf(both.left));
  for (const [thread, place] of conditionsOf(both.right)) {
    if ((conditions.get(thread) ?? place) !== place) return undefined;
    conditions.set(thread, place);
  }
  const places = [...conditions.values()].filter((place) => place !== alwaysZero);
  if (new Set(places).size < places.length) return undefined;
  return withConditions(conditions, both);
}

/** The least replicated layout that covers both. */
export function joinLayouts(
  left: RegisterLayout,
  right: RegisterLayout,
  shape: readonly number[],
): RegisterLayout | undefined {
  if (left.kind === "splat" || right.kind === "splat") return splat;
  if (coversLanes(left, right, shape)) return left;
  if (coversLanes(right, left, shape)) return right;
  const both = expandBoth(left, right, shape);
  if (both === undefined) return undefined;
  const theirs = conditionsOf(both.right);
  const shared = [...conditionsOf(both.left)].filter(
    ([thread, place]) => theirs.get(thread) === place,
  );
  return withConditions(new Map(shared), both);
}

/** The layout with these conditions and registers numbered from the last axis. */
function withConditions(conditions: Conditions, { left, flat }: Pair): RegisterLayout {
  const owners = new Map([...conditions].map(([thread, place]) => [place, threadBit(thread)]));
  const unused = [...conditions].filter(([, place]) => place === alwaysZero);
  const axes: Bit[][] = [];
  let registers = 0;
  for (let axis = left.shape.length - 1; axis >= 0; axis -= 1) {
    const positions = [...owners.keys()]
      .map((place) => place.split(":").map(Number))
      .filter(([owned]) => owned === axis);
    const count = Math.max(0, ...positions.map(([, position]) => (position ?? 0) + 1));
    const owner = (_: unknown, position: number): Bit =>
      owners.get(placeText(axis, position)) ?? registers++;
    axes.unshift(Array.from({ length: count }, owner));
  }
  placeUnused(
    axes,
    left.shape,
    unused.map(([thread]) => threadBit(thread)),
    registers,
  );
  return flat ? flatLayout(axes[0] ?? []) : axesLayout(axes);
}

/** Owners of nothing but zeros go above the coordinate bits of an axis, which registers then own. */
function placeUnused(
  axes: Bit[][],
  shape: readonly number[],
  unused: readonly Bit[],
  registers: number,
): void {
  if (unused.length === 0) return;
  const missing = (axis: number): number =>
    Math.max(0, Math.ceil(Math.log2(shape[axis] ?? 1)) - (axes[axis] ?? []).length);
  const least = Math.min(...shape.map((_, axis) => missing(axis)));
  const receiver = shape.findIndex((_, axis) => missing(axis) === least);
  const fill = Array.from({ length: least }, (_, index) => registers + index);
  axes[receiver]?.push(...fill, ...unused);
}
