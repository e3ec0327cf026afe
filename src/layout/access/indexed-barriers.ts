/**
 * Barriers and counters that an op picks out of an array of them, blocks that it picks out of a cluster, and arrays out of a list. Each index must be inside: that follows
 * from facts, or the op says that lanes test it, since the place beside an array belongs to something else.
 *
 *   barrier_wait %full index(%slot) {guard = ["index 0"]}      %slot is below 4, and perhaps below 0
 */
import type { Facts } from "../../ir/range-analysis/index.ts";
import type { AnyOp, Kernel, Value } from "../../ir/node.ts";
import type { Size } from "../../ir/size.ts";
import { testedIndexText } from "./gathers.ts";

/** An index of a barrier or counter, and how many there are along its axis; or a block's rank, and how many the cluster has. */
export interface PlaceIndex {
  /** How the kernel's text says that it is tested. */
  readonly text: string;
  readonly index: Value;
  readonly extent: Size;
}

export function placeIndices(op: AnyOp): readonly PlaceIndex[] {
  const { operands } = op;
  if ("barrier" in operands) {
    const { barrier, index } = operands;
    if (barrier?.type.kind !== "barrier" || index === undefined) return [];
    return [{ text: testedIndexText(0), index, extent: barrier.type.count }];
  }
  if (op.kind === "linear_index") {
    const { extents } = op.attributes;
    return op.operands.indices.map((index, axis) => ({
      text: testedIndexText(axis),
      index,
      extent: extents[axis] ?? 1,
    }));
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

/** How the kernel's text says that a block's rank is tested. */
export const testedPeerText = "peer";

/** The rank of another block, where the op has one. */
export function peerIndex(op: AnyOp, { grid }: Kernel): PlaceIndex | undefined {
  const index =
    op.kind === "peer_ref"
      ? op.operands.rank
      : op.kind === "barrier_arrive"
        ? op.operands.peer
        : undefined;
  const extent = grid.reduce((blocks, { cluster }) => blocks * cluster, 1);
  return index && { text: testedPeerText, index, extent };
}

/** How the kernel's text says that the index of an array in a list is tested. */
export const testedArrayText = "array";

/** The index of an array among several, where the op chooses one. */
export function arrayIndex(op: AnyOp): PlaceIndex | undefined {
  if (op.kind !== "select_ref") return undefined;
  const { refs, index } = op.operands;
  return { text: testedArrayText, index, extent: refs.length };
}

/** Those of which facts do not prove that they are inside. */
export function unprovedPlaces(op: AnyOp, kernel: Kernel, facts: Facts): readonly PlaceIndex[] {
  const single = peerIndex(op, kernel) ?? arrayIndex(op);
  return [...placeIndices(op), ...(single === undefined ? [] : [single])].filter(
    ({ index, extent }) => {
      const fact = facts.of(index);
      return fact.least < 0n || !facts.endsWithin(fact, 1, extent);
    },
  );
}
