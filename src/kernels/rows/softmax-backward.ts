/**
 * Gradients of softmax and of its logarithm, from their results:
 *
 *   softmax        dx = out · (dOut − Σ out · dOut)
 *   log-softmax    dx = dOut − exp(out) · Σ dOut
 */
import type { DType, DTypeName, FloatName } from "../../formats/dtype.ts";
import type { Operation } from "../../device/operation.ts";
import { tensor, dim } from "../../lang/index.ts";
import type { TensorSpec, Empty, Tile } from "../../lang/index.ts";
import { captureLocation } from "../../support/location.ts";
import type { Location } from "../../support/location.ts";
import {
  givenArray,
  givenAxis,
  requireFields,
  requireFloat,
  requireShape,
} from "../support/arguments.ts";
import type { GivenArray } from "../support/arguments.ts";
import { computeFormat, computed, exponential, joinedSums, statistic } from "../support/numbers.ts";
import type { RowConfiguration } from "./row-kernel.ts";
import type { RowOp } from "./row-op.ts";
import { rowOperation } from "./row-plan.ts";

/** What `softmaxBackward` and `logSoftmaxBackward` are made for. */
export interface SoftmaxBackwardSpec<Out extends FloatName, DOut extends FloatName> {
  /** What the forward operation gave. A format is an array of [m, n]. */
  readonly out: GivenArray<Out>;
  /** The gradient to it; of the same format by default. */
  readonly dOut?: GivenArray<DOut>;
  /** The axis along which results sum to 1; the last by default. */
  readonly axis?: number;
}

/** The operation that `softmaxBackward` and `logSoftmaxBackward` make. */
export type SoftmaxBackwardOperation<Out extends DTypeName, DOut extends DTypeName> = Operation<
  { readonly out: TensorSpec<Out>; readonly dOut: TensorSpec<DOut> },
  { readonly dx: TensorSpec<Out> },
  Empty,
  RowConfiguration
>;

/** The gradient to x of softmax. */
export function softmaxBackward<Out extends FloatName, DOut extends FloatName = Out>(
  spec: SoftmaxBackwardSpec<Out, DOut>,
): SoftmaxBackwardOperation<Out, DOut> {
  const location = captureLocation();
  return backward("softmaxBackward", spec, location, {
    summed: (out, dOut) => out.mul(dOut),
    result: (out, dOut, sum) => out.mul(dOut.sub(sum)),
  }) as unknown as SoftmaxBackwardOperation<Out, DOut>;
}

/** The gradient to x of log-softmax. */
export function logSoftmaxBackward<Out extends FloatName, DOut extends FloatName = Out>(
  spec: SoftmaxBackwardSpec<Out, DOut>,
): SoftmaxBackwardOperation<Out, DOut> {
  const location = captureLocation();
  return backward("logSoftmaxBackward", spec, location, {
    summed: (_, dOut) => dOut,
    result: (out, dOut, sum, dtype) => dOut.sub(exponential(out, dtype).mul(sum)),
  }) as unknown as SoftmaxBackwardOperation<Out, DOut>;
}

interface Gradient {
  readonly summed: (out: Tile<"f32">, dOut: Tile<"f32">) => Tile<"f32">;
  readonly result: (
    out: Tile<"f32">,
    dOut: Tile<"f32">,
    sum: Tile<"f32">,
    dtype: DType,
  ) => Tile<"f32">;
}

function backward(
  name: string,
  spec: SoftmaxBackwardSpec<FloatName, FloatName>,
  location: Location,
  { summed, result }: Gradient,
): Operation {
  requireFields(name, spec, { out: "array", dOut: "array", axis: "number" }, location);
  const out = givenArray("out", name, spec.out, [dim("m"), dim("n")], location);
  const dOut = givenArray("dOut", name, spec.dOut ?? out.dtype, out.shape, location);
  for (const [own, each] of Object.entries({ out, dOut })) requireFloat(own, name, each, location);
  requireShape("dOut", name, dOut, out.shape, location);
  const axis = givenAxis(name, spec.axis ?? -1, out.shape.length, location);
  const compute = computeFormat(out.dtype);
  const op: RowOp = {
    name: name === "softmaxBackward" ? "softmax_backward" : "log_softmax_backward",
    arrays: [
      { name: "out", dtype: out.dtype, role: "input", per: "element" },
      { name: "dOut", dtype: dOut.dtype, role: "input", per: "element" },
      { name: "dx", dtype: out.dtype, role: "output", per: "element" },
    ],
    compute,
    registerBytes: 256,
    statistics: ["sum"],
    // Beyond the end of rows both are loaded as 0, which adds nothing.
    measure: (tiles) => ({
      sum: summed(computed(tiles["out"], compute), computed(tiles["dOut"], compute)).sum({
        axis: 1,
        keepDims: true,
      }),
    }),
    merge: (left, right) => ({
      sum: statistic(left, "sum").add(statistic(right, "sum")),
    }),
    mergeAll: joinedSums,
    results: (tiles, statistics) => ({
      dx: result(
        computed(tiles["out"], compute),
        computed(tiles["dOut"], compute),
        statistic(statistics, "sum"),
        out.dtype,
      ).cast(out.dtype),
    }),
  };
  return rowOperation(
    {
      op,
      specs: { out, dOut, dx: tensor(out.dtype, out.shape) },
      of: out,
      axis,
    },
    spec,
  );
}
