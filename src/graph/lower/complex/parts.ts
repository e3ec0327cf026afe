/**
 * Complex numbers as pairs of real ones. On devices a complex value is two values, its real and its imaginary parts;
 * in memory of the caller the parts of a number stand side by side, as one more axis of two.
 *
 *   tensor<4xcomplex<f32>>    inside: re: tensor<4xf32>, im: tensor<4xf32>      arguments, results: tensor<4x2xf32>
 */
import type { GraphBuilder } from "../../infer/builder.ts";
import { isComplexElement, partOf } from "../../ops/elements.ts";
import type { ComplexElement, ElementType } from "../../ops/elements.ts";
import { expandElements, literal } from "../../ops/literal.ts";
import type { Literal } from "../../ops/literal.ts";
import type { GraphValue } from "../../ops/node.ts";
import { isTensor, tensorType } from "../../ops/types.ts";
import type { GraphType, TensorType } from "../../ops/types.ts";
import { reshape, typeOfValue } from "../../transform/arithmetic.ts";

export interface Parts {
  readonly re: GraphValue;
  readonly im: GraphValue;
}

export function isComplexType(type: GraphType): type is TensorType<ComplexElement> {
  return isTensor(type) && isComplexElement(type.element);
}

/** The element of the parts; a real element is its own. */
export function partElement(element: ElementType): ElementType {
  return isComplexElement(element) ? partOf(element) : element;
}

/** The type of either part. */
export function partType({ element, shape }: TensorType): TensorType {
  return tensorType(partElement(element), shape);
}

/** The type of both parts side by side; a real type is its own. */
export function joinedType(type: TensorType): TensorType {
  if (!isComplexType(type)) return type;
  return tensorType(partElement(type.element), [...type.shape, 2]);
}

/** Parts one beside the other, along a new last axis. */
export function joined(builder: GraphBuilder, { re, im }: Parts): GraphValue {
  const { shape } = typeOfValue(re);
  const inputs = [re, im].map((part) => reshape(builder, part, [...shape, 1]));
  return builder.one("stablehlo.concatenate", { inputs }, { dimension: shape.length });
}

/** The parts of what stands side by side along the last axis. */
export function separated(builder: GraphBuilder, pairs: GraphValue): Parts {
  const { shape } = typeOfValue(pairs);
  const rank = shape.length - 1;
  const part = (at: number): GraphValue => {
    const cut = builder.one(
      "stablehlo.slice",
      { operand: pairs },
      {
        start_indices: shape.map((_, axis) => (axis === rank ? at : 0)),
        limit_indices: shape.map((extent, axis) => (axis === rank ? at + 1 : extent)),
        strides: shape.map(() => 1),
      },
    );
    return reshape(builder, cut, shape.slice(0, -1));
  };
  return { re: part(0), im: part(1) };
}

/** A literal of the same numbers with the parts of each side by side. */
export function joinedLiteral(value: Literal): Literal {
  return literal(joinedType(value.type), expandElements(value));
}

/** The literal of the real parts, slot 0, or of the others. */
export function literalPart(value: Literal, slot: 0 | 1): Literal {
  return literal(
    partType(value.type),
    value.data.filter((_, i) => i % 2 === slot),
  );
}
