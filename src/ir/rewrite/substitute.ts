/**
 * Rebuilding frozen nodes with some values replaced. Whatever does not change is kept as the same
 * object, so a pass that changes nothing returns the kernel it was given, and `===` tells.
 */
import { visitEach } from "../../support/visit-each.ts";
import { changedOp, noSlots, regionOf } from "../make-op.ts";
import type { AnyOp, Kernel, Region, Value } from "../node.ts";
import { changedRegions, operandValues, withOperands } from "../traverse.ts";

export type Substitution = ReadonlyMap<Value, Value>;

/** The op with its operands replaced; its regions stay as they are. */
export function substituteOperands(op: AnyOp, substitution: Substitution): AnyOp {
  if (substitution.size === 0 || op.operands === noSlots) return op;
  const operands = operandValues(op);
  for (let place = 0; place < operands.length; place += 1)
    if (substitution.has(operands[place] as Value)) return substituted(op, substitution);
  return op;
}

function substituted(op: AnyOp, substitution: Substitution): AnyOp {
  return withOperands(op, (value) => substitution.get(value) ?? value);
}

/** The op with each region replaced by `change` of it. */
export function changeRegions(op: AnyOp, change: (region: Region) => Region): AnyOp {
  if (op.regions === noSlots) return op;
  const regions = changedRegions(op, change);
  return regions === op.regions ? op : changedOp(op, { regions });
}

/** The op with some of its attributes decided anew. */
export function withAttributes(op: AnyOp, decided: object): AnyOp {
  return changedOp(op, { attributes: Object.freeze({ ...op.attributes, ...decided }) });
}

/** The region with other ops; `ops` ends with a yield. */
export function changeOps(region: Region, ops: readonly AnyOp[]): Region {
  const same = sameOps(ops, region.ops);
  return same ? region : regionOf({ parameters: region.parameters, ops: Object.freeze(ops) });
}

/**
 * The region with each op replaced by `change` of it. Its ops are listed by `push`: what `map` makes has other elements, to V8, once its
 * caller is optimised, and every walk over ops would be thrown out of its own optimised code.
 */
export function changeEachOp(region: Region, change: (op: AnyOp) => AnyOp): Region {
  const ops: AnyOp[] = [];
  visitEach(region.ops, (op) => ops.push(change(op)));
  return changeOps(region, ops);
}

function sameOps(left: readonly AnyOp[], right: readonly AnyOp[]): boolean {
  if (left.length !== right.length) return false;
  for (let index = 0; index < left.length; index += 1)
    if (left[index] !== right[index]) return false;
  return true;
}

/** The kernel with another body. */
export function changeBody(kernel: Kernel, body: Region): Kernel {
  return body === kernel.body ? kernel : Object.freeze({ ...kernel, body });
}

/** The region with values replaced in its ops and in the regions inside. */
export function substituteRegion(region: Region, substitution: Substitution): Region {
  if (substitution.size === 0) return region;
  return changeEachOp(region, (op) =>
    changeRegions(substituteOperands(op, substitution), (inner) =>
      substituteRegion(inner, substitution),
    ),
  );
}
