/**
 * Elements moved, and parts of matrices: axes in another order, rolls, quarter turns, diagonals, edges repeated outwards.
 *
 *   roll([1, 2, 3], 1)                         3 1 2
 *   pad([1, 2, 3], [[2, 0]], { mode: … })      "edge" 1 1 1 2 3   "reflect" 3 2 1 2 3   "symmetric" 2 1 1 2 3   "wrap" 2 3 1 2 3
 */
import type { DTypeName } from "../../formats/dtype.ts";
import type { ArgumentKind } from "../../support/checked-call.ts";
import { isListOf, optional } from "../../support/checked-call.ts";
import { TilewrightError } from "../../support/diagnostics.ts";
import {
  array,
  arrays,
  axis as axisKind,
  checked,
  count,
  indices as indicesKind,
  isNumber,
  isPairOf,
  isPairs,
  number,
  options,
  shape,
  truths,
} from "../argument-checks.ts";
import { NDArray } from "../array.ts";
import { requireOneDtype } from "../dtype-checks.ts";
import * as base from "../functions.ts";
import type { Operand } from "../functions.ts";
import * as indexing from "../indexing.ts";
import { sum } from "../reductions.ts";
import * as shapes from "../shapes.ts";
import { part } from "./part.ts";

const whole: ArgumentKind = { expected: "a whole number", holds: Number.isSafeInteger };
const axesOrOne: ArgumentKind = {
  expected: "an axis or a list of axes",
  holds: (value) => Number.isSafeInteger(value) || isListOf(Number.isSafeInteger)(value),
};

const listOf = (value: number | readonly number[]): readonly number[] =>
  typeof value === "number" ? [value] : value;

/** All elements along one axis, by rows. */
export const ravel = checked("ravel", [array], <D extends DTypeName>(x: NDArray<D>): NDArray<D> =>
  shapes.reshape(x, [-1]),
);
/** The array with axes moved to other places; the others keep their order. */
export const moveaxis = checked(
  "moveaxis",
  [array, axesOrOne, axesOrOne],
  <D extends DTypeName>(
    x: NDArray<D>,
    from: number | readonly number[],
    to: number | readonly number[],
  ): NDArray<D> => {
    const counted = (axes: number | readonly number[]) =>
      listOf(axes).map((axis) => shapes.axisOf(axis, x.rank));
    const [sources, targets] = [counted(from), counted(to)];
    if (sources.length !== targets.length)
      throw new TilewrightError({
        code: "TW9307",
        message: "moveaxis was given other numbers of axes and of places",
        expected: `${sources.length} places`,
        found: `${targets.length}`,
      });
    const others = x.shape.map((_, each) => each).filter((each) => !sources.includes(each));
    const order: number[] = [];
    for (let place = 0; place < x.rank; place++) {
      const moved = targets.indexOf(place);
      order.push((moved < 0 ? others.shift() : sources[moved]) ?? 0);
    }
    return shapes.transpose(x, order);
  },
);
/** The array with two axes exchanged. */
export const swapaxes = checked(
  "swapaxes",
  [array, axisKind, axisKind],
  <D extends DTypeName>(x: NDArray<D>, first: number, second: number): NDArray<D> => {
    const [a, b] = [shapes.axisOf(first, x.rank), shapes.axisOf(second, x.rank)];
    const order = x.shape.map((_, each) => (each === a ? b : each === b ? a : each));
    return shapes.transpose(x, order);
  },
);
/** Each matrix of a batch transposed: the last two axes exchanged. */
export const matrixTranspose = checked(
  "matrixTranspose",
  [array],
  <D extends DTypeName>(x: NDArray<D>): NDArray<D> => swapaxes(x, -1, -2),
);
/** The columns in reverse order: along the second axis. */
export const fliplr = checked("fliplr", [array], <D extends DTypeName>(x: NDArray<D>): NDArray<D> =>
  shapes.flip(x, { axis: 1 }),
);
/** The rows in reverse order: along the first axis. */
export const flipud = checked("flipud", [array], <D extends DTypeName>(x: NDArray<D>): NDArray<D> =>
  shapes.flip(x, { axis: 0 }),
);
/** The plane of two axes, the first two by default, turned by so many quarters against the clock. */
export const rot90 = checked(
  "rot90",
  [
    array,
    optional(whole),
    options("{ axes }, two axes", {
      axes: isPairOf(Number.isSafeInteger),
    }),
  ],
  <D extends DTypeName>(
    x: NDArray<D>,
    quarters = 1,
    { axes = [0, 1] }: { readonly axes?: readonly [number, number] | undefined } = {},
  ): NDArray<D> => {
    const [a, b] = [shapes.axisOf(axes[0], x.rank), shapes.axisOf(axes[1], x.rank)];
    const turns = ((quarters % 4) + 4) % 4;
    const flipped = (each: NDArray<D>, axis: number) => shapes.flip(each, { axis });
    if (turns === 0) return x;
    if (turns === 1) return swapaxes(flipped(x, b), a, b);
    return turns === 2 ? flipped(flipped(x, a), b) : flipped(swapaxes(x, a, b), b);
  },
);

