/** Walking over ops without knowing their kinds, in the order the op table declares operands and regions. */
import { changedOp, noSlots, nothing } from "./make-op.ts";
import type { RefType } from "./types.ts";
import type { AnyOp, Op, Region, Value } from "./node.ts";
import { opKinds, opTable } from "./ops.ts";
import type { OpKind } from "./ops.ts";
import { onceForEach } from "../support/memo.ts";

type Slots<T> = { readonly [name: string]: T | readonly T[] | undefined };
type OperandRecord = Slots<Value>;
type RegionRecord = Slots<Region>;

function isList<T>(item: T | readonly T[] | undefined): item is readonly T[] {
  return Array.isArray(item);
}

/**
 * Named slots flattened in declaration order. Every walk asks for those of every op, most of them before the engine has optimised
 * anything, when an iterator costs more than what it goes over: hence places instead of iterators, and no copy of a lone list.
 */
function flatten<T>(names: readonly string[], record: Slots<T>): readonly T[] {
  if (names.length === 1) {
    const only = record[names[0] as string];
    return only === undefined ? nothing : isList(only) ? only : [only];
  }
  const flat: T[] = [];
  for (let place = 0; place < names.length; place += 1) {
    const item = record[names[place] as string];
    if (item === undefined) continue;
    if (!isList(item)) flat.push(item);
    else for (let index = 0; index < item.length; index += 1) flat.push(item[index] as T);
  }
  return flat;
}

function slotNames(part: "operands" | "regions"): ReadonlyMap<OpKind, readonly string[]> {
  return new Map(opKinds.map((kind) => [kind, Object.keys(opTable[kind][part])]));
}

const operandNames = slotNames("operands");
const regionNames = slotNames("regions");

/** The op's operands, flattened. */
export function operandValues(op: Pick<AnyOp, "kind" | "operands">): readonly Value[] {
  const { operands } = op;
  if (operands === noSlots) return nothing;
  return flatten(operandNames.get(op.kind) ?? nothing, operands as OperandRecord);
}

/** The op's regions, flattened. */
export function regionList(op: Pick<AnyOp, "kind" | "regions">): readonly Region[] {
  const { regions } = op;
  // Nearly all ops have none, and every walk asks.
  if (regions === noSlots) return nothing;
  return flatten(regionNames.get(op.kind) ?? nothing, regions as RegionRecord);
}

/** Each item replaced by `change` of it, in declaration order; the record itself, and lists themselves, where nothing changes. */
function mapSlots<T>(names: readonly string[], record: Slots<T>, change: (item: T) => T): Slots<T> {
  let changed: { [name: string]: T | readonly T[] | undefined } | undefined;
  for (let place = 0; place < names.length; place += 1) {
    const name = names[place] as string;
    const item = record[name];
    if (item === undefined) continue;
    const after = isList(item) ? mapList(item, change) : change(item);
    if (after === item) continue;
    changed ??= { ...record };
    changed[name] = after;
  }
  return changed === undefined ? record : Object.freeze(changed);
}

function mapList<T>(items: readonly T[], change: (item: T) => T): readonly T[] {
  const changed = items.map((item) => change(item));
  return changed.every((item, index) => item === items[index]) ? items : Object.freeze(changed);
}

/** The operands of an op, each replaced by `change` of it; themselves where none is another. */
export function changedOperands(op: AnyOp, change: (value: Value) => Value): AnyOp["operands"] {
  if (op.operands === noSlots) return op.operands;
  const names = operandNames.get(op.kind) ?? nothing;
  return mapSlots(names, op.operands as OperandRecord, change) as AnyOp["operands"];
}

/** The regions of an op, each replaced by `change` of it; themselves where none is another. */
export function changedRegions(op: AnyOp, change: (region: Region) => Region): AnyOp["regions"] {
  if (op.regions === noSlots) return op.regions;
  const names = regionNames.get(op.kind) ?? nothing;
  return mapSlots(names, op.regions as RegionRecord, change) as AnyOp["regions"];
}

/** The op with each operand replaced by `change` of it. */
export function withOperands(op: AnyOp, change: (value: Value) => Value): AnyOp {
  return changedOp(op, { operands: changedOperands(op, change) });
}

/** The op with each region replaced by `change` of it. */
export function withRegions(op: AnyOp, change: (region: Region) => Region): AnyOp {
  return changedOp(op, { regions: changedRegions(op, change) });
}

/** Every op of a region, an op before the ops in its regions; a kernel is walked by many in turn. */
const opsWithin = onceForEach((region: Region): readonly AnyOp[] => {
  const ops: AnyOp[] = [];
  addOps(region, ops);
  return ops;
});

function addOps({ ops: own }: Region, ops: AnyOp[]): void {
  for (let place = 0; place < own.length; place += 1) {
    const op = own[place] as AnyOp;
    ops.push(op);
    if (op.regions !== noSlots) for (const inner of regionList(op)) addOps(inner, ops);
  }
}

/** Visits every op of a region, an op before the ops in its regions. */
export function walkOps(region: Region, visit: (op: AnyOp) => void): void {
  const ops = opsWithin(region);
  for (let place = 0; place < ops.length; place += 1) visit(ops[place] as AnyOp);
}

/** What a region yields. */
export function yieldedValues(region: Region): readonly Value[] {
  const last = region.ops.at(-1);
  if (last?.kind !== "yield") throw new Error("a region ends with yield");
  return last.operands.values;
}

/** Whether the loop ends behind its round, of one that may break. */
export function breakFlag({ attributes, regions }: Op<"loop"> | Op<"while">): Value | undefined {
  return attributes.breaks === true ? yieldedValues(regions.body).at(-1) : undefined;
}

/** The type of a window. */
export function refOf({ type, id }: Value): RefType {
  if (type.kind !== "ref") throw new Error(`%${id} is no window`);
  return type;
}
