/**
 * Arrays that do not lie row by row: columns first, rows with room behind them, elements apart, rows that overlap. Strides are numbers, or sizes that
 * only the launch knows.
 *
 *   [3, 4] by columns   [1, 3]        with room   [6, 1]        apart   [8, 2]        overlapping   [1, 1]
 */
import { dim } from "../../src/index.ts";
import type { LaunchSize } from "../../src/index.ts";
import type { Random } from "../../src/support/random.ts";

type Numbers = readonly number[];

/** Strides of one array, as they are declared and as they are. */
export interface Lying {
  readonly strides: Numbers;
  readonly declared: readonly (number | LaunchSize)[];
  /** Values of the sizes that are named for them. */
  readonly dimensions: { readonly [name: string]: number };
}

/** Elements from the first to the last, both included. */
export function reachOf(shape: Numbers, strides: Numbers): number {
  return shape.reduce((reach, extent, axis) => reach + (extent - 1) * (strides[axis] ?? 0), 1);
}

/** Where an element lies. */
export function elementAt(strides: Numbers, place: Numbers): number {
  return place.reduce((sum, at, axis) => sum + at * (strides[axis] ?? 0), 0);
}

/** Axes in any order, each a little further than what lies inside it reaches, or just as far. */
function apart(random: Random, shape: Numbers): Numbers {
  const rowMajor = shape.map((_, axis) => axis).toReversed();
  const rest = [...rowMajor];
  const order = random.below(3) === 0 ? rowMajor : rowMajor.map(() => taken(random, rest));
  const strides = shape.map(() => 1);
  let reach = random.pick([1, 1, 1, 1, 2, 3]);
  for (const axis of order) {
    strides[axis] = reach;
    const room = random.pick([0, 0, 0, 1, 2, 4, 8, 16]);
    // Rows that begin at whole sixteens of bytes are what TMA takes.
    const rounded = random.below(3) === 0 ? 16 : 1;
    reach = Math.ceil(((shape[axis] ?? 1) * reach + room) / rounded) * rounded;
  }
  return strides;
}

function taken(random: Random, rest: number[]): number {
  return rest.splice(random.below(rest.length), 1)[0] ?? 0;
}

function divisorOf(stride: number): number {
  return [16, 8, 4, 3, 2].find((divisor) => stride % divisor === 0) ?? 1;
}

/** How an array of a name and shape lies; rows by rows, without a word, where it is undefined. Elements of what is only read may be one and the same. */
export function drawLying(
  random: Random,
  name: string,
  shape: Numbers,
  { overlaps }: { readonly overlaps: boolean },
): Lying | undefined {
  if (random.below(3) > 0) return undefined;
  const strides =
    overlaps && random.below(6) === 0 ? shape.map(() => 1 + random.below(3)) : apart(random, shape);
  const dimensions: { [name: string]: number } = {};
  const declared = strides.map((stride, axis) => {
    if (random.below(3) > 0) return stride;
    const own = `${name}_stride${axis}`;
    const multipleOf = random.below(2) === 0 ? divisorOf(stride) : 1;
    const times = random.below(3) === 0 ? divisorOf(stride) : 1;
    dimensions[own] = stride / times;
    const size = dim(own, (stride / times) % multipleOf === 0 ? { multipleOf } : {});
    return times === 1 ? size : size.mul(times);
  });
  return { strides, declared, dimensions };
}
