/**
 * The gradient of x where windows went two by two. Of places that lie two apart each has the same taps, so that a place of a pair
 * is a convolution of its own, without gaps, over some of the taps:
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
  /** The first tap that it meets, and how far apart its taps are. */
  readonly first: number;
  readonly apart: 1 | 2;
  /** The window in which a place meets its first tap, as far from the number of its pair. */
  readonly shift: number;
  readonly count: number;
}

export interface Phase {
  readonly axes: Triple<PhaseAxis>;
  /** All taps of the window. */
  readonly taps: Triple;
}

/** Whether places of pairs can be made apart: two by two over even extents, by taps that change sides. */
export function hasPhases({ stride, dilation }: ConvolutionProblem, { input }: Geometry): boolean {
  return (
    stride[0] === 1 &&
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
  if (stride === 1) return [{ place: 0, first: 0, apart: 1, shift: before, count }];
  return [0, 1].map((place) => {
    const first = (place + before) % 2;
    const shift = (place + before - first * dilation) / 2;
    return { place, first, apart: 2, shift, count: Math.max(0, Math.ceil((count - first) / 2)) };
  });
}

/** The phases, and the sizes of the convolution that each of them is; those without taps are zeros. */
export function phasesOf(
  problem: ConvolutionProblem,
  geometry: Geometry,
): readonly { readonly phase: Phase; readonly geometry: Geometry }[] {
  const [depths, rows, columns] = [0, 1, 2].map((axis) => alongAxis(problem, geometry, axis));
  if (depths === undefined || rows === undefined || columns === undefined)
    throw new Error("a convolution has three axes");
  return depths.flatMap((depth) =>
    rows.flatMap((row) =>
      columns.map((column) => {
        const axes: Triple<PhaseAxis> = [depth, row, column];
        const [inDepth, down, across] = geometry.input;
        return {
          phase: { axes, taps: geometry.taps },
          geometry: {
            ...geometry,
            input: [inDepth, down / row.apart, across / column.apart] as const,
            taps: [depth.count, row.count, column.count] as const,
          },
        };
      }),
    ),
  );
}
