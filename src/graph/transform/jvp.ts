/**
 * Derivatives of graphs, from graph to graph. A rule an op turns tangents of operands into tangents of
 * results, as linear maps; forward mode applies the maps, reverse mode runs through them backwards.
 *
 *   jvp(f)   (x…, t…) -> (y…, t…)        tangents of inputs in, tangents of results out
 *   vjp(f)   (x…, c…) -> (y…, c…)        cotangents of results in, cotangents of inputs out
 *
 * Graphs have no calls: the inliner goes first. Only floats have tangents.
 */
import { GraphBuilder } from "../infer/builder.ts";
import type { chloOps } from "../ops/chlo.ts";
import type { controlOps } from "../ops/control.ts";
import type { derivativeOps } from "../ops/derivatives.ts";
import { kernelCallOf } from "../ops/kernel-calls.ts";
import { graphRegion, graphValue } from "../ops/node.ts";
import type { AnyGraphOp, GraphOp, GraphRegion, GraphValue } from "../ops/node.ts";
import { copyRegion, inlineRegion, namedWithin, replaceOperands, scopeOf } from "../ops/rebuild.ts";
import { applyGraphRule } from "../ops/table.ts";
import type { GraphOpKind, GraphRules } from "../ops/table.ts";
import { tensorType } from "../ops/types.ts";
import { iota, typeOfValue, zerosOf } from "./arithmetic.ts";
import { isDifferentiable, isEmpty, JvpContext } from "./context.ts";
import type { JvpRules, Replacement, Tangent } from "./context.ts";
import { expandScan } from "./expand/scan.ts";
import { manualJvp } from "./collectives.ts";
import { branchJvp } from "./jvp-branches.ts";
import { checkpointJvp, customVjpJvp } from "./jvp-derivatives.ts";
import { chloElementwiseJvp, elementwiseJvp } from "./jvp-elementwise.ts";
import { whileJvp } from "./jvp-loops.ts";
import {
  alongAxis,
  distributionJvp,
  productJvp,
  reductionJvp,
  shapeJvp,
  testingJvp,
  topKRule,
} from "./jvp-shapes.ts";
import { ForwardMode, ReverseMode } from "./linear.ts";
import { required } from "./maps.ts";
import { refused, zero } from "./nondifferentiable.ts";
import { through } from "./jvp-by-decomposition.ts";

/** Ops whose derivative changes how their values are computed. */
const replacing = {
  "stablehlo.while": whileJvp,
  "stablehlo.case": branchJvp,
  "stablehlo.if": branchJvp,
  "stablehlo.sort": sortJvp,
  "tilewright.custom_vjp": customVjpJvp,
  "tilewright.checkpoint": checkpointJvp,
};

function isReplacing(kind: GraphOpKind): kind is keyof typeof replacing {
  return Object.hasOwn(replacing, kind);
}

/** Not called: these ops are replaced. */
function replaced(): readonly Tangent[] {
  throw new Error("the op is replaced by its derivative");
}

const barrierRule = (
  op: GraphOp<"stablehlo.optimization_barrier">,
  context: JvpContext,
): readonly Tangent[] => op.operands.operand.map((value) => context.tangent(value));

const controlJvp: JvpRules<keyof typeof controlOps> = {
  "stablehlo.while": replaced,
  "stablehlo.case": replaced,
  "stablehlo.if": replaced,
  "stablehlo.optimization_barrier": barrierRule,
  "sdy.sharding_constraint": (op, context) => [context.tangent(op.operands.input)],
  "func.call": refused,
  "stablehlo.composite": refused,
  "stablehlo.custom_call": (op, context) => {
    const own = kernelCallOf(op.attributes.call_target_name);
    if (own === undefined) return refused(op, context);
    return through(op, context, (builder) =>
      inlineRegion(builder, own.meaning, op.operands.inputs, namedWithin(scopeOf(op.name))),
    );
  },
  "stablehlo.tuple": refused,
  "stablehlo.get_tuple_element": refused,
  "sdy.manual_computation": manualJvp,
  foreign: refused,
};

const derivativeJvp: JvpRules<keyof typeof derivativeOps> = {
  "tilewright.custom_vjp": replaced,
  "tilewright.checkpoint": replaced,
  "tilewright.name": (op, context) => [context.tangent(op.operands.operand)],
  "tilewright.stop_gradient": zero,
};

const chloJvp: JvpRules<keyof typeof chloOps> = {
  ...chloElementwiseJvp,
  "chlo.top_k": topKRule,
  "chlo.scan": (op, context) => through(op, context, (builder) => expandScan(op, builder)),
  "chlo.ragged_dot": refused,
};

const rules: GraphRules<[JvpContext], readonly Tangent[]> = {
  ...elementwiseJvp,
  ...shapeJvp,
  ...productJvp,
  ...reductionJvp,
  "stablehlo.sort": replaced,
  ...controlJvp,
  ...distributionJvp,
  ...chloJvp,
  ...testingJvp,
  ...derivativeJvp,
};

