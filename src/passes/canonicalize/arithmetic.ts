/**
 * Rules for elementwise ops. Each preserves the value for every operand, NaN and both zeros included;
 * a NaN's payload is not part of a value. So x * 1 is x, but x + 0 is not (-0 + 0 = 0), x * 0 is not 0
 * (NaN), and x - x is not 0 (inf) where x is a float.
 */
import type { BinaryFunction, UnaryFunction } from "../../formats/arithmetic/functions.ts";
import { isMannered } from "../../formats/arithmetic/rounded.ts";
import type { DType } from "../../formats/dtype.ts";
import type { AnyOp, Op } from "../../ir/node.ts";
import { defineRules, rule } from "../../ir/rewrite/rules.ts";
import type { Literal } from "../../ir/schema.ts";
import { isData } from "../../ir/types.ts";
import type { DataType } from "../../ir/types.ts";
import { commutative, isAllOnes, isNumber, literalFor } from "./patterns.ts";

type LiteralTest = (literal: Literal | undefined, dtype: DType) => boolean;

const isZero: LiteralTest = (literal) => isNumber(literal, 0);
const isOne: LiteralTest = (literal) => isNumber(literal, 1);

/** The right operands that leave the left one as it is. */
const neutral: { readonly [F in BinaryFunction]?: LiteralTest } = {
  add: (literal, { kind }) => (kind === "float" ? Object.is(literal, -0) : isNumber(literal, 0)),
  sub: (literal, { kind }) => (kind === "float" ? Object.is(literal, 0) : isNumber(literal, 0)),
  mul: isOne,
  div: isOne,
  pow: isOne,
  and: isAllOnes,
  or: isZero,
  xor: isZero,
  shl: isZero,
  shr: isZero,
};

/** The right operands that are the result whatever the left one is; for integers and bools. */
const absorbing: { readonly [F in BinaryFunction]?: LiteralTest } = {
  mul: isZero,
  and: isZero,
  or: isAllOnes,
};

/** Functions of a value and itself that are the value. */
const idempotent: ReadonlySet<BinaryFunction> = new Set(["and", "or", "min", "max"]);

/** Functions that may be regrouped; adding and multiplying floats rounds, so they may not. */
const associative: ReadonlySet<BinaryFunction> = new Set(["min", "max"]);
const associativeOnIntegers: ReadonlySet<BinaryFunction> = new Set([
  "add",
  "mul",
  "and",
  "or",
  "xor",
]);

function resultType(op: AnyOp): DataType {
  const type = op.results[0]?.type;
  if (type === undefined || !isData(type)) throw new Error(`${op.kind} gives no number`);
  return type;
}

/** Sums and products that are rounded or flushed otherwise: a difference from zero may be -0, and a product with one zero. */
const isUsual = ({ attributes }: Op<"binary">): boolean => !isMannered(attributes);

function isFloatOp(op: AnyOp): boolean {
  return resultType(op).dtype.kind === "float";
}

