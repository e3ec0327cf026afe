/** Operands and regions of an op as lists, in the order of the table. */
import type { AnyGraphOp, GraphRegion, GraphValue } from "./node.ts";
import { graphOpTable } from "./table.ts";

function asList<T>(slot: T | readonly T[] | undefined): readonly T[] {
  if (slot === undefined) return [];
  return Array.isArray(slot) ? (slot as readonly T[]) : [slot as T];
}

export function operandsOf(op: AnyGraphOp): readonly GraphValue[] {
  const slots = op.operands as { readonly [name: string]: GraphValue | readonly GraphValue[] };
  return Object.keys(graphOpTable[op.kind].operands).flatMap((name) => asList(slots[name]));
}

export function regionsOf(op: AnyGraphOp): readonly GraphRegion[] {
  const slots = op.regions as { readonly [name: string]: GraphRegion | readonly GraphRegion[] };
  return Object.keys(graphOpTable[op.kind].regions).flatMap((name) => asList(slots[name]));
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
