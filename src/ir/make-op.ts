/**
 * Ops as objects. All of them are made here, so that all have one hidden class: whatever walks over a kernel reads the same
 * fields of every op, and JavaScript's engine finds them at one place.
 */
import type { AnyOp, Op, Region, Value } from "./node.ts";
import type { OpAttributes, OpKind, OpOperands, OpRegions } from "./ops.ts";
import type { placedOps } from "./ops/placed.ts";

/** Operands, attributes or regions where there are none. Most ops have no regions; whoever walks over them knows those by this. */
export const noSlots = Object.freeze({});

/** A list where there is nothing to list. */
export const nothing: readonly never[] = Object.freeze([]);

/** A frozen op of parts and results that are frozen already. */
export function opOf<K extends OpKind>(
  parts: Omit<Op<K>, "results">,
  results: readonly Value[],
): Op<K> {
  return Object.freeze({
    kind: parts.kind,
    operands: parts.operands,
    attributes: parts.attributes,
    regions: parts.regions,
    results,
    location: parts.location,
  });
}

/** What may be other in an op that is made from one. */
interface Changes {
  readonly operands?: object;
  readonly attributes?: object;
  readonly regions?: object;
  readonly results?: readonly Value[];
}

/** The op with other parts, which are frozen and those of its kind. */
export function changedOp<T extends AnyOp>(op: T, changes: Changes): T {
  return Object.freeze({
    kind: op.kind,
    operands: changes.operands ?? op.operands,
    attributes: changes.attributes ?? op.attributes,
    regions: changes.regions ?? op.regions,
    results: changes.results ?? op.results,
    location: op.location,
  }) as unknown as T;
}

/** A frozen region of parts that are frozen already. */
export function regionOf({ parameters, ops }: Region): Region {
  return Object.freeze({ parameters, ops });
}

type AddedKind = keyof typeof placedOps | "cast" | "prefetch_maps" | "proxy_fence";

/** An op without regions that the compiler adds to a kernel. */
export function makeOp<K extends AddedKind>(
  kind: K,
  parts: Pick<Op<K>, "location"> & {
    readonly operands?: Op<K>["operands"];
    readonly attributes?: Op<K>["attributes"];
    readonly results?: Op<K>["results"];
  },
): AnyOp {
  const { operands = noSlots, attributes = noSlots, results = nothing, location } = parts;
  const own = {
    kind,
    operands: Object.freeze(operands) as OpOperands<K>,
    attributes: Object.freeze(attributes) as OpAttributes<K>,
    regions: noSlots as OpRegions<K>,
    location,
  };
  return opOf(own, Object.freeze(results)) as unknown as AnyOp;
}
