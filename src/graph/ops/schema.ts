/**
 * The form of an entry in the table of graph ops, and the TypeScript types that follow from it. An entry
 * is data; parser, printer and traversals read the data, rules get their types from it:
 *
 *   "stablehlo.pad": { operands: { operand: "one", padding_value: "one" },
 *                      attributes: { edge_padding_low: integers, … }, … }
 *     =>  op.operands.padding_value: GraphValue,  op.attributes.edge_padding_low: readonly number[]
 *
 * Operands and attributes have the names of StableHLO's specification.
 */
import type { Form } from "./forms.ts";

export type OperandArity = "one" | "optional" | "many";
export type RegionArity = "one" | "many";

/**
 * What an op does besides computing its results; passes decide by this alone.
 *
 * | effect   | unused: removable  | equal: mergeable | out of loops: movable |
 * |----------|--------------------|------------------|-----------------------|
 * | none     | yes                | yes              | yes                   |
 * | wall     | yes                | no               | no                    |
 * | regions  | if its regions are | no               | if its regions are    |
 * | callee   | if the function is | no               | no                    |
 * | declared | `has_side_effect`  | no               | no                    |
 * | always   | no                 | no               | no                    |
 */
export type GraphEffect = "none" | "wall" | "regions" | "callee" | "declared" | "always";

/**
 * The short form that text has for an op besides the generic one. The first five differ in their types
 * alone; the rest have a rule of their own in `src/graph/text`.
 *
 * | form       | example                                                            |
 * |------------|--------------------------------------------------------------------|
 * | short      | `stablehlo.add %x, %y : T`, or a function type where types differ  |
 * | function   | `stablehlo.transpose %x, dims = [1, 0] : (T) -> U`                 |
 * | arrow      | `chlo.next_after %x, %y : T, T -> T`                               |
 * | result     | `stablehlo.iota dim = 0 : T`                                       |
 * | operands   | `stablehlo.optimization_barrier %x, %y : T, U`                     |
 */
export type TextForm =
  | "generic"
  | "short"
  | "function"
  | "arrow"
  | "result"
  | "operands"
  | "compare"
  | "select"
  | "constant"
  | "slice"
  | "reduce_precision"
  | "dot_general"
  | "convolution"
  | "reduce"
  | "while"
  | "call"
  | "custom_call"
  | "composite"
  | "get_tuple_element"
  | "top_k"
  | "scan"
  | "expect"
  | "expect_types"
  | "expect_const"
  | "manual_computation"
  | "sharding_constraint"
  | "foreign";

export interface GraphOpSchema {
  /** One sentence for the reference. */
  readonly summary: string;
  readonly operands: { readonly [name: string]: OperandArity };
  readonly attributes: { readonly [name: string]: Form<unknown> };
  readonly regions: { readonly [name: string]: RegionArity };
  readonly effect: GraphEffect;
  readonly text: TextForm;
  /** Attributes that the short form names after the operands: label to attribute, in order. */
  readonly labels?: { readonly [label: string]: string };
}

type ValueOfForm<F> = F extends Form<infer T> ? T : never;
type OptionalAttributes<T> = {
  [N in keyof T]: T[N] extends { readonly presence: "optional" } ? N : never;
}[keyof T];

export type Attributes<T> = {
  readonly [N in Exclude<keyof T, OptionalAttributes<T>>]: ValueOfForm<T[N]>;
} & { readonly [N in OptionalAttributes<T>]?: ValueOfForm<T[N]> | undefined };

/** Keeps a family's entries as literal types while checking their form. */
export function defineGraphOps<const T extends { readonly [kind: string]: GraphOpSchema }>(
  entries: T,
): T {
  return Object.freeze(entries);
}
