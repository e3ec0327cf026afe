/**
 * Batching of loops and branches. A loop whose condition differs along the batch runs until all are done and
 * keeps the state of those that are; a branch that differs runs every branch and selects.
 */
import type { GraphBuilder } from "../infer/builder.ts";
import { capturesOf } from "../ops/captures.ts";
import { graphRegion, graphValue } from "../ops/node.ts";
import type { AnyGraphOp, GraphOp, GraphRegion, GraphValue } from "../ops/node.ts";
import { copyOp, replaceOperands } from "../ops/rebuild.ts";
import { tensorType } from "../ops/types.ts";
import type { TensorType } from "../ops/types.ts";
import {
  addValues,
  broadcastInDim,
  combiner,
  compare,
  reshape,
  select,
  splatOf,
  typeOfValue,
  zerosOf,
} from "./arithmetic.ts";
import type { BatchContext, Batched } from "./batch.ts";
import { required } from "./maps.ts";

type While = GraphOp<"stablehlo.while">;
type Branching = GraphOp<"stablehlo.case"> | GraphOp<"stablehlo.if">;

interface BatchedRegion {
  readonly region: GraphRegion;
  readonly context: BatchContext;
  readonly results: readonly Batched[];
}

/** A region over parameters of which some have the batch in front. */
function runRegion(
  region: GraphRegion,
  batched: readonly boolean[],
  outer: BatchContext,
): BatchedRegion {
  const context = outer.inner();
  const parameters = region.parameters.map((value, i) => {
    const own = batched[i] === true;
    const parameter = graphValue(own ? outer.type(value.type) : value.type);
    context.set(value, { value: parameter, batched: own });
    return parameter;
  });
  context.run(region.ops);
  const results = region.results.map((value) => context.get(value));
  const values = results.map(({ value }) => value);
  return { region: graphRegion(parameters, context.builder.ops, values), context, results };
}

/** A flag an element of the batch, spread over a value's other axes. */
function spread(builder: GraphBuilder, flags: GraphValue, like: GraphValue): GraphValue {
  return broadcastInDim(builder, flags, typeOfValue(like).shape, [0]);
}

function anyOf(builder: GraphBuilder, flags: GraphValue): GraphValue {
  const no = splatOf(builder, tensorType("i1", []), 0);
  return builder.one(
    "stablehlo.reduce",
    { inputs: [flags], init_values: [no] },
    { dimensions: [0] },
    { regions: { body: combiner(builder, "i1", "stablehlo.or") } },
  );
}

/** The carried values that are batched, and whether the condition is. */
function carriedBatches(
  op: While,
  context: BatchContext,
): { readonly carried: readonly boolean[]; readonly condition: boolean } {
  let carried = op.operands.operand.map((value) => context.isBatched(value));
  for (;;) {
    const test = runRegion(op.regions.cond, carried, context);
    const condition = test.results[0]?.batched === true;
    const { results } = runRegion(op.regions.body, carried, context);
    const grown = carried.map((own, i) => own || condition || results[i]?.batched === true);
    if (grown.every((each, i) => each === carried[i])) return { carried, condition };
    carried = grown;
  }
}

export function whileBatching(op: While, context: BatchContext): readonly Batched[] {
  const { carried, condition } = carriedBatches(op, context);
  const operand = op.operands.operand.map((value, i) =>
    carried[i] === true ? context.full(value) : context.get(value).value,
  );
  const cond = runRegion(op.regions.cond, carried, context);
  const body = runRegion(op.regions.body, carried, context);
  const results = op.regions.body.results.map((value, i) =>
    carried[i] === true ? body.context.full(value) : body.context.get(value).value,
  );
  const regions = condition
    ? {
        cond: anyRegion(cond),
        body: keepingRegion(op, body, results, carried, context),
      }
    : {
        cond: cond.region,
        body: graphRegion(body.region.parameters, body.context.builder.ops, results),
      };
  const all = context.builder.add("stablehlo.while", { operand }, {}, { regions, extra: op.extra });
  return all.map((value, i) => ({ value, batched: carried[i] === true }));
}

/** The condition holds as long as it does for one of the batch. */
function anyRegion({ region, context }: BatchedRegion): GraphRegion {
  const holds = anyOf(context.builder, required(region.results[0]));
  return graphRegion(region.parameters, context.builder.ops, [holds]);
}

/** The body, with the state kept where the condition no longer holds. */
function keepingRegion(
  op: While,
  body: BatchedRegion,
  results: readonly GraphValue[],
  carried: readonly boolean[],
  outer: BatchContext,
): GraphRegion {
  const { builder } = body.context;
  const { cond } = op.regions;
  const test = outer.inner(builder);
  for (const [i, value] of cond.parameters.entries())
    test.set(value, { value: required(body.region.parameters[i]), batched: carried[i] === true });
  test.run(cond.ops);
  const flags = test.full(required(cond.results[0]));
  const kept = results.map((value, i) => {
    const before = required(body.region.parameters[i]);
    return select(builder, spread(builder, flags, value), value, before);
  });
  return graphRegion(body.region.parameters, builder.ops, kept);
}

function branchesOf(op: Branching): readonly GraphRegion[] {
  if (op.kind === "stablehlo.case") return op.regions.branches;
  return [op.regions.true_branch, op.regions.false_branch];
}

/** Whether each branch is taken; the last one where none before it is. */
function choices(op: Branching, context: BatchContext): readonly GraphValue[] {
  if (op.kind === "stablehlo.if") return [context.full(op.operands.pred)];
  const { builder } = context;
  const index = context.full(op.operands.index);
  return op.regions.branches
    .slice(0, -1)
    .map((_, i) => compare(builder, "EQ", index, splatOf(builder, typeOfValue(index), i)));
}

