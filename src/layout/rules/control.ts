/**
 * Control flow. What a loop carries lies in one variable from the start to the end: initial values and what
 * the body yields are converted to it. The regions of a choice yield to the variables of its results. Accumulators
 * in flight lie as their instruction has it.
 *
 *   %r = loop … initial(%zero) { (%i, %carry) … yield %next }
 *
 *   %carry and %r are one variable; %zero and %next are read into it
 */
import type { AnyOp, Op, Region, Value } from "../../ir/node.ts";
import type { controlOps } from "../../ir/ops/control.ts";
import { operandValues, regionList, walkOps, yieldedValues } from "../../ir/traverse.ts";
import { costs } from "../model/cost.ts";
import type { LayoutContext } from "./context.ts";
import type { RegisterVariable } from "./statements.ts";
import type { Rules } from "./values.ts";

const nothing = (): void => undefined;

type Variables = readonly (RegisterVariable | undefined)[];

/** One variable for each carried value; those in flight stay where they are. */
function carry(
  op: Op<"loop"> | Op<"while">,
  parameters: readonly Value[],
  context: LayoutContext,
): Variables {
  return op.operands.initial.map((initial, position) => {
    const result = op.results[position];
    if (initial.type.kind === "inflight") {
      const variable = context.variable(initial);
      context.share(result, variable);
      context.share(parameters[position], variable);
      return undefined;
    }
    const variable = context.define(op, result, { splat: "maybe" });
    if (variable === undefined) return undefined;
    context.share(parameters[position], variable);
    context.read(op, initial, { kind: "variable", variable }, "the loop begins with this");
    return variable;
  });
}

/** What a region yields is read into the variables, as often as the region runs. */
function yieldInto(region: Region, variables: Variables, context: LayoutContext): void {
  const end = region.ops.at(-1);
  if (end === undefined) throw new Error("a region ends with yield");
  yieldedValues(region).forEach((value, position) => {
    const variable = variables[position];
    if (variable !== undefined)
      context.read(end, value, { kind: "variable", variable }, "the body hands this on");
  });
}

/** How often a loop runs, where that is known. */
function trips(op: Op<"loop">, context: LayoutContext): number {
  const { facts } = context.surroundings.windows;
  const { lower, upper, step } = op.operands;
  const [from, to, by] = [lower, upper, step].map((value) => facts.constant(value));
  if (from === undefined || to === undefined || by === undefined) return costs.unknownTrips;
  return Math.max(1, Math.ceil((to - from) / by));
}

function loop(op: Op<"loop">, context: LayoutContext): void {
  const [, ...parameters] = op.regions.body.parameters;
  const variables = carry(op, parameters, context);
  context.body(op.regions.body, {
    times: trips(op, context),
    end: () => {
      yieldInto(op.regions.body, variables, context);
    },
  });
}

function whileLoop(op: Op<"while">, context: LayoutContext): void {
  const { condition, body } = op.regions;
  const variables = carry(op, body.parameters, context);
  condition.parameters.forEach((parameter, position) => {
    const variable = context.find(body.parameters[position] ?? parameter);
    if (variable !== undefined) context.share(parameter, variable);
  });
  context.body(condition, { times: costs.unknownTrips });
  context.body(body, {
    times: costs.unknownTrips,
    end: () => {
      yieldInto(body, variables, context);
    },
  });
}

/** Regions of which one runs. */
function choice(op: AnyOp, regions: readonly Region[], context: LayoutContext): void {
  for (const region of regions) context.body(region);
  const variables = op.results.map((result, position) => {
    if (result.type.kind !== "inflight") return context.define(op, result, { splat: "maybe" });
    // The instruction fixes where sums lie, so all branches give them alike.
    const [first] = regions.flatMap((region) => yieldedValues(region)[position] ?? []);
    if (first !== undefined) context.share(result, context.variable(first));
    return undefined;
  });
  for (const region of regions) yieldInto(region, variables, context);
}

/** Tiles that ops of a region read and that were made outside of it. */
function outerTiles(region: Region): readonly Value[] {
  const inside = new Set<Value>(region.parameters);
  const read = new Set<Value>();
  walkOps(region, (op) => {
    for (const value of operandValues(op)) if (value.type.kind === "tile") read.add(value);
    for (const value of op.results) inside.add(value);
    for (const inner of regionList(op)) for (const value of inner.parameters) inside.add(value);
  });
  return [...read].filter((value) => !inside.has(value));
}

/** Tiles from outside are brought to each warp as a whole before they split up: once they have, none of them can ask others for a part. */
function warps(op: Op<"warps">, context: LayoutContext): void {
  const outer = outerTiles(op.regions.body).map(
    (value) => [value, context.variable(value)] as const,
  );
  for (const [value] of outer) {
    const variable = context.operand(op, value, { splat: "maybe", warps: 1 });
    if (variable !== undefined) context.share(value, variable);
  }
  context.body(op.regions.body, { warps: 1 });
  for (const [value, variable] of outer) context.share(value, variable);
}

export const controlRules: Rules<typeof controlOps> = {
  loop,
  while: whileLoop,
  if: (op, context) => {
    choice(op, [op.regions.then, op.regions.otherwise], context);
  },
  switch: (op, context) => {
    choice(op, op.regions.cases, context);
  },
  scoped: (op, context) => {
    context.body(op.regions.body);
    yieldedValues(op.regions.body).forEach((value, position) => {
      const variable = context.find(value);
      if (variable !== undefined) context.share(op.results[position], variable);
    });
  },
  on_threads: (op, context) => {
    context.body(op.regions.body);
  },
  warps,
  yield: nothing,
  debug_print: nothing,
  print_layout: nothing,
  assert: nothing,
  profile_mark: nothing,
  debug_break: nothing,
};
