/**
 * Weights into few bits and back, in the order that products read (`quantized.ts`):
 *
 *   quantizeWeights     x [k, n]  ──▶  b, bScale       scale = max |x| of a group / greatest number of the format
 *   dequantizeWeights   b, bScale ──▶  x [k, n]        b · scale
 *
 * A block has 64 columns of one group. It goes through the group twice: for the scale, and for what is divided by it.
 * A group of zeros has scale 0 and stays zeros.
 */
import type { DType, DTypeName, FloatName } from "../../formats/dtype.ts";
import { dtypes } from "../../formats/dtype.ts";
import { operation } from "../../device/operation.ts";
import type { Operation, PlannedLaunch } from "../../device/operation.ts";
import { evaluateSize } from "../../ir/size.ts";
import { array, cdiv, constant, dim, full, kernel, loop, slice, zeros } from "../../lang/index.ts";
import type { ArraySpec, Empty, KernelDefinition, Ref, Scalar, Tile } from "../../lang/index.ts";
import { captureLocation } from "../../support/location.ts";
import type { Location } from "../../support/location.ts";
import { optionText } from "../../support/options.ts";
import { requireFields, requireFloat } from "../support/given.ts";
import { storedOperand } from "./given-prologues.ts";
import { refused } from "./problem.ts";
import { dequantized, greatestWeight, isQuantized, packed, packedUnit } from "./quantized.ts";
import type { QuantizedSpec, WeightFormat } from "./quantized.ts";

export interface QuantizeWeightsSpec<
  X extends FloatName,
  D extends WeightFormat,
  S extends DTypeName,
> {
  /** The format of the weights, which are [k, n] by rows. */
  readonly x: DType<X>;
  /** How they are stored. */
  readonly b: QuantizedSpec<D, S>;
}

type Stored<D extends DTypeName, S extends DTypeName> = {
  readonly b: ArraySpec<D>;
  readonly bScale: ArraySpec<S>;
};
type Weights<X extends DTypeName> = { readonly x: ArraySpec<X> };

/** Columns of a block. */
const columns = 64;

/** Weights in few bits, and their scales: what `matmul` takes for b and bScale. */
export function quantizeWeights<X extends FloatName, D extends WeightFormat, S extends DTypeName>(
  spec: QuantizeWeightsSpec<X, D, S>,
): Operation<Weights<X>, Stored<D, S>, Empty> {
  const { x, stored, weights } = given("quantizeWeights", spec, captureLocation());
  return operation({
    name: "quantizeWeights",
    inputs: { x },
    outputs: stored,
    plan: (dimensions) => ({
      configuration: {},
      source: "heuristic",
      launches: () => [launch(quantizeKernel(x.dtype, weights), weights, dimensions)],
    }),
  }) as unknown as Operation<Weights<X>, Stored<D, S>, Empty>;
}

/**
 * The weights that stored ones stand for, rounded as products round them. Columns are stored in multiples of 128, so k is
 * given with the launch: `{ dimensions: { k } }`.
 */
export function dequantizeWeights<X extends FloatName, D extends WeightFormat, S extends DTypeName>(
  spec: QuantizeWeightsSpec<X, D, S>,
): Operation<Stored<D, S>, Weights<X>, Empty> {
  const { x, stored, weights } = given("dequantizeWeights", spec, captureLocation());
  return operation({
    name: "dequantizeWeights",
    inputs: stored,
    outputs: { x },
    plan: (dimensions) => ({
      configuration: {},
      source: "heuristic",
      launches: () => [launch(dequantizeKernel(x.dtype, weights), weights, dimensions)],
    }),
  }) as unknown as Operation<Stored<D, S>, Weights<X>, Empty>;
}

function given(
  of: string,
  spec: QuantizeWeightsSpec<FloatName, WeightFormat, DTypeName>,
  location: Location,
): {
  readonly x: ArraySpec;
  readonly stored: { readonly [name: string]: ArraySpec };
  readonly weights: QuantizedSpec;
} {
  requireFields(of, spec, { x: "format", b: "operand" }, location);
  const weights: unknown = spec.b;
  if (!isQuantized(weights))
    throw refused(
      "TW9902",
      `${of} has no description of the weights`,
      "b: quantized(i4, [k, n], { group: 128, scale: bf16 })",
      optionText(weights),
      location,
    );
  const x = array(spec.x, weights.shape);
  requireFloat("x", of, x, location);
  return { x, weights, stored: storedArrays(weights, ...weights.shape) };
}

