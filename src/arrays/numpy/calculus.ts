/**
 * Differences, sums under curves, convolutions of lines, polynomials by their coefficients, the highest power first.
 *
 *   diff([1, 4, 9])          3 5
 *   polyval([2, 0, 1], 3)    2·3² + 1 = 19
 */
import type { DTypeName, FloatName } from "../../formats/dtype.ts";
import type { ArgumentKind } from "../../support/checked-call.ts";
import { isWhole, optional } from "../../support/checked-call.ts";
import {
  array,
  axisOption,
  checked,
  isNumber,
  number,
  operand,
  options,
} from "../argument-checks.ts";
import type { NDArray } from "../array.ts";
import * as base from "../functions.ts";
import type { Operand } from "../functions.ts";
import * as indexing from "../indexing.ts";
import { sum } from "../reductions.ts";
import * as shapes from "../shapes.ts";
import type { AxisOption } from "../shapes.ts";
import { conv } from "../windows.ts";
import { part } from "./part.ts";

const count: ArgumentKind = { expected: "a whole number from 0", holds: isWhole(0) };

function differences<D extends DTypeName>(x: NDArray<D>, axis: number): NDArray<D> {
  const extent = x.shape[axis] ?? 0;
  const [above, below] = [part(x, axis, [1, extent]), part(x, axis, [0, extent - 1])];
  return x.dtype === "bool" ? base.bitwiseXor(above, below) : base.sub(above, below);
}

/** Each element less the one before it along an axis, the last by default; so many times over. */
export const diff = checked(
  "diff",
  [array, optional(count), axisOption],
  <D extends DTypeName>(x: NDArray<D>, times = 1, { axis = -1 }: AxisOption = {}): NDArray<D> => {
    const along = shapes.axisOf(axis, x.rank);
    const steps = Math.min(times, x.shape[along] ?? 0);
    return Array.from({ length: steps }).reduce<NDArray<D>>((each) => differences(each, along), x);
  },
);
/** Each element of the flattened array less the one before it. */
export const ediff1d = checked(
  "ediff1d",
  [array],
  <D extends DTypeName>(x: NDArray<D>): NDArray<D> => differences(shapes.reshape(x, [-1]), 0),
);

/** Options of `gradient` and `trapezoid`. */
export interface SpacingOptions {
  /** The last by default. */
  readonly axis?: number | undefined;
  /** How far apart elements are, 1 by default. */
  readonly spacing?: number | undefined;
}
const spacingOptions = options("{ axis, spacing }, an axis and a number", {
  axis: Number.isSafeInteger,
  spacing: isNumber,
});

/** The slope at each element along an axis, the last by default: of both neighbours, at the ends of the only one. */
export const gradient = checked(
  "gradient",
  [array, spacingOptions],
  <D extends FloatName>(
    x: NDArray<D>,
    { axis = -1, spacing = 1 }: SpacingOptions = {},
  ): NDArray<D> => {
    const along = shapes.axisOf(axis, x.rank);
    const extent = x.shape[along] ?? 0;
    const at = (from: number, to: number) => part(x, along, [from, to]);
    const first = base.sub(at(1, 2), at(0, 1));
    const last = base.sub(at(extent - 1, extent), at(extent - 2, extent - 1));
    const inside = base.div(base.sub(at(2, extent), at(0, extent - 2)), 2);
    return base.div(shapes.concatenate([first, inside, last], { axis: along }), spacing);
  },
);
/** The integral of equally spaced values along an axis, the last by default, by the trapezoidal rule. */
export const trapezoid = checked(
  "trapezoid",
  [array, spacingOptions],
  <D extends FloatName>(
    y: NDArray<D>,
    { axis = -1, spacing = 1 }: SpacingOptions = {},
  ): NDArray<D> => {
    const along = shapes.axisOf(axis, y.rank);
    const extent = y.shape[along] ?? 0;
    const pairs = base.add(part(y, along, [1, extent]), part(y, along, [0, extent - 1]));
    return base.mul(sum(pairs, { axis: along }), spacing / 2);
  },
);

/** How much of a convolution is kept. */
export const convolveModes = ["full", "same", "valid"] as const;
/** How much of a convolution is kept. */
export type ConvolveMode = (typeof convolveModes)[number];
/** Options of `convolve` and `correlate`. */
export interface ConvolveOptions {
  /** `"full"` where the arrays touch at all, `"same"` the middle of it, `"valid"` where one lies within the other. */
  readonly mode?: ConvolveMode | undefined;
}
const modeOption = options(`{ mode }: ${convolveModes.join(", ")}`, {
  mode: (value) => convolveModes.some((mode) => mode === value),
});

