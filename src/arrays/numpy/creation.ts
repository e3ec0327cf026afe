/**
 * Arrays of known contents: numbers in steps, matrices of ones in a pattern, grids, window functions. All of them are made by the program
 * itself, of counted places, so that none has to be brought to a device.
 *
 *   linspace(0, 1, 5)    0  ¼  ½  ¾  1
 *   tri(3)               1 0 0
 *                        1 1 0
 *                        1 1 1
 */
import type { DTypeName, FloatName } from "../../formats/dtype.ts";
import { floatFormats } from "../../formats/floats.ts";
import type { ArgumentKind } from "../../support/checked-call.ts";
import { isWhole, optional } from "../../support/checked-call.ts";
import {
  array,
  arrays,
  checked,
  count,
  dtype,
  isFlag,
  isNumber,
  number,
  options,
  shape,
} from "../argument-checks.ts";
import type { NDArray } from "../array.ts";
import * as base from "../functions.ts";
import { besselI0 } from "../special/bessel.ts";
import * as shapes from "../shapes.ts";
import { triangle } from "./triangles.ts";

const offset: ArgumentKind = { expected: "a whole number", holds: Number.isSafeInteger };

/** Zeros in the shape and the dtype of an array, or another dtype. */
export const zerosLike = checked("zerosLike", [array, optional(dtype)], filledLike(0));
/** Ones in the shape and the dtype of an array, or another dtype. */
export const onesLike = checked("onesLike", [array, optional(dtype)], filledLike(1));

function filledLike(value: number) {
  function filled<D extends DTypeName>(x: NDArray<D>): NDArray<D>;
  function filled<D extends DTypeName>(x: NDArray, dtype: D): NDArray<D>;
  function filled(x: NDArray, format: DTypeName = x.dtype): NDArray {
    return base.full(x.shape, value, format);
  }
  return filled;
}

/** One number in the shape and the dtype of an array. */
export const fullLike = checked(
  "fullLike",
  [array, number],
  <D extends DTypeName>(x: NDArray<D>, value: number): NDArray<D> =>
    base.full(x.shape, value, x.dtype),
);

function matrixOfOnes(rows: number): NDArray<"f32">;
function matrixOfOnes<D extends DTypeName>(
  rows: number,
  options: EyeOptions & { readonly dtype: D },
): NDArray<D>;
function matrixOfOnes(rows: number, options?: EyeOptions): NDArray<"f32">;
function matrixOfOnes(
  rows: number,
  { columns = rows, offset: by = 0, dtype: format = "f32" }: EyeOptions = {},
): NDArray {
  const places = (along: number) => shapes.iota([rows, columns], "i32", { axis: along });
  return base.astype(base.equal(places(1), base.add(places(0), by)), format);
}

/** Options of `eye` and `tri`. */
export interface EyeOptions {
  /** As many as rows by default. */
  readonly columns?: number | undefined;
  /** Which diagonal: 0 the main one, above it positive, below it negative. */
  readonly offset?: number | undefined;
  /** `"f32"` by default. */
  readonly dtype?: DTypeName | undefined;
}

const eyeOptions = options("{ columns, offset, dtype }, two whole numbers and a number format", {
  columns: isWhole(0),
  offset: Number.isSafeInteger,
  dtype: (value) => dtype.holds(value, []),
});

/** A matrix with ones on a diagonal and zeros elsewhere, square unless `columns` says otherwise. */
export const eye = checked("eye", [count, eyeOptions], matrixOfOnes);
/** The identity matrix of so many rows. */
export const identity = checked("identity", [count, optional(dtype)], identityMatrix);

function identityMatrix(rows: number): NDArray<"f32">;
function identityMatrix<D extends DTypeName>(rows: number, dtype: D): NDArray<D>;
function identityMatrix(rows: number, format: DTypeName = "f32"): NDArray {
  return matrixOfOnes(rows, { dtype: format });
}

/** A matrix with ones on and below a diagonal and zeros above it. */
export const tri = checked("tri", [count, eyeOptions], triangleOfOnes);

function triangleOfOnes(rows: number): NDArray<"f32">;
function triangleOfOnes<D extends DTypeName>(
  rows: number,
  options: EyeOptions & { readonly dtype: D },
): NDArray<D>;
function triangleOfOnes(rows: number, options?: EyeOptions): NDArray<"f32">;
function triangleOfOnes(
  rows: number,
  { columns = rows, offset: by = 0, dtype: format = "f32" }: EyeOptions = {},
): NDArray {
  return triangle("lower", base.full([rows, columns], 1, format), by);
}

