/**
 * The gradient of x with stride 2 (transposed convolution). Positions two apart have the same taps, so each position of a pair is a dense
 * convolution of its own over some of the taps:
 *
 *   taps 3, stride 2, before 1      x      0   1   2   3   4   5        places 0, 2, 4: tap 1 of window 0, 1, 2
 *   window 0                          t1  t2                            places 1, 3, 5: tap 2 of window 0, 1, 2
 *   window 1                              t0  t1  t2                                and tap 0 of window 1, 2, 3
 *
 * Element 2 i + place meets tap first + 2 u of window i + shift − u · dilation.
 */
import { windowAlong } from "./problem.ts";
import type { ConvolutionProblem, Geometry, Triple } from "./problem.ts";

/** The places and taps of one phase along an axis. */
export interface PhaseAxis {
  /** Which of a pair is made. */
  readonly place: number;
  /** The first tap that it meets. */
  readonly first: number;
  /** The window in which a place meets its first tap, as far from the number of its pair. */
  readonly shift: number;
  readonly count: number;
}

/** All phases of a gradient, which one launch makes. */
export interface Phases {
  /** How far apart the places of a phase are, and the taps that they meet. */
  readonly apart: Triple;
  /** From those that meet the most taps to those that meet the fewest, so that the last tiles of a launch are short ones. */
  readonly each: readonly Triple<PhaseAxis>[];
}

/** Channels that columns of a pair may have. */
export const mostPaired = 2 ** 29;

/** Whether places of pairs can be made apart: two by two over even extents, by taps that change sides. */
export function hasPhases(
  { stride, dilation }: ConvolutionProblem,
  { input, groups, channels }: Geometry,
): boolean {
  return (
    stride[0] === 1 &&
    groups * channels <= mostPaired &&
    [1, 2].every((axis) => {
      if (stride[axis] === 1) return true;
      return stride[axis] === 2 && (input[axis] ?? 1) % 2 === 0 && (dilation[axis] ?? 1) % 2 === 1;
    })
  );
}

function alongAxis(
  problem: ConvolutionProblem,
  { taps }: Geometry,
  axis: number,
): readonly PhaseAxis[] {
  const { stride, dilation, before } = windowAlong(problem, axis);
  const count = taps[axis] ?? 1;
  if (stride === 1) return [{ place: 0, first: 0, shift: before, count }];
  return [0, 1].map((place) => {
    const first = (place + before) % 2;
    const shift = (place + before - first * dilation) / 2;
    return { place, first, shift, count: Math.max(0, Math.ceil((count - first) / 2)) };
  });
}

/** Taps that places of a phase meet. */
export function tapsOf(phase: Triple<PhaseAxis>): number {
  return phase.reduce((all, { count }) => all * count, 1);
}

/** The phases, and the sizes of the convolution that each of them is but for its taps; those without taps are zeros. */
export function phasesOf(
  problem: ConvolutionProblem,
  geometry: Geometry,
): { readonly phases: Phases; readonly geometry: Geometry } {
  const [depths, rows, columns] = [0, 1, 2].map((axis) => alongAxis(problem, geometry, axis));
  if (depths === undefined || rows === undefined || columns === undefined)
    throw new Error("a convolution has three axes");
  const each = depths.flatMap((depth) =>
    rows.flatMap((row) => columns.map((column): Triple<PhaseAxis> => [depth, row, column])),
  );
  const apart = problem.stride;
  const [inDepth, down, across] = geometry.input;
  return {
    phases: { apart, each: each.toSorted((left, right) => tapsOf(right) - tapsOf(left)) },
    geometry: {
      ...geometry,
      input: [inDepth / apart[0], down / apart[1], across / apart[2]],
    },
  };
}