/** The sum of products of a line with another that is moved along it. */
function slid<D extends DTypeName>(
  line: NDArray<D>,
  other: NDArray<D>,
  mode: ConvolveMode,
): NDArray<D> {
  const [m = 0, n = 0] = [line.shape[0], other.shape[0]];
  const full = n - 1;
  const widths: { readonly [M in ConvolveMode]: readonly [number, number] } = {
    full: [full, full],
    same: [Math.floor(n / 2), full - Math.floor(n / 2)],
    valid: [0, 0],
  };
  const result = conv(shapes.reshape(line, [1, m, 1]), shapes.reshape(other, [n, 1, 1]), {
    padding: [widths[mode]],
  });
  return shapes.reshape(result, [-1]);
}

/** The convolution of two arrays of one axis. */
export const convolve = checked(
  "convolve",
  [array, array, modeOption],
  <D extends DTypeName>(
    x: NDArray<D>,
    y: NDArray<D>,
    { mode = "full" }: ConvolveOptions = {},
  ): NDArray<D> => {
    const [long, short] = (x.shape[0] ?? 0) < (y.shape[0] ?? 0) ? [y, x] : [x, y];
    return slid(long, shapes.flip(short), mode);
  },
);
/** The correlation of two arrays of one axis: the convolution with the second reversed; `"valid"` by default. */
export const correlate = checked(
  "correlate",
  [array, array, modeOption],
  <D extends DTypeName>(
    x: NDArray<D>,
    y: NDArray<D>,
    { mode = "valid" }: ConvolveOptions = {},
  ): NDArray<D> => {
    if ((x.shape[0] ?? 0) >= (y.shape[0] ?? 0)) return slid(x, y, mode);
    return shapes.flip(slid(y, x, mode));
  },
);

/** The value of a polynomial at numbers, of coefficients with the highest power first, by Horner's rule. */
export const polyval = checked(
  "polyval",
  [array, operand],
  <D extends DTypeName>(coefficients: NDArray<D>, x: Operand<D>): NDArray<D> => {
    const at = typeof x === "number" ? base.full([], x, coefficients.dtype) : x;
    const terms = Array.from({ length: coefficients.shape[0] ?? 0 }, (_, place) =>
      shapes.squeeze(part(coefficients, 0, [place, place + 1])),
    );
    return terms.reduce(
      (value, term) => base.add(base.mul(value, at), term),
      base.full(at.shape, 0, coefficients.dtype),
    );
  },
);

/** Two lists of coefficients as long as the longer, with zeros in front. */
function aligned<D extends DTypeName>(
  x: NDArray<D>,
  y: NDArray<D>,
): readonly [NDArray<D>, NDArray<D>] {
  const length = Math.max(x.shape[0] ?? 0, y.shape[0] ?? 0);
  const long = (each: NDArray<D>) => indexing.pad(each, [[length - (each.shape[0] ?? 0), 0]]);
  return [long(x), long(y)];
}

/** The coefficients of the sum of two polynomials. */
export const polyadd = checked(
  "polyadd",
  [array, array],
  <D extends DTypeName>(x: NDArray<D>, y: NDArray<D>): NDArray<D> => base.add(...aligned(x, y)),
);
/** The coefficients of the difference of two polynomials. */
export const polysub = checked(
  "polysub",
  [array, array],
  <D extends DTypeName>(x: NDArray<D>, y: NDArray<D>): NDArray<D> => base.sub(...aligned(x, y)),
);
/** The coefficients of the product of two polynomials. */
export const polymul = checked(
  "polymul",
  [array, array],
  <D extends DTypeName>(x: NDArray<D>, y: NDArray<D>): NDArray<D> => convolve(x, y),
);

/** 1, 2, …, n or n, …, 2, 1, in the dtype of an array. */
const countdown = <D extends DTypeName>(x: NDArray<D>, length: number): NDArray<D> =>
  base.sub(length, shapes.iota([length], x.dtype, { axis: 0 }));

/** The coefficients of the derivative of a polynomial, so many times over. */
export const polyder = checked(
  "polyder",
  [array, optional(count)],
  <D extends FloatName>(x: NDArray<D>, times = 1): NDArray<D> =>
    Array.from({ length: times }).reduce<NDArray<D>>((each) => {
      const degree = (each.shape[0] ?? 0) - 1;
      if (degree <= 0) return base.full([0], 0, each.dtype);
      return base.mul(part(each, 0, [0, degree]), countdown(each, degree));
    }, x),
);
/** The coefficients of the integral of a polynomial, with a constant, 0 by default. */
export const polyint = checked(
  "polyint",
  [array, optional(number)],
  <D extends FloatName>(x: NDArray<D>, constant = 0): NDArray<D> => {
    const length = x.shape[0] ?? 0;
    return indexing.pad(base.div(x, countdown(x, length)), [[0, 1]], constant);
  },
);
