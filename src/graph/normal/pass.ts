/** Normal forms as passes: products first turned to where their results are wanted, then made products of matrices. */
import type { GraphOp, GraphRegion } from "../ops/node.ts";
import { mapBodies, mapRegions, withOps } from "../passes/pass.ts";
import type { GraphPass } from "../passes/pass.ts";
import { rowConvolution } from "./row-convolutions.ts";
import { constantPicks } from "./constant-picks.ts";
import { gatheredProducts, scatteredProducts } from "./gather-algebra.ts";
import { patchProduct, tensorCorePatches } from "./convolutions.ts";
import type { PatchLimits } from "./convolutions.ts";
import { convolutionsOfClasses } from "./dilated-convolutions.ts";
import { depthwiseSum } from "./depthwise.ts";
import { groupedWeights } from "./grouped-weights.ts";
import { withAlgorithm } from "./precision.ts";
import type { MatmulPrecision } from "../ops/matmul-precision.ts";
import { rewriting } from "./rewriting.ts";
import { normalProduct, turnedProduct } from "./products.ts";

/** Products whose only use is a transpose of their result, with their operands in the other order. */
export const turnProductsPass: GraphPass = rewriting("turn-products", {
  "turn-products": (op, place) => {
    if (op.kind !== "stablehlo.transpose") return undefined;
    const { operand } = op.operands;
    const product = place.definition(operand);
    if (product?.kind !== "stablehlo.dot_general" || place.uses(operand) !== 1) return undefined;
    return turnedProduct(op, product, place.builder);
  },
});

/** Products as products of matrices. */
export const normalProductsPass: GraphPass = rewriting("normal-products", {
  "normal-products": (op, place) =>
    op.kind === "stablehlo.dot_general"
      ? normalProduct(op, place.builder, (value) => place.definition(value))
      : undefined,
});

/** Products and convolutions of f32 with the algorithms that they are made by. */
export function matmulPrecisionPass(precision: MatmulPrecision, hasTensorCores = true): GraphPass {
  return {
    name: "matmul-precision",
    run: (module) => mapBodies(module, (body) => withAlgorithms(body, precision, hasTensorCores)),
  };
}

function withAlgorithms(
  region: GraphRegion,
  precision: MatmulPrecision,
  hasTensorCores: boolean,
): GraphRegion {
  const within = (inner: GraphRegion): GraphRegion =>
    withAlgorithms(inner, precision, hasTensorCores);
  const ops = region.ops.map(
    (op) => withAlgorithm(op, precision, hasTensorCores) ?? mapRegions(op, within),
  );
  return withOps(region, ops);
}

/** Gathers and scatters by constants, as what they are. */
export const constantPicksPass: GraphPass = rewriting("constant-picks", constantPicks);

/** Products beside gathers and scatters, where they multiply fewer rows. */
export const scatteredProductsPass: GraphPass = rewriting("scattered-products", scatteredProducts);
export const gatheredProductsPass: GraphPass = rewriting("gathered-products", gatheredProducts);

/** Convolutions of few channels and gradients of grouped ones' kernels as products, depthwise ones as sums. */
export const patchesPass: GraphPass = patchesPassFor(tensorCorePatches);

/** The same where other convolutions are worth patches. */
export function patchesPassFor(worth: PatchLimits): GraphPass {
  return rewriting("patches", {
    patches: (op, place) =>
      op.kind === "stablehlo.convolution" ? patchProduct(op, place.builder, worth) : undefined,
    depthwise: (op, place) =>
      op.kind === "stablehlo.convolution" ? depthwiseSum(op, place.builder) : undefined,
    "grouped-weights": (op, place) =>
      op.kind === "stablehlo.convolution" ? groupedWeights(op, place.builder) : undefined,
  });
}

/** Convolutions by rows of windows, which a CPU has a kernel for. */
export const rowConvolutionsPass: GraphPass = rewriting("row-convolutions", {
  rows: (op, place) =>
    op.kind === "stablehlo.convolution" ? rowConvolution(op, place.builder) : undefined,
});

/** Convolutions over operands with holes as convolutions without, but those that `isKept` says a kernel is for. */
export function withoutHolesPass(
  isKept: (op: GraphOp<"stablehlo.convolution">) => boolean,
): GraphPass {
  return rewriting("without-holes", {
    "without-holes": (op, place) =>
      op.kind === "stablehlo.convolution" && !isKept(op)
        ? convolutionsOfClasses(op, place.builder)
        : undefined,
  });
}
