/**
 * The form of an entry in the op table, and the TypeScript types that follow from it. An entry is plain
 * data; printer, parser and traversals read the data, rules get their types from it:
 *
 *   load: { operands: { ref: "one", fill: "optional" }, attributes: {}, … }
 *     =>  op.operands.ref: Value,  op.operands.fill?: Value
 *   reduce: { operands: { source: "one" }, attributes: { fn: reduceFunctions, axes: "integers" }, … }
 *     =>  op.attributes.fn: "sum" | "prod" | …,  op.attributes.axes: readonly number[]
 */
import type { DType } from "../formats/dtype.ts";
import type { Region, Value } from "./node.ts";
import type { Size } from "./size.ts";

/** A number as IR text can write it; bigint for 64-bit integers, boolean for bool. */
export type Literal = number | bigint | boolean;

export interface AttributeForms {
  integer: number;
  integers: readonly number[];
  text: string;
  texts: readonly string[];
  flag: boolean;
  literal: Literal;
  dtype: DType;
  sizes: readonly Size[];
}

export type AttributeForm = keyof AttributeForms;

/** A form, a form that may be absent (`"integer?"`), or the list of allowed words. */
export type AttributeSchema = AttributeForm | `${AttributeForm}?` | readonly string[];

export type AttributeValue = AttributeForms[AttributeForm];

/** A schema taken apart: `"integer?"` is the form `integer`, optional; a list of words has no form. */
export interface AttributeSlot {
  readonly form: AttributeForm | undefined;
  readonly words: readonly string[];
  readonly optional: boolean;
}

export function attributeSlot(schema: AttributeSchema): AttributeSlot {
  if (typeof schema !== "string") return { form: undefined, words: schema, optional: false };
  const optional = schema.endsWith("?");
  return { form: schema.replace("?", "") as AttributeForm, words: [], optional };
}

export type OperandArity = "one" | "optional" | "many";
export type RegionArity = "one" | "many";

/**
 * What an op does besides computing its results; passes decide by this alone.
 *
 * | effect    | unused: removable | equal: mergeable | out of loops: movable |
 * |-----------|-------------------|------------------|-----------------------|
 * | none      | yes               | yes              | yes                   |
 * | read      | yes               | no               | no                    |
 * | allocate  | yes               | no               | no                    |
 * | write     | no                | no               | no                    |
 * | order     | no                | no               | no                    |
 * | regions   | if its regions are| no               | no                    |
 */
export type Effect = "none" | "read" | "allocate" | "write" | "order" | "regions";

export interface OpSchema {
  /** One sentence for the reference. */
  readonly summary: string;
  readonly operands: { readonly [name: string]: OperandArity };
  readonly attributes: { readonly [name: string]: AttributeSchema };
  readonly regions: { readonly [name: string]: RegionArity };
  readonly effect: Effect;
}

type OperandValue<A> = A extends "many" ? readonly Value[] : Value;
type OptionalOperands<T> = { [N in keyof T]: T[N] extends "optional" ? N : never }[keyof T];

export type Operands<T> = {
  readonly [N in Exclude<keyof T, OptionalOperands<T>>]: OperandValue<T[N]>;
} & { readonly [N in OptionalOperands<T>]?: Value | undefined };

type ValueOfSchema<S> = S extends AttributeForm
  ? AttributeForms[S]
  : S extends `${infer F extends AttributeForm}?`
    ? AttributeForms[F]
    : S extends readonly (infer W)[]
      ? W
      : never;
type OptionalAttributes<T> = { [N in keyof T]: T[N] extends `${string}?` ? N : never }[keyof T];

export type Attributes<T> = {
  readonly [N in Exclude<keyof T, OptionalAttributes<T>>]: ValueOfSchema<T[N]>;
} & { readonly [N in OptionalAttributes<T>]?: ValueOfSchema<T[N]> | undefined };

export type Regions<T> = {
  readonly [N in keyof T]: T[N] extends "many" ? readonly Region[] : Region;
};
