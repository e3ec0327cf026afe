/**
 * Derivatives and batching of collectives, and of `sdy.manual_computation` around them.
 *
 * | collective                 | tangents              | cotangents                         |
 * |----------------------------|-----------------------|------------------------------------|
 * | all_reduce add             | all_reduce add        | all_reduce add                     |
 * | all_reduce maximum, minimum| mean of those that have it | likewise                      |
 * | all_gather, reduce_scatter | the same              | each the other's                   |
 * | all_to_all                 | the same              | back: split and joined axis swapped |
 * | collective_permute         | the same              | along the pairs turned round       |
 *
 * A result that a body gives whole is the same on all ranks along an axis: its cotangent is shared out among them. An operand that all have
 * whole gets the sum of their cotangents. The body is computed again where its cotangents are.
 */
import { GraphBuilder } from "../infer/builder.ts";
import { combinerKind } from "../ops/combiner.ts";
import { dialectAttribute } from "../ops/attribute.ts";
import type { distributionOps } from "../ops/distribution.ts";
import { graphRegion, graphValue } from "../ops/node.ts";
import type { GraphOp, GraphRegion, GraphValue } from "../ops/node.ts";
import { copyOp } from "../ops/rebuild.ts";
import type { Substitution } from "../ops/rebuild.ts";
import {
  axisPart,
  cutsOf,
  groupsAlong,
  readAxisNames,
  readShardings,
  shardingItems,
  shardingText,
} from "../ops/sharding.ts";
import type { AxisPart, TensorSharding } from "../ops/sharding.ts";
import {
  combiner,
  compare,
  convert,
  divide,
  scaled,
  select,
  typeOfValue,
  zerosOf,
} from "./arithmetic.ts";
import { next, unbatchable } from "./batch.ts";
import type { BatchContext, Batched, BatchRules } from "./batch.ts";
import { isDifferentiable, isEmpty, reverseOf } from "./context.ts";
import type { JvpContext, JvpRules, Tangent } from "./context.ts";
import { through } from "./jvp-by-decomposition.ts";
import { ForwardMode, ReverseMode } from "./linear.ts";
import type { LinearMap } from "./linear.ts";
import { required, single } from "./maps.ts";
import { refused, zero } from "./nondifferentiable.ts";

/* ---- collectives ---- */

type Groups = GraphOp<"stablehlo.all_reduce">["attributes"];

function summed(builder: GraphBuilder, value: GraphValue, groups: Groups): GraphValue {
  const computation = combiner(builder, typeOfValue(value).element, "stablehlo.add");
  return builder.one("stablehlo.all_reduce", { operands: [value] }, groups, {
    regions: { computation },
  });
}

function gathered(
  builder: GraphBuilder,
  value: GraphValue,
  axis: number,
  groups: Groups,
): GraphValue {
  return builder.one(
    "stablehlo.all_gather",
    { operands: [value] },
    { ...groups, all_gather_dim: axis },
  );
}

function scattered(
  builder: GraphBuilder,
  operand: GraphValue,
  axis: number,
  groups: Groups,
): GraphValue {
  const { element, shape } = typeOfValue(operand);
  const computation = combiner(builder, element, "stablehlo.add");
  const extent = (shape[axis] ?? 0) / (groups.replica_groups[0]?.length ?? 1);
  return builder.one(
    "stablehlo.reduce_scatter",
    { operand },
    { ...groups, scatter_dimension: axis },
    {
      regions: { computation },
      types: [{ kind: "tensor", element, shape: shape.with(axis, extent) }],
    },
  );
}

const groupsOf = ({ replica_groups, channel_handle, use_global_device_ids }: Groups): Groups => ({
  replica_groups,
  channel_handle,
  use_global_device_ids,
});

/** The maximum of several ranks: its tangent is the mean of those of the ranks that have it. */
function extremeTangents(
  op: GraphOp<"stablehlo.all_reduce">,
  context: JvpContext,
): readonly Tangent[] {
  return through(op, context, (builder) =>
    op.operands.operands.map((value, i) => {
      const { element } = typeOfValue(value);
      const isIt = compare(builder, "EQ", value, required(op.results[i]));
      const count = summed(builder, convert(builder, isIt, element), op.attributes);
      const own = select(builder, isIt, value, zerosOf(builder, typeOfValue(value)));
      return divide(builder, summed(builder, own, op.attributes), count);
    }),
  );
}