/** The matrix, or each of a batch, with zeros above a diagonal: the main one, or `offset` above it. */
export const tril = checked(
  "tril",
  [array, optional(offset)],
  <D extends DTypeName>(x: NDArray<D>, by = 0): NDArray<D> => triangle("lower", x, by),
);
/** The matrix, or each of a batch, with zeros below a diagonal: the main one, or `offset` above it. */
export const triu = checked(
  "triu",
  [array, optional(offset)],
  <D extends DTypeName>(x: NDArray<D>, by = 0): NDArray<D> => triangle("upper", x, by),
);

/** Options of `linspace`, `logspace` and `geomspace`. */
export interface SpaceOptions<D extends FloatName = FloatName> {
  /** Whether the last number is `stop`; true by default. */
  readonly endpoint?: boolean | undefined;
  /** `"f32"` by default. */
  readonly dtype?: D | undefined;
}

/** Options of `logspace`. */
export interface LogspaceOptions<D extends FloatName = FloatName> extends SpaceOptions<D> {
  /** Whose powers they are, 10 by default. */
  readonly base?: number | undefined;
}

const isFloatFormat = (value: unknown): boolean =>
  typeof value === "string" && Object.hasOwn(floatFormats, value);
const spaceOptions = options("{ endpoint, dtype }, a boolean and a format of floats", {
  endpoint: isFlag,
  dtype: isFloatFormat,
});

/** Both ends are exact: what lies between is weighed from them, as (1 − t) · start + t · stop. */
function spaced(
  start: number,
  stop: number,
  size: number,
  { endpoint = true, dtype: format = "f32" }: SpaceOptions,
): NDArray {
  const last = Math.max(endpoint ? size - 1 : size, 1);
  const part = base.div(shapes.iota([size], format, { axis: 0 }), last);
  return base.add(base.mul(base.sub(1, part), start), base.mul(part, stop));
}

function linear(
  start: number,
  stop: number,
  count: number,
  options?: SpaceOptions<"f32">,
): NDArray<"f32">;
function linear<D extends FloatName>(
  start: number,
  stop: number,
  count: number,
  options: SpaceOptions<D>,
): NDArray<D>;
function linear(start: number, stop: number, size: number, given: SpaceOptions = {}): NDArray {
  return spaced(start, stop, size, given);
}
function powers(
  start: number,
  stop: number,
  count: number,
  options?: LogspaceOptions<"f32">,
): NDArray<"f32">;
function powers<D extends FloatName>(
  start: number,
  stop: number,
  count: number,
  options: LogspaceOptions<D>,
): NDArray<D>;
function powers(
  start: number,
  stop: number,
  size: number,
  { base: root = 10, ...given }: LogspaceOptions = {},
): NDArray {
  return base.pow(root, spaced(start, stop, size, given));
}
function ratios(
  start: number,
  stop: number,
  count: number,
  options?: SpaceOptions<"f32">,
): NDArray<"f32">;
function ratios<D extends FloatName>(
  start: number,
  stop: number,
  count: number,
  options: SpaceOptions<D>,
): NDArray<D>;
function ratios(start: number, stop: number, size: number, given: SpaceOptions = {}): NDArray {
  const [from, to] = [Math.log(Math.abs(start)), Math.log(Math.abs(stop))];
  return base.mul(base.exp(spaced(from, to, size, given)), Math.sign(start));
}
const ends = [number, number, count];

/** So many numbers from `start` to `stop` in equal steps. */
export const linspace = checked("linspace", [...ends, spaceOptions], linear);
/** So many powers of a base, 10 unless given, from base^start to base^stop, in equal ratios. */
export const logspace = checked(
  "logspace",
  [
    ...ends,
    options("{ endpoint, dtype, base }, a boolean, a format of floats and a number", {
      endpoint: isFlag,
      dtype: isFloatFormat,
      base: isNumber,
    }),
  ],
  powers,
);
/** So many numbers from `start` to `stop`, of one sign, in equal ratios. */
export const geomspace = checked("geomspace", [...ends, spaceOptions], ratios);

/** Options of `meshgrid`. */
export interface MeshgridOptions {
  /** `"xy"`, the default, gives the second array's places the first axis, as pictures have them; `"ij"` keeps the order. */
  readonly indexing?: "xy" | "ij" | undefined;
}

