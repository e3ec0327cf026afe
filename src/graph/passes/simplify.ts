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
import type { GraphPass, OnRewrite } from "./pass.ts";

/** What a rule sees: where values come from, and a place for new ops. */
interface Place {
  readonly builder: GraphBuilder;
  definition(value: GraphValue): AnyGraphOp | undefined;
}

/** The value that can stand for the op's one result; undefined where there is none. */
type Rule<K extends GraphOpKind> = (op: GraphOp<K>, place: Place) => GraphValue | undefined;

/** The rules of an op kind by what they match; the first that applies is taken. */
type NamedRules<K extends GraphOpKind> = { readonly [name: string]: Rule<K> };

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

/** Zero times x, but for floats, where x may be infinite or negative. */
const timesZero: Rule<"stablehlo.multiply"> = ({ operands: { lhs, rhs } }, place) => {
  if (isFloat(lhs) || !isTensor(lhs.type) || lhs.type.element.startsWith("complex"))
    return undefined;
  return [lhs, rhs].find((value) => splatNumber(value, place) === 0);
};

interface OneOperand {
  readonly operands: { readonly operand: GraphValue };
}

interface TwoOperands {
  readonly operands: { readonly lhs: GraphValue; readonly rhs: GraphValue };
}

function idempotent({ operands: { lhs, rhs } }: TwoOperands): GraphValue | undefined {
  return lhs === rhs ? lhs : undefined;
}

/** An op applied twice that is its own inverse. */
function involution(
  { kind, operands }: GraphOp<"stablehlo.negate"> | GraphOp<"stablehlo.not">,
  place: Place,
): GraphValue | undefined {
  const inner = place.definition(operands.operand);
  return inner?.kind === kind ? inner.operands.operand : undefined;
}