type CollectiveKind = Exclude<
  keyof typeof distributionOps,
  | "stablehlo.replica_id"
  | "stablehlo.partition_id"
  | "stablehlo.after_all"
  | "stablehlo.create_token"
  | "stablehlo.cross-replica-sum"
  | "stablehlo.send"
  | "stablehlo.recv"
  | "stablehlo.infeed"
  | "stablehlo.outfeed"
  | "stablehlo.async_start"
  | "stablehlo.async_done"
>;

export const collectiveJvp: JvpRules<CollectiveKind> = {
  "stablehlo.all_reduce": (op, context) => {
    const kind = combinerKind(op.regions.computation);
    if (kind === "stablehlo.maximum" || kind === "stablehlo.minimum")
      return extremeTangents(op, context);
    if (kind !== "stablehlo.add") return refused(op, context);
    const sum = (builder: GraphBuilder, value: GraphValue): GraphValue =>
      summed(builder, value, op.attributes);
    return op.operands.operands.map((value) =>
      context.map(context.tangent(value), () => single(typeOfValue(value), sum, sum)),
    );
  },
  "stablehlo.all_gather": (op, context) => {
    const { all_gather_dim: axis } = op.attributes;
    const groups = groupsOf(op.attributes);
    return op.operands.operands.map((value, i) =>
      context.map(context.tangent(value), () =>
        single(
          typeOfValue(required(op.results[i])),
          (builder, tangent) => gathered(builder, tangent, axis, groups),
          (builder, cotangent) => scattered(builder, cotangent, axis, groups),
        ),
      ),
    );
  },
  "stablehlo.reduce_scatter": (op, context) => {
    if (combinerKind(op.regions.computation) !== "stablehlo.add") return refused(op, context);
    const { scatter_dimension: axis } = op.attributes;
    const groups = groupsOf(op.attributes);
    const tangent = context.map(context.tangent(op.operands.operand), () =>
      single(
        typeOfValue(required(op.results[0])),
        (builder, value) => scattered(builder, value, axis, groups),
        (builder, value) => gathered(builder, value, axis, groups),
      ),
    );
    return [tangent];
  },
  "stablehlo.all_to_all": (op, context) => {
    const { attributes } = op;
    const exchanged = (back: boolean) => (builder: GraphBuilder, value: GraphValue) =>
      builder.one(
        "stablehlo.all_to_all",
        { operands: [value] },
        {
          ...attributes,
          split_dimension: back ? attributes.concat_dimension : attributes.split_dimension,
          concat_dimension: back ? attributes.split_dimension : attributes.concat_dimension,
        },
      );
    return op.operands.operands.map((value, i) =>
      context.map(context.tangent(value), () =>
        single(typeOfValue(required(op.results[i])), exchanged(false), exchanged(true)),
      ),
    );
  },
  "stablehlo.collective_permute": (op, context) => {
    const { attributes } = op;
    const pairs = attributes.source_target_pairs;
    const moved =
      (rows: readonly (readonly number[])[]) => (builder: GraphBuilder, operand: GraphValue) =>
        builder.one(
          "stablehlo.collective_permute",
          { operand },
          { ...attributes, source_target_pairs: rows },
        );
    const { operand } = op.operands;
    const back = pairs.map((pair) => pair.toReversed());
    const tangent = context.map(context.tangent(operand), () =>
      single(typeOfValue(operand), moved(pairs), moved(back)),
    );
    return [tangent];
  },
  "stablehlo.collective_broadcast": refused,
  "stablehlo.collective_reduce": refused,
};

export const collectiveBatching: BatchRules<CollectiveKind> = {
  "stablehlo.all_reduce": (op, context) => context.again(op),
  "stablehlo.all_gather": (op, context) =>
    context.again(op, { attributes: { all_gather_dim: op.attributes.all_gather_dim + 1 } }),
  "stablehlo.reduce_scatter": (op, context) =>
    context.again(op, { attributes: { scatter_dimension: op.attributes.scatter_dimension + 1 } }),
  "stablehlo.all_to_all": (op, context) => {
    const [split_dimension = 0, concat_dimension = 0] = next([
      op.attributes.split_dimension,
      op.attributes.concat_dimension,
    ]);
    return context.again(op, { attributes: { split_dimension, concat_dimension } });
  },
  "stablehlo.collective_permute": (op, context) => context.again(op),
  "stablehlo.collective_broadcast": (op, context) =>
    op.attributes.has_dynamic_root ? unbatchable(op) : context.again(op),
  "stablehlo.collective_reduce": (op, context) => context.again(op),
};