export const binaryRules = defineRules("arithmetic", {
  "constant to the right": rule("binary", ({ operands, attributes }, context) => {
    const { left, right } = operands;
    const applies =
      commutative.has(attributes.fn) &&
      context.literal(left) !== undefined &&
      context.literal(right) === undefined;
    return applies
      ? context.createOne("binary", { left: right, right: left }, attributes)
      : undefined;
  }),

  "neutral right operand": rule("binary", (op, context) => {
    const { left, right } = op.operands;
    const test = isUsual(op) ? neutral[op.attributes.fn] : undefined;
    return test?.(context.literal(right), resultType(op).dtype) === true ? left : undefined;
  }),

  "absorbing right operand": rule("binary", (op, context) => {
    const { right } = op.operands;
    if (isFloatOp(op)) return undefined;
    const test = absorbing[op.attributes.fn];
    return test?.(context.literal(right), resultType(op).dtype) === true ? right : undefined;
  }),

  "remainder by one": rule("binary", (op, context) => {
    const type = resultType(op);
    const applies =
      op.attributes.fn === "rem" &&
      type.dtype.kind !== "float" &&
      isNumber(context.literal(op.operands.right), 1);
    return applies ? context.createConstant(literalFor(type.dtype, 0), type) : undefined;
  }),

  "equal operands": rule("binary", (op, context) => {
    const { left, right } = op.operands;
    const { fn } = op.attributes;
    if (left !== right) return undefined;
    if (idempotent.has(fn)) return left;
    const type = resultType(op);
    const cancels = fn === "xor" || (fn === "sub" && type.dtype.kind !== "float");
    return cancels ? context.createConstant(literalFor(type.dtype, 0), type) : undefined;
  }),

  "constants together": rule("binary", (op, context) => {
    const { operands, attributes } = op;
    const { fn } = attributes;
    const inner = context.definition(operands.left);
    const applies =
      (associative.has(fn) || (associativeOnIntegers.has(fn) && !isFloatOp(op))) &&
      inner?.kind === "binary" &&
      inner.attributes.fn === fn &&
      context.literal(operands.right) !== undefined &&
      context.literal(inner.operands.right) !== undefined &&
      context.literal(inner.operands.left) === undefined;
    if (!applies) return undefined;
    const pair = { left: inner.operands.right, right: operands.right };
    const right = context.createOne("binary", pair, attributes);
    return context.createOne("binary", { left: inner.operands.left, right }, attributes);
  }),

  "adding a negation": rule("binary", ({ operands, attributes }, context) => {
    const opposite = { add: "sub", sub: "add" } as const;
    const { fn, ...manner } = attributes;
    if (fn !== "add" && fn !== "sub") return undefined;
    const inner = context.definition(operands.right);
    if (!isUnary(inner, "neg")) return undefined;
    const pair = { left: operands.left, right: inner.operands.source };
    return context.createOne("binary", pair, { fn: opposite[fn], ...manner });
  }),
});

function isUnary(op: AnyOp | undefined, fn: UnaryFunction): op is Op<"unary"> {
  return op?.kind === "unary" && op.attributes.fn === fn;
}

/** Functions that undo themselves, and functions whose results they leave as they are. */
const involutions: ReadonlySet<UnaryFunction> = new Set(["neg", "not"]);
const integral: ReadonlySet<UnaryFunction> = new Set(["floor", "ceil", "round", "trunc"]);

const opposites = { eq: "ne", ne: "eq", lt: "ge", le: "gt", gt: "le", ge: "lt" } as const;

export const unaryRules = defineRules("arithmetic", {
  "function twice": rule("unary", ({ operands, attributes: { fn } }, { definition }) => {
    const inner = definition(operands.source);
    return involutions.has(fn) && isUnary(inner, fn) ? inner.operands.source : undefined;
  }),

  "rounding of an integral number": rule("unary", ({ operands, attributes }, { definition }) => {
    const inner = definition(operands.source);
    const applies =
      integral.has(attributes.fn) && inner?.kind === "unary" && integral.has(inner.attributes.fn);
    return applies ? operands.source : undefined;
  }),

  "magnitude of a magnitude": rule("unary", ({ operands, attributes }, { definition }) =>
    attributes.fn === "abs" && isUnary(definition(operands.source), "abs")
      ? operands.source
      : undefined,
  ),

  "magnitude of a negation": rule("unary", ({ operands, attributes }, context) => {
    const inner = context.definition(operands.source);
    // The negation of an unsigned number is another magnitude.
    const { type } = operands.source;
    const isUnsigned = isData(type) && type.dtype.kind === "unsigned";
    return attributes.fn === "abs" && isUnary(inner, "neg") && !isUnsigned
      ? context.createOne("unary", { source: inner.operands.source }, attributes)
      : undefined;
  }),

  "opposite of a comparison": rule("unary", ({ operands, attributes }, context) => {
    const inner = context.definition(operands.source);
    if (attributes.fn !== "not" || inner?.kind !== "compare") return undefined;
    const { predicate } = inner.attributes;
    const { type } = inner.operands.left;
    // With NaN, neither a < b nor a >= b.
    const ordered = isData(type) && type.dtype.kind === "float";
    if (ordered && predicate !== "eq" && predicate !== "ne") return undefined;
    return context.createOne("compare", inner.operands, { predicate: opposites[predicate] });
  }),
});
