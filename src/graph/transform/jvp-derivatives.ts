/**
 * Derivatives that a program states itself. `custom_vjp` runs its forward region and goes back by its backward one;
 * `checkpoint` keeps its inputs and what its policy names, and computes the rest again behind a barrier:
 *
 *   y = f(x)                            c ->  x' = barrier(x);  the maps of f at x', backwards
 */
import { TilewrightError } from "../../support/diagnostics.ts";
import { GraphBuilder } from "../infer/builder.ts";
import { capturesOf } from "../ops/captures.ts";
import { graphValue } from "../ops/node.ts";
import type { AnyGraphOp, GraphOp, GraphValue } from "../ops/node.ts";
import { copyOp, inlineRegion } from "../ops/rebuild.ts";
import type { Substitution } from "../ops/rebuild.ts";
import { typeOfValue, zerosOf } from "./arithmetic.ts";
import { isDifferentiable, reverseOf } from "./context.ts";
import type { JvpContext, Replacement } from "./context.ts";
import { ReverseMode } from "./linear.ts";
import { required } from "./maps.ts";
import { refused } from "./nondifferentiable.ts";

function unchanged(op: AnyGraphOp, context: JvpContext): Replacement {
  context.builder.append(op);
  return { results: op.results, tangents: op.results.map(() => undefined) };
}

export function customVjpJvp(
  op: GraphOp<"tilewright.custom_vjp">,
  context: JvpContext,
): Replacement {
  const { inputs } = op.operands;
  const captured = Object.values(op.regions).flatMap(capturesOf);
  if (captured.some((value) => context.hasTangent(value)))
    throw new TilewrightError({
      code: "TW9204",
      message: "a function with a derivative of its own uses a value that is differentiated",
      location: op.location,
      expected: "such values as arguments of the function",
      found: op.name === "" ? op.kind : op.name,
    });
  if (!inputs.some((value) => context.hasTangent(value))) return unchanged(op, context);
  if (context.mode.kind === "forward") {
    context.builder.append(op);
    return { results: op.results, tangents: refused(op, context) };
  }
  const count = op.results.length;
  const { forward, backward } = op.regions;
  const all = inlineRegion(context.builder, forward, inputs);
  const residuals = all.slice(count);
  const outputs = op.results.filter(isDifferentiable).map(typeOfValue);
  const floats = inputs.filter(isDifferentiable);
  const tangents = floats.map((value) => context.tangent(value));
  const found = reverseOf(context).linear(
    {
      outputs,
      transpose: (builder, cotangents) => {
        const given = outputs.map((type, i) => cotangents[i] ?? zerosOf(builder, type));
        return inlineRegion(builder, backward, [...residuals, ...given]).filter(
          (_, i) => tangents[i] !== undefined,
        );
      },
    },
    tangents.filter((each) => each !== undefined),
  );
  const next = found[Symbol.iterator]();
  return {
    results: all.slice(0, count),
    tangents: op.results.map((value) => (isDifferentiable(value) ? next.next().value : undefined)),
  };
}

/** Whether the results of an op of a checkpoint's body are kept. */
function isKept(op: AnyGraphOp, { policy, names }: Checkpoint["attributes"]): boolean {
  if (policy === "names")
    return op.kind === "tilewright.name" && names.includes(op.attributes.name);
  if (op.kind !== "stablehlo.dot_general" || policy === "nothing") return false;
  const { lhs_batching_dimensions: batch } = op.attributes.dot_dimension_numbers;
  return policy === "dots" || batch.length === 0;
}

type Checkpoint = GraphOp<"tilewright.checkpoint">;

/** The maps of the body at given inputs, with kept values in place of those that it would compute. */
function linearized(
  op: Checkpoint,
  context: JvpContext,
  inputs: readonly GraphValue[],
  active: readonly boolean[],
  kept: ReadonlyMap<GraphValue, GraphValue>,
) {
  const { parameters, ops, results } = op.regions.body;
  const substitution: Substitution = new Map();
  const tangents: GraphValue[] = [];
  for (const [i, parameter] of parameters.entries()) {
    // A value of its own each: two parameters can be given one value.
    const input = required(inputs[i]);
    substitution.set(parameter, input);
    if (active[i] !== true) continue;
    const tangent = graphValue(input.type);
    context.setTangent(input, tangent);
    tangents.push(tangent);
  }
  for (const original of ops) {
    const copy = copyOp(original, substitution);
    const found = context.run([copy], copy.results);
    for (const [i, value] of original.results.entries()) {
      const result = required(found[i]);
      const replacement = kept.get(value);
      if (replacement !== undefined && context.hasTangent(result))
        context.setTangent(replacement, context.tangent(result));
      substitution.set(value, replacement ?? result);
    }
  }
  const outputs = results.map((value) => context.tangent(substitution.get(value) ?? value));
  return { map: reverseOf(context).toMap(tangents, outputs), outputs };
}

/** Values that nothing moves across. */
function behindBarrier(
  builder: GraphBuilder,
  operand: readonly GraphValue[],
): readonly GraphValue[] {
  return operand.length === 0 ? [] : builder.add("stablehlo.optimization_barrier", { operand }, {});
}

export function checkpointJvp(op: Checkpoint, context: JvpContext): Replacement {
  const { inputs } = op.operands;
  const { body } = op.regions;
  const active = inputs.map((value) => context.hasTangent(value));
  if (!active.includes(true)) return unchanged(op, context);
  const substitution: Substitution = new Map(
    body.parameters.map((value, i) => [value, required(inputs[i])]),
  );
  const copies = body.ops.map((each) => copyOp(each, substitution));
  const results = body.results.map((value) => substitution.get(value) ?? value);
  if (context.mode.kind === "forward") {
    const found = context.run(copies, results);
    return { results: found, tangents: found.map((value) => context.tangent(value)) };
  }
  for (const copy of copies) context.builder.append(copy);
  const saved = body.ops
    .filter((each) => isKept(each, op.attributes))
    .flatMap((each) => each.results);
  const again = (builder: GraphBuilder) => {
    const given = behindBarrier(builder, [
      ...inputs,
      ...saved.map((value) => required(substitution.get(value))),
    ]);
    const kept = new Map(saved.map((value, i) => [value, required(given[inputs.length + i])]));
    return linearized(op, context.inner(builder, new ReverseMode(builder)), given, active, kept);
  };
  // Which results have tangents is known once the maps are there; these are not used.
  const { outputs } = again(new GraphBuilder());
  const types = op.results.flatMap((value, i) =>
    outputs[i] === undefined ? [] : [typeOfValue(value)],
  );
  const tangents = inputs.flatMap((value, i) =>
    active[i] === true ? [required(context.tangent(value))] : [],
  );
  const found = reverseOf(context).linear(
    {
      outputs: types,
      transpose: (builder, cotangents) => again(builder).map.transpose(builder, cotangents),
    },
    tangents,
  );
  const next = found[Symbol.iterator]();
  return {
    results,
    tangents: outputs.map((each) => (each === undefined ? undefined : next.next().value)),
  };
}
