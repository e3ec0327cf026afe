/** Ops that the compiler adds to a kernel. */
import type { AnyOp, Op } from "./node.ts";
import type { placedOps } from "./ops/placed.ts";

type AddedKind = keyof typeof placedOps | "prefetch_maps" | "proxy_fence";

/** An op without regions. */
export function makeOp<K extends AddedKind>(
  kind: K,
  parts: Pick<Op<K>, "location"> & {
    readonly operands?: Op<K>["operands"];
    readonly attributes?: Op<K>["attributes"];
    readonly results?: Op<K>["results"];
  },
): AnyOp {
  const { operands = {}, attributes = {}, results = [], location } = parts;
  return Object.freeze({
    kind,
    operands: Object.freeze(operands),
    attributes: Object.freeze(attributes),
    regions: Object.freeze({}),
    results: Object.freeze(results),
    location,
  }) as unknown as AnyOp;
}