/** Along which axis, or axes. */
export interface AxesOption {
  /** One or several; a negative one counts from the end. */
  readonly axis?: number | readonly number[] | undefined;
}
const axesOption = options("{ axis }, one or several axes", {
  axis: (value) => axesOrOne.holds(value, []),
});

/** The elements moved by so many places along an axis, or several, those that leave one end entering at the other; without an axis, of the flattened array. */
export const roll = checked(
  "roll",
  [array, axesOrOne, axesOption],
  <D extends DTypeName>(
    x: NDArray<D>,
    by: number | readonly number[],
    { axis }: AxesOption = {},
  ): NDArray<D> => {
    if (axis === undefined) {
      const total = listOf(by).reduce((sumOf, each) => sumOf + each, 0);
      return shapes.reshape(rolled(shapes.reshape(x, [-1]), total, 0), x.shape);
    }
    const along = listOf(axis);
    const steps = listOf(by);
    return along.reduce(
      (each, one, index) =>
        rolled(each, steps[steps.length === 1 ? 0 : index] ?? 0, shapes.axisOf(one, x.rank)),
      x,
    );
  },
);

function rolled<D extends DTypeName>(x: NDArray<D>, by: number, axis: number): NDArray<D> {
  const extent = x.shape[axis] ?? 0;
  if (extent === 0) return x;
  const left = ((by % extent) + extent) % extent;
  if (left === 0) return x;
  return shapes.concatenate(
    [part(x, axis, [extent - left, extent]), part(x, axis, [0, extent - left])],
    { axis },
  );
}

/** The elements of the axis `a` and the axis `b` at equal places, `offset` apart, along a new last axis. */
function diagonalOf<D extends DTypeName>(
  x: NDArray<D>,
  offset: number,
  axes: readonly [number, number],
): NDArray<D> {
  const moved = moveaxis(x, axes, [-2, -1]);
  const [rows = 0, columns = 0] = moved.shape.slice(-2);
  const [row, column] = [Math.max(-offset, 0), Math.max(offset, 0)];
  const length = Math.max(Math.min(rows - row, columns - column), 0);
  const flat = shapes.reshape(moved, [...moved.shape.slice(0, -2), rows * columns]);
  const begin = row * columns + column;
  if (length === 0) return part(flat, flat.rank - 1, [0, 0]);
  const end = begin + (length - 1) * (columns + 1) + 1;
  return part(flat, flat.rank - 1, [begin, end, columns + 1]);
}

/** Which diagonal, of which axes. */
export interface DiagonalOptions {
  /** 0 the main one, above it positive, below it negative. */
  readonly offset?: number | undefined;
  /** The first two by default. */
  readonly axes?: readonly [number, number] | undefined;
}
const diagonalOptions = options("{ offset, axes }, a whole number and two axes", {
  offset: Number.isSafeInteger,
  axes: isPairOf(Number.isSafeInteger),
});

