/**
 * Derivatives of branches. Forward mode returns tangents beside the values. In reverse mode a branch returns
 * its residuals as well, zeros for those of the others, and the cotangents take the same branch.
 */
import { GraphBuilder } from "../infer/builder.ts";
import { capturesOf } from "../ops/captures.ts";
import { graphRegion } from "../ops/node.ts";
import type { GraphOp, GraphRegion, GraphValue } from "../ops/node.ts";
import { typeOfValue, zerosOf } from "./arithmetic.ts";
import { reverseOf } from "./context.ts";
import type { JvpContext, Replacement, Tangent } from "./context.ts";
import { ForwardMode, ReverseMode } from "./linear.ts";
import type { BackwardMap } from "./linear.ts";
import { required } from "./maps.ts";
import { definedBy, inlineWith, regionMap } from "./residuals.ts";

type Branching = GraphOp<"stablehlo.case"> | GraphOp<"stablehlo.if">;

function branchesOf(op: Branching): readonly GraphRegion[] {
  if (op.kind === "stablehlo.case") return op.regions.branches;
  return [op.regions.true_branch, op.regions.false_branch];
}

/** The same choice between other branches. */
function branch(
  builder: GraphBuilder,
  op: Branching,
  regions: readonly GraphRegion[],
): readonly GraphValue[] {
  if (op.kind === "stablehlo.case")
    return builder.add(
      "stablehlo.case",
      op.operands,
      {},
      { regions: { branches: regions }, extra: op.extra },
    );
  const [onTrue, onFalse] = regions.map(required);
  const taken = { true_branch: required(onTrue), false_branch: required(onFalse) };
  return builder.add("stablehlo.if", op.operands, {}, { regions: taken, extra: op.extra });
}

interface Branch {
  readonly context: JvpContext;
  readonly results: readonly GraphValue[];
  readonly tangents: readonly Tangent[];
}

function runBranch(region: GraphRegion, context: JvpContext): Branch {
  const builder = new GraphBuilder(context.builder.origin);
  const mode =
    context.mode.kind === "forward" ? new ForwardMode(builder) : new ReverseMode(builder);
  const inner = context.inner(builder, mode);
  const results = inner.run(region.ops, region.results);
  return { context: inner, results, tangents: results.map((value) => inner.tangent(value)) };
}

export function branchJvp(op: Branching, context: JvpContext): Replacement {
  const branches = branchesOf(op).map((region) => runBranch(region, context));
  const active = op.results.flatMap((_, i) =>
    branches.some(({ tangents }) => tangents[i] !== undefined) ? [i] : [],
  );
  if (active.length === 0) {
    context.builder.append(op);
    return { results: op.results, tangents: op.results.map(() => undefined) };
  }
  return context.mode.kind === "forward"
    ? forwardBranches(op, context, branches, active)
    : reverseBranches(op, context, branches, active);
}

function forwardBranches(
  op: Branching,
  context: JvpContext,
  branches: readonly Branch[],
  active: readonly number[],
): Replacement {
  const regions = branches.map(({ context: inner, results, tangents }) => {
    const filled = active.map(
      (i) => tangents[i] ?? zerosOf(inner.builder, typeOfValue(required(results[i]))),
    );
    return graphRegion([], inner.builder.ops, [...results, ...filled]);
  });
  const all = branch(context.builder, op, regions);
  const count = op.results.length;
  const tangents = op.results.map((_, i) => all[count + active.indexOf(i)]);
  return {
    results: all.slice(0, count),
    tangents: tangents.map((each, i) => (active.includes(i) ? each : undefined)),
  };
}

function reverseBranches(
  op: Branching,
  context: JvpContext,
  branches: readonly Branch[],
  active: readonly number[],
): Replacement {
  const captured = [...new Set(branchesOf(op).flatMap(capturesOf))];
  const inputs = captured.flatMap((value) => {
    const tangent = context.hasTangent(value) ? context.tangent(value) : undefined;
    return tangent === undefined ? [] : [tangent];
  });
  const inputTypes = inputs.map(typeOfValue);
  const outputTypes = active.map((i) => typeOfValue(required(op.results[i])));
  const maps = branches.map(({ context: inner, tangents }) => {
    const { builder } = inner;
    const mode = reverseOf(inner);
    const chosen = active.map((i) => tangents[i]);
    return regionMap(
      builder,
      mode.toMap(inputs, chosen),
      inputTypes,
      outputTypes.map((type, i) => ({ type, present: chosen[i] !== undefined })),
      definedBy([], builder.ops),
    );
  });
  const residuals = maps.flatMap((each, which) =>
    each.residuals.map((value) => ({ value, which })),
  );
  const regions = branches.map(({ context: inner, results }, own) =>
    graphRegion([], inner.builder.ops, [
      ...results,
      ...residuals.map(({ value, which }) =>
        which === own ? value : zerosOf(inner.builder, typeOfValue(value)),
      ),
    ]),
  );
  const all = branch(context.builder, op, regions);
  const count = op.results.length;
  const kept = new Map(residuals.map(({ value }, i) => [value, required(all[count + i])]));
  const map: BackwardMap = {
    outputs: outputTypes,
    transpose: (builder, cotangents) => {
      const given = outputTypes.map((type, i) => cotangents[i] ?? zerosOf(builder, type));
      const back = maps.map(({ transpose }) =>
        builder.region([], (inner) => inlineWith(inner, transpose, given, kept)),
      );
      return branch(builder, op, back);
    },
  };
  const outputs = reverseOf(context).linear(map, inputs);
  const tangents = op.results.map((_, i) => outputs[active.indexOf(i)]);
  return {
    results: all.slice(0, count),
    tangents: tangents.map((each, i) => (active.includes(i) ? each : undefined)),
  };
}
