/** Who defines and who uses a value. */
import { noSlots } from "../make-op.ts";
import type { AnyOp, Kernel, Region, Value } from "../node.ts";
import { onceForEach } from "../../support/memo.ts";
import { operandValues, regionList, walkOps } from "../traverse.ts";
import { visitEach } from "../../support/visit-each.ts";

/** The op that defines each value; parameters of regions have none. */
export const definingOps = onceForEach((region: Region): ReadonlyMap<Value, AnyOp> => {
  const definitions = new Map<Value, AnyOp>();
  walkOps(region, (op) => {
    const { results } = op;
    for (let place = 0; place < results.length; place += 1)
      definitions.set(results[place] as Value, op);
  });
  return definitions;
});

/** How often each value is an operand; values never used are absent. */
export const countUses = onceForEach((region: Region): ReadonlyMap<Value, number> => {
  const uses = new Map<Value, number>();
  walkOps(region, (op) => {
    const operands = operandValues(op);
    for (let place = 0; place < operands.length; place += 1) {
      const value = operands[place] as Value;
      uses.set(value, (uses.get(value) ?? 0) + 1);
    }
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
    visitEach(op.results, see);
    if (op.regions !== noSlots)
      for (const region of regionList(op)) visitEach(region.parameters, see);
  });
  return next;
}