/** A diagonal of matrices, along a new last axis. */
export const diagonal = checked(
  "diagonal",
  [array, diagonalOptions],
  <D extends DTypeName>(
    x: NDArray<D>,
    { offset = 0, axes = [0, 1] }: DiagonalOptions = {},
  ): NDArray<D> => diagonalOf(x, offset, axes),
);
/** The sum of a diagonal of matrices. */
export const trace = checked(
  "trace",
  [array, diagonalOptions],
  <D extends DTypeName>(
    x: NDArray<D>,
    { offset = 0, axes = [0, 1] }: DiagonalOptions = {},
  ): NDArray<D> => sum(diagonalOf(x, offset, axes), { axis: -1 }),
);
/** Of an array of one axis the matrix with it as a diagonal, of a matrix its diagonal. */
export const diag = checked(
  "diag",
  [array, optional(whole)],
  <D extends DTypeName>(x: NDArray<D>, offset = 0): NDArray<D> =>
    x.rank === 1 ? matrixOfDiagonal(x, offset) : diagonalOf(x, offset, [0, 1]),
);
/** The matrix with all elements of an array as a diagonal. */
export const diagflat = checked(
  "diagflat",
  [array, optional(whole)],
  <D extends DTypeName>(x: NDArray<D>, offset = 0): NDArray<D> =>
    matrixOfDiagonal(shapes.reshape(x, [-1]), offset),
);

function matrixOfDiagonal<D extends DTypeName>(x: NDArray<D>, offset: number): NDArray<D> {
  const [length = 0] = x.shape;
  const rows = length + Math.abs(offset);
  const places = (along: number) => shapes.iota([rows, rows], "i32", { axis: along });
  const isOn = base.equal(places(1), base.add(places(0), offset));
  const widths = [[Math.max(offset, 0), Math.max(-offset, 0)]] as const;
  return base.where(isOn, base.broadcastTo(indexing.pad(x, widths), [rows, rows]), 0);
}

/** The matrix, or each of a batch, with its main diagonal replaced by a number or by an array. */
export const fillDiagonal = checked(
  "fillDiagonal",
  [array, { expected: "an array or a number", holds: isOperand }],
  <D extends DTypeName>(x: NDArray<D>, values: Operand<D>): NDArray<D> => {
    const places = (along: number) => shapes.iota(x.shape.slice(-2), "i32", { axis: along });
    const isOn = base.equal(places(1), places(0));
    if (typeof values === "number" || values.rank === 0) return base.where(isOn, values, x);
    const [rows = 0, columns = 0] = x.shape.slice(-2);
    const length = values.shape.at(-1) ?? 0;
    if (length !== Math.min(rows, columns))
      throw new TilewrightError({
        code: "TW9304",
        message: `a diagonal of ${x.toString()} was given ${length} elements`,
        expected: `${Math.min(rows, columns)}`,
        found: `${length}`,
      });
    const widths = values.shape.map((_, each) =>
      each === values.rank - 1 ? ([0, columns - length] as const) : ([0, 0] as const),
    );
    const across = shapes.expandDims(indexing.pad(values, widths), { axis: values.rank - 1 });
    return base.where(isOn, across, x);
  },
);

function isOperand(value: unknown): boolean {
  return value instanceof NDArray || isNumber(value);
}

/** The places of a triangle of a matrix: rows and columns, by rows. */
function placesWithin(
  rows: number,
  columns: number,
  isIn: (row: number, column: number) => boolean,
): readonly [rows: NDArray<"i32">, columns: NDArray<"i32">] {
  const all = Array.from({ length: rows }, (_, row) =>
    Array.from({ length: columns }, (__, column) => [row, column] as const).filter(([r, c]) =>
      isIn(r, c),
    ),
  ).flat();
  return [
    shapes.array(
      all.map(([row]) => row),
      "i32",
    ),
    shapes.array(
      all.map(([, column]) => column),
      "i32",
    ),
  ];
}
const triangleOptions = options("{ offset, columns }, whole numbers", {
  offset: Number.isSafeInteger,
  columns: Number.isSafeInteger,
});
/** Which triangle `trilIndices` and `triuIndices` are of. */
export interface TriangleOptions {
  /** Which diagonal ends it: 0 the main one. */
  readonly offset?: number | undefined;
  /** As many as rows by default. */
  readonly columns?: number | undefined;
}
const triangleIndices = (name: string, isIn: (distance: number) => boolean) =>
  checked(
    name,
    [count, triangleOptions],
    (rows: number, { offset = 0, columns = rows }: TriangleOptions = {}) =>
      placesWithin(rows, columns, (row, column) => isIn(column - row - offset)),
  );

