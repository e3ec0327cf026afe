/**
 * Maps that wait. Those whose results are results of the region are put off until another op needs them: those of one shape that
 * follow from each other become one kernel, such as an optimiser's moments and its parameter.
 *
 *   m' = f(m, g)    waits      p' = h(p, m')   one kernel with results m' and p'
 */
import { libraryCallOf, loweringOf, updateOf } from "../lower/record.ts";
import { tensorTypeOf } from "../lower/storage.ts";
import type { AnyGraphOp, GraphValue } from "../ops/node.ts";
import type { Buffer } from "./plan.ts";

/** Maps that wait together. */
export type DeferredGroup = readonly AnyGraphOp[];

/** More results than these are several kernels: the parameters of one hold some hundred arrays. */
export const mostTogether = 64;

export type Deferred = Map<AnyGraphOp, DeferredGroup>;

export function isDeferrable(op: AnyGraphOp, wanted: ReadonlyMap<GraphValue, Buffer>): boolean {
  return (
    loweringOf(op).form === "map" &&
    op.kind !== "stablehlo.constant" &&
    libraryCallOf(op) === undefined &&
    updateOf(op) === undefined &&
    op.results.every((value) => wanted.get(value)?.place.kind === "result")
  );
}

export function shapeText(op: AnyGraphOp): string {
  return op.results.map((value) => tensorTypeOf(value).shape.join()).join(";");
}
