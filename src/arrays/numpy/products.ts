/**
 * Products of vectors and matrices by their names, each an `einsum` of two operands.
 *
 *   dot(x, y)            the last axis of x with the last but one of y
 *   tensordot(x, y, 2)   the last two axes of x with the first two of y
 */
import type { DTypeName } from "../../formats/dtype.ts";
import type { ArgumentKind } from "../../support/checked-call.ts";
import { isListOf, isWhole } from "../../support/checked-call.ts";
import { TilewrightError } from "../../support/diagnostics.ts";
import { array, arrays, axisOption, checked, isPairOf } from "../argument-checks.ts";
import type { NDArray } from "../array.ts";
import * as base from "../functions.ts";
import { einsum, matmul, sum } from "../reductions.ts";
import * as shapes from "../shapes.ts";
import type { AxisOption } from "../shapes.ts";
import { moveaxis } from "./moving.ts";
import { part } from "./part.ts";

const letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";

/** Sums of products over axes of both: the axes left of x, then those of y. */
function contracted<D extends DTypeName>(
  x: NDArray<D>,
  y: NDArray<D>,
  left: readonly number[],
  right: readonly number[],
): NDArray<D> {
  const mine = [...letters.slice(0, x.rank)];
  const other = [...letters.slice(x.rank, x.rank + y.rank)];
  for (const [index, axis] of right.entries()) other[axis] = mine[left[index] ?? 0] ?? "";
  const kept = (names: readonly string[], gone: readonly number[]) =>
    names.filter((_, axis) => !gone.includes(axis)).join("");
  const formula = `${mine.join("")},${other.join("")}->${kept(mine, left)}${kept(other, right)}`;
  return einsum(formula, x, y);
}

/** As NumPy's `dot`: numbers multiply, vectors give their sum of products, others sum over the last axis of x and the last but one of y. */
export const dot = checked(
  "dot",
  [array, array],
  <D extends DTypeName>(x: NDArray<D>, y: NDArray<D>): NDArray<D> => {
    if (x.rank === 0 || y.rank === 0) return base.mul(x, y);
    return contracted(x, y, [x.rank - 1], [Math.max(y.rank - 2, 0)]);
  },
);
/** The sum of products of all elements, of arrays of one size. */
export const vdot = checked(
  "vdot",
  [array, array],
  <D extends DTypeName>(x: NDArray<D>, y: NDArray<D>): NDArray<D> =>
    einsum("i,i->", shapes.reshape(x, [-1]), shapes.reshape(y, [-1])),
);
/** Sums of products over the last axis of both. */
export const inner = checked(
  "inner",
  [array, array],
  <D extends DTypeName>(x: NDArray<D>, y: NDArray<D>): NDArray<D> =>
    x.rank === 0 || y.rank === 0 ? base.mul(x, y) : contracted(x, y, [x.rank - 1], [y.rank - 1]),
);
/** Every element of one array times every element of the other: a matrix. */
export const outer = checked(
  "outer",
  [array, array],
  <D extends DTypeName>(x: NDArray<D>, y: NDArray<D>): NDArray<D> =>
    base.mul(shapes.reshape(x, [-1, 1]), shapes.reshape(y, [1, -1])),
);
/** Sums of products over the last axis, or another, of arrays that are broadcast. */
export const vecdot = checked(
  "vecdot",
  [array, array, axisOption],
  <D extends DTypeName>(x: NDArray<D>, y: NDArray<D>, { axis = -1 }: AxisOption = {}): NDArray<D> =>
    sum(base.mul(x, y), { axis }),
);
/** Matrices times vectors, [..., m, n] and [..., n], with broadcasting. */
export const matvec = checked(
  "matvec",
  [array, array],
  <D extends DTypeName>(x: NDArray<D>, y: NDArray<D>): NDArray<D> =>
    shapes.squeeze(matmul(x, shapes.expandDims(y, { axis: y.rank })), { axis: -1 }),
);
/** Vectors times matrices, [..., m] and [..., m, n], with broadcasting. */
export const vecmat = checked(
  "vecmat",
  [array, array],
  <D extends DTypeName>(x: NDArray<D>, y: NDArray<D>): NDArray<D> =>
    shapes.squeeze(matmul(shapes.expandDims(x, { axis: x.rank - 1 }), y), { axis: -2 }),
);

const isAxes = isListOf(Number.isSafeInteger);
const contraction: ArgumentKind = {
  expected: "a number of axes, or [axes of the first, axes of the second]",
  holds: (value) => value === undefined || isWhole(0)(value) || isPairOf(isAxes)(value),
};