function storedArrays(
  weights: QuantizedSpec,
  k: QuantizedSpec["shape"][0],
  n: QuantizedSpec["shape"][1],
): { readonly b: ArraySpec; readonly bScale: ArraySpec } {
  const { group, scale } = weights;
  const groups = group === undefined ? [] : [cdiv(k, group)];
  return {
    b: storedOperand({ ...weights, shape: [k, n] }).spec,
    bScale: array(scale, [...groups, n]),
  };
}

function launch(
  definition: KernelDefinition,
  { shape: [k, n] }: QuantizedSpec,
  dimensions: { readonly [name: string]: number },
): PlannedLaunch {
  const values = new Map(Object.entries(dimensions));
  const named = (name: string): { readonly argument: string } => ({ argument: name });
  return {
    kernel: definition,
    arguments: { x: named("x"), b: named("b"), bScale: named("bScale") },
    dimensions: { k: evaluateSize(k, values), n: evaluateSize(n, values) },
  };
}

/** Where a block's parts of the weights are, one for each 128 of its group. */
interface Parts {
  readonly count: Scalar<"i32">;
  readonly along: (part: Scalar<"i32">) => Scalar<"i32">;
}

function partsOf(
  { group }: QuantizedSpec,
  k: Parameters<typeof cdiv>[0],
  index: Scalar<"i32">,
): Parts {
  const all = constant(dtypes.i32, 0).add(cdiv(k, packedUnit));
  if (group === undefined) return { count: all, along: (part) => part.mul(packedUnit) };
  const each = group / packedUnit;
  return {
    count: all.sub(index.mul(each)).minimum(each),
    along: (part) => index.mul(each).add(part).mul(packedUnit),
  };
}

function quantizeKernel(dtype: DType, weights: QuantizedSpec): KernelDefinition {
  const [k, n] = [dim("k"), dim("n")];
  const { group, scale } = weights;
  const most = greatestWeight[weights.dtype.name as WeightFormat];
  return kernel(
    {
      name: "quantize_weights",
      grid: { i: group === undefined ? 1 : cdiv(k, group), j: cdiv(n, columns) },
      inputs: { x: array(dtype, [k, n]) },
      outputs: storedArrays(weights, k, n),
    },
    ({ i, j, x, b, bScale }) => {
      const { count, along } = partsOf(weights, k, i);
      const across = slice(j.mul(columns), columns);
      const part = (index: Scalar<"i32">): Tile<"f32"> =>
        x
          .at(slice(along(index), packedUnit), across)
          .load()
          .cast(dtypes.f32) as Tile<"f32">;
      const greatest = loop({ to: count, carry: zeros(dtypes.f32, [columns]) }, (index, before) =>
        before.maximum(part(index).abs().max(0)),
      );
      const scales = greatest.div(most).cast(scale) as Tile;
      scaleOf(bScale as Ref, group, i)
        .at(across)
        .store(scales);
      const divisor = scales.cast(dtypes.f32) as Tile<"f32">;
      const none = divisor.eq(full(dtypes.f32, [columns], 0));
      const safe = none.select(full(dtypes.f32, [columns], 1), divisor).reshape([1, columns]);
      loop({ to: count }, (index) => {
        const numbers = part(index).div(safe).minimum(most).maximum(-most);
        const stored = weights.dtype.name.startsWith("i") ? numbers.round() : numbers;
        const window = (b as Ref).at(across, slice(along(index), packedUnit));
        window.store(packed(stored.cast(weights.dtype) as Tile).transpose() as Tile);
      });
    },
  ) as unknown as KernelDefinition;
}

function scaleOf(scales: Ref, group: number | undefined, index: Scalar<"i32">): Ref {
  return group === undefined ? scales : scales.at(index);
}

function dequantizeKernel(dtype: DType, weights: QuantizedSpec): KernelDefinition {
  const [k, n] = [dim("k"), dim("n")];
  const { group, scale } = weights;
  return kernel(
    {
      name: "dequantize_weights",
      grid: { i: cdiv(k, packedUnit), j: cdiv(n, columns) },
      inputs: storedArrays(weights, k, n),
      outputs: { x: array(dtype, [k, n]) },
    },
    ({ i, j, b, bScale, x }) => {
      const across = slice(j.mul(columns), columns);
      const along = slice(i.mul(packedUnit), packedUnit);
      const stored = (b as Ref).at(across, along).load().transpose() as Tile;
      const of = scaleOf(bScale as Ref, group, group === undefined ? i : i.div(group / packedUnit));
      const scales = of.at(across).load().reshape([1, columns]) as Tile;
      x.at(along, across).store(dequantized(stored, scales, scale).cast(dtype) as Tile);
    },
  ) as unknown as KernelDefinition;
}
