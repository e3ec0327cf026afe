/** Short names for the ops that derivatives are made of. */
import type { GraphBuilder } from "../infer/builder.ts";
import { limitOf } from "../ops/combiner.ts";
import { encodeElement } from "../ops/small-floats.ts";
import { isFloatElement, isWideElement, elementConstructor } from "../ops/elements.ts";
import { literal } from "../ops/literal.ts";
import type { GraphRegion, GraphValue } from "../ops/node.ts";
import { isTensor, tensorType } from "../ops/types.ts";
import type { TensorType } from "../ops/types.ts";

export function typeOfValue({ type }: GraphValue): TensorType {
  if (isTensor(type)) return type;
  throw new Error("derivatives are of tensors");
}

/** A constant with all elements equal. */
export function splatOf(
  builder: GraphBuilder,
  type: TensorType,
  value: number | bigint,
): GraphValue {
  const { element } = type;
  const data = new (elementConstructor(element))(element.startsWith("complex") ? 2 : 1);
  const coded = isFloatElement(element) && element !== "f64" && element !== "f32";
  const lane = coded ? encodeElement(element, Number(value)) : value;
  data[0] = isWideElement(element) ? BigInt(lane) : Number(lane);
  return builder.one("stablehlo.constant", {}, { value: literal(type, data) });
}

/** The greatest index that is allowed, in a type of indices: where narrow integers end before it, their own greatest one. */
export function indexLimit(builder: GraphBuilder, type: TensorType, limit: number): GraphValue {
  const greatest = limitOf(type.element, false);
  return splatOf(builder, type, limit < greatest ? limit : greatest);
}

export function zerosOf(builder: GraphBuilder, type: TensorType): GraphValue {
  return splatOf(builder, type, 0);
}

/** A constant with the shape of a value. */
export function like(builder: GraphBuilder, value: GraphValue, number: number): GraphValue {
  return splatOf(builder, typeOfValue(value), number);
}

type BinaryKind =
  | "stablehlo.add"
  | "stablehlo.subtract"
  | "stablehlo.multiply"
  | "stablehlo.divide"
  | "stablehlo.maximum"
  | "stablehlo.minimum"
  | "stablehlo.and"
  | "stablehlo.or"
  | "stablehlo.power";

export function binary(
  builder: GraphBuilder,
  kind: BinaryKind,
  lhs: GraphValue,
  rhs: GraphValue,
): GraphValue {
  return builder.one(kind, { lhs, rhs }, {});
}

export function addValues(builder: GraphBuilder, lhs: GraphValue, rhs: GraphValue): GraphValue {
  return binary(builder, "stablehlo.add", lhs, rhs);
}

export function multiply(builder: GraphBuilder, lhs: GraphValue, rhs: GraphValue): GraphValue {
  return binary(builder, "stablehlo.multiply", lhs, rhs);
}

export function divide(builder: GraphBuilder, lhs: GraphValue, rhs: GraphValue): GraphValue {
  return binary(builder, "stablehlo.divide", lhs, rhs);
}

export function subtract(builder: GraphBuilder, lhs: GraphValue, rhs: GraphValue): GraphValue {
  return binary(builder, "stablehlo.subtract", lhs, rhs);
}

type UnaryKind =
  | "stablehlo.negate"
  | "stablehlo.exponential"
  | "stablehlo.log"
  | "stablehlo.sine"
  | "stablehlo.cosine"
  | "stablehlo.sqrt"
  | "stablehlo.rsqrt"
  | "stablehlo.sign"
  | "stablehlo.abs"
  | "stablehlo.not"
  | "stablehlo.floor"
  | "chlo.digamma"
  | "chlo.sinh"
  | "chlo.cosh";

export function unary(builder: GraphBuilder, kind: UnaryKind, operand: GraphValue): GraphValue {
  return builder.one(kind, { operand }, {});
}

export function negate(builder: GraphBuilder, operand: GraphValue): GraphValue {
  return unary(builder, "stablehlo.negate", operand);
}

/** A product with a number. */
export function scaled(builder: GraphBuilder, value: GraphValue, factor: number): GraphValue {
  return multiply(builder, value, like(builder, value, factor));
}

export function compare(
  builder: GraphBuilder,
  direction: "EQ" | "NE" | "GE" | "GT" | "LE" | "LT",
  lhs: GraphValue,
  rhs: GraphValue,
): GraphValue {
  return builder.one("stablehlo.compare", { lhs, rhs }, { comparison_direction: direction });
}

export function select(
  builder: GraphBuilder,
  pred: GraphValue,
  onTrue: GraphValue,
  onFalse: GraphValue,
): GraphValue {
  return builder.one("stablehlo.select", { pred, on_true: onTrue, on_false: onFalse }, {});
}

export function reshape(
  builder: GraphBuilder,
  operand: GraphValue,
  shape: readonly number[],
): GraphValue {
  const type = tensorType(typeOfValue(operand).element, shape);
  return builder.one("stablehlo.reshape", { operand }, {}, { types: [type] });
}

export function broadcastInDim(
  builder: GraphBuilder,
  operand: GraphValue,
  shape: readonly number[],
  axes: readonly number[],
): GraphValue {
  const type = tensorType(typeOfValue(operand).element, shape);
  return builder.one(
    "stablehlo.broadcast_in_dim",
    { operand },
    { broadcast_dimensions: axes },
    { types: [type] },
  );
}

export function transpose(
  builder: GraphBuilder,
  operand: GraphValue,
  permutation: readonly number[],
): GraphValue {
  if (permutation.every((axis, i) => axis === i)) return operand;
  return builder.one("stablehlo.transpose", { operand }, { permutation });
}

export function convert(
  builder: GraphBuilder,
  operand: GraphValue,
  element: TensorType["element"],
): GraphValue {
  const { element: own, shape } = typeOfValue(operand);
  if (own === element) return operand;
  const types = [tensorType(element, shape)];
  return builder.one("stablehlo.convert", { operand }, {}, { types });
}

/** A region that combines two scalars of an element type. */
export function combiner(
  builder: GraphBuilder,
  element: TensorType["element"],
  kind: BinaryKind,
): GraphRegion {
  const scalar = tensorType(element, []);
  return builder.region([scalar, scalar], (inner, [lhs, rhs]) => {
    if (lhs === undefined || rhs === undefined) throw new Error("the region has two parameters");
    return [binary(inner, kind, lhs, rhs)];
  });
}

/** The sum along axes. */
export function sum(
  builder: GraphBuilder,
  operand: GraphValue,
  axes: readonly number[],
): GraphValue {
  if (axes.length === 0) return operand;
  const { element } = typeOfValue(operand);
  const zero = zerosOf(builder, tensorType(element, []));
  return builder.one(
    "stablehlo.reduce",
    { inputs: [operand], init_values: [zero] },
    { dimensions: axes },
    { regions: { body: combiner(builder, element, "stablehlo.add") } },
  );
}

/** Numbers along an axis. */
export function iota(builder: GraphBuilder, type: TensorType, axis: number): GraphValue {
  return builder.one("stablehlo.iota", {}, { iota_dimension: axis }, { types: [type] });
}
