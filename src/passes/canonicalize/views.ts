/** Rules for ops that rearrange tiles or make windows on memory. */
import type { AnyOp } from "../../ir/node.ts";
import { defineRules, rule } from "../../ir/rewrite/rules.ts";
import type { RewriteContext } from "../../ir/rewrite/rules.ts";
import type { Value } from "../../ir/node.ts";
import { sameShape } from "../../ir/size.ts";
import { isData } from "../../ir/types.ts";
import { isIdentity, isNumber, literalFor, sameNumbers } from "./patterns.ts";

/** Rearranging a tile whose elements are all equal gives such a tile. */
function rearrangedConstant(op: AnyOp, source: Value, context: RewriteContext): Value | undefined {
  const literal = context.literal(source);
  const type = op.results[0]?.type;
  if (literal === undefined || type === undefined || !isData(type)) return undefined;
  return context.createConstant(literal, type);
}

/** The source where the op gives its very type, as an op that changes nothing does. */
function sameAsSource(op: AnyOp, source: Value): Value | undefined {
  const [result] = op.results;
  if (!result || !isData(source.type) || !isData(result.type)) return undefined;
  if (source.type.kind !== result.type.kind) return undefined;
  if (source.type.kind === "scalar" || result.type.kind === "scalar") return source;
  return sameNumbers(source.type.shape, result.type.shape) ? source : undefined;
}

export const tileRules = defineRules("tile", {
  "broadcast of a constant": rule("broadcast", (op, context) =>
    rearrangedConstant(op, op.operands.source, context),
  ),
  "broadcast to the same shape": rule("broadcast", (op) => sameAsSource(op, op.operands.source)),
  "broadcast twice": rule("broadcast", ({ operands, attributes }, context) => {
    const inner = context.definition(operands.source);
    if (inner?.kind !== "broadcast") return undefined;
    const axes = inner.attributes.axes.flatMap((axis) => attributes.axes.slice(axis, axis + 1));
    const { source } = inner.operands;
    return context.createOne("broadcast", { source }, { shape: attributes.shape, axes });
  }),

  "reshape of a constant": rule("reshape", (op, context) =>
    rearrangedConstant(op, op.operands.source, context),
  ),
  "reshape to the same shape": rule("reshape", (op) => sameAsSource(op, op.operands.source)),
  "reshape twice": rule("reshape", ({ operands, attributes }, context) => {
    const inner = context.definition(operands.source);
    return inner?.kind === "reshape"
      ? context.createOne("reshape", { source: inner.operands.source }, attributes)
      : undefined;
  }),

  "transpose of a constant": rule("transpose", (op, context) =>
    rearrangedConstant(op, op.operands.source, context),
  ),
  "array of a known index": rule("select_ref", ({ operands: { refs, index } }, { literal }) =>
    refs.find((_, position) => isNumber(literal(index), position)),
  ),

  "transpose of nothing": rule("transpose", ({ operands, attributes }) =>
    isIdentity(attributes.permutation) ? operands.source : undefined,
  ),
  "transpose twice": rule("transpose", ({ operands, attributes }, context) => {
    const inner = context.definition(operands.source);
    if (inner?.kind !== "transpose") return undefined;
    const permutation = compose(inner.attributes.permutation, attributes.permutation);
    return context.createOne("transpose", { source: inner.operands.source }, { permutation });
  }),

  "slice of a constant": rule("slice", (op, context) =>
    rearrangedConstant(op, op.operands.source, context),
  ),
  "slice of the whole": rule("slice", (op) => sameAsSource(op, op.operands.source)),
  "slice twice": rule("slice", ({ operands, attributes }, context) => {
    const inner = context.definition(operands.source);
    if (inner?.kind !== "slice") return undefined;
    const starts = attributes.starts.map(
      (start, axis) => start + (inner.attributes.starts[axis] ?? 0),
    );
    const { source } = inner.operands;
    return context.createOne("slice", { source }, { starts, sizes: attributes.sizes });
  }),

  "concatenation of one tile": rule("concatenate", ({ operands: { parts } }) =>
    parts.length === 1 ? parts : undefined,
  ),

  "count of one": rule(
    "iota",
    ({ attributes: { dtype, shape, axis }, results: [result] }, context) =>
      shape[axis] === 1 && result && isData(result.type)
        ? context.createConstant(literalFor(dtype, 0), result.type)
        : undefined,
  ),
});

/** The permutation that permutes by `inner` and then by `outer`. */
function compose(inner: readonly number[], outer: readonly number[]): readonly number[] {
  return outer.flatMap((axis) => inner.slice(axis, axis + 1));
}

export const windowRules = defineRules("window", {
  "slice of the whole": rule("slice_ref", ({ operands, attributes }, { literal }) => {
    const { ref, offsets } = operands;
    const whole =
      ref.type.kind === "ref" &&
      attributes.dropped.length === 0 &&
      sameShape(ref.type.shape, attributes.sizes) &&
      offsets.every((offset) => isNumber(literal(offset), 0));
    return whole ? ref : undefined;
  }),

  "transpose of nothing": rule("transpose_ref", ({ operands, attributes }) =>
    isIdentity(attributes.permutation) ? operands.ref : undefined,
  ),
  "transpose twice": rule("transpose_ref", ({ operands, attributes }, context) => {
    const inner = context.definition(operands.ref);
    if (inner?.kind !== "transpose_ref") return undefined;
    const permutation = compose(inner.attributes.permutation, attributes.permutation);
    return context.createOne("transpose_ref", { ref: inner.operands.ref }, { permutation });
  }),

  "reshape to the same shape": rule("reshape_ref", ({ operands: { ref }, attributes }) =>
    ref.type.kind === "ref" && sameShape(ref.type.shape, attributes.shape) ? ref : undefined,
  ),
});
