/**
 * `argReduce`: where the least or the greatest element along an axis lies, and which it is. Of equal elements the first
 * counts; a NaN counts before all others, as in NumPy.
 */
import { dtypes } from "../../formats/dtype.ts";
import type { DType, DTypeName } from "../../formats/dtype.ts";
import type { Operation } from "../../device/operation.ts";
import { dim } from "../../lang/index.ts";
import type { ArraySpec, Empty, Tile } from "../../lang/index.ts";
import { captureLocation } from "../../support/location.ts";
import { optionText } from "../../support/options.ts";
import { givenArray, givenAxis, refused, requireFields } from "../support/given.ts";
import type { Fields, GivenArray } from "../support/given.ts";
import { extreme } from "./combinations.ts";
import { reducing } from "./reduce.ts";
import type { ReduceConfiguration } from "./reduce-kernel.ts";
import type { Reducer, ReduceTiles } from "./reducer.ts";

export interface ArgReduceSpec<X extends DTypeName> {
  /** A format is an array of n elements. */
  readonly x: GivenArray<X>;
  readonly find: "least" | "greatest";
  /** The last unless told. */
  readonly axis?: number;
  /** Whether the axis stays, with extent 1. */
  readonly keep?: boolean;
}

export type ArgReduceOperation<X extends DTypeName> = Operation<
  { readonly x: ArraySpec<X> },
  { readonly value: ArraySpec<X>; readonly index: ArraySpec<"i32"> },
  Empty,
  ReduceConfiguration
>;

const fields: Fields = { x: "array", find: "choice", axis: "number", keep: "flag" };

/** The first least or greatest element along an axis, and its position. */
export function argReduce<X extends DTypeName>(spec: ArgReduceSpec<X>): ArgReduceOperation<X> {
  const location = captureLocation();
  requireFields("argReduce", spec, fields, location);
  const { find, keep = false } = spec;
  if (find !== "least" && find !== "greatest")
    throw refused(
      "TW9904",
      "argReduce does not know what to find",
      '"least" or "greatest"',
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

function finder(find: "least" | "greatest", dtype: DType): Reducer {
  const value = (tiles: ReduceTiles): Tile<"f32"> => tiles["value"] as Tile<"f32">;
  const index = (tiles: ReduceTiles): Tile<"i32"> => tiles["index"] as Tile<"i32">;
  const isFloat = dtype.kind === "float";
  /** Whether the right one, which lies further on, is better than the left one; NaN is better than all but NaN. */
  const replaces = (left: Tile<"f32">, right: Tile<"f32">): Tile<"bool"> => {
    const isWorse = (find === "least" ? left.le(right) : left.ge(right)).not();
    return isFloat ? isWorse.and(left.isNan().not()) : isWorse;
  };
  return {
    state: {
      value: { dtype, identity: extreme(dtype, find === "least" ? 1 : -1) },
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
      const keep = { keep: true } as const;
      const best = find === "least" ? value(state).min(axes, keep) : value(state).max(axes, keep);
      // Where there is a NaN the best is NaN, which nothing equals; elsewhere no element is one.
      const isBest = isFloat
        ? value(state).eq(best).or(value(state).isNan())
        : value(state).eq(best);
      return { value: best, index: isBest.select(index(state), nowhere).min(axes, keep) };
    },
    finish: (state) => state,
  };
}
