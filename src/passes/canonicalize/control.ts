/**
 * Rules for ops with regions whose course is known: branches on a constant, loops of no trip or one,
 * results and carries that are for certain a value from outside.
 */
import { changedOp } from "../../ir/make-op.ts";
import type { AnyOp, Op, Region, Value } from "../../ir/node.ts";
import { defineRules, rule } from "../../ir/rewrite/rules.ts";
import type { RewriteContext, Rule } from "../../ir/rewrite/rules.ts";
import { keepSlots, slotsOf } from "../../ir/rewrite/slots.ts";
import type { Slot } from "../../ir/rewrite/slots.ts";
import { changeOps, changeRegions, substituteRegion } from "../../ir/rewrite/substitute.ts";
import type { Literal } from "../../ir/schema.ts";
import { breakFlag, yieldedValues } from "../../ir/traverse.ts";
import { regionHasEffect } from "../../ir/traits.ts";

function integer(literal: Literal | undefined): bigint | undefined {
  return literal === undefined ? undefined : BigInt(literal);
}

/** The trips of a loop where the bounds say that they are none or one. */
function fewTrips({ operands }: Op<"loop">, { literal }: RewriteContext): 0 | 1 | undefined {
  const lower = integer(literal(operands.lower));
  const upper = integer(literal(operands.upper));
  const step = integer(literal(operands.step));
  if (lower === undefined || upper === undefined) return undefined;
  if (lower >= upper) return 0;
  return step !== undefined && step > 0n && lower + step >= upper ? 1 : undefined;
}

/** A value from outside that is for certain the result of the slot. */
function fixedValue({ initial, parameters, yielded }: Slot): Value | undefined {
  const [first, ...others] = yielded;
  if (first === undefined) return undefined;
  if (initial !== undefined) {
    const unchanged = first === initial || parameters.includes(first);
    return unchanged && initial.type.kind !== "inflight" ? initial : undefined;
  }
  // A value that two branches see comes from around them.
  return others.length > 0 && others.every((value) => value === first) ? first : undefined;
}

/** Drops the slots whose results are fixed; inside, a fixed carry is the value too. */
function dropFixedSlots<K extends "loop" | "while" | "if" | "switch">(kind: K): Rule<K> {
  return rule(kind, (op, context) => {
    // An Op<K> is one of the union's members, which TypeScript cannot see for a generic K.
    const whole = op as unknown as AnyOp;
    const fixed = new Map<Value, Value>();
    const substitution = new Map<Value, Value>();
    for (const slot of slotsOf(whole)) {
      const value = fixedValue(slot);
      if (value === undefined) continue;
      fixed.set(slot.result, value);
      for (const parameter of slot.parameters) substitution.set(parameter, value);
    }
    if (fixed.size === 0) return undefined;
    const changed = changeRegions(whole, (region) => substituteRegion(region, substitution));
    const slim = keepSlots(changed, ({ result }) => !fixed.has(result)) as unknown as Op<K>;
    const results = context.create(kind, slim.operands, slim.attributes, slim.regions);
    const kept = results.values();
    return op.results.map((result) => fixed.get(result) ?? (kept.next().value as Value));
  });
}

/** The body of a loop without the break that it never asks for; undefined where it may ask. */
function withoutBreak(
  op: Op<"loop"> | Op<"while">,
  { literal }: RewriteContext,
): Region | undefined {
  const flag = breakFlag(op);
  const never = flag !== undefined && literal(flag) === false;
  return never ? withoutLast(op.regions.body) : undefined;
}

function withoutLast(body: Region): Region {
  const end = body.ops.at(-1);
  if (end?.kind !== "yield") throw new Error("a region ends with yield");
  const operands = Object.freeze({ values: Object.freeze(end.operands.values.slice(0, -1)) });
  return changeOps(body, [...body.ops.slice(0, -1), changedOp(end, { operands })]);
}

export const controlRules = defineRules("control", {
  "if on a constant": rule("if", ({ operands, regions }, context) => {
    const condition = context.literal(operands.condition);
    if (condition === undefined) return undefined;
    return context.inline(condition === true ? regions.then : regions.otherwise, []);
  }),

  "switch on a constant": rule("switch", ({ operands, regions: { cases } }, context) => {
    const index = context.literal(operands.index);
    if (index === undefined && cases.length > 1) return undefined;
    const chosen = cases[Math.min(Math.max(Number(index ?? 0), 0), cases.length - 1)];
    return chosen === undefined ? undefined : context.inline(chosen, []);
  }),

  "loop of no trip": rule("loop", (op, context) =>
    fewTrips(op, context) === 0 ? op.operands.initial : undefined,
  ),

  "loop of one trip": rule("loop", (op, context) => {
    const { lower, initial } = op.operands;
    // Whether it would have ended there is no matter.
    return fewTrips(op, context) === 1
      ? context.inline(op.regions.body, [lower, ...initial]).slice(0, op.results.length)
      : undefined;
  }),

  "while that never runs": rule("while", ({ operands, regions: { condition } }, { literal }) => {
    const [runs] = yieldedValues(condition);
    const never = runs !== undefined && literal(runs) === false && !regionHasEffect(condition);
    return never ? operands.initial : undefined;
  }),

  "break of a loop that never comes": rule("loop", (op, context) => {
    const { depth } = op.attributes;
    const body = withoutBreak(op, context);
    const attributes = depth === undefined ? {} : { depth };
    return body && context.create("loop", op.operands, attributes, { body });
  }),

  "break of a while that never comes": rule("while", (op, context) => {
    const body = withoutBreak(op, context);
    return body && context.create("while", op.operands, {}, { ...op.regions, body });
  }),

  "fixed carry of a loop": dropFixedSlots("loop"),
  "fixed carry of a while": dropFixedSlots("while"),
  "fixed result of an if": dropFixedSlots("if"),
  "fixed result of a switch": dropFixedSlots("switch"),

  "assertion of true": rule("assert", ({ operands }, { literal }) =>
    literal(operands.condition) === true ? [] : undefined,
  ),
});
