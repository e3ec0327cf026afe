/**
 * Derivatives of loops. Forward mode carries tangents beside the values. Reverse mode needs the number of
 * trips: the loop stacks its residuals trip by trip, and a second loop runs through them backwards.
 *
 *   while(i, x) do x = f(x)     forward:  while(i, x, t) do x = f(x), t = f'(x) · t
 *                               reverse:  while(i, x, r) do r[i] = residuals of f at x, x = f(x)
 *                                         while(j, c) do c = c · f'(r[n - 1 - j])
 */
import { TilewrightError } from "../../support/diagnostics.ts";
import { GraphBuilder } from "../infer/builder.ts";
import { capturesOf } from "../ops/captures.ts";
import { graphRegion, graphValue } from "../ops/node.ts";
import type { GraphOp, GraphRegion, GraphValue } from "../ops/node.ts";
import { replaceOperands } from "../ops/rebuild.ts";
import { tripCount } from "../ops/trip-count.ts";
import { tensorType } from "../ops/types.ts";
import type { TensorType } from "../ops/types.ts";
import {
  addValues,
  compare,
  reshape,
  splatOf,
  subtract,
  typeOfValue,
  zerosOf,
} from "./arithmetic.ts";
import { isDifferentiable, reverseOf } from "./context.ts";
import type { JvpContext, Replacement, Tangent } from "./context.ts";
import { ForwardMode, ReverseMode } from "./linear.ts";
import type { BackwardMap } from "./linear.ts";
import { required } from "./maps.ts";
import { definedBy, inlineWith, regionMap } from "./residuals.ts";
import type { RegionMap } from "./residuals.ts";

type While = GraphOp<"stablehlo.while">;

/** The loop with values that its body uses from around it as further carried values. */
function explicitCaptures(op: While, captured: readonly GraphValue[]): While {
  if (captured.length === 0) return op;
  const { cond, body } = op.regions;
  const inside = captured.map(({ type }) => graphValue(type));
  const lookUp = (value: GraphValue): GraphValue => {
    const place = captured.indexOf(value);
    return place < 0 ? value : required(inside[place]);
  };
  const regions = {
    cond: graphRegion(
      [...cond.parameters, ...captured.map(({ type }) => graphValue(type))],
      cond.ops,
      cond.results,
    ),
    body: graphRegion(
      [...body.parameters, ...inside],
      body.ops.map((each) => replaceOperands(each, lookUp)),
      [...body.results.map(lookUp), ...inside],
    ),
  };
  return {
    ...op,
    operands: { operand: [...op.operands.operand, ...captured] },
    regions,
    results: [...op.results, ...captured.map(({ type }) => graphValue(type))],
  };
}

interface Linearized {
  readonly context: JvpContext;
  readonly tangentParameters: readonly GraphValue[];
  readonly results: readonly GraphValue[];
  readonly outputs: readonly Tangent[];
}

/** The body with tangents for the carried values of `active`. */
function bodyWith(
  op: While,
  context: JvpContext,
  active: readonly number[],
  mode: "forward" | "reverse",
): Linearized {
  const { body } = op.regions;
  const builder = new GraphBuilder(context.builder.origin);
  const inner = context.inner(
    builder,
    mode === "forward" ? new ForwardMode(builder) : new ReverseMode(builder),
  );
  const tangentParameters = active.map((i) => graphValue(required(body.parameters[i]).type));
  for (const [place, i] of active.entries())
    inner.setTangent(required(body.parameters[i]), required(tangentParameters[place]));
  const results = inner.run(body.ops, body.results);
  const outputs = results.map((value) => inner.tangent(value));
  return { context: inner, tangentParameters, results, outputs };
}

/** The carried values that get a tangent at the start or in the course of the loop. */
function activeCarries(op: While, context: JvpContext): readonly number[] {
  let active = op.operands.operand.flatMap((value, i) => (context.hasTangent(value) ? [i] : []));
  for (;;) {
    const { outputs } = bodyWith(op, context, active, context.mode.kind);
    const grown = op.operands.operand.flatMap((value, i) =>
      active.includes(i) || (outputs[i] !== undefined && isDifferentiable(value)) ? [i] : [],
    );
    if (grown.length === active.length) return active;
    active = grown;
  }
}

