/**
 * Rows in fewer bits, with a scale for each row or for each group of columns:
 *
 *   scale = max |x| / greatest number of the format        out = x / scale, rounded to the format
 *
 * so that out · scale is x again, up to rounding. A row of zeros has scale 0 and stays zeros; other scales are at least 2⁻¹²⁷ (2⁻¹⁰²³ in
 * f64), so that they have a reciprocal to multiply by.
 */
import type { DType, DTypeName, FloatName } from "../../formats/dtype.ts";
import { dtypes } from "../../formats/dtype.ts";
import type { Operation } from "../../device/operation.ts";
import { divideSizeExactly, shapeText } from "../../ir/size.ts";
import { tensor, dim, full } from "../../lang/index.ts";
import type { TensorSpec, Empty, Tile } from "../../lang/index.ts";
import { captureLocation } from "../../support/location.ts";
import { optionText } from "../../support/options.ts";
import { givenArray, refused, requireFields, requireFloat } from "../support/arguments.ts";
import type { GivenArray } from "../support/arguments.ts";
import { computeFormat, computed, statistic } from "../support/numbers.ts";
import type { RowConfiguration } from "./row-kernel.ts";
import type { RowOp } from "./row-op.ts";
import { rowOperation } from "./row-plan.ts";

/** The greatest number of each format that is quantised to. */
const greatest = { i4: 7, i8: 127, f8e4m3fn: 448, f8e5m2: 57344 } as const;

/** The formats that `quantize` rounds to. */
export type QuantizedFormat = keyof typeof greatest;

/** What `quantize` is made for. */
export interface QuantizeSpec<X extends FloatName, Out extends QuantizedFormat> {
  /** A format is an array of [m, n]; rows lie along the last axis. */
  readonly x: GivenArray<X>;
  /** The format of the result. */
  readonly out: DType<Out>;
  /** Columns that share a scale; a whole row by default. */
  readonly groupSize?: number;
}

/** The operation that `quantize` makes. */
export type QuantizeOperation<X extends DTypeName, Out extends DTypeName> = Operation<
  { readonly x: TensorSpec<X> },
  { readonly out: TensorSpec<Out>; readonly scale: TensorSpec<"f32" | "f64"> },
  Empty,
  RowConfiguration
>;

/** x in another format, and what its rows or groups were divided by. */
export function quantize<X extends FloatName, Out extends QuantizedFormat>(
  spec: QuantizeSpec<X, Out>,
): QuantizeOperation<X, Out> {
  const location = captureLocation();
  requireFields("quantize", spec, { x: "array", out: "format", groupSize: "number" }, location);
  const { groupSize: group } = spec;
  const x = givenArray("x", "quantize", spec.x, [dim("m"), dim("n")], location);
  requireFloat("x", "quantize", x, location);
  const dtype: DType = spec.out;
  const most = Object.entries(greatest).find(([name]) => dtypes[name as QuantizedFormat] === dtype);
  if (most === undefined)
    throw refused(
      "TW9901",
      "quantize has no such format",
      Object.keys(greatest).join(", "),
      optionText((dtype as { readonly name?: string } | undefined)?.name ?? dtype),
      location,
    );
  const compute = computeFormat(x.dtype);
  const [last = 1, leads] = [x.shape.at(-1), x.shape.slice(0, -1)];
  const isWhole = Number.isSafeInteger(group) && (group ?? 0) > 0;
  const groups =
    group === undefined ? undefined : isWhole ? divideSizeExactly(last, group) : undefined;
  if (group !== undefined && (groups === undefined || x.strides !== undefined))
    throw refused(
      "TW9902",
      "the rows of quantize have no whole number of groups",
      "rows without strides whose length is a multiple of the group: dim(…, { multipleOf })",
      `groups of ${optionText(group)} in ${shapeText(x.shape)}`,
      location,
    );
  // Groups are rows of their own: they lie one after the other.
  const shape = groups === undefined || group === undefined ? x.shape : [...leads, groups, group];
  const op = quantizeOp(x.dtype, dtype, compute, most[1]);
  const rows = shape.slice(0, -1);
  return rowOperation(
    {
      op,
      declared: { x, out: tensor(dtype, x.shape), scale: tensor(compute, rows) },
      specs: {
        x: groups === undefined ? x : tensor(x.dtype, shape),
        out: tensor(dtype, shape),
        scale: tensor(compute, rows),
      },
      of: groups === undefined ? x : tensor(x.dtype, shape),
      axis: shape.length - 1,
    },
    spec,
  ) as unknown as QuantizeOperation<X, Out>;
}

function quantizeOp(x: DType, out: DType, compute: DType<"f32">, most: number): RowOp {
  const isInteger = out.kind !== "float";
  // Below this, `most / high` overflows: elements would saturate, and zeros become NaN.
  const least = most * 2 ** (compute.bits === 64 ? -1023 : -127);
  const reached = (high: Tile<"f32">): Tile<"f32"> => high.gt(0).select(high.maximum(least), high);
  return {
    name: "quantize",
    arrays: [
      { name: "x", dtype: x, role: "input", per: "element" },
      { name: "out", dtype: out, role: "output", per: "element" },
      { name: "scale", dtype: compute, role: "output", per: "row" },
    ],
    compute,
    registerBytes: 256,
    statistics: ["high"],
    measure: (tiles) => ({
      high: computed(tiles["x"], compute).abs().max({ axis: 1, keepDims: true }),
    }),
    merge: (left, right) => ({
      high: statistic(left, "high").maximum(statistic(right, "high")),
    }),
    mergeAll: (pieces) => ({ high: statistic(pieces, "high").max({ axis: 0, keepDims: true }) }),
    results: (tiles, statistics) => {
      const high = reached(statistic(statistics, "high"));
      const factor = high.gt(0).select(full(compute, [1, 1], most).div(high), 0);
      const scaled = computed(tiles["x"], compute).mul(factor);
      return { out: (isInteger ? scaled.round() : scaled).cast(out) };
    },
    rowResults: (_, statistics) => ({
      scale: reached(statistic(statistics, "high")).mul(1 / most),
    }),
  };
}