/* ---- sdy.manual_computation ---- */

type Manual = GraphOp<"sdy.manual_computation">;
type ManualAttributes = Manual["attributes"];

function withShardings(
  { manual_axes }: ManualAttributes,
  inputs: readonly string[],
  outputs: readonly string[],
): ManualAttributes {
  return {
    manual_axes,
    in_shardings: dialectAttribute("sdy.in_shardings", inputs.join(", ")),
    out_shardings: dialectAttribute("sdy.out_shardings", outputs.join(", ")),
  };
}

/** The manual axes that an array is not cut along: all ranks along them have the same of it. */
function alike(sharding: TensorSharding, axes: readonly string[]): readonly AxisPart[] {
  const cut = new Set(sharding.dimensions.flat().map(({ axis }) => axis));
  const whole = axes.filter((axis) => !cut.has(axis));
  return whole.map((name) => required(axisPart(sharding.mesh, name)));
}

/** The body's parameters again, with the values of its ops; tangents are set before its ops run. */
function copied(body: GraphRegion, parameters: readonly GraphValue[]) {
  const substitution: Substitution = new Map(
    body.parameters.map((value, i) => [value, required(parameters[i])]),
  );
  const ops = body.ops.map((op) => copyOp(op, substitution));
  return { ops, results: body.results.map((value) => substitution.get(value) ?? value) };
}

/** What derivatives of a body need to know of it. */
interface Mapped {
  readonly op: Manual;
  readonly axes: readonly string[];
  /** The operands that have tangents, and the results that may. */
  readonly active: readonly number[];
  readonly places: readonly number[];
  readonly inputs: readonly string[];
  readonly ofActive: readonly string[];
  readonly ofPlaces: readonly string[];
}

const fresh = (values: readonly GraphValue[]): readonly GraphValue[] =>
  values.map(({ type }) => graphValue(type));

function manualMap(op: Manual, context: JvpContext, active: readonly number[]): LinearMap {
  const { attributes } = op;
  const { tensors } = op.operands;
  const inputs = shardingItems(attributes.in_shardings);
  const outputs = shardingItems(attributes.out_shardings);
  const places = op.results.flatMap((value, i) =>
    isDifferentiable(value) && !isEmpty(value) ? [i] : [],
  );
  const ofActive = active.map((i) => required(inputs[i]));
  const ofPlaces = places.map((i) => required(outputs[i]));
  const axes = readAxisNames(attributes.manual_axes);
  const mapped = { op, axes, active, places, inputs, ofActive, ofPlaces };
  const types = places.map((i) => typeOfValue(required(op.results[i])));
  return {
    outputs: types,
    apply: (builder, tangents) =>
      builder.add(
        "sdy.manual_computation",
        { tensors: [...tensors, ...tangents] },
        withShardings(attributes, [...inputs, ...ofActive], ofPlaces),
        { regions: { body: tangentBody(mapped, context, builder) }, types },
      ),
    transpose: (builder, cotangents) => {
      const whole = places.map((_, at) => cotangents[at] ?? zerosOf(builder, required(types[at])));
      return builder.add(
        "sdy.manual_computation",
        { tensors: [...tensors, ...whole] },
        withShardings(attributes, [...inputs, ...ofPlaces], ofActive),
        {
          regions: { body: cotangentBody(mapped, context, builder) },
          types: active.map((i) => typeOfValue(required(tensors[i]))),
        },
      );
    },
  };
}

/** From parameters and tangents to tangents of results. */
function tangentBody(
  { op, active, places }: Mapped,
  context: JvpContext,
  { origin }: GraphBuilder,
): GraphRegion {
  const { body } = op.regions;
  const inner = new GraphBuilder(origin);
  const parameters = fresh(body.parameters);
  const given = fresh(active.map((i) => required(body.parameters[i])));
  const own = context.inner(inner, new ForwardMode(inner));
  for (const [at, i] of active.entries())
    own.setTangent(required(parameters[i]), required(given[at]));
  const copy = copied(body, parameters);
  const results = own.run(copy.ops, copy.results);
  const found = places.map((i) => {
    const value = required(results[i]);
    return own.tangent(value) ?? zerosOf(inner, typeOfValue(value));
  });
  return graphRegion([...parameters, ...given], inner.ops, found);
}

