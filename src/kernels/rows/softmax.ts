/**
 * Softmax and its logarithm along an axis, and their gradients. The greatest element of a row is subtracted before
 * exponentials are taken, and sums of pieces are scaled to the greatest of all:
 *
 *   pieces      high 3, sum 1.2        high 7, sum 2.0
 *   together    high 7, sum 1.2 · exp(3 − 7) + 2.0
 */
import type { DType, DTypeName, FloatName } from "../../formats/dtype.ts";
import type { Operation } from "../../device/operation.ts";
import { tensor, dim } from "../../lang/index.ts";
import type { TensorSpec, Empty, Tile } from "../../lang/index.ts";
import { captureLocation } from "../../support/location.ts";
import type { Location } from "../../support/location.ts";
import { givenArray, givenAxis, requireFields, requireFloat } from "../support/arguments.ts";
import type { GivenArray } from "../support/arguments.ts";
import type { RowConfiguration } from "./row-kernel.ts";
import type { Piece, RowOp, RowPart, Statistics } from "./row-op.ts";
import { rowOperation } from "./row-plan.ts";
import {
  computeFormat,
  computed,
  exponential,
  powersBeneath,
  statistic,
} from "../support/numbers.ts";

/** What `softmax` and `logSoftmax` are made for. */
export interface SoftmaxSpec<X extends FloatName, Out extends FloatName> {
  /** A format is an array of [m, n]. */
  readonly x: GivenArray<X>;
  /** The axis along which results sum to 1; the last unless told. */
  readonly axis?: number;
  /** The format of the result; x's own unless told. */
  readonly out?: DType<Out>;
}

/** The operation that `softmax` and `logSoftmax` make. */
export type SoftmaxOperation<X extends DTypeName, Out extends DTypeName> = Operation<
  { readonly x: TensorSpec<X> },
  { readonly out: TensorSpec<Out> },
  Empty,
  RowConfiguration
>;

/** exp(x) over its sum along an axis. */
export function softmax<X extends FloatName, Out extends FloatName = X>(
  spec: SoftmaxSpec<X, Out>,
): SoftmaxOperation<X, Out> {
  const location = captureLocation();
  return softmaxLike("softmax", spec, location, {
    heldBytes: 256,
    of: (x, statistics, from, out) => {
      // As they were measured, so that registers that hold a row need not compute them again.
      const { powers, factor } = powersBeneath(x, finite(statistic(statistics, "high")), from, out);
      return powers.mul(factor.div(statistic(statistics, "sum")));
    },
  }) as unknown as SoftmaxOperation<X, Out>;
}

/** x less the logarithm of the sum of exp(x) along an axis. */
export function logSoftmax<X extends FloatName, Out extends FloatName = X>(
  spec: SoftmaxSpec<X, Out>,
): SoftmaxOperation<X, Out> {
  const location = captureLocation();
  return softmaxLike("log_softmax", spec, location, {
    heldBytes: 192,
    of: (x, statistics) =>
      x.sub(statistic(statistics, "high")).sub(statistic(statistics, "sum").log()),
  }) as unknown as SoftmaxOperation<X, Out>;
}

type SoftmaxResult = Pick<RowOp, "heldBytes"> & {
  readonly of: (x: Tile<"f32">, statistics: Statistics, from: DType, out: DType) => Tile<"f32">;
};

/** Pieces of rows from which on blocks share them though exponentials are not approximated: before, a block's queue has room for a row. */
const exactPieces = 17;

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
  const out = tensor(spec.out ?? x.dtype, x.shape);
  requireFloat("out", name, out, location);
  const compute = computeFormat(x.dtype);
  // Pieces are measured as they come: exponentials of one hide what is waited for of the next.
  const { statistics, measure, merge, join } = exponentialSums(
    { compute, from: x.dtype, out: out.dtype },
    "x",
  );
  const op: RowOp = {
    name,
    arrays: [
      { name: "x", dtype: x.dtype, role: "input", per: "element" },
      { name: "out", dtype: out.dtype, role: "output", per: "element" },
    ],
    compute,
    heldBytes: result.heldBytes,
    ...(compute.bits === 32 && { sharedPieces: out.dtype.bits <= 16 ? 2 : exactPieces }),
    statistics,
    measure,
    merge,
    join,
    results: ({ x: tile }, found, piece) => {
      const own = computed(inRow(tile, piece), compute);
      return { out: result.of(own, found, x.dtype, out.dtype).cast(out.dtype) };
    },
  };
  return rowOperation({ op, specs: { x, out }, of: x, axis }, spec);
}

/** The formats of a row's elements, of its statistics and of its results. */
export interface RowFormats {
  readonly from: DType;
  readonly compute: DType<"f32">;
  readonly out: DType;
}

/** The greatest element of a row, and the sum of exponentials beneath it. */
export function exponentialSums(
  { from, compute, out }: RowFormats,
  name: string,
): Pick<RowOp, "statistics" | "measure" | "merge" | "join"> & Required<Pick<RowOp, "together">> {
  const scaled = (part: Statistics, high: Tile<"f32">): Tile<"f32"> =>
    statistic(part, "sum").mul(exponential(statistic(part, "high").sub(finite(high)), out));
  /** The greatest element of all pieces first, so that no sum is scaled to another. */
  const together = (parts: readonly RowPart[]): Statistics => {
    const own = parts.map(({ tiles, piece }) => inRow(tiles[name], piece) as Tile<"f32">);
    // Of elements as they lie in registers, two at a time where they are narrow.
    const highs = own.map((each) => each.max({ axis: 1, keepDims: true }));
    const high = computed(
      highs.reduce((left, right) => left.maximum(right)),
      compute,
    );
    const beneath = own.map((each) =>
      powersBeneath(computed(each, compute), finite(high), from, out),
    );
    const sum = beneath
      .map(({ powers }) => powers.sum({ axis: 1, keepDims: true }))
      .reduce((left, right) => left.add(right));
    return { high, sum: beneath[0] === undefined ? sum : sum.mul(beneath[0].factor) };
  };
  return {
    statistics: ["high", "sum"],
    measure: (tiles, piece) => together([{ tiles, piece }]),
    together,
    merge: (left, right) => {
      const high = statistic(left, "high").maximum(statistic(right, "high"));
      return { high, sum: scaled(left, high).add(scaled(right, high)) };
    },
    join: (pieces) => {
      const high = statistic(pieces, "high").max({ axis: 0, keepDims: true });
      return { high, sum: scaled(pieces, high).sum({ axis: 0, keepDims: true }) };
    },
  };
}

/** Elements of a piece, and nothing beyond the end of the row. */
export function inRow(tile: Tile | undefined, piece: Piece): Tile {
  if (tile === undefined) throw new Error("an operation names a tile that it has not");
  return piece.within(tile, -Infinity);
}

/** A row of −∞ alone has no difference to its greatest element. */
export function finite(high: Tile<"f32">): Tile<"f32"> {
  return high.eq(-Infinity).select(0, high);
}
