/** Rules for comparisons, selections and conversions. */
import type { ComparePredicate } from "../../formats/arithmetic/functions.ts";
import { numberClass } from "../../formats/conversion-rules.ts";
import { isFloat, isInteger } from "../../formats/dtype.ts";
import type { DType, DTypeName, FloatName } from "../../formats/dtype.ts";
import { floatFormats } from "../../formats/floats.ts";
import { convertValue } from "../../formats/values.ts";
import type { Op } from "../../ir/node.ts";
import { defineRules, rule } from "../../ir/rewrite/rules.ts";
import { isData } from "../../ir/types.ts";
import type { DataType } from "../../ir/types.ts";
import { isNumber } from "./patterns.ts";

/** The predicate for the operands in the other order. */
const mirrored: { readonly [P in ComparePredicate]: ComparePredicate } = {
  eq: "eq",
  ne: "ne",
  lt: "gt",
  le: "ge",
  gt: "lt",
  ge: "le",
};

/** What a number and itself compare to; a NaN is less than, greater than and equal to nothing. */
function compareWithItself(predicate: ComparePredicate, dtype: DType): boolean | undefined {
  if (predicate === "lt" || predicate === "gt") return false;
  if (dtype.kind === "float") return undefined;
  return predicate !== "ne";
}

function operandType({ operands }: Op<"compare">): DataType {
  const { type } = operands.left;
  if (!isData(type)) throw new Error("compare takes numbers");
  return type;
}

function resultType({ results: [result] }: Op<"compare">): DataType {
  if (result === undefined || !isData(result.type)) throw new Error("compare gives bools");
  return result.type;
}

export const compareRules = defineRules("comparison", {
  "constant to the right": rule("compare", ({ operands, attributes }, context) => {
    const { left, right } = operands;
    if (context.literal(left) === undefined || context.literal(right) !== undefined)
      return undefined;
    const predicate = mirrored[attributes.predicate];
    return context.createOne("compare", { left: right, right: left }, { predicate });
  }),

  "equal operands": rule("compare", (op, context) => {
    if (op.operands.left !== op.operands.right) return undefined;
    const known = compareWithItself(op.attributes.predicate, operandType(op).dtype);
    return known === undefined ? undefined : context.createConstant(known, resultType(op));
  }),

  "unsigned against zero": rule("compare", (op, context) => {
    const { predicate } = op.attributes;
    const applies =
      operandType(op).dtype.kind === "unsigned" &&
      (predicate === "lt" || predicate === "ge") &&
      isNumber(context.literal(op.operands.right), 0);
    return applies ? context.createConstant(predicate === "ge", resultType(op)) : undefined;
  }),

  "bool against a constant": rule("compare", (op, context) => {
    const { left, right } = op.operands;
    const literal = context.literal(right);
    if (typeof literal !== "boolean") return undefined;
    const same = (op.attributes.predicate === "eq") === literal;
    return same ? left : context.createOne("unary", { source: left }, { fn: "not" });
  }),
});

export const selectRules = defineRules("selection", {
  "constant condition": rule("select", ({ operands }, { literal }) => {
    const condition = literal(operands.condition);
    if (condition === undefined) return undefined;
    return condition === true ? operands.ifTrue : operands.ifFalse;
  }),

  "equal choices": rule("select", ({ operands }) =>
    operands.ifTrue === operands.ifFalse ? operands.ifTrue : undefined,
  ),

  "condition itself": rule("select", ({ operands }, { literal }) =>
    literal(operands.ifTrue) === true && literal(operands.ifFalse) === false
      ? operands.condition
      : undefined,
  ),

  "negated condition": rule("select", ({ operands }, context) => {
    const inner = context.definition(operands.condition);
    if (inner?.kind !== "unary" || inner.attributes.fn !== "not") return undefined;
    const { ifTrue, ifFalse } = operands;
    const condition = inner.operands.source;
    return context.createOne("select", { condition, ifTrue: ifFalse, ifFalse: ifTrue }, {});
  }),
});

/** The floats that hold every value of a float. */
const widerFloats: { readonly [N in FloatName]?: readonly DTypeName[] } = {
  f32: ["f64"],
  tf32: ["f32", "f64"],
  f16: ["tf32", "f32", "f64"],
  bf16: ["tf32", "f32", "f64"],
  f8e4m3fn: ["f16", "bf16", "tf32", "f32", "f64"],
  f8e5m2: ["f16", "bf16", "tf32", "f32", "f64"],
  f6e2m3fn: ["f8e4m3fn", "f16", "bf16", "tf32", "f32", "f64"],
  f6e3m2fn: ["f8e4m3fn", "f8e5m2", "f16", "bf16", "tf32", "f32", "f64"],
  f4e2m1fn: ["f6e2m3fn", "f6e3m2fn", "f8e4m3fn", "f8e5m2", "f16", "bf16", "tf32", "f32", "f64"],
};

/** Whether `to` holds every value of `from`, and is converted on by the same row of the table. */
function embeds(from: DType, to: DType): boolean {
  if (numberClass(from) !== numberClass(to)) return false;
  if (!isInteger(from)) return widerFloats[from.name as FloatName]?.includes(to.name) === true;
  const [signed, alsoSigned] = [from.kind === "signed", to.kind === "signed"];
  return signed === alsoSigned ? from.bits < to.bits : alsoSigned && from.bits < to.bits;
}

/** Whether infinities end on the way back to a format, which converted to itself would keep them. */
function cutsInfinity(
  from: DType,
  through: DType,
  { dtype, overflow, rounding }: Op<"cast">["attributes"],
): boolean {
  if (from !== dtype || !isFloat(from) || !floatFormats[from.name].hasInfinity) return false;
  return convertValue(through, dtype, Infinity, { overflow, rounding }) !== Infinity;
}

export const castRules = defineRules("conversion", {
  "to the same format": rule("cast", ({ operands: { source }, attributes }) =>
    isData(source.type) && source.type.dtype === attributes.dtype && attributes.overflow !== "unit"
      ? source
      : undefined,
  ),

  "through a wider format": rule("cast", ({ operands, attributes }, context) => {
    const inner = context.definition(operands.source);
    // A bound that was chosen may cut infinities, which the wider format has too.
    if (inner?.kind !== "cast" || inner.attributes.overflow !== undefined) return undefined;
    const { source } = inner.operands;
    if (!isData(source.type) || !embeds(source.type.dtype, inner.attributes.dtype))
      return undefined;
    return cutsInfinity(source.type.dtype, inner.attributes.dtype, attributes)
      ? undefined
      : context.createOne("cast", { source }, attributes);
  }),

  "bits of the same format": rule("bitcast", ({ operands: { source }, attributes }) =>
    isData(source.type) && source.type.dtype === attributes.dtype ? source : undefined,
  ),

  "there and back": rule("bitcast_width", ({ operands, results: [result] }, context) => {
    const inner = context.definition(operands.source);
    if (inner?.kind !== "bitcast_width" || result === undefined) return undefined;
    const { source } = inner.operands;
    return isData(source.type) && isData(result.type) && source.type.dtype === result.type.dtype
      ? source
      : undefined;
  }),

  "bits of bits": rule("bitcast", ({ operands, attributes }, context) => {
    const inner = context.definition(operands.source);
    return inner?.kind === "bitcast"
      ? context.createOne("bitcast", { source: inner.operands.source }, attributes)
      : undefined;
  }),
});