function tangentOrZero(context: JvpContext, value: GraphValue): GraphValue {
  return context.tangent(value) ?? zerosOf(context.builder, typeOfValue(value));
}

export function whileJvp(op: While, context: JvpContext): Replacement {
  const captured = capturesOf(op.regions.body).filter((value) => context.hasTangent(value));
  const carriesTangents = [...op.operands.operand, ...captured].some((value) =>
    context.hasTangent(value),
  );
  if (!carriesTangents) {
    context.builder.append(op);
    return { results: op.results, tangents: op.results.map(() => undefined) };
  }
  const explicit = explicitCaptures(op, captured);
  const active = activeCarries(explicit, context);
  const done =
    context.mode.kind === "forward"
      ? forwardLoop(explicit, context, active)
      : reverseLoop(explicit, context, active);
  const count = op.results.length;
  return { results: done.results.slice(0, count), tangents: done.tangents.slice(0, count) };
}

/** One tangent a carried value, at the places of the active ones. */
function atPlaces(
  count: number,
  active: readonly number[],
  tangents: readonly GraphValue[],
): readonly Tangent[] {
  return Array.from({ length: count }, (_, i) => tangents[active.indexOf(i)]);
}

function forwardLoop(op: While, context: JvpContext, active: readonly number[]): Replacement {
  const { cond } = op.regions;
  const body = bodyWith(op, context, active, "forward");
  const { builder } = body.context;
  const outputs = active.map(
    (i) => body.outputs[i] ?? zerosOf(builder, typeOfValue(required(body.results[i]))),
  );
  const inits = active.map((i) => tangentOrZero(context, required(op.operands.operand[i])));
  const regions = {
    cond: graphRegion(
      [...cond.parameters, ...inits.map(({ type }) => graphValue(type))],
      cond.ops,
      cond.results,
    ),
    body: graphRegion([...op.regions.body.parameters, ...body.tangentParameters], builder.ops, [
      ...body.results,
      ...outputs,
    ]),
  };
  const operand = [...op.operands.operand, ...inits];
  const all = context.builder.add("stablehlo.while", { operand }, {}, { regions, extra: op.extra });
  const count = op.results.length;
  return { results: all.slice(0, count), tangents: atPlaces(count, active, all.slice(count)) };
}

const counterType = tensorType("i32", []);

function startsAt(builder: GraphBuilder, index: GraphValue, rank: number): readonly GraphValue[] {
  const zero = splatOf(builder, counterType, 0);
  return [index, ...Array.from({ length: rank }, () => zero)];
}

function stackType({ element, shape }: TensorType, count: number): TensorType {
  return tensorType(element, [count, ...shape]);
}

/** The loop that computes, and stacks the residuals of its trips. */
function stackingLoop(
  op: While,
  context: JvpContext,
  body: Linearized,
  residuals: readonly GraphValue[],
  count: number,
): { readonly results: readonly GraphValue[]; readonly stacks: readonly GraphValue[] } {
  const { cond } = op.regions;
  const inner = body.context.builder;
  const outer = context.builder;
  const index = graphValue(counterType);
  const stacks = residuals.map((value) => graphValue(stackType(typeOfValue(value), count)));
  const written = residuals.map((value, i) => {
    const { shape } = typeOfValue(value);
    const update = reshape(inner, value, [1, ...shape]);
    return inner.one(
      "stablehlo.dynamic_update_slice",
      { operand: required(stacks[i]), update, start_indices: startsAt(inner, index, shape.length) },
      {},
    );
  });
  const next = addValues(inner, index, splatOf(inner, counterType, 1));
  const further = [index, ...stacks];
  const regions = {
    cond: graphRegion(
      [...cond.parameters, ...further.map(({ type }) => graphValue(type))],
      cond.ops,
      cond.results,
    ),
    body: graphRegion([...op.regions.body.parameters, ...further], inner.ops, [
      ...body.results,
      next,
      ...written,
    ]),
  };
  const inits = [
    splatOf(outer, counterType, 0),
    ...stacks.map((value) => zerosOf(outer, typeOfValue(value))),
  ];
  const operand = [...op.operands.operand, ...inits];
  const all = outer.add("stablehlo.while", { operand }, {}, { regions, extra: op.extra });
  const carried = op.results.length;
  return { results: all.slice(0, carried), stacks: all.slice(carried + 1) };
}

