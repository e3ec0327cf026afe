/** Walking over ops without knowing their kinds, in the order the op table declares operands and regions. */
import { changedOp } from "./make-op.ts";
import type { RefType } from "./types.ts";
import type { AnyOp, Region, Value } from "./node.ts";
import { opKinds, opTable } from "./ops.ts";
import type { OpKind } from "./ops.ts";
import { onceForEach } from "../support/memo.ts";

type OperandRecord = { readonly [name: string]: Value | readonly Value[] | undefined };
type RegionRecord = { readonly [name: string]: Region | readonly Region[] };

function isList<T>(item: T | readonly T[] | undefined): item is readonly T[] {
  return Array.isArray(item);
}

/** Named slots flattened in declaration order. */
function flatten<T>(
  names: readonly string[],
  record: { readonly [name: string]: T | readonly T[] | undefined },
): T[] {
  const flat: T[] = [];
  for (const name of names) {
    const item = record[name];
    if (item === undefined) continue;
    if (isList(item)) flat.push(...item);
    else flat.push(item);
  }
  return flat;
}

function slotNames(part: "operands" | "regions"): ReadonlyMap<OpKind, readonly string[]> {
  return new Map(opKinds.map((kind) => [kind, Object.keys(opTable[kind][part])]));
}

const operandNames = slotNames("operands");
const regionNames = slotNames("regions");

const noRegions: readonly Region[] = Object.freeze([]);

/** The op's operands, flattened. */
export function operandValues(op: Pick<AnyOp, "kind" | "operands">): readonly Value[] {
  return flatten(operandNames.get(op.kind) ?? [], op.operands as OperandRecord);
}

/** The op's regions, flattened. */
export function regionList(op: Pick<AnyOp, "kind" | "regions">): readonly Region[] {
  const names = regionNames.get(op.kind);
  // Nearly all ops have none, and every walk asks.
  if (names === undefined || names.length === 0) return noRegions;
  return flatten(names, op.regions as RegionRecord);
}

function mapSlots<T>(
  record: { readonly [name: string]: T | readonly T[] | undefined },
  change: (item: T) => T,
): { readonly [name: string]: T | readonly T[] | undefined } {
  const changed: { [name: string]: T | readonly T[] | undefined } = {};
  for (const name in record) {
    const item = record[name];
    changed[name] = isList(item)
      ? Object.freeze(item.map(change))
      : item === undefined
        ? undefined
        : change(item);
  }
  return Object.freeze(changed);
}

/** The op with each operand replaced by `change` of it. */
export function withOperands(op: AnyOp, change: (value: Value) => Value): AnyOp {
  return changedOp(op, { operands: mapSlots(op.operands as OperandRecord, change) });
}

/** The op with each region replaced by `change` of it. */
export function withRegions(op: AnyOp, change: (region: Region) => Region): AnyOp {
  return changedOp(op, { regions: mapSlots(op.regions as RegionRecord, change) });
}

/** Every op of a region, an op before the ops in its regions; a kernel is walked by many in turn. */
const opsWithin = onceForEach((region: Region): readonly AnyOp[] => {
  const ops: AnyOp[] = [];
  addOps(region, ops);
  return ops;
});

function addOps(region: Region, ops: AnyOp[]): void {
  for (const op of region.ops) {
    ops.push(op);
    for (const inner of regionList(op)) addOps(inner, ops);
  }
}

/** Visits every op of a region, an op before the ops in its regions. */
export function walkOps(region: Region, visit: (op: AnyOp) => void): void {
  for (const op of opsWithin(region)) visit(op);
}

/** What a region yields. */
export function yieldedValues(region: Region): readonly Value[] {
  const last = region.ops.at(-1);
  if (last?.kind !== "yield") throw new Error("a region ends with yield");
  return last.operands.values;
}

/** The type of a window. */
export function refOf({ type, id }: Value): RefType {
  if (type.kind !== "ref") throw new Error(`%${id} is no window`);
  return type;
}
