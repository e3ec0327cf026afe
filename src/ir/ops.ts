/**
 * The op table: every op of the tile IR, declared once. Inference, verification, simulation, cost and
 * (later) layout rules and emission are records keyed by `OpKind`, so that a new entry here does not
 * compile until each of them has its rule; docs/adding-an-op.md is the recipe.
 */
import { asynchronousOps } from "./ops/asynchronous.ts";
import { controlOps } from "./ops/control.ts";
import { memoryOps } from "./ops/memory.ts";
import { placedOps } from "./ops/placed.ts";
import { synchronizationOps } from "./ops/synchronization.ts";
import { tensorMemoryOps } from "./ops/tensor-memory.ts";
import { tileOps } from "./ops/tiles.ts";
import { valueOps } from "./ops/values.ts";
import type { AnyOp, Op } from "./node.ts";
import type { Attributes, OpSchema } from "./schema.ts";
import type { Operands, Regions } from "./node.ts";

const table = Object.freeze({
  ...valueOps,
  ...tileOps,
  ...memoryOps,
  ...asynchronousOps,
  ...tensorMemoryOps,
  ...synchronizationOps,
  ...controlOps,
  ...placedOps,
});

type Table = typeof table;
export type OpKind = keyof Table;
export type OpOperands<K extends OpKind> = Operands<Table[K]["operands"]>;
export type OpAttributes<K extends OpKind> = Attributes<Table[K]["attributes"]>;
export type OpRegions<K extends OpKind> = Regions<Table[K]["regions"]>;

/** Ops that may need shared memory of their own. */
export type ScratchKind = {
  [K in OpKind]: Table[K]["traits"]["scratch"] extends "by layout" ? K : never;
}[OpKind];

/** Ops whose lanes access memory: `unit` says how much of it an instruction moves. */
export type UnitKind = {
  [K in OpKind]: Table[K]["attributes"] extends { readonly unit: unknown } ? K : never;
}[OpKind];

/** Ops whose result is a window on the memory of their `ref`, here or in another block. */
export type WindowKind = {
  [K in OpKind]: Table[K]["traits"]["results"] extends { window: "ref" } | { peer: "ref" }
    ? K
    : never;
}[OpKind];

/** Ops whose regions run again with what they carry from round to round. */
export type RepeatingKind = {
  [K in OpKind]: Table[K]["traits"]["regions"] extends "repeat" ? K : never;
}[OpKind];

/** The table with its entries' form but without their literal types, for generic code. */
export const opTable: { readonly [K in OpKind]: OpSchema } = table;

export const opKinds = Object.freeze(Object.keys(table)) as readonly OpKind[];

/** A record with one rule an op kind; leaving one out does not compile. */
export type OpRules<Extra extends readonly unknown[], R> = {
  readonly [K in OpKind]: (op: Op<K>, ...extra: Extra) => R;
};

/** A record with rules for some kinds. */
export type SomeOpRules<Extra extends readonly unknown[], R> = {
  readonly [K in OpKind]?: (op: Op<K>, ...extra: Extra) => R;
};

/** The rule of the op's own kind, which is called with the op: a call that handed the rest on would make a list of it for each. */
export function ruleOf<Extra extends readonly unknown[], R>(
  rules: OpRules<Extra, R>,
  op: Pick<AnyOp, "kind">,
): (op: AnyOp, ...extra: Extra) => R;
/** Of a record without a rule for each kind, the rule where there is one. */
export function ruleOf<Extra extends readonly unknown[], R>(
  rules: SomeOpRules<Extra, R>,
  op: Pick<AnyOp, "kind">,
): ((op: AnyOp, ...extra: Extra) => R) | undefined;
export function ruleOf<Extra extends readonly unknown[], R>(
  rules: SomeOpRules<Extra, R>,
  { kind }: Pick<AnyOp, "kind">,
): ((op: AnyOp, ...extra: Extra) => R) | undefined {
  // TypeScript cannot see that the rule and the op share their kind.
  return rules[kind] as ((op: AnyOp, ...extra: Extra) => R) | undefined;
}
