/** Operands and regions of an op as lists, in the order of the table. */
import type { AnyGraphOp, GraphRegion, GraphValue } from "./node.ts";
import { graphOpTable } from "./table.ts";

/** The slots of every kind, once: these lists are asked for thousands of times while a program is compiled. */
const slotNames = new Map<
  string,
  { readonly operands: readonly string[]; readonly regions: readonly string[] }
>(
  Object.entries(graphOpTable).map(([kind, { operands, regions }]) => [
    kind,
    { operands: Object.keys(operands), regions: Object.keys(regions) },
  ]),
);

type Slots<T> = { readonly [name: string]: T | readonly T[] | undefined };

function listed<T extends object>(names: readonly string[], slots: Slots<T>): readonly T[] {
  const all: T[] = [];
  for (const name of names) {
    const slot = slots[name];
    if (slot === undefined) continue;
    if (isList(slot)) for (const each of slot) all.push(each);
    else all.push(slot);
  }
  return all;
}

function isList<T extends object>(slot: T | readonly T[]): slot is readonly T[] {
  return Array.isArray(slot);
}

export function operandsOf(op: AnyGraphOp): readonly GraphValue[] {
  return listed(slotNames.get(op.kind)?.operands ?? [], op.operands as Slots<GraphValue>);
}

const noRegions: readonly GraphRegion[] = Object.freeze([]);

export function regionsOf(op: AnyGraphOp): readonly GraphRegion[] {
  const names = slotNames.get(op.kind)?.regions ?? [];
  return names.length === 0 ? noRegions : listed(names, op.regions as Slots<GraphRegion>);
}

/** What text calls an op. */
export function textNameOf(op: AnyGraphOp): string {
  return op.kind === "foreign" ? op.attributes.op_name : op.kind;
}

/** Every op of a region and of the regions within, each before the ops of its own regions. */
export function* opsWithin(region: GraphRegion): Generator<AnyGraphOp> {
  for (const op of region.ops) {
    yield op;
    for (const inner of regionsOf(op)) yield* opsWithin(inner);
  }
}
