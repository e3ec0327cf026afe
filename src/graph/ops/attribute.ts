/**
 * Attributes as text has them. Ops of the table hold values of TypeScript types instead, made by the
 * forms in `forms.ts`; this tree lies between text and table, and holds what nobody reads.
 *
 * | text                              | attribute                                            |
 * |-----------------------------------|------------------------------------------------------|
 * | `1 : i64`, `true`, `2.0 : f32`    | integer, flag, float                                 |
 * | `"text"`, `@f`, `@m::@f`          | string, symbol                                       |
 * | `[1, 2]`, `{a = 1}`, `unit`       | list, dictionary, unit                               |
 * | `array<i64: 1, 2>`                | array                                                |
 * | `dense<[1, 2]> : tensor<2xi64>`   | dense; with the text of the value where its type is opaque |
 * | `tensor<2xf32>`, `(T) -> T`, `i32`| type                                                 |
 * | `#stablehlo.gather<…>`            | dialect: name `stablehlo.gather`, body as text       |
 */
import type { Literal } from "./literal.ts";
import type { GraphType } from "./types.ts";

export interface IntegerAttribute {
  readonly kind: "integer";
  readonly value: bigint;
  readonly type: string;
}

export interface FloatAttribute {
  readonly kind: "float";
  /** As written: a decimal or the hexadecimal bits. */
  readonly text: string;
  readonly type: string;
}

export interface FlagAttribute {
  readonly kind: "flag";
  readonly value: boolean;
}

export interface StringAttribute {
  readonly kind: "string";
  readonly value: string;
}

export interface SymbolAttribute {
  readonly kind: "symbol";
  readonly path: readonly string[];
}

export interface UnitAttribute {
  readonly kind: "unit";
}

export interface ListAttribute {
  readonly kind: "list";
  readonly items: readonly Attribute[];
}

export interface DictionaryAttribute {
  readonly kind: "dictionary";
  readonly entries: AttributeMap;
}

export interface ArrayAttribute {
  readonly kind: "array";
  readonly element: string;
  /** Items as written. */
  readonly items: readonly string[];
}

export interface DenseAttribute {
  readonly kind: "dense";
  readonly literal: Literal;
}

/** `dense<…>` of a type that is carried as text, `dense_resource` and whatever else has a body and a type. */
export interface RawAttribute {
  readonly kind: "raw";
  readonly text: string;
}

export interface TypeAttribute {
  readonly kind: "type";
  readonly type: GraphType;
}

export interface DialectAttribute {
  readonly kind: "dialect";
  /** `stablehlo.gather` of `#stablehlo.gather<…>`; `stablehlo` of `#stablehlo<…>`. */
  readonly name: string;
  /** What stands between the angle brackets, spaces as one; undefined where there are none. */
  readonly body: string | undefined;
}

export type Attribute =
  | IntegerAttribute
  | FloatAttribute
  | FlagAttribute
  | StringAttribute
  | SymbolAttribute
  | UnitAttribute
  | ListAttribute
  | DictionaryAttribute
  | ArrayAttribute
  | DenseAttribute
  | RawAttribute
  | TypeAttribute
  | DialectAttribute;

export type AttributeMap = ReadonlyMap<string, Attribute>;

export const unitAttribute: UnitAttribute = Object.freeze({ kind: "unit" });

export function integerAttribute(value: number | bigint, type = "i64"): IntegerAttribute {
  return Object.freeze({ kind: "integer", value: BigInt(value), type });
}

export function flagAttribute(value: boolean): FlagAttribute {
  return Object.freeze({ kind: "flag", value });
}

export function stringAttribute(value: string): StringAttribute {
  return Object.freeze({ kind: "string", value });
}

export function symbolAttribute(name: string): SymbolAttribute {
  return Object.freeze({ kind: "symbol", path: Object.freeze([name]) });
}

export function listAttribute(items: readonly Attribute[]): ListAttribute {
  return Object.freeze({ kind: "list", items });
}

export function arrayAttribute(element: string, items: readonly string[]): ArrayAttribute {
  return Object.freeze({ kind: "array", element, items });
}

export function denseAttribute(literal: Literal): DenseAttribute {
  return Object.freeze({ kind: "dense", literal });
}

export function dialectAttribute(name: string, body: string | undefined): DialectAttribute {
  return Object.freeze({ kind: "dialect", name, body });
}