/** From parameters and cotangents of results to cotangents of parameters. */
function cotangentBody(
  { op, axes, active, places }: Mapped,
  context: JvpContext,
  { origin }: GraphBuilder,
): GraphRegion {
  const { body } = op.regions;
  const inner = new GraphBuilder(origin);
  const parameters = fresh(body.parameters);
  const own = context.inner(inner, new ReverseMode(inner));
  const seeds = fresh(active.map((i) => required(parameters[i])));
  for (const [at, i] of active.entries())
    own.setTangent(required(parameters[i]), required(seeds[at]));
  const copy = copied(body, parameters);
  const results = own.run(copy.ops, copy.results);
  const given = fresh(places.map((i) => required(body.results[i])));
  const ends = places.map((i) => own.tangent(required(results[i])));
  const outputs = readShardings(op.attributes.out_shardings, new Map(), op.location);
  const inputs = readShardings(op.attributes.in_shardings, new Map(), op.location);
  const shared = given.flatMap((value, at) => {
    const count = cutsOf(alike(required(outputs[required(places[at])]), axes));
    if (ends[at] === undefined) return [];
    return [count === 1 ? value : scaled(inner, value, 1 / count)];
  });
  const found = reverseOf(own).toMap(seeds, ends).transpose(inner, shared);
  const cotangents = active.map((i, at) => {
    const cotangent = found[at];
    if (cotangent === undefined) return zerosOf(inner, typeOfValue(required(body.parameters[i])));
    const sharding = required(inputs[i]);
    const along = alike(sharding, axes);
    if (cutsOf(along) === 1) return cotangent;
    return summed(inner, cotangent, {
      replica_groups: groupsAlong(sharding.mesh, along),
      channel_handle: { handle: 1, type: 1 },
      use_global_device_ids: true,
    });
  });
  return graphRegion([...parameters, ...given], inner.ops, cotangents);
}

export function manualJvp(op: Manual, context: JvpContext): readonly Tangent[] {
  const { tensors } = op.operands;
  const tangents = tensors.map((value) => context.tangent(value));
  const active = tangents.flatMap((tangent, i) => (tangent === undefined ? [] : [i]));
  if (active.length === 0) return zero(op);
  const found = context.mode.linear(
    manualMap(op, context, active),
    active.map((i) => required(tangents[i])),
  );
  const next = found[Symbol.iterator]();
  return op.results.map((value) =>
    isDifferentiable(value) && !isEmpty(value) ? next.next().value : undefined,
  );
}

/** The batch is in front of each part, and is not cut. */
export function manualBatching(op: Manual, context: BatchContext): readonly Batched[] {
  const { body } = op.regions;
  const { attributes } = op;
  const isBatched = op.operands.tensors.map((value) => context.isBatched(value));
  const inner = context.inner(new GraphBuilder(context.builder.origin));
  const parameters = body.parameters.map((value, i) => {
    const batched = isBatched[i] === true;
    const parameter = graphValue(batched ? context.type(value.type) : value.type);
    inner.set(value, { value: parameter, batched });
    return parameter;
  });
  inner.run(body.ops);
  const results = body.results.map((value) => inner.full(value));
  const inFront = (sharding: TensorSharding): string =>
    shardingText({ ...sharding, dimensions: [[], ...sharding.dimensions] });
  const [given, made] = [attributes.in_shardings, attributes.out_shardings].map((each) =>
    readShardings(each, new Map(), op.location),
  );
  const inputs = (given ?? []).map((sharding, i) =>
    isBatched[i] === true ? inFront(sharding) : shardingText(sharding),
  );
  const outputs = (made ?? []).map(inFront);
  const found = context.builder.add(
    "sdy.manual_computation",
    { tensors: op.operands.tensors.map((value) => context.get(value).value) },
    withShardings(attributes, inputs, outputs),
    {
      regions: { body: graphRegion(parameters, inner.builder.ops, results) },
      types: op.results.map(({ type }) => context.type(type)),
    },
  );
  return found.map((value) => ({ value, batched: true }));
}
