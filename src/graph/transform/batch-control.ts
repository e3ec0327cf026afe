/**
 * Batching of loops and branches. A loop whose condition differs along the batch runs until all are done and
 * keeps the state of those that are; a branch that differs runs every branch and selects.
 */
import { GraphBuilder } from "../infer/builder.ts";
import { capturesOf } from "../ops/captures.ts";
import { graphRegion, graphValue } from "../ops/node.ts";
import type { AnyGraphOp, GraphOp, GraphRegion, GraphValue } from "../ops/node.ts";
import { tensorType } from "../ops/types.ts";
import { broadcastInDim, combiner, compare, select, splatOf, typeOfValue } from "./arithmetic.ts";
import { BatchContext } from "./batch.ts";
import type { Batched } from "./batch.ts";
import { required } from "./maps.ts";

/** Adds batched ops to a context. */
export type RunBatched = (context: BatchContext, ops: readonly AnyGraphOp[]) => void;

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
  run: RunBatched,
): BatchedRegion {
  const context = new BatchContext(new GraphBuilder(outer.builder.origin), outer.size, outer);
  const parameters = region.parameters.map((value, i) => {
    const own = batched[i] === true;
    const parameter = graphValue(own ? outer.type(value.type) : value.type);
    context.set(value, { value: parameter, batched: own });
    return parameter;
  });
  run(context, region.ops);
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
  run: RunBatched,
): { readonly carried: readonly boolean[]; readonly condition: boolean } {
  let carried = op.operands.operand.map((value) => context.isBatched(value));
  for (;;) {
    const test = runRegion(op.regions.cond, carried, context, run);
    const condition = test.results[0]?.batched === true;
    const { results } = runRegion(op.regions.body, carried, context, run);
    const grown = carried.map((own, i) => own || condition || results[i]?.batched === true);
    if (grown.every((each, i) => each === carried[i])) return { carried, condition };
    carried = grown;
  }
}

export function whileBatching(
  op: While,
  context: BatchContext,
  run: RunBatched,
): readonly Batched[] {
  const { carried, condition } = carriedBatches(op, context, run);
  const operand = op.operands.operand.map((value, i) =>
    carried[i] === true ? context.full(value) : context.get(value).value,
  );
  const cond = runRegion(op.regions.cond, carried, context, run);
  const body = runRegion(op.regions.body, carried, context, run);
  const results = op.regions.body.results.map((value, i) =>
    carried[i] === true ? body.context.full(value) : body.context.get(value).value,
  );
  const regions = condition
    ? {
        cond: anyRegion(cond),
        body: keepingRegion(op, body, results, carried, context, run),
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
  run: RunBatched,
): GraphRegion {
  const { builder } = body.context;
  const { cond } = op.regions;
  const test = new BatchContext(builder, outer.size, outer);
  for (const [i, value] of cond.parameters.entries())
    test.set(value, { value: required(body.region.parameters[i]), batched: carried[i] === true });
  run(test, cond.ops);
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

export function branchBatching(
  op: Branching,
  context: BatchContext,
  run: RunBatched,
): readonly Batched[] {
  const chooser = op.kind === "stablehlo.case" ? op.operands.index : op.operands.pred;
  return context.isBatched(chooser)
    ? selectedBranches(op, context, run)
    : sameBranch(op, context, run);
}

function selectedBranches(
  op: Branching,
  context: BatchContext,
  run: RunBatched,
): readonly Batched[] {
  const all = branchesOf(op).map((region) => {
    run(context, region.ops);
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

function sameBranch(op: Branching, context: BatchContext, run: RunBatched): readonly Batched[] {
  const branches = branchesOf(op).map((region) => runRegion(region, [], context, run));
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

/** Whether an op's regions use something that is batched. */
export function capturesBatch(regions: readonly GraphRegion[], context: BatchContext): boolean {
  return regions.some((region) => capturesOf(region).some((value) => context.isBatched(value)));
}