export function branchBatching(op: Branching, context: BatchContext): readonly Batched[] {
  const chooser = op.kind === "stablehlo.case" ? op.operands.index : op.operands.pred;
  return context.isBatched(chooser) ? selectedBranches(op, context) : sameBranch(op, context);
}

function selectedBranches(op: Branching, context: BatchContext): readonly Batched[] {
  const all = branchesOf(op).map((region) => {
    context.run(region.ops);
    return region.results.map((value) => context.full(value));
  });
  const taken = choices(op, context);
  const { builder } = context;
  const last = required(all.at(-1));
  return last.map((fallback, i) => {
    const value = taken.reduceRight(
      (rest, flags, branch) =>
        select(builder, spread(builder, flags, rest), required(all[branch]?.[i]), rest),
      fallback,
    );
    return { value, batched: true };
  });
}

function sameBranch(op: Branching, context: BatchContext): readonly Batched[] {
  const branches = branchesOf(op).map((region) => runRegion(region, [], context));
  const batched = op.results.map((_, i) =>
    branches.some(({ results }) => results[i]?.batched === true),
  );
  const regions = branchesOf(op).map((region, which) => {
    const inner = required(branches[which]).context;
    const results = region.results.map((value, i) =>
      batched[i] === true ? inner.full(value) : inner.get(value).value,
    );
    return graphRegion([], inner.builder.ops, results);
  });
  const { builder } = context;
  const all =
    op.kind === "stablehlo.case"
      ? builder.add(
          "stablehlo.case",
          { index: context.get(op.operands.index).value },
          {},
          { regions: { branches: regions } },
        )
      : builder.add(
          "stablehlo.if",
          { pred: context.get(op.operands.pred).value },
          {},
          {
            regions: {
              true_branch: required(regions[0]),
              false_branch: required(regions[1]),
            },
          },
        );
  return all.map((value, i) => ({ value, batched: batched[i] === true }));
}

type Stated = GraphOp<"tilewright.custom_vjp"> | GraphOp<"tilewright.checkpoint">;

/** A region all of whose parameters and results have the batch in front. */
function fullRegion(region: GraphRegion, outer: BatchContext): GraphRegion {
  const flags = region.parameters.map(() => true);
  const { region: made, context } = runRegion(region, flags, outer);
  const results = region.results.map((value) => context.full(value));
  return graphRegion(made.parameters, context.builder.ops, results);
}

/** Functions that state how they are differentiated: every region over the whole batch. */
export function customBatching(op: Stated, context: BatchContext): readonly Batched[] {
  const inputs = op.operands.inputs.map((value) => context.full(value));
  const all =
    op.kind === "tilewright.checkpoint"
      ? context.builder.add(op.kind, { inputs }, op.attributes, {
          regions: { body: fullRegion(op.regions.body, context) },
        })
      : context.builder.add(
          op.kind,
          { inputs },
          {},
          {
            regions: {
              body: fullRegion(op.regions.body, context),
              forward: fullRegion(op.regions.forward, context),
              backward: fullRegion(op.regions.backward, context),
            },
          },
        );
  return all.map((value) => ({ value, batched: true }));
}

const counter = tensorType("i32", []);

/** Row `at` of an array, without its axis. */
function rowOf(builder: GraphBuilder, operand: GraphValue, at: GraphValue): GraphValue {
  const [, ...rest] = typeOfValue(operand).shape;
  const zero = splatOf(builder, counter, 0);
  const row = builder.one(
    "stablehlo.dynamic_slice",
    { operand, start_indices: [at, ...rest.map(() => zero)] },
    { slice_sizes: [1, ...rest] },
  );
  return reshape(builder, row, rest);
}

/** An op that has no form over a batch: a loop over its examples. */
export function oneByOne(op: object, context: BatchContext): readonly Batched[] {
  const own = op as AnyGraphOp;
  const { builder, size } = context;
  const stacks = own.results.map(({ type }) => zerosOf(builder, context.type(type) as TensorType));
  const types = [counter, ...stacks.map(({ type }) => type)];
  const cond = builder.region(types, (inner, [at]) => [
    compare(inner, "LT", required(at), splatOf(inner, counter, size)),
  ]);
  const body = builder.region(types, (inner, [at, ...rows]) => {
    const place = required(at);
    const example = copyOp(
      replaceOperands(own, (value) => {
        const { value: found, batched } = context.get(value);
        return batched ? rowOf(inner, found, place) : found;
      }),
      new Map(),
    );
    inner.append(example);
    const zero = splatOf(inner, counter, 0);
    const written = example.results.map((value, i) => {
      const { shape } = typeOfValue(value);
      const update = reshape(inner, value, [1, ...shape]);
      return inner.one(
        "stablehlo.dynamic_update_slice",
        { operand: required(rows[i]), update, start_indices: [place, ...shape.map(() => zero)] },
        {},
      );
    });
    return [addValues(inner, place, splatOf(inner, counter, 1)), ...written];
  });
  const operand = [splatOf(builder, counter, 0), ...stacks];
  const [, ...all] = builder.add("stablehlo.while", { operand }, {}, { regions: { cond, body } });
  return all.map((value) => ({ value, batched: true }));
}

/** Whether an op's regions use something that is batched. */
export function capturesBatch(regions: readonly GraphRegion[], context: BatchContext): boolean {
  return regions.some((region) => capturesOf(region).some((value) => context.isBatched(value)));
}
