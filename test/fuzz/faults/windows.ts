/**
 * Windows of windows at computed places, each said twice: as calls of the language, and as which positions of each axis are there, so that it is known
 * whether a place lies outside.
 *
 *   x: [5, 12]    .at(slice(a, 4), slice(b, 3))    .transpose()    .at(c)        every start and index a random expression
 */
import { slice } from "../../../src/index.ts";
import type { Ref } from "../../../src/index.ts";
import type { Random } from "../../../src/support/random.ts";
import { drawExpression } from "./expressions.ts";
import type { Expression, Place, Whole } from "./expressions.ts";

/** An axis of a window: how many positions it has, and which of them, from the first up to the end, lie in the array. */
export interface Axis {
  readonly size: number;
  readonly first: number;
  readonly end: number;
}

/** What becomes of the axes of a window; `undefined` where the window may not be accessed. */
export type Axes = readonly Axis[] | undefined;

export interface Step {
  readonly trace: (ref: Ref, place: Place<Whole>) => Ref;
  readonly follow: (axes: readonly Axis[], place: Place<number>) => Axes;
  readonly sizes: readonly number[];
}

export function wholeAxes(shape: readonly number[]): readonly Axis[] {
  return shape.map((size) => ({ size, first: 0, end: size }));
}

export function followed(
  steps: readonly Step[],
  shape: readonly number[],
  place: Place<number>,
): Axes {
  return steps.reduce<Axes>((axes, step) => axes && step.follow(axes, place), wholeAxes(shape));
}

/** A start or index: mostly a small constant, so that few of several decide. */
function drawStart(random: Random, most: number): Expression {
  if (random.below(2) === 0) return drawExpression(random, random.below(4));
  const at = random.below(Math.max(1, most + 1));
  return { trace: ({ round }) => round.mul(0).add(at), value: () => at };
}

function clamped(position: number, size: number): number {
  return Math.min(size, Math.max(0, position));
}

/** A window of each axis, or an index of it. */
function drawWindow(random: Random, sizes: readonly number[], isShared: boolean): Step {
  const parts = sizes.map((extent) => {
    const isIndex = random.below(3) === 0;
    const size = isIndex ? 1 : 1 + random.below(isShared ? extent : extent + 2);
    return { isIndex, size, start: drawStart(random, extent - size) };
  });
  return {
    trace: (ref, place) =>
      ref.at(
        ...parts.map(({ isIndex, size, start }) =>
          isIndex ? start.trace(place) : slice(start.trace(place), size),
        ),
      ),
    follow: (axes, place) => {
      const made = parts.map(({ isIndex, size, start }, at): Axis | "index" | undefined => {
        const { first = 0, end = 0 } = axes[at] ?? {};
        const from = start.value(place);
        const isInside = from >= first && from + size <= end;
        if ((isShared || isIndex) && !isInside) return undefined;
        if (isIndex) return "index";
        return { size, first: clamped(first - from, size), end: clamped(end - from, size) };
      });
      if (made.includes(undefined)) return undefined;
      return made.filter((axis): axis is Axis => axis !== "index" && axis !== undefined);
    },
    sizes: parts.filter(({ isIndex }) => !isIndex).map(({ size }) => size),
  };
}

function turned(sizes: readonly number[]): Step {
  const permutation = sizes.map((_, axis) => sizes.length - 1 - axis);
  return {
    trace: (ref) => ref.transpose(permutation),
    follow: (axes) => axes.toReversed(),
    sizes: sizes.toReversed(),
  };
}

/** The whole array under one more axis or one fewer. */
function reshaped(random: Random, sizes: readonly number[]): Step {
  const count = sizes.reduce((product, size) => product * size, 1);
  const factors = [2, 3, 4, 5].filter((factor) => count % factor === 0);
  const factor = factors.length === 0 ? 1 : random.pick(factors);
  const shape = random.pick([[count], [factor, count / factor]]);
  return {
    trace: (ref) => ref.reshape(shape),
    follow: () => wholeAxes(shape),
    sizes: shape,
  };
}

/** Windows of windows of an array, of which one at least is a window. */
export function drawWindows(
  random: Random,
  shape: readonly number[],
  isShared: boolean,
): readonly Step[] {
  const steps: Step[] = [];
  let sizes = shape;
  const add = (step: Step): void => {
    steps.push(step);
    ({ sizes } = step);
  };
  if (random.below(4) === 0) add(reshaped(random, sizes));
  for (let left = 1 + random.below(3); left > 0 && sizes.length > 0; left--) {
    if (random.below(4) === 0) add(turned(sizes));
    add(drawWindow(random, sizes, isShared));
  }
  return steps;
}
