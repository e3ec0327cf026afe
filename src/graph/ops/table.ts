/**
 * The table of graph ops: every op, declared once. Inference, evaluation, transforms and lowerings are
 * records keyed by `GraphOpKind`, so that a new entry here does not compile until each has its rule.
 */
import { chloOps } from "./chlo.ts";
import { controlOps } from "./control.ts";
import { derivativeOps } from "./derivatives.ts";
import { distributionOps } from "./distribution.ts";
import { elementwiseOps } from "./elementwise.ts";
import type { AnyGraphOp, GraphOp } from "./node.ts";
import { productOps } from "./products.ts";
import { reductionOps } from "./reductions.ts";
import type { Attributes, GraphOpSchema } from "./schema.ts";
import type { Operands, Regions } from "./node.ts";
import { shapeOps } from "./shapes.ts";
import { didYouMean } from "../../support/options.ts";
import { testingOps } from "./testing.ts";

const table = Object.freeze({
  ...elementwiseOps,
  ...shapeOps,
  ...productOps,
  ...reductionOps,
  ...controlOps,
  ...distributionOps,
  ...chloOps,
  ...testingOps,
  ...derivativeOps,
});

type Table = typeof table;
export type GraphOpKind = keyof Table;
export type GraphOperands<K extends GraphOpKind> = Operands<Table[K]["operands"]>;
export type GraphAttributes<K extends GraphOpKind> = Attributes<Table[K]["attributes"]>;
export type GraphRegions<K extends GraphOpKind> = Regions<Table[K]["regions"]>;

/** The table with its entries' form but without their literal types, for generic code. */
export const graphOpTable: { readonly [K in GraphOpKind]: GraphOpSchema } = table;

/** Every op that text can name. */
export const graphOpNames: readonly string[] = Object.keys(table).filter(
  (name) => name !== "foreign",
);

const dialects = new Set(graphOpNames.map((name) => name.slice(0, name.indexOf("."))));

/** Why an op that the table does not have cannot run. */
export function unknownOpReason(name: string): string {
  const dialect = name.slice(0, name.indexOf("."));
  const why = dialects.has(dialect) ? `${dialect} has no such op` : "it is of no known dialect";
  return why + didYouMean(name, graphOpNames);
}

export function isGraphOpKind(name: string): name is GraphOpKind {
  return Object.hasOwn(table, name);
}

/** A record with one rule an op kind; leaving one out does not compile. */
export type GraphRules<Extra extends readonly unknown[], R> = {
  readonly [K in GraphOpKind]: (op: GraphOp<K>, ...extra: Extra) => R;
};

/** Applies the rule of the op's own kind. */
export function applyGraphRule<Extra extends readonly unknown[], R>(
  rules: GraphRules<Extra, R>,
  op: AnyGraphOp,
  ...extra: Extra
): R {
  // TypeScript cannot see that the rule and the op share their kind.
  const rule = rules[op.kind] as (op: AnyGraphOp, ...extra: Extra) => R;
  return rule(op, ...extra);
}