/** The rows and the columns of the elements on and below a diagonal of a matrix. */
export const trilIndices = triangleIndices("trilIndices", (distance) => distance <= 0);
/** The rows and the columns of the elements on and above a diagonal of a matrix. */
export const triuIndices = triangleIndices("triuIndices", (distance) => distance >= 0);
/** The places 0, 1, … of a diagonal, once for each axis. */
export const diagIndices = checked(
  "diagIndices",
  [count, optional(count)],
  (length: number, rank = 2): readonly NDArray<"i32">[] =>
    Array.from({ length: rank }, () => shapes.arange(length)),
);

/** The place along each axis of a shape, of places in the flattened array. */
export const unravelIndex = checked(
  "unravelIndex",
  [indicesKind, shape],
  (places: NDArray<"i32">, extents: readonly number[]): readonly NDArray<"i32">[] => {
    let behind = extents.reduce((product, extent) => product * extent, 1);
    return extents.map((extent) => {
      behind /= extent;
      return base.rem(base.div(places, behind), extent);
    });
  },
);
/** Places in the flattened array, of the place along each axis of a shape. */
export const ravelMultiIndex = checked(
  "ravelMultiIndex",
  [arrays, shape],
  (places: readonly NDArray<"i32">[], extents: readonly number[]): NDArray<"i32"> =>
    places
      .slice(1)
      .reduce(
        (sumOf, each, index) => base.add(base.mul(sumOf, extents[index + 1] ?? 1), each),
        places[0] ?? shapes.array(0, "i32"),
      ),
);

/** The first of several choices whose condition holds, element by element, or a number, 0 by default, where none does. */
export const select = checked(
  "select",
  [
    { expected: "a list of arrays of bool", holds: isListOf((each) => truths.holds(each, [])) },
    arrays,
    optional(number),
  ],
  <D extends DTypeName>(
    conditions: readonly NDArray<"bool">[],
    choices: readonly NDArray<D>[],
    otherwise = 0,
  ): NDArray<D> => {
    const [first, ...rest] = choices;
    if (first === undefined || conditions.length !== choices.length)
      throw new TilewrightError({
        code: "TW9304",
        message: "select was given other numbers of conditions and of choices",
        expected: `${conditions.length} choices`,
        found: `${choices.length}`,
      });
    for (const each of rest) requireOneDtype(first, each);
    return choices.reduceRight(
      (below, choice, index) =>
        base.where(conditions[index] ?? shapes.array(true, "bool"), choice, below),
      base.full([], otherwise, first.dtype),
    );
  },
);
/** Of several arrays the element of the one whose number stands in `which`, element by element; numbers are clamped. */
export const choose = checked(
  "choose",
  [indicesKind, arrays],
  <D extends DTypeName>(which: NDArray<"i32">, choices: readonly NDArray<D>[]): NDArray<D> => {
    const common = [which, ...choices].map((each) => each.shape).reduce(base.broadcastShapes);
    const all = shapes.stack(
      choices.map((each) => base.broadcastTo(each, common)),
      { axis: 0 },
    );
    const rows = shapes.expandDims(base.broadcastTo(which, common), { axis: 0 });
    return shapes.squeeze(indexing.takeAlongAxis(all, rows, { axis: 0 }), { axis: 0 });
  },
);
/** The array with elements along an axis, the last by default, replaced at the places that `indices` name, as NumPy's `put_along_axis`. */
export const putAlongAxis = checked(
  "putAlongAxis",
  [
    array,
    indicesKind,
    { expected: "an array or a number", holds: isOperand },
    options("{ axis }, an axis", { axis: Number.isSafeInteger }),
  ],
  <D extends DTypeName>(
    x: NDArray<D>,
    places: NDArray<"i32">,
    values: Operand<D>,
    { axis = -1 }: shapes.AxisOption = {},
  ): NDArray<D> => {
    const along = shapes.axisOf(axis, x.rank);
    const order = x.shape.map((_, each) => each);
    const strides = order.map((each) =>
      x.shape.slice(each + 1).reduce((product, extent) => product * extent, 1),
    );
    const flat = order
      .map((each) => {
        const place = each === along ? places : shapes.iota(places.shape, "i32", { axis: each });
        return base.mul(place, strides[each] ?? 1);
      })
      .reduce((left, right) => base.add(left, right));
    const filled =
      typeof values === "number"
        ? base.full(places.shape, values, x.dtype)
        : base.broadcastTo(values, places.shape);
    const set = indexing.setAt(
      shapes.reshape(x, [-1]),
      shapes.reshape(flat, [-1]),
      shapes.reshape(filled, [-1]),
    );
    return shapes.reshape(set, x.shape);
  },
);