/** Sorts the positions along, and moves the tangents to where their values went. */
function sortJvp(op: GraphOp<"stablehlo.sort">, context: JvpContext): Replacement {
  const { inputs } = op.operands;
  const { builder } = context;
  const tangents = inputs.map((value) => context.tangent(value));
  if (tangents.every((each) => each === undefined)) {
    builder.append(op);
    return { results: op.results, tangents };
  }
  const { shape } = typeOfValue(required(inputs[0]));
  const { dimension } = op.attributes;
  const axis = dimension < 0 ? dimension + shape.length : dimension;
  const positions = iota(builder, tensorType("i32", shape), axis);
  const copy = copyRegion(op.regions.comparator, new Map());
  const scalar = tensorType("i32", []);
  const comparator = graphRegion(
    [...copy.parameters, graphValue(scalar), graphValue(scalar)],
    copy.ops,
    copy.results,
  );
  const all = builder.add("stablehlo.sort", { inputs: [...inputs, positions] }, op.attributes, {
    regions: { comparator },
  });
  const order = required(all.at(-1));
  const moved = inputs.map((value, i) => {
    const type = typeOfValue(value);
    return context.map(tangents[i], () => alongAxis(builder, type, type, order, axis));
  });
  return { results: all.slice(0, -1), tangents: moved };
}

/** Adds ops and what their derivatives need to a context; gives what the results have become. */
function runOps(
  context: JvpContext,
  ops: readonly AnyGraphOp[],
  results: readonly GraphValue[],
): readonly GraphValue[] {
  const changed = new Map<GraphValue, GraphValue>();
  const lookUp = (value: GraphValue): GraphValue => changed.get(value) ?? value;
  for (const original of ops) {
    const op = replaceOperands(original, lookUp);
    context.builder.within(op, () => {
      const done = runOp(op, context);
      for (const [i, value] of op.results.entries()) {
        const result = done.results[i] ?? value;
        if (result !== value) changed.set(value, result);
        context.setTangent(result, done.tangents[i]);
      }
    });
  }
  return results.map(lookUp);
}

function runOp(op: AnyGraphOp, context: JvpContext): Replacement {
  if (op.results.length > 0 && op.results.every(isEmpty)) {
    context.builder.append(op);
    return { results: op.results, tangents: [] };
  }
  if (isReplacing(op.kind)) {
    const rule = replacing[op.kind] as (op: AnyGraphOp, context: JvpContext) => Replacement;
    return rule(op, context);
  }
  context.builder.append(op);
  if (op.kind === "stablehlo.constant" && !("kind" in op.attributes.value)) {
    const [value] = op.results;
    if (value !== undefined) context.constants.set(value, op.attributes.value);
  }
  return { results: op.results, tangents: applyGraphRule(rules, op, context) };
}

/** The places of a list of values that have tangents. */
export function differentiablePlaces(values: readonly GraphValue[]): readonly number[] {
  return values.flatMap((value, i) => (isDifferentiable(value) ? [i] : []));
}

/**
 * The graph with tangents: parameters are those of the graph, then a tangent for each place of `active`;
 * results are those of the graph, then a tangent for each result that is a float.
 */
export function jvp(
  graph: GraphRegion,
  active = differentiablePlaces(graph.parameters),
): GraphRegion {
  const builder = new GraphBuilder();
  const context = new JvpContext(builder, new ForwardMode(builder), runOps);
  const tangents = active.map((i) => graphValue(required(graph.parameters[i]).type));
  for (const [place, i] of active.entries())
    context.setTangent(required(graph.parameters[i]), required(tangents[place]));
  const results = runOps(context, graph.ops, graph.results);
  const outputs = differentiablePlaces(graph.results).map((i) => {
    const value = required(results[i]);
    return context.tangent(value) ?? zerosOf(builder, typeOfValue(value));
  });
  return graphRegion([...graph.parameters, ...tangents], builder.ops, [...results, ...outputs]);
}

/**
 * The graph with cotangents: parameters are those of the graph, then a cotangent for each result that is a
 * float; results are those of the graph, then a cotangent for each place of `active`.
 */
export function vjp(
  graph: GraphRegion,
  active = differentiablePlaces(graph.parameters),
): GraphRegion {
  const builder = new GraphBuilder();
  const mode = new ReverseMode(builder);
  const context = new JvpContext(builder, mode, runOps);
  const inputs = active.map((i) => graphValue(required(graph.parameters[i]).type));
  for (const [place, i] of active.entries())
    context.setTangent(required(graph.parameters[i]), required(inputs[place]));
  const results = runOps(context, graph.ops, graph.results);
  const places = differentiablePlaces(graph.results);
  const outputs = places.map((i) => context.tangent(required(results[i])));
  const cotangents = places.map((i) => graphValue(required(graph.results[i]).type));
  const given = cotangents.filter((_, i) => outputs[i] !== undefined);
  const found = mode.toMap(inputs, outputs).transpose(builder, given);
  const filled = inputs.map((value, i) => found[i] ?? zerosOf(builder, typeOfValue(value)));
  return graphRegion([...graph.parameters, ...cotangents], builder.ops, [...results, ...filled]);
}
