/**
 * Replaces ops by simpler ones that give the same bits, for NaN, -0 and infinities too: x · 0 and x - x stay,
 * x + 0.0 stays (it turns -0 into 0) and x + -0.0 goes. Broadcasts and reshapes are brought to one form: pairs
 * become one, and a reshape that only adds axes is part of the broadcast after it.
 *
 *   broadcast(reshape(x: 4 -> 4x1), dims [0, 1] -> 4x8)     broadcast(x, dims [0] -> 4x8)
 */
import { GraphBuilder } from "../infer/builder.ts";
import { isFloatElement } from "../ops/elements.ts";
import { literal } from "../ops/literal.ts";
import type { Literal } from "../ops/literal.ts";
import { graphRegion } from "../ops/node.ts";
import type { AnyGraphOp, GraphOp, GraphRegion, GraphValue } from "../ops/node.ts";
import { replaceOperands } from "../ops/rebuild.ts";
import type { GraphOpKind } from "../ops/table.ts";
import { operandsOf } from "../ops/traverse.ts";
import { isOpaque, isTensor, sameType } from "../ops/types.ts";
import type { GraphType, TensorType } from "../ops/types.ts";
import { splatValue } from "../ops/small-floats.ts";
import { mapBodies, mapRegions } from "./pass.ts";
import type { GraphPass } from "./pass.ts";

/** What a rule sees: where values come from, and a place for new ops. */
interface Place {
  readonly builder: GraphBuilder;
  definition(value: GraphValue): AnyGraphOp | undefined;
}

/** The value that can stand for the op's one result; undefined where there is none. */
type Rule<K extends GraphOpKind> = (op: GraphOp<K>, place: Place) => GraphValue | undefined;

function constantOf(value: GraphValue, place: Place): Literal | undefined {
  const op = place.definition(value);
  if (op?.kind !== "stablehlo.constant") return undefined;
  return "kind" in op.attributes.value ? undefined : op.attributes.value;
}

/** The number that all elements of a constant are. */
function splatNumber(value: GraphValue, place: Place): number | undefined {
  const found = constantOf(value, place);
  const number = found === undefined ? undefined : splatValue(found);
  return number === undefined ? undefined : Number(number);
}

function isFloat({ type }: GraphValue): boolean {
  return isTensor(type) && isFloatElement(type.element);
}

function isBool({ type }: GraphValue): boolean {
  return isTensor(type) && type.element === "i1";
}

function tensorOf({ type }: { readonly type: GraphType }): TensorType {
  if (isTensor(type)) return type;
  throw new Error("the op is of tensors");
}

function resultType(op: AnyGraphOp): TensorType {
  const [result] = op.results;
  if (result === undefined) throw new Error("the op has a result");
  return tensorOf(result);
}

/** The other operand where one is the neutral number. */
function neutral(
  lhs: GraphValue,
  rhs: GraphValue,
  number: number,
  place: Place,
  sides: "both" | "right",
): GraphValue | undefined {
  const is = (value: GraphValue): boolean => Object.is(splatNumber(value, place), number);
  if (is(rhs)) return lhs;
  return sides === "both" && is(lhs) ? rhs : undefined;
}

const addRule: Rule<"stablehlo.add"> = ({ operands: { lhs, rhs } }, place) =>
  neutral(lhs, rhs, isFloat(lhs) ? -0 : 0, place, "both");

const subtractRule: Rule<"stablehlo.subtract"> = ({ operands: { lhs, rhs } }, place) =>
  neutral(lhs, rhs, 0, place, "right");

const multiplyRule: Rule<"stablehlo.multiply"> = ({ operands: { lhs, rhs } }, place) => {
  const same = neutral(lhs, rhs, 1, place, "both");
  if (same !== undefined || isFloat(lhs) || !isTensor(lhs.type)) return same;
  if (lhs.type.element.startsWith("complex")) return undefined;
  return [lhs, rhs].find((value) => splatNumber(value, place) === 0);
};

const divideRule: Rule<"stablehlo.divide"> = ({ operands: { lhs, rhs } }, place) =>
  neutral(lhs, rhs, 1, place, "right");

interface TwoOperands {
  readonly operands: { readonly lhs: GraphValue; readonly rhs: GraphValue };
}

function idempotent({ operands: { lhs, rhs } }: TwoOperands): GraphValue | undefined {
  return lhs === rhs ? lhs : undefined;
}

