/** The lowering of every op kind: a new op does not compile until it has one here. */
import { capturesOf } from "../ops/captures.ts";
import type { AnyGraphOp, GraphValue } from "../ops/node.ts";
import { unknownOpReason } from "../ops/table.ts";
import type { GraphOpKind } from "../ops/table.ts";
import { operandsOf, regionsOf } from "../ops/traverse.ts";
import { meanings } from "../passes/derivatives.ts";
import { expandGradient, expandInference, expandTraining } from "../transform/expand/batch-norm.ts";
import { convolutionLowering } from "./convolution/lowering.ts";
import { expandComposite } from "./expand/library.ts";
import { expandCholesky, expandEinsum, expandTriangularSolve } from "./expand/linear-algebra.ts";
import { isPromoting, promoteScatter } from "./expand/promote.ts";
import { expandScatter, isSortedRows, isWorthSorting } from "./expand/scatter.ts";
import { expandScan } from "../transform/expand/scan.ts";
import { libraryProduct } from "./library.ts";
import type { LibraryCall } from "./library.ts";

import { fold, refuse } from "./lowering.ts";
import type { Lowering, Lowerings, UpdateInPlace } from "./lowering.ts";
import type { CollectiveCall, ProcessCounts } from "../ranks/collective.ts";
import { callLowering } from "./rules/calls.ts";
import { collectiveLowerings } from "./rules/collectives.ts";
import { elementwiseLowerings } from "./rules/elementwise.ts";
import { dotAt, plainDotNumbers } from "./rules/products.ts";
import { raggedDotAt } from "./rules/ragged.ts";
import { generatorLowering } from "./rules/random.ts";
import { reductionLowerings } from "./rules/reductions.ts";
import { sortedRowSteps } from "./rules/scatter-rows.ts";
import { scatterAt, scatterUpdate } from "./rules/scatter.ts";
import { shapeLowerings } from "./rules/shapes.ts";
import { cannotRun } from "./storage.ts";
import { topKLowering } from "./sort/top-k.ts";
import type { Caches } from "../../targets/target.ts";
import { tiledMatmul } from "./tiled/matmul.ts";
import type { TiledKernel } from "./tiled/tiled.ts";

const between = refuse("it works between devices");
const withHost = refuse("it exchanges values with the host while the program runs");
const control = { form: "control" } as const;
const check = { form: "check" } as const;
const none = { form: "none" } as const;

/** Ops that only say how to differentiate. */
const derivativeLowerings: Lowerings<keyof typeof meanings> = {
  "tilewright.custom_vjp": {
    form: "expand",
    to: meanings["tilewright.custom_vjp"],
  },
  "tilewright.checkpoint": {
    form: "expand",
    to: meanings["tilewright.checkpoint"],
  },
  "tilewright.name": { form: "expand", to: meanings["tilewright.name"] },
  "tilewright.stop_gradient": {
    form: "expand",
    to: meanings["tilewright.stop_gradient"],
  },
};

