/**
 * Batching of graphs, from graph to graph: a function of one example becomes one of many. A value is as it was,
 * or has the batch as its axis 0; an op none of whose operands has it stays as it is.
 *
 *   vmap(f: (tensor<4>, tensor<f32>) -> tensor<4>, 8, [true, false])   (tensor<8x4>, tensor<f32>) -> tensor<8x4>
 */
import { GraphBuilder } from "../infer/builder.ts";
import type { chloOps } from "../ops/chlo.ts";
import type { controlOps } from "../ops/control.ts";
import type { derivativeOps } from "../ops/derivatives.ts";
import type { distributionOps } from "../ops/distribution.ts";
import type { elementwiseOps } from "../ops/elementwise.ts";
import { kernelCallOf } from "../ops/kernel-calls.ts";
import { graphRegion, graphValue } from "../ops/node.ts";
import type { AnyGraphOp, GraphOp, GraphRegion, GraphValue } from "../ops/node.ts";
import { copyOp, replaceOperands } from "../ops/rebuild.ts";
import { applyGraphRule } from "../ops/table.ts";
import type { GraphOpKind, GraphRules } from "../ops/table.ts";
import type { testingOps } from "../ops/testing.ts";
import { operandsOf, regionsOf } from "../ops/traverse.ts";
import { isTensor } from "../ops/types.ts";
import type { TensorType } from "../ops/types.ts";
import { broadcastInDim, typeOfValue, zerosOf } from "./arithmetic.ts";
import { collectiveBatching, manualBatching } from "./collectives.ts";
import { BatchContext, unbatchable } from "./batch.ts";
import type { Batched, BatchRule, BatchRules } from "./batch.ts";
import { expandScan } from "./expand/scan.ts";
import {
  branchBatching,
  capturesBatch,
  customBatching,
  oneByOne,
  whileBatching,
} from "./batch-control.ts";
import { productBatching, reductionBatching } from "./batch-products.ts";
import { shapeBatching } from "./batch-shapes.ts";

/** Ops of one operand or of operands of one shape. */
function elementwise<K extends GraphOpKind>(
  op: GraphOp<K>,
  context: BatchContext,
): readonly Batched[] {
  return context.again(op);
}

/** A value with the batch in front, spread to a shape where it is one number an example. */
function spread(context: BatchContext, value: GraphValue, like: GraphValue): GraphValue {
  const full = context.full(value);
  const { shape } = typeOfValue(like);
  return typeOfValue(full).shape.length === shape.length
    ? full
    : broadcastInDim(context.builder, full, shape, [0]);
}

const selectRule: BatchRule<"stablehlo.select"> = (op, context) => {
  const onTrue = context.full(op.operands.on_true);
  const pred = spread(context, op.operands.pred, onTrue);
  return context.again(op, { operands: { pred, on_true: onTrue } });
};

const clampRule: BatchRule<"stablehlo.clamp"> = (op, context) => {
  const operand = context.full(op.operands.operand);
  const min = spread(context, op.operands.min, operand);
  const max = spread(context, op.operands.max, operand);
  return context.again(op, { operands: { min, operand, max } });
};

const elementwiseBatching: BatchRules<keyof typeof elementwiseOps> = {
  "stablehlo.abs": elementwise,
  "stablehlo.cbrt": elementwise,
  "stablehlo.ceil": elementwise,
  "stablehlo.count_leading_zeros": elementwise,
  "stablehlo.cosine": elementwise,
  "stablehlo.exponential": elementwise,
  "stablehlo.exponential_minus_one": elementwise,
  "stablehlo.floor": elementwise,
  "stablehlo.imag": elementwise,
  "stablehlo.is_finite": elementwise,
  "stablehlo.log": elementwise,
  "stablehlo.log_plus_one": elementwise,
  "stablehlo.logistic": elementwise,
  "stablehlo.negate": elementwise,
  "stablehlo.not": elementwise,
  "stablehlo.popcnt": elementwise,
  "stablehlo.real": elementwise,
  "stablehlo.round_nearest_afz": elementwise,
  "stablehlo.round_nearest_even": elementwise,
  "stablehlo.rsqrt": elementwise,
  "stablehlo.sign": elementwise,
  "stablehlo.sine": elementwise,
  "stablehlo.sqrt": elementwise,
  "stablehlo.tan": elementwise,
  "stablehlo.tanh": elementwise,
  "stablehlo.convert": elementwise,
  "stablehlo.bitcast_convert": elementwise,
  "stablehlo.uniform_quantize": unbatchable,
  "stablehlo.uniform_dequantize": unbatchable,
  "stablehlo.add": elementwise,
  "stablehlo.and": elementwise,
  "stablehlo.atan2": elementwise,
  "stablehlo.complex": elementwise,
  "stablehlo.divide": elementwise,
  "stablehlo.maximum": elementwise,
  "stablehlo.minimum": elementwise,
  "stablehlo.multiply": elementwise,
  "stablehlo.or": elementwise,
  "stablehlo.power": elementwise,
  "stablehlo.remainder": elementwise,
  "stablehlo.shift_left": elementwise,
  "stablehlo.shift_right_arithmetic": elementwise,
  "stablehlo.shift_right_logical": elementwise,
  "stablehlo.subtract": elementwise,
  "stablehlo.xor": elementwise,
  "stablehlo.compare": elementwise,
  "stablehlo.select": selectRule,
  "stablehlo.clamp": clampRule,
  "stablehlo.reduce_precision": elementwise,
};