const orRule: Rule<"stablehlo.or"> = (op, place) =>
  idempotent(op) ?? neutral(op.operands.lhs, op.operands.rhs, 0, place, "both");

const xorRule: Rule<"stablehlo.xor"> = ({ operands: { lhs, rhs } }, place) =>
  neutral(lhs, rhs, 0, place, "both");

const andRule: Rule<"stablehlo.and"> = (op, place) => {
  const { lhs, rhs } = op.operands;
  const same = idempotent(op);
  return same ?? (isBool(lhs) ? neutral(lhs, rhs, 1, place, "both") : undefined);
};

/** An op applied twice that is its own inverse. */
function involution(
  { kind, operands }: GraphOp<"stablehlo.negate"> | GraphOp<"stablehlo.not">,
  place: Place,
): GraphValue | undefined {
  const inner = place.definition(operands.operand);
  return inner?.kind === kind ? inner.operands.operand : undefined;
}

const selectRule: Rule<"stablehlo.select"> = ({ operands }, place) => {
  if (operands.on_true === operands.on_false) return operands.on_true;
  const chosen = splatNumber(operands.pred, place);
  if (chosen === undefined) return undefined;
  return chosen === 0 ? operands.on_false : operands.on_true;
};

/** The operand, where the result has its type. */
function sameAsOperand(op: AnyGraphOp, operand: GraphValue): GraphValue | undefined {
  return sameType(operand.type, resultType(op)) ? operand : undefined;
}

/** A constant of equal elements in another shape. */
function splatAs(op: AnyGraphOp, operand: GraphValue, place: Place): GraphValue | undefined {
  const found = constantOf(operand, place);
  if (found?.splat !== true) return undefined;
  const value = literal(resultType(op), found.data);
  return place.builder.one("stablehlo.constant", {}, { value });
}

const reshapeRule: Rule<"stablehlo.reshape"> = (op, place) => {
  const { operand } = op.operands;
  const simple = sameAsOperand(op, operand) ?? splatAs(op, operand, place);
  const inner = place.definition(operand);
  if (simple !== undefined || inner?.kind !== "stablehlo.reshape") return simple;
  const whole = sameAsOperand(op, inner.operands.operand);
  if (whole !== undefined) return whole;
  const types = [resultType(op)];
  return place.builder.one("stablehlo.reshape", { operand: inner.operands.operand }, {}, { types });
};

function isIdentity(axes: readonly number[]): boolean {
  return axes.every((axis, i) => axis === i);
}

const transposeRule: Rule<"stablehlo.transpose"> = (op, place) => {
  const { operand } = op.operands;
  const { permutation } = op.attributes;
  if (isIdentity(permutation)) return operand;
  const inner = place.definition(operand);
  if (inner?.kind !== "stablehlo.transpose") return splatAs(op, operand, place);
  const composed = permutation.map((axis) => inner.attributes.permutation[axis] ?? 0);
  if (isIdentity(composed)) return inner.operands.operand;
  return place.builder.one(
    "stablehlo.transpose",
    { operand: inner.operands.operand },
    { permutation: composed },
  );
};

/** For each axis of the operand, the axis of the result, where a reshape only adds axes of extent 1. */
function addedAxes(from: readonly number[], to: readonly number[]): readonly number[] | undefined {
  const axes: number[] = [];
  for (const [axis, extent] of to.entries()) {
    if (axes.length < from.length && extent === from[axes.length]) axes.push(axis);
    else if (extent !== 1) return undefined;
  }
  return axes.length === from.length ? axes : undefined;
}

const broadcastRule: Rule<"stablehlo.broadcast_in_dim"> = (op, place) => {
  const { operand } = op.operands;
  const { broadcast_dimensions: dims } = op.attributes;
  if (isIdentity(dims) && sameAsOperand(op, operand) !== undefined) return operand;
  const splat = splatAs(op, operand, place);
  const inner = place.definition(operand);
  if (splat !== undefined || inner === undefined) return splat;
  const through = (source: GraphValue, axes: readonly number[]): GraphValue =>
    place.builder.one(
      "stablehlo.broadcast_in_dim",
      { operand: source },
      { broadcast_dimensions: axes.map((axis) => dims[axis] ?? 0) },
      { types: [resultType(op)] },
    );
  if (inner.kind === "stablehlo.broadcast_in_dim")
    return through(inner.operands.operand, inner.attributes.broadcast_dimensions);
  if (inner.kind !== "stablehlo.reshape") return undefined;
  const source = inner.operands.operand;
  const axes = addedAxes(tensorOf(source).shape, tensorOf(operand).shape);
  return axes === undefined ? undefined : through(source, axes);
};

