/**
 * Whether b of `scaledMatmul` is dequantised in the product's prologue or by a launch before, by what both take:
 *
 *   packed     read and written once as it is     + the product of packed weights
 *   before     read once, written as bf16         + the product of bf16
 *
 * The tuner chooses within the way that the sizes have.
 */
import type { OperationChoices } from "../../device/tuning/advice.ts";
import type { Planned, PlannedArgument } from "../../device/operation.ts";
import type { ScaledFormat } from "../../formats/scaled/formats.ts";
import type { ScaleLayout } from "../../formats/scaled/layout.ts";
import { ratesOf } from "../../ir/cost/index.ts";
import type { Target } from "../../targets/target.ts";
import { composed } from "../support/compose.ts";
import type { MatmulConfiguration, ProductSizes } from "./configuration.ts";
import { chooseConfiguration, modelSeconds } from "./heuristics/all-configurations.ts";
import type { MatmulProblem } from "./problem.ts";
import { matmulChoices, productSizes } from "./tuning.ts";
import { packWeights } from "./weights/pack-weights.ts";
import { packedUnit } from "./weights/quantized.ts";
import type { QuantizedSpec, ScaleFormat, WeightFormat } from "./weights/quantized.ts";

type Sizes = { readonly [name: string]: number };

/** The product of bf16, and that of packed weights where b can be such. */
export interface Ways {
  readonly problem: MatmulProblem;
  readonly packed: { readonly problem: MatmulProblem; readonly weights: QuantizedSpec } | undefined;
  readonly dequantize: "prologue" | "before" | undefined;
}

/** What is multiplied for some sizes. */
export interface Way {
  readonly problem: MatmulProblem;
  readonly weights: QuantizedSpec | undefined;
}

/** How much longer a product takes whose consumers also dequantise, which the model of products does not see. */
const dequantizing = 1.1;

const known = new WeakMap<Ways, Map<string, Way>>();

/** The faster way, or the one that was asked for. */
export function wayFor(ways: Ways, dimensions: Sizes, target: Target): Way {
  const found = known.get(ways) ?? new Map<string, Way>();
  known.set(ways, found);
  // Sizes that share what a tuner found are multiplied in one way, which that is for.
  const { m } = matmulChoices(ways.problem).bucket(dimensions);
  const own = productSizes(ways.problem, dimensions);
  const sizes = { ...own, m: m ?? own.m };
  const key = [target.name, ...Object.values(sizes)].join();
  const way = found.get(key) ?? chosenWay(ways, sizes, target);
  found.set(key, way);
  return way;
}

function chosenWay(
  { problem, packed, dequantize }: Ways,
  sizes: ProductSizes,
  target: Target,
): Way {
  const before = { problem, weights: undefined };
  const { m, n, k, batch } = sizes;
  if (packed === undefined || dequantize === "before" || m * n * k * batch === 0) return before;
  if (dequantize === "prologue") return packed;
  const seconds = (way: Way, bytes: number): number => {
    const configuration = chooseConfiguration(way.problem, sizes, target);
    const moved = (batch * n * k * bytes) / ratesOf(target).gmemBytes;
    const product = modelSeconds(way.problem, sizes, configuration, target) ?? Infinity;
    const isSlower = way.weights !== undefined && configuration.kernel === "persistent";
    return moved + product * (isSlower ? dequantizing : 1);
  };
  const stored = packed.weights.dtype.bits / 8;
  const [own, other] = [seconds(packed, 2 * stored), seconds(before, stored + 2)];
  return own <= other ? packed : before;
}

/** What a tuner may choose: of each way what its product has. */
export function choicesOf(ways: Ways): OperationChoices {
  const { problem, packed } = ways;
  const own = matmulChoices(problem);
  if (packed === undefined) return own;
  const other = matmulChoices(packed.problem);
  const of = (sizes: Sizes, target: Target): OperationChoices =>
    wayFor(ways, sizes, target).weights === undefined ? own : other;
  return {
    variant: `${own.variant}, or ${other.variant}`,
    bucket: own.bucket,
    candidates: (sizes, target) => of(sizes, target).candidates(sizes, target),
    ...(own.trusted !== undefined && {
      trusted: (sizes, target) => (of(sizes, target).trusted ?? own.trusted)?.(sizes, target) ?? {},
    }),
    estimate: (choice, sizes, target) => of(sizes, target).estimate?.(choice, sizes, target),
  };
}

/** b as it is given. */
export interface PackedOperand {
  readonly format: ScaledFormat | undefined;
  readonly layout: ScaleLayout;
}

/** The plan of a product of packed weights, with the launch before it that packs them. */
export function withPackedWeights(
  product: Planned<MatmulConfiguration>,
  weights: QuantizedSpec,
  { layout }: PackedOperand,
  { n, k, batch }: ProductSizes,
  given: Sizes,
  target: Target,
): Planned<MatmulConfiguration> {
  const names: { readonly [name: string]: string } = { b: "b packed", bScale: "bScale packed" };
  const each = packedUnit / (weights.group ?? packedUnit);
  const units = Math.ceil(k / packedUnit);
  const lead = weights.batch === undefined ? [] : [batch];
  const pack = composed(
    [
      {
        operation: packWeights({
          b: weights as QuantizedSpec<WeightFormat, ScaleFormat, false>,
          scaleLayout: layout === "tiled" ? "tiled" : "plain",
        }),
        dimensions: {
          ...{ ...given, n, k },
          scale_rows: given["b_scale_rows"] ?? n,
          scale_blocks: given["b_scale_blocks"] ?? Math.ceil(k / (weights.group ?? 1)),
        },
        arrays: { x: "b", scale: "bScale", ...names },
      },
    ],
    target,
  );
  const renamed = (each: PlannedArgument): PlannedArgument =>
    "argument" in each && Object.hasOwn(names, each.argument)
      ? { ...each, argument: names[each.argument] ?? each.argument }
      : each;
  return {
    ...product,
    scratch: {
      ...product.scratch,
      ...pack.scratch,
      "b packed": { dtype: weights.dtype, shape: [...lead, n, units * packedUnit] },
      "bScale packed": { dtype: weights.scale, shape: [...lead, units, n * each] },
    },
    launches: () => [
      ...pack.launches(),
      ...(typeof product.launches === "function" ? product.launches() : product.launches).map(
        (launch) => ({
          ...launch,
          arguments: Object.fromEntries(
            Object.entries(launch.arguments).map(([name, own]) => [name, renamed(own)]),
          ),
        }),
      ),
    ],
  };
}
