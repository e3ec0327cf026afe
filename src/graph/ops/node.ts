/**
 * Nodes of graphs. All are frozen; passes build new ones. A value is defined once, by an op or as an
 * argument of a region, and is compared by identity.
 *
 *   module @jit_f {                                      GraphModule
 *     func.func public @main(%arg0: tensor<4xf32>) … {   GraphFunction; its body a GraphRegion
 *       %0 = stablehlo.add %arg0, %arg0 : tensor<4xf32>  GraphOp
 *       return %0 : tensor<4xf32>                        the region's results; no op of its own
 *     }
 *   }
 */
import { unknownLocation } from "../../support/location.ts";
import type { Location } from "../../support/location.ts";
import type { Attribute, AttributeMap } from "./attribute.ts";
import type { GraphAttributes, GraphOpKind, GraphOperands, GraphRegions } from "./table.ts";
import type { GraphType } from "./types.ts";

export interface GraphValue<T extends GraphType = GraphType> {
  /** Unique while the process runs. */
  readonly id: number;
  readonly type: T;
}

export interface GraphOp<K extends GraphOpKind = GraphOpKind> {
  readonly kind: K;
  readonly operands: GraphOperands<K>;
  readonly attributes: GraphAttributes<K>;
  readonly regions: GraphRegions<K>;
  readonly results: readonly GraphValue[];
  readonly location: Location;
  /** What the user calls it, such as `jit(step)/layer3/attention/dot_general`; "" where nobody said. */
  readonly name: string;
  /** Attributes that nobody reads: kept and printed. */
  readonly extra: AttributeMap;
}

/** An op of any kind, as a union that narrows on `kind`. */
export type AnyGraphOp = { readonly [K in GraphOpKind]: GraphOp<K> }[GraphOpKind];

export interface GraphRegion {
  readonly parameters: readonly GraphValue[];
  /** Each after the ops whose results it uses. */
  readonly ops: readonly AnyGraphOp[];
  /** What the region returns. */
  readonly results: readonly GraphValue[];
}

/* What schemas say of operands and regions, as the values and regions that an op then has. */

type OperandValue<A> = A extends "many" ? readonly GraphValue[] : GraphValue;
type OptionalOperands<T> = { [N in keyof T]: T[N] extends "optional" ? N : never }[keyof T];

export type Operands<T> = {
  readonly [N in Exclude<keyof T, OptionalOperands<T>>]: OperandValue<T[N]>;
} & { readonly [N in OptionalOperands<T>]?: GraphValue | undefined };

export type Regions<T> = {
  readonly [N in keyof T]: T[N] extends "many" ? readonly GraphRegion[] : GraphRegion;
};

/** A function of a StableHLO program. */
export interface GraphFunction {
  /** Its name, without the `@`. */
  readonly name: string;
  /** Whether it can be run by name or only called by the program. */
  readonly visibility: "public" | "private";
  /** Its parameters, ops and results. */
  readonly body: GraphRegion;
  /** One map a parameter, one a result. */
  readonly parameterAttributes: readonly AttributeMap[];
  /** One map a result. */
  readonly resultAttributes: readonly AttributeMap[];
  /** Further attributes of the function. */
  readonly attributes: AttributeMap;
  /** Where the text defines it. */
  readonly location: Location;
}

/** An entry of a module that belongs to another dialect, such as `sdy.mesh`: kept as text. */
export interface ForeignEntry {
  readonly text: string;
}

/** A StableHLO program: its functions by name. */
export interface GraphModule {
  /** "" where the module has none. */
  readonly name: string;
  /** The functions by name. */
  readonly functions: ReadonlyMap<string, GraphFunction>;
  /** Attributes of the module. */
  readonly attributes: AttributeMap;
  /** What of the text the library has no use for and prints as it was. */
  readonly foreign: readonly ForeignEntry[];
}

export const noAttributes: ReadonlyMap<string, Attribute> = new Map<string, Attribute>();

let nextId = 0;

export function graphValue<T extends GraphType>(type: T): GraphValue<T> {
  return Object.freeze({ id: nextId++, type });
}

export function graphRegion(
  parameters: readonly GraphValue[],
  ops: readonly AnyGraphOp[],
  results: readonly GraphValue[],
): GraphRegion {
  return Object.freeze({
    parameters: Object.freeze([...parameters]),
    ops: Object.freeze([...ops]),
    results: Object.freeze([...results]),
  });
}

/** A module whose only function, @main, has this body. */
export function moduleOf(body: GraphRegion): GraphModule {
  const main: GraphFunction = Object.freeze({
    name: "main",
    visibility: "public",
    body,
    parameterAttributes: body.parameters.map(() => noAttributes),
    resultAttributes: body.results.map(() => noAttributes),
    attributes: noAttributes,
    location: unknownLocation,
  });
  const functions = new Map([["main", main]]);
  return Object.freeze({ name: "", functions, attributes: noAttributes, foreign: [] });
}

/** What an op is made from; the name, the location and what nobody reads may be left out. */
export interface GraphOpParts<K extends GraphOpKind> {
  readonly operands: GraphOperands<K>;
  readonly attributes: GraphAttributes<K>;
  readonly regions: GraphRegions<K>;
  readonly results: readonly GraphValue[];
  readonly location?: Location | undefined;
  readonly name?: string | undefined;
  readonly extra?: AttributeMap | undefined;
}

export function graphOp<K extends GraphOpKind>(kind: K, parts: GraphOpParts<K>): GraphOp<K> {
  const { operands, attributes, regions, results } = parts;
  for (const part of [operands, attributes, regions, results]) Object.freeze(part);
  return Object.freeze({
    kind,
    operands,
    attributes,
    regions,
    results,
    location: parts.location ?? unknownLocation,
    name: parts.name ?? "",
    extra: parts.extra ?? noAttributes,
  });
}
