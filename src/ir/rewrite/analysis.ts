/** Who defines and who uses a value. */
import type { AnyOp, Kernel, Region, Value } from "../node.ts";
import { onceForEach } from "../../support/memo.ts";
import { operandValues, regionList, walkOps } from "../traverse.ts";

/** The op that defines each value; parameters of regions have none. */
export const definingOps = onceForEach((region: Region): ReadonlyMap<Value, AnyOp> => {
  const definitions = new Map<Value, AnyOp>();
  walkOps(region, (op) => {
    op.results.forEach((result) => definitions.set(result, op));
  });
  return definitions;
});

/** How often each value is an operand; values never used are absent. */
export const countUses = onceForEach((region: Region): ReadonlyMap<Value, number> => {
  const uses = new Map<Value, number>();
  walkOps(region, (op) => {
    operandValues(op).forEach((value) => uses.set(value, (uses.get(value) ?? 0) + 1));
  });
  return uses;
});

/** A number above every value's id. */
export function nextValueId(kernel: Kernel): number {
  let next = 0;
  const see = ({ id }: Value): void => {
    if (id >= next) next = id + 1;
  };
  kernel.body.parameters.forEach(see);
  walkOps(kernel.body, (op) => {
    op.results.forEach(see);
    regionList(op).forEach(({ parameters }) => parameters.forEach(see));
  });
  return next;
}
