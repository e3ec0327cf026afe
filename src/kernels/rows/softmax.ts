/**
 * Softmax and its logarithm along an axis, and their gradients. The greatest element of a row is subtracted before
 * exponentials are taken, and sums of pieces are scaled to the greatest of all:
 *
 *   pieces      high 3, sum 1.2        high 7, sum 2.0
 *   together    high 7, sum 1.2 · exp(3 − 7) + 2.0
 */
import type { DType, DTypeName, FloatName } from "../../formats/dtype.ts";
import type { Operation } from "../../device/operation.ts";
import { array, dim, full } from "../../lang/index.ts";
import type { ArraySpec, Empty, Tile } from "../../lang/index.ts";
import { captureLocation } from "../../support/location.ts";
import type { Location } from "../../support/location.ts";
import { givenArray, givenAxis, requireFields, requireFloat } from "../support/given.ts";
import type { GivenArray } from "../support/given.ts";
import type { RowConfiguration } from "./row-kernel.ts";
import type { RowOp, Statistics } from "./row-op.ts";
import { rowOperation } from "./row-plan.ts";
import { computeFormat, computed, exponential, statistic } from "../support/numbers.ts";

export interface SoftmaxSpec<X extends FloatName, Out extends FloatName> {
  /** A format is an array of [m, n]. */
  readonly x: GivenArray<X>;
  /** The axis along which results sum to 1; the last unless told. */
  readonly axis?: number;
  /** The format of the result; x's own unless told. */
  readonly out?: DType<Out>;
}

export type SoftmaxOperation<X extends DTypeName, Out extends DTypeName> = Operation<
  { readonly x: ArraySpec<X> },
  { readonly out: ArraySpec<Out> },
  Empty,
  RowConfiguration
>;

/** exp(x) over its sum along an axis. */
export function softmax<X extends FloatName, Out extends FloatName = X>(
  spec: SoftmaxSpec<X, Out>,
): SoftmaxOperation<X, Out> {
  const location = captureLocation();
  return softmaxLike("softmax", spec, location, (x, statistics, out) => {
    // As they were measured, so that registers that hold a row need not compute them again.
    const powers = exponential(x.sub(finite(statistic(statistics, "high"))), out);
    return powers.mul(full(x.dtype, [1, 1], 1).div(statistic(statistics, "sum")));
  }) as unknown as SoftmaxOperation<X, Out>;
}

/** x less the logarithm of the sum of exp(x) along an axis. */
export function logSoftmax<X extends FloatName, Out extends FloatName = X>(
  spec: SoftmaxSpec<X, Out>,
): SoftmaxOperation<X, Out> {
  const location = captureLocation();
  return softmaxLike("log_softmax", spec, location, (x, statistics) =>
    x.sub(statistic(statistics, "high")).sub(statistic(statistics, "sum").log()),
  ) as unknown as SoftmaxOperation<X, Out>;
}

type SoftmaxResult = (x: Tile<"f32">, statistics: Statistics, out: DType) => Tile<"f32">;

function softmaxLike(
  name: string,
  spec: SoftmaxSpec<FloatName, FloatName>,
  location: Location,
  result: SoftmaxResult,
): Operation {
  requireFields(name, spec, { x: "array", axis: "number", out: "format" }, location);
  const x = givenArray("x", name, spec.x, [dim("m"), dim("n")], location);
  requireFloat("x", name, x, location);
  const axis = givenAxis(name, spec.axis ?? -1, x.shape.length, location);
  const out = array(spec.out ?? x.dtype, x.shape);
  requireFloat("out", name, out, location);
  const compute = computeFormat(x.dtype);
  const op: RowOp = {
    name,
    arrays: [
      { name: "x", dtype: x.dtype, role: "input", per: "element" },
      { name: "out", dtype: out.dtype, role: "output", per: "element" },
    ],
    compute,
    ...exponentialSums(compute, out.dtype, "x"),
    results: ({ x: tile }, statistics, piece) => {
      const own = piece.within(computed(tile, compute), -Infinity) as Tile<"f32">;
      return { out: result(own, statistics, out.dtype).cast(out.dtype) };
    },
  };
  return rowOperation({ op, specs: { x, out }, of: x, axis }, spec);
}

/** The greatest element of a row, and the sum of exponentials beneath it. */
export function exponentialSums(
  compute: DType<"f32">,
  out: DType,
  name: string,
): Pick<RowOp, "statistics" | "measure" | "merge" | "join"> {
  return {
    statistics: ["high", "sum"],
    measure: (tiles, piece) => {
      const x = piece.within(computed(tiles[name], compute), -Infinity) as Tile<"f32">;
      const high = x.max(1, { keep: true });
      const sum = exponential(x.sub(finite(high)), out).sum(1, { keep: true });
      return { high, sum };
    },
    merge: (left, right) => {
      const high = statistic(left, "high").maximum(statistic(right, "high"));
      const scaled = (part: Statistics): Tile<"f32"> =>
        statistic(part, "sum").mul(statistic(part, "high").sub(finite(high)).exp());
      return { high, sum: scaled(left).add(scaled(right)) };
    },
    join: (pieces) => {
      const highs = statistic(pieces, "high");
      const high = highs.max(0, { keep: true });
      const sums = statistic(pieces, "sum").mul(highs.sub(finite(high)).exp());
      return { high, sum: sums.sum(0, { keep: true }) };
    },
  };
}

/** A row of −∞ alone has no difference to its greatest element. */
export function finite(high: Tile<"f32">): Tile<"f32"> {
  return high.eq(-Infinity).select(0, high);
}
