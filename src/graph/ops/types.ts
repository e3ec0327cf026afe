/**
 * Types of graph values.
 *
 * | text                                   | type                                                  |
 * |----------------------------------------|-------------------------------------------------------|
 * | `tensor<2x3xf32>`                      | tensor of a known shape: what every rule computes with |
 * | `!stablehlo.token`                     | token: order alone                                    |
 * | `tuple<tensor<f32>, …>`                | tuple                                                 |
 * | `!stablehlo.future<tensor<f32>, …>`    | future: what an asynchronous collective returns       |
 * | `tensor<?x3xf32>`, `tensor<4x!quant…>` | opaque: read, kept and printed, refused where it would run |
 */
import type { ElementType } from "./elements.ts";

export interface TensorType<E extends ElementType = ElementType> {
  readonly kind: "tensor";
  readonly element: E;
  readonly shape: readonly number[];
}

export interface TokenType {
  readonly kind: "token";
}

export interface TupleType {
  readonly kind: "tuple";
  readonly members: readonly GraphType[];
}

export interface FutureType {
  readonly kind: "future";
  readonly members: readonly GraphType[];
}

/** A type that is carried as its text: dynamic extents, quantised elements, other dialects. */
export interface OpaqueType {
  readonly kind: "opaque";
  readonly text: string;
}

export type GraphType = TensorType | TokenType | TupleType | FutureType | OpaqueType;

export const tokenType: TokenType = Object.freeze({ kind: "token" });

export function tensorType<E extends ElementType>(
  element: E,
  shape: readonly number[],
): TensorType<E> {
  return Object.freeze({ kind: "tensor", element, shape: Object.freeze([...shape]) });
}

export function tupleType(members: readonly GraphType[]): TupleType {
  return Object.freeze({ kind: "tuple", members: Object.freeze([...members]) });
}

export function futureType(members: readonly GraphType[]): FutureType {
  return Object.freeze({ kind: "future", members: Object.freeze([...members]) });
}

export function opaqueType(text: string): OpaqueType {
  return Object.freeze({ kind: "opaque", text });
}

export function isTensor(type: GraphType): type is TensorType {
  return type.kind === "tensor";
}

/** Whether a type, or one within it, is carried as text: nothing can be inferred from it. */
export function isOpaque(type: GraphType): boolean {
  if (type.kind === "tuple" || type.kind === "future") return type.members.some(isOpaque);
  return type.kind === "opaque";
}

/** The type as StableHLO's text has it. */
export function typeText(type: GraphType): string {
  switch (type.kind) {
    case "tensor":
      return `tensor<${[...type.shape, type.element].join("x")}>`;
    case "token":
      return "!stablehlo.token";
    case "tuple":
      return `tuple<${type.members.map(typeText).join(", ")}>`;
    case "future":
      return `!stablehlo.future<${type.members.map(typeText).join(", ")}>`;
    case "opaque":
      return type.text;
  }
}

export function sameType(left: GraphType, right: GraphType): boolean {
  return left === right || typeText(left) === typeText(right);
}

/** The number of elements of a shape. */
export function sizeOf(shape: readonly number[]): number {
  return shape.reduce((count, extent) => count * extent, 1);
}