/** A loop over the stacks, from the last trip to the first, that takes cotangents through the body's map at each. */
function mapLoop(
  builder: GraphBuilder,
  region: GraphRegion,
  inputs: readonly GraphValue[],
  stacks: ReadonlyMap<GraphValue, GraphValue>,
  count: number,
): readonly GraphValue[] {
  const types = [counterType, ...inputs.map(({ type }) => type)];
  const cond = builder.region(types, (inner, [index]) => [
    compare(inner, "LT", required(index), splatOf(inner, counterType, count)),
  ]);
  const body = builder.region(types, (inner, [index, ...carried]) => {
    const trip = required(index);
    const place = subtract(inner, splatOf(inner, counterType, count - 1), trip);
    const residuals = new Map(
      Array.from(stacks, ([value, operand]) => {
        const { shape } = typeOfValue(value);
        const row = inner.one(
          "stablehlo.dynamic_slice",
          { operand, start_indices: startsAt(inner, place, shape.length) },
          { slice_sizes: [1, ...shape] },
        );
        return [value, reshape(inner, row, shape)];
      }),
    );
    const next = addValues(inner, trip, splatOf(inner, counterType, 1));
    return [next, ...inlineWith(inner, region, carried, residuals)];
  });
  const operand = [splatOf(builder, counterType, 0), ...inputs];
  return builder.add("stablehlo.while", { operand }, {}, { regions: { cond, body } }).slice(1);
}

function loopMap(
  maps: RegionMap,
  types: readonly TensorType[],
  stacks: readonly GraphValue[],
  count: number,
): BackwardMap {
  const stacked = new Map(maps.residuals.map((value, i) => [value, required(stacks[i])]));
  return {
    outputs: types,
    transpose: (builder, cotangents) => {
      const given = types.map((type, i) => cotangents[i] ?? zerosOf(builder, type));
      return mapLoop(builder, maps.transpose, given, stacked, count);
    },
  };
}

function reverseLoop(op: While, context: JvpContext, active: readonly number[]): Replacement {
  const count = tripCount(op, context.constants);
  if (count === undefined)
    throw new TilewrightError({
      code: "TW9202",
      message: "the number of trips of a loop is not known, so it has no reverse derivative",
      location: op.location,
      expected: "a counter that starts at a constant, grows by one and is compared with one",
      found: op.name === "" ? "stablehlo.while" : op.name,
    });
  const body = bodyWith(op, context, active, "reverse");
  const mode = reverseOf(body.context);
  const chosen = active.map((i) => body.outputs[i]);
  const types = active.map((i) => typeOfValue(required(op.operands.operand[i])));
  const maps = regionMap(
    body.context.builder,
    mode.toMap(body.tangentParameters, chosen),
    types,
    types.map((type, i) => ({ type, present: chosen[i] !== undefined })),
    definedBy(op.regions.body.parameters, body.context.builder.ops),
  );
  const { results, stacks } = stackingLoop(op, context, body, maps.residuals, count);
  const inputs = active.map((i) => required(op.operands.operand[i]));
  const map = loopMap(maps, types, stacks, count);
  return {
    results,
    tangents: atPlaces(
      op.results.length,
      active,
      backwardOf(reverseOf(context), context, map, inputs),
    ),
  };
}

/** Keeps a map of the tangents of values; a value without one has a zero that goes no further. */
function backwardOf(
  mode: ReverseMode,
  context: JvpContext,
  map: BackwardMap,
  values: readonly GraphValue[],
): readonly GraphValue[] {
  const tangents = values.map((value) => context.tangent(value));
  const present = tangents.filter((each) => each !== undefined);
  return mode.linear(
    {
      outputs: map.outputs,
      transpose: (builder, cotangents) =>
        map.transpose(builder, cotangents).filter((_, i) => tangents[i] !== undefined),
    },
    present,
  );
}
