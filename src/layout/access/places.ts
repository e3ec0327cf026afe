/**
 * Barriers and counters that an op picks out of an array of them. Each index must be inside: that follows from facts, or the
 * op says that lanes test it, since the place beside an array belongs to something else.
 *
 *   barrier_wait %full index(%slot) {guard = ["index 0"]}      %slot is below 4, and perhaps below 0
 */
import type { Facts } from "../../ir/facts/index.ts";
import type { AnyOp, Value } from "../../ir/node.ts";
import type { Size } from "../../ir/size.ts";
import { testedIndexText } from "./picked.ts";

/** An index of a barrier or counter, and how many there are along its axis. */
export interface PlaceIndex {
  /** How the kernel's text says that it is tested. */
  readonly text: string;
  readonly index: Value;
  readonly extent: Size;
}

export function placeIndices({ operands }: AnyOp): readonly PlaceIndex[] {
  if ("barrier" in operands) {
    const { barrier, index } = operands;
    if (barrier?.type.kind !== "barrier" || index === undefined) return [];
    return [{ text: testedIndexText(0), index, extent: barrier.type.count }];
  }
  if (!("semaphore" in operands)) return [];
  const { semaphore, indices } = operands;
  if (semaphore.type.kind !== "semaphore") return [];
  const { shape } = semaphore.type;
  return indices.map((index, axis) => ({
    text: testedIndexText(axis),
    index,
    extent: shape[axis] ?? 1,
  }));
}

/** Those of which facts do not prove that they are inside. */
export function unprovedPlaces(op: AnyOp, facts: Facts): readonly PlaceIndex[] {
  return placeIndices(op).filter(({ index, extent }) => {
    const fact = facts.of(index);
    return fact.least < 0n || !facts.endsWithin(fact, 1, extent);
  });
}