const chosen: Rule<"stablehlo.select"> = ({ operands }, place) => {
  const predicate = splatNumber(operands.pred, place);
  if (predicate === undefined) return undefined;
  return predicate === 0 ? operands.on_false : operands.on_true;
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

const reshapeOfReshape: Rule<"stablehlo.reshape"> = (op, place) => {
  const inner = place.definition(op.operands.operand);
  if (inner?.kind !== "stablehlo.reshape") return undefined;
  const whole = sameAsOperand(op, inner.operands.operand);
  if (whole !== undefined) return whole;
  const types = [resultType(op)];
  return place.builder.one("stablehlo.reshape", { operand: inner.operands.operand }, {}, { types });
};

function isIdentity(axes: readonly number[]): boolean {
  return axes.every((axis, i) => axis === i);
}

const transposeOfTranspose: Rule<"stablehlo.transpose"> = (op, place) => {
  const inner = place.definition(op.operands.operand);
  if (inner?.kind !== "stablehlo.transpose") return undefined;
  const { permutation } = op.attributes;
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

/** The broadcast of what the operand is a broadcast or reshape of. */
function broadcastOf(
  op: GraphOp<"stablehlo.broadcast_in_dim">,
  place: Place,
  source: GraphValue,
  axes: readonly number[],
): GraphValue {
  const { broadcast_dimensions: dims } = op.attributes;
  return place.builder.one(
    "stablehlo.broadcast_in_dim",
    { operand: source },
    { broadcast_dimensions: axes.map((axis) => dims[axis] ?? 0) },
    { types: [resultType(op)] },
  );
}

const broadcastOfBroadcast: Rule<"stablehlo.broadcast_in_dim"> = (op, place) => {
  const inner = place.definition(op.operands.operand);
  if (inner?.kind !== "stablehlo.broadcast_in_dim") return undefined;
  return broadcastOf(op, place, inner.operands.operand, inner.attributes.broadcast_dimensions);
};

const broadcastOfReshape: Rule<"stablehlo.broadcast_in_dim"> = (op, place) => {
  const { operand } = op.operands;
  const inner = place.definition(operand);
  if (inner?.kind !== "stablehlo.reshape") return undefined;
  const source = inner.operands.operand;
  const axes = addedAxes(tensorOf(source).shape, tensorOf(operand).shape);
  return axes === undefined ? undefined : broadcastOf(op, place, source, axes);
};

const reverseOfReverse: Rule<"stablehlo.reverse"> = (op, place) => {
  const inner = place.definition(op.operands.operand);
  return inner?.kind === "stablehlo.reverse" &&
    inner.attributes.dimensions.join() === op.attributes.dimensions.join()
    ? inner.operands.operand
    : undefined;
};

const padOfNothing: Rule<"stablehlo.pad"> = (op) => {
  const {
    edge_padding_low: low,
    edge_padding_high: high,
    interior_padding: interior,
  } = op.attributes;
  return [...low, ...high, ...interior].every((width) => width === 0)
    ? op.operands.operand
    : undefined;
};

/** Ops of one operand whose result may have its type: they then do nothing. */
const toItself = {
  "to its own type": (op: AnyGraphOp & OneOperand) => sameAsOperand(op, op.operands.operand),
};

/** Ops that move the elements of one operand: those of equal elements are constants. */
const ofEqualElements = {
  "of equal elements": (op: AnyGraphOp & OneOperand, place: Place) =>
    splatAs(op, op.operands.operand, place),
};

const rules: { readonly [K in GraphOpKind]?: NamedRules<K> } = {
  "stablehlo.add": {
    "of zero": ({ operands: { lhs, rhs } }, place) =>
      neutral(lhs, rhs, isFloat(lhs) ? -0 : 0, place, "both"),
  },
  "stablehlo.subtract": {
    "of zero": ({ operands: { lhs, rhs } }, place) => neutral(lhs, rhs, 0, place, "right"),
  },
  "stablehlo.multiply": {
    "by one": ({ operands: { lhs, rhs } }, place) => neutral(lhs, rhs, 1, place, "both"),
    "by zero": timesZero,
  },
  "stablehlo.divide": {
    "by one": ({ operands: { lhs, rhs } }, place) => neutral(lhs, rhs, 1, place, "right"),
  },
  "stablehlo.maximum": { "of itself": idempotent },
  "stablehlo.minimum": { "of itself": idempotent },
  "stablehlo.and": {
    "of itself": idempotent,
    "of true": ({ operands: { lhs, rhs } }, place) =>
      isBool(lhs) ? neutral(lhs, rhs, 1, place, "both") : undefined,
  },
  "stablehlo.or": {
    "of itself": idempotent,
    "of zero": ({ operands: { lhs, rhs } }, place) => neutral(lhs, rhs, 0, place, "both"),
  },
  "stablehlo.xor": {
    "of zero": ({ operands: { lhs, rhs } }, place) => neutral(lhs, rhs, 0, place, "both"),
  },
  "stablehlo.negate": { "of itself": involution },
  "stablehlo.not": { "of itself": involution },
  "stablehlo.select": {
    "of equal operands": ({ operands }) =>
      operands.on_true === operands.on_false ? operands.on_true : undefined,
    "by a constant": chosen,
  },
  "stablehlo.convert": toItself,
  "stablehlo.reshape": { ...toItself, ...ofEqualElements, "of a reshape": reshapeOfReshape },
  "stablehlo.transpose": {
    "to its own order": ({ operands, attributes }) =>
      isIdentity(attributes.permutation) ? operands.operand : undefined,
    "of a transpose": transposeOfTranspose,
    ...ofEqualElements,
  },
  "stablehlo.broadcast_in_dim": {
    "to its own type": (op) =>
      isIdentity(op.attributes.broadcast_dimensions)
        ? sameAsOperand(op, op.operands.operand)
        : undefined,
    ...ofEqualElements,
    "of a broadcast": broadcastOfBroadcast,
    "of a reshape": broadcastOfReshape,
  },
  "stablehlo.reverse": {
    "of no axis": ({ operands, attributes }) =>
      attributes.dimensions.length === 0 ? operands.operand : undefined,
    "of a reverse": reverseOfReverse,
    ...ofEqualElements,
  },
  "stablehlo.slice": { ...toItself, ...ofEqualElements },
  "stablehlo.pad": { "of nothing": padOfNothing },
  "stablehlo.concatenate": {
    "of one operand": ({ operands: { inputs } }) => (inputs.length === 1 ? inputs[0] : undefined),
  },
  "stablehlo.dynamic_slice": toItself,
  "stablehlo.get_tuple_element": {
    "of a tuple": (op, place) => {
      const inner = place.definition(op.operands.operand);
      return inner?.kind === "stablehlo.tuple"
        ? inner.operands.val[op.attributes.index]
        : undefined;
    },
  },
};

/** The kind picks the rules, which TypeScript cannot see. */
const rulesByKind: ReadonlyMap<string, readonly (readonly [string, Rule<GraphOpKind>])[]> = new Map(
  Object.entries(rules).map(([kind, named]) => [
    kind,
    Object.entries(named as NamedRules<GraphOpKind>),
  ]),
);

/** Whether what a value is can be seen: results and operands of known shape and element. */
function isKnown(op: AnyGraphOp): boolean {
  const types = [...operandsOf(op), ...op.results].map(({ type }) => type);
  return op.results.length === 1 && !types.some(isOpaque);
}

/** What the first rule that applies to an op has in its place. */
function simplified(
  op: AnyGraphOp,
  place: Place,
  onRewrite: OnRewrite | undefined,
): GraphValue | undefined {
  if (!isKnown(op)) return undefined;
  for (const [name, rule] of rulesByKind.get(op.kind) ?? []) {
    const value = rule(op, place);
    if (value === undefined) continue;
    onRewrite?.(`${op.kind} ${name}`);
    return value;
  }
  return undefined;
}

function simplifyRegion(
  region: GraphRegion,
  outer: ReadonlyMap<GraphValue, AnyGraphOp>,
  onRewrite: OnRewrite | undefined,
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
      simplifyRegion(inner, definitions, onRewrite),
    );
    const before = builder.ops.length;
    const value = builder.within(op, () => simplified(op, place, onRewrite));
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
  rules: [...rulesByKind].flatMap(([kind, named]) => named.map(([name]) => `${kind} ${name}`)),
  run: (module, onRewrite) =>
    mapBodies(module, (body) => simplifyRegion(body, new Map(), onRewrite)),
};
