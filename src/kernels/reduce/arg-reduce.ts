/**
 * `argReduce`: the least or the greatest element along an axis, and its index. Of equal elements the first wins; a NaN wins over all
 * others, as in NumPy.
 */
import { dtypes } from "../../formats/dtype.ts";
import type { DType, DTypeName } from "../../formats/dtype.ts";
import type { Operation } from "../../device/operation.ts";
import { dim, full, iota } from "../../lang/index.ts";
import type { TensorSpec, Empty, Tile } from "../../lang/index.ts";
import { captureLocation } from "../../support/location.ts";
import { optionText } from "../../support/options.ts";
import { givenArray, givenAxis, refused, requireFields } from "../support/arguments.ts";
import type { Fields, GivenArray } from "../support/arguments.ts";
import { extreme } from "./combiners.ts";
import { reducing } from "./reduce.ts";
import type { ReduceConfiguration } from "./reduce-kernel.ts";
import type { Reducer, ReduceTiles } from "./reducer.ts";

/** What `argReduce` is made for. */
export interface ArgReduceSpec<X extends DTypeName> {
  /** A format is an array of n elements. */
  readonly x: GivenArray<X>;
  /** Whether the least or the greatest element is looked for. */
  readonly find: "min" | "max";
  /** The last by default. */
  readonly axis?: number;
  /** Whether the axis stays, with extent 1. */
  readonly keepDims?: boolean;
}

/** The operation that `argReduce` makes. */
export type ArgReduceOperation<X extends DTypeName> = Operation<
  { readonly x: TensorSpec<X> },
  { readonly value: TensorSpec<X>; readonly index: TensorSpec<"i32"> },
  Empty,
  ReduceConfiguration
>;

const fields: Fields = { x: "array", find: "choice", axis: "number", keepDims: "flag" };

/** The first least or greatest element along an axis, and its position. */
export function argReduce<X extends DTypeName>(spec: ArgReduceSpec<X>): ArgReduceOperation<X> {
  const location = captureLocation();
  requireFields("argReduce", spec, fields, location);
  const { find, keepDims: keep = false } = spec;
  if (find !== "min" && find !== "max")
    throw refused(
      "TW9904",
      "argReduce does not know what to find",
      '"min" or "max"',
      optionText(find),
      location,
    );
  const x = givenArray("x", "argReduce", spec.x, [dim("n")], location);
  const { dtype } = x;
  if (dtype.kind === "bool" || (dtype.kind === "float" && dtype.bits < 16))
    throw refused(
      "TW9901",
      `argReduce does not compare ${dtype.name}`,
      "integers, or floats of 16 bits or more",
      dtype.name,
      location,
    );
  const axis = givenAxis("argReduce", spec.axis ?? -1, x.shape.length, location);
  const results = { value: dtype, index: dtypes.i32 };
  return reducing(
    "arg_reduce",
    { x },
    x.shape,
    [axis],
    keep,
    finder(find, dtype),
    results,
  ) as unknown as ArgReduceOperation<X>;
}

/** The position of what is not the best. */
const nowhere = 2 ** 31 - 1;

function finder(find: "min" | "max", dtype: DType): Reducer {
  const value = (tiles: ReduceTiles): Tile<"f32"> => tiles["value"] as Tile<"f32">;
  const index = (tiles: ReduceTiles): Tile<"i32"> => tiles["index"] as Tile<"i32">;
  const isFloat = dtype.kind === "float";
  /** Whether the right one, which lies further on, is better than the left one; NaN is better than all but NaN. */
  const replaces = (left: Tile<"f32">, right: Tile<"f32">): Tile<"bool"> => {
    const isWorse = (find === "min" ? left.le(right) : left.ge(right)).not();
    return isFloat ? isWorse.and(left.isNan().not()) : isWorse;
  };
  const best = (of: Tile<"f32">, axes: number | readonly number[]): Tile<"f32"> =>
    find === "min"
      ? of.min({ axis: axes, keepDims: true })
      : of.max({ axis: axes, keepDims: true });
  /** A tree over the elements of a thread, down to a pair: numbers of 16 bits are compared in packed pairs. */
  const halved = (of: Tile<"f32">): Tile<"f32"> => {
    const [rows = 1, width = 1] = of.shape;
    if (width <= 2) return of;
    const half = (start: number): Tile<"f32"> => of.slice([0, start], [rows, width / 2]);
    const [left, right] = [half(0), half(width / 2)];
    return halved(find === "min" ? left.minimum(right) : left.maximum(right));
  };
  // Where there is a NaN the best is NaN, which nothing equals; elsewhere no element is one.
  const isBest = (of: Tile<"f32">, found: Tile<"f32">): Tile<"bool"> =>
    isFloat ? of.eq(found).or(of.isNan()) : of.eq(found);
  const identity = extreme(dtype, find === "min" ? 1 : -1);
  return {
    // A thread keeps the vector with its best element, and looks for the position at the end.
    runs: {
      kept: {
        value: { dtype, identity, per: "lane" },
        step: { dtype: dtypes.i32, identity: 0, per: "lane" },
        run: { dtype, identity, per: "element" },
      },
      beyond: identity,
      merge: ({ value: before, step: first, run }, { x }, step) => {
        const found = best(halved(x as Tile<"f32">), 1);
        const isNew = replaces(before as Tile<"f32">, found);
        return {
          value: isNew.select(found, before as Tile<"f32">),
          step: isNew.select(full(dtypes.i32, [1, 1], 0).add(step), first as Tile<"i32">),
          run: isNew.select(x as Tile<"f32">, run as Tile<"f32">),
        };
      },
      state: ({ value: found, step, run }, position) => ({
        value: found as Tile,
        index: position(
          step as Tile<"i32">,
          isBest(run as Tile<"f32">, found as Tile<"f32">)
            .select(iota(dtypes.i32, [1, run?.shape[1] ?? 1], { axis: 1 }), nowhere)
            .min({ axis: 1, keepDims: true }),
        ),
      }),
    },
    state: {
      value: { dtype, identity },
      // Where nothing is better than the identity, all elements equal it, and the first is the best.
      index: { dtype: dtypes.i32, identity: 0 },
    },
    lift: (tiles, positions) => {
      const x = tiles["x"] as Tile;
      return { value: x, index: positions().broadcastTo(x.shape) };
    },
    merge: (left, right) => {
      const isNew = replaces(value(left), value(right));
      return {
        value: isNew.select(value(right), value(left)),
        index: isNew.select(index(right), index(left)),
      };
    },
    collapse: (state, axes) => {
      const found = best(value(state), axes);
      const places = isBest(value(state), found).select(index(state), nowhere);
      return { value: found, index: places.min({ axis: axes, keepDims: true }) };
    },
    finish: (state) => state,
  };
}