export const lowerings: Lowerings<GraphOpKind> = {
  ...elementwiseLowerings,
  ...shapeLowerings,
  ...reductionLowerings,
  ...derivativeLowerings,
  "stablehlo.scatter": {
    form: "choose",
    by: (op) =>
      isPromoting(op)
        ? { form: "expand", to: promoteScatter }
        : isWorthSorting(op)
          ? { form: "expand", to: expandScatter }
          : isSortedRows(op)
            ? {
                form: "steps",
                steps: sortedRowSteps,
                inline: ({ operands }) => [...operands.inputs, ...operands.updates],
              }
            : { form: "fold", rule: scatterAt, update: scatterUpdate },
  },
  "stablehlo.dot_general": {
    form: "fold",
    rule: (op, points, context) =>
      dotAt(
        op,
        op.operands.lhs,
        op.operands.rhs,
        op.attributes.dot_dimension_numbers,
        points,
        context,
        op.attributes.algorithm,
      ),
    tiled: tiledMatmul,
    library: libraryProduct,
  },
  "stablehlo.dot": fold((op, points, context) =>
    dotAt(op, op.operands.lhs, op.operands.rhs, plainDotNumbers(op.operands.lhs), points, context),
  ),
  "stablehlo.einsum": { form: "expand", to: expandEinsum },
  "stablehlo.unary_einsum": { form: "expand", to: expandEinsum },
  "stablehlo.convolution": convolutionLowering,
  "stablehlo.dynamic_conv": refuse("its padding is known only when it runs"),
  "stablehlo.fft": { form: "pairs" },
  "stablehlo.cholesky": { form: "expand", to: expandCholesky },
  "stablehlo.triangular_solve": { form: "expand", to: expandTriangularSolve },
  "stablehlo.batch_norm_inference": { form: "expand", to: expandInference },
  "stablehlo.batch_norm_training": { form: "expand", to: expandTraining },
  "stablehlo.batch_norm_grad": { form: "expand", to: expandGradient },
  "stablehlo.rng": refuse("its numbers come from nowhere: rng_bit_generator has a state"),
  "stablehlo.rng_bit_generator": generatorLowering,
  "stablehlo.while": control,
  "stablehlo.case": control,
  "stablehlo.if": control,
  "stablehlo.optimization_barrier": {
    form: "alias",
    operands: ({ operands }) => operands.operand,
  },
  "func.call": refuse("calls are inlined before"),
  "stablehlo.composite": { form: "expand", to: expandComposite },
  "stablehlo.custom_call": callLowering,
  "stablehlo.tuple": refuse("devices have no tuples"),
  "stablehlo.get_tuple_element": refuse("devices have no tuples"),
  "sdy.sharding_constraint": {
    form: "alias",
    operands: ({ operands }) => [operands.input],
  },
  "sdy.manual_computation": between,
  foreign: {
    form: "choose",
    by: ({ attributes }) => refuse(unknownOpReason(attributes.op_name)),
  },
  ...collectiveLowerings,
  "stablehlo.cross-replica-sum": between,
  "stablehlo.send": withHost,
  "stablehlo.recv": withHost,
  "stablehlo.infeed": withHost,
  "stablehlo.outfeed": withHost,
  "stablehlo.async_start": between,
  "stablehlo.async_done": between,
  "stablehlo.after_all": none,
  "stablehlo.create_token": none,
  "chlo.top_k": topKLowering,
  "chlo.ragged_dot": fold(raggedDotAt),
  "chlo.scan": { form: "expand", to: expandScan },
  "check.expect_eq": check,
  "check.expect_eq_const": check,
  "check.expect_almost_eq": check,
  "check.expect_almost_eq_const": check,
  "check.expect_close": check,
  "check.expect_serialized_eq": refuse("probes are files of the evaluator"),
  "interpreter.run_parallel": between,
  "interpreter.print": withHost,
  "interpreter.probe": withHost,
};

/** An op as what its own lowering takes: the kind that picks the lowering is the op's, which TypeScript cannot see. */
function own(op: AnyGraphOp): never {
  return op as never;
}

/** A lowering without the kind of its op, which it fits all the same. */
export type AnyLowering = Lowering<GraphOpKind>;

/** The lowering of an op. */
export function loweringOf(op: AnyGraphOp): AnyLowering {
  // The kind picks the lowering, which TypeScript cannot see.
  const found = lowerings[op.kind] as unknown as AnyLowering;
  return found.form === "choose" ? found.by(own(op)) : found;
}

/** The operation of the library that makes an op's result. */
export function libraryCallOf(op: AnyGraphOp): LibraryCall | undefined {
  const lowering = loweringOf(op);
  const mayCall = lowering.form === "fold" || lowering.form === "map";
  return mayCall ? lowering.library?.(own(op)) : undefined;
}

/** What an op changes of an operand in whose memory its result lies. */
export function updateOf(op: AnyGraphOp): UpdateInPlace | undefined {
  const lowering = loweringOf(op);
  const mayUpdate = lowering.form === "fold" || lowering.form === "map";
  return mayUpdate ? lowering.update?.(own(op)) : undefined;
}

/** What the ranks of a program do at an op. */
export function collectiveCallOf(op: AnyGraphOp, processes: ProcessCounts): CollectiveCall {
  const lowering = loweringOf(op);
  const call = lowering.form === "collective" ? lowering.call(own(op), processes) : undefined;
  if (call !== undefined) return call;
  throw cannotRun(op, "its region is no sum, product, maximum, minimum, and, or or xor");
}

/** Whether kernels of an op compute a value where they use it, once an element, whichever of its operands and captures it is. */
export function isInline(op: AnyGraphOp, value: GraphValue): boolean {
  const lowering = loweringOf(op);
  if (lowering.form !== "steps") return false;
  const countIn = (values: readonly GraphValue[]): number =>
    values.filter((each) => each === value).length;
  const inline = countIn(lowering.inline?.(own(op)) ?? []);
  // One value can be an operand that is computed inline and another that is loaded.
  return (
    inline > 0 && inline === countIn(operandsOf(op)) + countIn(regionsOf(op).flatMap(capturesOf))
  );
}

/** The operand whose memory an op's result is. */
export function sharedOperand(op: AnyGraphOp): GraphValue | undefined {
  const lowering = loweringOf(op);
  return lowering.form === "map" ? lowering.sameBytes?.(own(op)) : undefined;
}

/** The kernel over larger tiles that an op has for its shapes and types; on a CPU with tiles for its caches. */
export function tiledKernelOf(op: AnyGraphOp, caches?: Caches): TiledKernel | undefined {
  const lowering = loweringOf(op);
  return lowering.form === "fold" ? lowering.tiled?.(own(op), caches) : undefined;
}