/** The coordinates of a grid: for each of the arrays of one axis, its numbers over all the grid. */
export const meshgrid = checked(
  "meshgrid",
  [
    arrays,
    options('{ indexing }, "xy" or "ij"', {
      indexing: (value) => value === "xy" || value === "ij",
    }),
  ],
  <D extends DTypeName>(
    lists: readonly NDArray<D>[],
    { indexing = "xy" }: MeshgridOptions = {},
  ): readonly NDArray<D>[] => {
    const flat = lists.map((each) => shapes.reshape(each, [-1]));
    const place = (list: number): number =>
      indexing === "xy" && list < 2 && flat.length > 1 ? 1 - list : list;
    const extents = flat.map((_, list) => flat[place(list)]?.shape[0] ?? 1);
    return flat.map((each, list) => {
      const own = extents.map((extent, at) => (at === place(list) ? extent : 1));
      return base.broadcastTo(shapes.reshape(each, own), extents);
    });
  },
);
/** For each axis of a shape, the place along it of each element: [rank, ...shape]. */
export const indices = checked("indices", [shape, optional(dtype)], placesOf);

function placesOf(extents: readonly number[]): NDArray<"i32">;
function placesOf<D extends DTypeName>(extents: readonly number[], dtype: D): NDArray<D>;
function placesOf(extents: readonly number[], format: DTypeName = "i32"): NDArray {
  if (extents.length === 0) return base.full([0], 0, format);
  return shapes.stack(extents.map((_, along) => shapes.iota(extents, format, { axis: along })));
}

/** Powers of each number: a row [x^(n-1), …, x, 1] for each, or from 1 upwards where `increasing`. */
export const vander = checked(
  "vander",
  [array, optional(count), options("{ increasing }, a boolean", { increasing: isFlag })],
  <D extends DTypeName>(
    x: NDArray<D>,
    columns = x.shape[0] ?? 0,
    { increasing = false }: { readonly increasing?: boolean | undefined } = {},
  ): NDArray<D> => {
    // By products and not by `pow`, of which the derivative at 0 is not that of a constant.
    const powers = [base.full(x.shape, 1, x.dtype)];
    for (let last = powers[0]; last !== undefined && powers.length < columns; powers.push(last))
      last = base.mul(last, x);
    const list = powers.slice(0, columns);
    return shapes.stack(increasing ? list : list.reverse(), { axis: 1 });
  },
);

/** A window over the angles 0 to 2π, of which the last is there; of one place it is 1. */
const window = (name: string, at: (angle: NDArray<"f32">, size: number) => NDArray<"f32">) =>
  checked(name, [count], (size: number): NDArray<"f32"> => {
    if (size < 2) return base.full([size], 1, "f32");
    const places = shapes.iota([size], "f32", { axis: 0 });
    return at(base.mul(places, (2 * Math.PI) / (size - 1)), size);
  });

/** Hann's window of so many places, which begins and ends with 0. */
export const hanning = window("hanning", (angle) => base.sub(0.5, base.mul(base.cos(angle), 0.5)));
/** Hamming's window of so many places. */
export const hamming = window("hamming", (angle) =>
  base.sub(0.54, base.mul(base.cos(angle), 0.46)),
);
/** Blackman's window of so many places. */
export const blackman = window("blackman", (angle) =>
  base.add(
    base.sub(0.42, base.mul(base.cos(angle), 0.5)),
    base.mul(base.cos(base.mul(angle, 2)), 0.08),
  ),
);
/** Bartlett's window of so many places, a triangle. */
export const bartlett = window("bartlett", (angle) =>
  base.sub(1, base.abs(base.sub(base.div(angle, Math.PI), 1))),
);
/** Kaiser's window of so many places, with its parameter beta. */
export const kaiser = checked(
  "kaiser",
  [count, number],
  (size: number, beta: number): NDArray<"f32"> => {
    if (size < 2) return base.full([size], 1, "f32");
    const places = shapes.iota([size], "f32", { axis: 0 });
    const ratio = base.sub(base.div(places, (size - 1) / 2), 1);
    const inside = base.maximum(base.sub(1, base.mul(ratio, ratio)), 0);
    const top = besselI0(base.full([], beta, "f32"));
    return base.div(besselI0(base.mul(base.sqrt(inside), beta)), top);
  },
);