/** Sums of products over several axes: so many, the last of x and the first of y, or those of a pair of lists; two by default. */
export const tensordot = checked(
  "tensordot",
  [array, array, contraction],
  <D extends DTypeName>(
    x: NDArray<D>,
    y: NDArray<D>,
    axes: number | readonly [readonly number[], readonly number[]] = 2,
  ): NDArray<D> => {
    const pair =
      typeof axes === "number"
        ? ([
            Array.from({ length: axes }, (_, each) => x.rank - axes + each),
            Array.from({ length: axes }, (_, each) => each),
          ] as const)
        : axes;
    const [left, right] = [
      pair[0].map((axis) => shapes.axisOf(axis, x.rank)),
      pair[1].map((axis) => shapes.axisOf(axis, y.rank)),
    ];
    if (left.length !== right.length)
      throw new TilewrightError({
        code: "TW9304",
        message: "tensordot was given other numbers of axes for both arrays",
        expected: `${left.length}`,
        found: `${right.length}`,
      });
    return contracted(x, y, left, right);
  },
);
/** Kronecker's product: a copy of y for each element of x, times it. */
export const kron = checked(
  "kron",
  [array, array],
  <D extends DTypeName>(x: NDArray<D>, y: NDArray<D>): NDArray<D> => {
    const rank = Math.max(x.rank, y.rank);
    const filled = (each: NDArray<D>) => [
      ...Array.from({ length: rank - each.rank }, () => 1),
      ...each.shape,
    ];
    const [a, b] = [filled(x), filled(y)];
    const left = shapes.reshape(
      x,
      a.flatMap((extent) => [extent, 1]),
    );
    const right = shapes.reshape(
      y,
      b.flatMap((extent) => [1, extent]),
    );
    return shapes.reshape(
      base.mul(left, right),
      a.map((extent, axis) => extent * (b[axis] ?? 1)),
    );
  },
);
/** The product of vectors of three elements, or the third of its elements of vectors of two, along an axis, the last by default. */
export const cross = checked(
  "cross",
  [array, array, axisOption],
  <D extends DTypeName>(
    x: NDArray<D>,
    y: NDArray<D>,
    { axis = -1 }: AxisOption = {},
  ): NDArray<D> => {
    const [left, right] = [moveaxis(x, axis, -1), moveaxis(y, axis, -1)];
    const [m = 0, n = 0] = [left.shape.at(-1), right.shape.at(-1)];
    if (![m, n].every((extent) => extent === 2 || extent === 3))
      throw new TilewrightError({
        code: "TW9304",
        message: `vectors of ${m} and ${n} elements have no cross product`,
        expected: "vectors of two or three elements",
        found: `${x.toString()} and ${y.toString()}`,
      });
    const at = (each: NDArray<D>, place: number): NDArray<D> =>
      place < (each.shape.at(-1) ?? 0)
        ? shapes.squeeze(part(each, each.rank - 1, [place, place + 1]), { axis: -1 })
        : base.full(each.shape.slice(0, -1), 0, each.dtype);
    const minor = (i: number, j: number): NDArray<D> =>
      base.sub(base.mul(at(left, i), at(right, j)), base.mul(at(left, j), at(right, i)));
    if (m === 2 && n === 2) return minor(0, 1);
    const all = [minor(1, 2), minor(2, 0), minor(0, 1)];
    return moveaxis(shapes.stack(all, { axis: -1 }), -1, axis);
  },
);
/** The product of several matrices, in the order of multiplications that takes the fewest. */
export const multiDot = checked(
  "multiDot",
  [arrays],
  <D extends DTypeName>(all: readonly NDArray<D>[]): NDArray<D> => {
    const first = all[0]?.rank === 1;
    const last = all.at(-1)?.rank === 1;
    const matrices = all.map((each, index) => {
      if (each.rank !== 1) return each;
      return shapes.reshape(each, index === 0 ? [1, -1] : [-1, 1]);
    });
    const whole = chained(matrices);
    const rows = first ? shapes.squeeze(whole, { axis: 0 }) : whole;
    return last ? shapes.squeeze(rows, { axis: -1 }) : rows;
  },
);

/** Matrix chains by dynamic programming: the cheapest product of each run of them is made of two shorter runs. */
function chained<D extends DTypeName>(matrices: readonly NDArray<D>[]): NDArray<D> {
  const extents = [matrices[0]?.shape[0] ?? 1, ...matrices.map((each) => each.shape[1] ?? 1)];
  const count = matrices.length;
  const best = Array.from({ length: count }, () =>
    Array.from({ length: count }, () => ({ cost: 0, cut: 0 })),
  );
  for (let length = 2; length <= count; length++)
    for (let from = 0; from + length <= count; from++) {
      const to = from + length - 1;
      const found = { cost: Infinity, cut: from };
      for (let cut = from; cut < to; cut++) {
        const size = (extents[from] ?? 1) * (extents[cut + 1] ?? 1) * (extents[to + 1] ?? 1);
        const cost = (best[from]?.[cut]?.cost ?? 0) + (best[cut + 1]?.[to]?.cost ?? 0) + size;
        if (cost < found.cost) Object.assign(found, { cost, cut });
      }
      best[from]?.splice(to, 1, found);
    }
  const product = (from: number, to: number): NDArray<D> => {
    const [only] = matrices.slice(from, from + 1);
    if (from === to && only !== undefined) return only;
    const cut = best[from]?.[to]?.cut ?? from;
    return matmul(product(from, cut), product(cut + 1, to));
  };
  return product(0, count - 1);
}