/** How an array goes on beyond its ends. */
export const padModes = ["constant", "edge", "reflect", "symmetric", "wrap"] as const;
/** A way in which an array goes on beyond its ends. */
export type PadMode = (typeof padModes)[number];
/** Options of `pad`. */
export interface PadOptions {
  /** `"constant"` by default. */
  readonly mode?: PadMode | undefined;
  /** What is constant, 0 by default. */
  readonly value?: number | undefined;
}

/** Which place of an axis of `extent` stands at a place before or behind it. */
const sources: { readonly [M in Exclude<PadMode, "constant">]: (at: number, n: number) => number } =
  {
    edge: (at, n) => Math.min(Math.max(at, 0), n - 1),
    reflect: (at, n) => {
      if (n === 1) return 0;
      const turn = ((at % (2 * n - 2)) + 2 * n - 2) % (2 * n - 2);
      return turn < n ? turn : 2 * n - 2 - turn;
    },
    symmetric: (at, n) => {
      const turn = ((at % (2 * n)) + 2 * n) % (2 * n);
      return turn < n ? turn : 2 * n - 1 - turn;
    },
    wrap: (at, n) => ((at % n) + n) % n,
  };

const isMode = (value: unknown): boolean => padModes.some((mode) => mode === value);
const padOptions = options(`{ mode, value }: ${padModes.join(", ")}, and a number`, {
  mode: isMode,
  value: isNumber,
});

/**
 * The array with elements added before and behind along each axis: a value, 0 by default, or its own in one of the modes `"edge"`, `"reflect"`,
 * `"symmetric"` and `"wrap"`. Negative widths cut elements off.
 */
export const pad = checked(
  "pad",
  [
    array,
    { expected: "[before, behind] for each axis, whole numbers", holds: isPairs },
    {
      expected: padOptions.expected,
      holds: (value, all) => isNumber(value) || padOptions.holds(value, all),
    },
  ],
  <D extends DTypeName>(
    x: NDArray<D>,
    widths: readonly (readonly [before: number, behind: number])[],
    given: number | PadOptions = 0,
  ): NDArray<D> => {
    const { mode = "constant", value = 0 } = typeof given === "number" ? { value: given } : given;
    if (mode === "constant") return indexing.pad(x, widths, value);
    return widths.reduce<NDArray<D>>((each, [before, behind], axis) => {
      const extent = x.shape[axis] ?? 0;
      if (before === 0 && behind === 0) return each;
      const length = extent + before + behind;
      if (length <= 0 || extent === 0) return indexing.pad(x, widths, 0);
      const from = Array.from({ length }, (_, at) => sources[mode](at - before, extent));
      return shapes.take(each, shapes.array(from, "i32"), { axis });
    }, x);
  },
);