const chloBatching: BatchRules<keyof typeof chloOps> = {
  "chlo.acos": elementwise,
  "chlo.acosh": elementwise,
  "chlo.asin": elementwise,
  "chlo.asin_acos_kernel": elementwise,
  "chlo.asinh": elementwise,
  "chlo.atan": elementwise,
  "chlo.atanh": elementwise,
  "chlo.bessel_i1e": elementwise,
  "chlo.conj": elementwise,
  "chlo.cosh": elementwise,
  "chlo.digamma": elementwise,
  "chlo.erf": elementwise,
  "chlo.erf_inv": elementwise,
  "chlo.erfc": elementwise,
  "chlo.is_inf": elementwise,
  "chlo.is_neg_inf": elementwise,
  "chlo.is_pos_inf": elementwise,
  "chlo.lgamma": elementwise,
  "chlo.sinh": elementwise,
  "chlo.square": elementwise,
  "chlo.tan": elementwise,
  "chlo.next_after": elementwise,
  "chlo.polygamma": elementwise,
  "chlo.zeta": elementwise,
  "chlo.mulhi": elementwise,
  // The elements that are compared lie along the last axis.
  "chlo.top_k": elementwise,
  "chlo.ragged_dot": oneByOne,
  "chlo.scan": (op, context) => context.through(op, (builder) => expandScan(op, builder)),
};

const controlBatching: BatchRules<keyof typeof controlOps> = {
  "stablehlo.while": whileBatching,
  "stablehlo.case": branchBatching,
  "stablehlo.if": branchBatching,
  "stablehlo.optimization_barrier": elementwise,
  "sdy.sharding_constraint": (op, context) => [context.get(op.operands.input)],
  "func.call": unbatchable,
  "stablehlo.composite": unbatchable,
  "stablehlo.custom_call": (op, context) =>
    kernelCallOf(op.attributes.call_target_name) === undefined
      ? unbatchable(op)
      : oneByOne(op, context),
  "stablehlo.tuple": unbatchable,
  "stablehlo.get_tuple_element": unbatchable,
  "sdy.manual_computation": manualBatching,
  foreign: unbatchable,
};

const distributionBatching: BatchRules<keyof typeof distributionOps> = {
  "stablehlo.replica_id": unbatchable,
  "stablehlo.partition_id": unbatchable,
  ...collectiveBatching,
  "stablehlo.cross-replica-sum": unbatchable,
  "stablehlo.send": unbatchable,
  "stablehlo.recv": unbatchable,
  "stablehlo.infeed": unbatchable,
  "stablehlo.outfeed": unbatchable,
  "stablehlo.async_start": unbatchable,
  "stablehlo.async_done": unbatchable,
  "stablehlo.after_all": unbatchable,
  "stablehlo.create_token": unbatchable,
};

const testingBatching: BatchRules<keyof typeof testingOps> = {
  "check.expect_eq": unbatchable,
  "check.expect_eq_const": unbatchable,
  "check.expect_almost_eq": unbatchable,
  "check.expect_almost_eq_const": unbatchable,
  "check.expect_close": unbatchable,
  "check.expect_serialized_eq": unbatchable,
  "interpreter.run_parallel": unbatchable,
  "interpreter.print": unbatchable,
  "interpreter.probe": unbatchable,
};

const derivativeBatching: BatchRules<keyof typeof derivativeOps> = {
  "tilewright.custom_vjp": customBatching,
  "tilewright.checkpoint": customBatching,
  "tilewright.name": elementwise,
  "tilewright.stop_gradient": elementwise,
};

const rules: GraphRules<[BatchContext], readonly Batched[]> = {
  ...elementwiseBatching,
  ...shapeBatching,
  ...productBatching,
  ...reductionBatching,
  ...controlBatching,
  ...distributionBatching,
  ...chloBatching,
  ...testingBatching,
  ...derivativeBatching,
};

/** Ops whose regions may use batched values from around them. */
const branching: ReadonlySet<GraphOpKind> = new Set([
  "tilewright.custom_vjp",
  "tilewright.checkpoint",
  "stablehlo.while",
  "stablehlo.case",
  "stablehlo.if",
]);

function runOps(context: BatchContext, ops: readonly AnyGraphOp[]): void {
  for (const op of ops)
    context.builder.within(op, () => {
      const results = runOp(op, context);
      for (const [i, value] of op.results.entries())
        context.set(value, results[i] ?? { value, batched: false });
    });
}

function runOp(op: AnyGraphOp, context: BatchContext): readonly Batched[] {
  const captures = capturesBatch(regionsOf(op), context);
  const batched = captures || operandsOf(op).some((value) => context.isBatched(value));
  if (batched) {
    if (captures && !branching.has(op.kind)) return unbatchable(op);
    // Of no examples there is nothing to compute, and rules that make groups or slices of the batch need one.
    if (
      context.size === 0 &&
      op.results.length > 0 &&
      op.results.every(({ type }) => isTensor(type))
    )
      return op.results.map(({ type }) => ({
        value: zerosOf(context.builder, context.type(type) as TensorType),
        batched: true,
      }));
    return applyGraphRule(rules, op, context);
  }
  const same = replaceOperands(op, (value) => context.get(value).value);
  const copy = copyOp(same, new Map());
  context.builder.append(copy);
  return copy.results.map((value) => ({ value, batched: false }));
}

/** The graph over a batch; every result has the batch in front. */
export function vmap(graph: GraphRegion, size: number, batched: readonly boolean[]): GraphRegion {
  const context = new BatchContext(new GraphBuilder(), size, runOps);
  const parameters = graph.parameters.map((value, i) => {
    const own = batched[i] === true;
    const parameter = graphValue(own ? context.type(value.type) : value.type);
    context.set(value, { value: parameter, batched: own });
    return parameter;
  });
  runOps(context, graph.ops);
  const results = graph.results.map((value) => context.full(value));
  return graphRegion(parameters, context.builder.ops, results);
}