const reverseRule: Rule<"stablehlo.reverse"> = (op, place) => {
  const { operand } = op.operands;
  const { dimensions } = op.attributes;
  if (dimensions.length === 0) return operand;
  const inner = place.definition(operand);
  const twice =
    inner?.kind === "stablehlo.reverse" && inner.attributes.dimensions.join() === dimensions.join();
  return twice ? inner.operands.operand : splatAs(op, operand, place);
};

const sliceRule: Rule<"stablehlo.slice"> = (op, place) =>
  sameAsOperand(op, op.operands.operand) ?? splatAs(op, op.operands.operand, place);

const padRule: Rule<"stablehlo.pad"> = (op) => {
  const {
    edge_padding_low: low,
    edge_padding_high: high,
    interior_padding: interior,
  } = op.attributes;
  return [...low, ...high, ...interior].every((width) => width === 0)
    ? op.operands.operand
    : undefined;
};

const rules: { readonly [K in GraphOpKind]?: Rule<K> } = {
  "stablehlo.add": addRule,
  "stablehlo.subtract": subtractRule,
  "stablehlo.multiply": multiplyRule,
  "stablehlo.divide": divideRule,
  "stablehlo.maximum": idempotent,
  "stablehlo.minimum": idempotent,
  "stablehlo.and": andRule,
  "stablehlo.or": orRule,
  "stablehlo.xor": xorRule,
  "stablehlo.negate": involution,
  "stablehlo.not": involution,
  "stablehlo.select": selectRule,
  "stablehlo.convert": (op) => sameAsOperand(op, op.operands.operand),
  "stablehlo.reshape": reshapeRule,
  "stablehlo.transpose": transposeRule,
  "stablehlo.broadcast_in_dim": broadcastRule,
  "stablehlo.reverse": reverseRule,
  "stablehlo.slice": sliceRule,
  "stablehlo.pad": padRule,
  "stablehlo.concatenate": ({ operands: { inputs } }) =>
    inputs.length === 1 ? inputs[0] : undefined,
  "stablehlo.dynamic_slice": (op) => sameAsOperand(op, op.operands.operand),
  "stablehlo.get_tuple_element": (op, place) => {
    const inner = place.definition(op.operands.operand);
    return inner?.kind === "stablehlo.tuple" ? inner.operands.val[op.attributes.index] : undefined;
  },
};

/** Whether what a value is can be seen: results and operands of known shape and element. */
function isKnown(op: AnyGraphOp): boolean {
  const types = [...operandsOf(op), ...op.results].map(({ type }) => type);
  return op.results.length === 1 && !types.some(isOpaque);
}

function simplifyRegion(
  region: GraphRegion,
  outer: ReadonlyMap<GraphValue, AnyGraphOp>,
): GraphRegion {
  const definitions = new Map(outer);
  const replaced = new Map<GraphValue, GraphValue>();
  const lookUp = (value: GraphValue): GraphValue => replaced.get(value) ?? value;
  const builder = new GraphBuilder();
  const place: Place = { builder, definition: (value) => definitions.get(value) };
  const define = (op: AnyGraphOp): void => {
    for (const value of op.results) definitions.set(value, op);
  };
  for (const original of region.ops) {
    const op = mapRegions(replaceOperands(original, lookUp), (inner) =>
      simplifyRegion(inner, definitions),
    );
    const before = builder.ops.length;
    // The kind picks the rule, which TypeScript cannot see.
    const rule = rules[op.kind] as Rule<GraphOpKind> | undefined;
    const value =
      rule === undefined || !isKnown(op) ? undefined : builder.within(op, () => rule(op, place));
    if (value === undefined) {
      builder.append(op);
      define(op);
      continue;
    }
    builder.ops.slice(before).forEach(define);
    const [result] = op.results;
    if (result !== undefined) replaced.set(result, value);
  }
  return graphRegion(region.parameters, builder.ops, region.results.map(lookUp));
}

export const simplifyPass: GraphPass = {
  name: "simplify",
  run: (module) => mapBodies(module, (body) => simplifyRegion(body, new Map())),
};
