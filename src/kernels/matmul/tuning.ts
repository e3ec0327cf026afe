/**
 * What a tuner may choose in a product, and which sizes share a result: n and k are those of weights and stay as they
 * are; m, which changes from call to call, is rounded up to what tiles make of it.
 *
 *   m      1  2  3  9  100  256  257  4000  4096
 *   bucket 1  2  4  16 128  256  384  4096  4096
 */
import type { OperationChoices } from "../../device/tuning/advice.ts";
import type { Choice, Sizes } from "../../device/tuning/line.ts";
import { evaluateSize, sizeText } from "../../ir/size.ts";
import { powerOfTwo } from "../../tune/buckets.ts";
import { candidateConfigurations, modelSeconds } from "./heuristics/all-configurations.ts";
import { trustedConfiguration } from "./heuristics/select-configuration.ts";
import type { MatmulConfiguration, ProductSizes } from "./configuration.ts";
import type { MatmulProblem } from "./problem.ts";
import type { QuantizedSpec } from "./weights/quantized.ts";

/** Below this m is a power of two, above it a multiple of rows of a tile. */
const [fewRows, tileRows] = [256, 128];

export function productSizes(
  { sizes: { m, n, k, batch } }: MatmulProblem,
  given: Sizes,
): ProductSizes {
  const values = new Map(Object.entries(given));
  return {
    m: evaluateSize(m, values),
    n: evaluateSize(n, values),
    k: evaluateSize(k, values),
    batch: batch === undefined ? 1 : evaluateSize(batch, values),
  };
}

function bucketOf({ m, n, k, batch }: ProductSizes): Sizes {
  const rows = m <= fewRows ? powerOfTwo(m) : Math.ceil(m / tileRows) * tileRows;
  return { m: rows, n, k, ...(batch !== 1 && { batch }) };
}

export function matmulChoices(problem: MatmulProblem): OperationChoices {
  return {
    variant: variantOf(problem),
    bucket: (sizes) => bucketOf(productSizes(problem, sizes)),
    candidates: (sizes, target) =>
      candidateConfigurations(problem, productSizes(problem, sizes), target) as readonly Choice[],
    trusted: (sizes, target) =>
      trustedConfiguration(problem, productSizes(problem, sizes), target) as Choice,
    estimate: (choice, sizes, target) =>
      modelSeconds(
        problem,
        productSizes(problem, sizes),
        choice as unknown as MatmulConfiguration,
        target,
      ),
  };
}

/** Formats, how operands lie, and what is done besides multiplying. */
function variantOf(problem: MatmulProblem): string {
  const { a, b, out, major, batched, precision, accumulation, inputs, epilogue } = problem;
  const { prologues, weights, blockScales, views } = problem;
  const viewed = (["a", "b", "out"] as const).filter((name) => views?.[name] !== undefined);
  const further = Object.entries(inputs).map(
    ([name, { dtype, shape }]) => `${name} ${dtype.name}[${shape.map(sizeText).join(", ")}]`,
  );
  return [
    `a ${a.dtype.name} by ${major.a}${batched.a ? ", batched" : ""}`,
    `b ${b.dtype.name} by ${major.b}${batched.b ? ", batched" : ""}`,
    `out ${out.dtype.name}`,
    ...viewed.map((name) => `${name} is part of a larger array`),
    ...[precision, accumulation].filter((each) => each !== undefined),
    ...further,
    ...(weights === undefined ? [] : [weightsText(weights)]),
    ...(problem.sparse ? ["sparse"] : []),
    ...(blockScales === undefined
      ? []
      : [`scales for ${blockScales.a} rows and ${blockScales.b} columns`]),
    ...(epilogue === undefined ? [] : ["epilogue"]),
    ...Object.values(prologues).flatMap((each) =>
      each === undefined ? [] : [`prologue of ${each.operand} to ${each.as.name}`],
    ),
  ].join("; ");
}

/** What scales weights have. */
function weightsText({ group, span, scale, zero }: QuantizedSpec): string {
  const extent =
    span === 1 ? `${group ?? "all"} of k` : `${group ?? "all"} of k and ${span} columns`;
  return `a scale of ${scale.name}${zero ? " and a zero point" : ""} for ${extent}`;
}
