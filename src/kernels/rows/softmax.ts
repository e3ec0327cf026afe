/**
 * Softmax and log-softmax along an axis, by online softmax: the maximum of a row is subtracted before exponentials are taken, and the
 * sums of pieces are rescaled to the common maximum:
 *
 *   pieces      high 3, sum 1.2        high 7, sum 2.0
 *   merged      high 7, sum 1.2 · exp(3 − 7) + 2.0
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
import type { Piece, RowOp, LoadedPiece, Statistics } from "./row-op.ts";
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
  /** The axis along which results sum to 1; the last by default. */
  readonly axis?: number;
  /** The format of the result; x's own by default. */
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
    registerBytes: 256,
    of: (x, statistics, from, out) => {
      // The same expression as in `measure`, so that values in registers are reused.
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
    registerBytes: 192,
    of: (x, statistics) =>
      x.sub(statistic(statistics, "high")).sub(statistic(statistics, "sum").log()),
  }) as unknown as SoftmaxOperation<X, Out>;
}

type SoftmaxResult = Pick<RowOp, "registerBytes"> & {
  readonly of: (x: Tile<"f32">, statistics: Statistics, from: DType, out: DType) => Tile<"f32">;
};

/** Pieces of a row from which on it is grid-cooperative with exact exponentials; shorter rows fit in the pipeline of one block. */
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
  // Pieces are measured as they arrive: the exponentials of one hide the latency of the next.
  const { statistics, measure, merge, mergeAll } = exponentialSums(
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
    registerBytes: result.registerBytes,
    ...(compute.bits === 32 && { cooperativePieces: out.dtype.bits <= 16 ? 2 : exactPieces }),
    statistics,
    measure,
    merge,
    mergeAll,
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

/** The maximum of a row, and the sum of its exponentials. */
export function exponentialSums(
  { from, compute, out }: RowFormats,
  name: string,
): Pick<RowOp, "statistics" | "measure" | "merge" | "mergeAll"> &
  Required<Pick<RowOp, "measureAll">> {
  const scaled = (part: Statistics, high: Tile<"f32">): Tile<"f32"> =>
    statistic(part, "sum").mul(exponential(statistic(part, "high").sub(finite(high)), out));
  /** Takes the maximum of all pieces first, so that no sum is rescaled. */
  const measureAll = (pieces: readonly LoadedPiece[]): Statistics => {
    const own = pieces.map(({ tiles, piece }) => inRow(tiles[name], piece));
    // On elements as loaded: packed pairs where they are narrow.
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
    measure: (tiles, piece) => measureAll([{ tiles, piece }]),
    measureAll,
    merge: (left, right) => {
      const high = statistic(left, "high").maximum(statistic(right, "high"));
      return { high, sum: scaled(left, high).add(scaled(right, high)) };
    },
    mergeAll: (pieces) => {
      const high = statistic(pieces, "high").max({ axis: 0, keepDims: true });
      return { high, sum: scaled(pieces, high).sum({ axis: 0, keepDims: true }) };
    },
  };
}

/** Elements of a piece, masked beyond the end of the row. */
export function inRow(tile: Tile | undefined, piece: Piece): Tile {
  if (tile === undefined) throw new Error("an operation names a tile that it has not");
  return piece.within(tile, -Infinity);
}

/** A finite maximum: a row of −∞ alone minus its maximum would be NaN. */
export function finite(high: Tile<"f32">): Tile<"f32"> {
  return high.eq(-Infinity).select(0, high);
}
