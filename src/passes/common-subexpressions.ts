/**
 * Computes equal things once. Two ops are equal where kind, operands and attributes are; the second is
 * dropped where the first is visible:
 *
 *   %1 = binary %0, %0 {fn = mul}
 *   if %c then { %2 = binary %0, %0 {fn = mul} … }       %2 becomes %1
 *        otherwise { %3 = unary %0 {fn = neg} }          seen only in here
 *   %4 = unary %0 {fn = neg}                             not %3
 */
import { noSlots } from "../ir/make-op.ts";
import type { AnyOp, Kernel, Region, Value } from "../ir/node.ts";
import { opTable } from "../ir/ops.ts";
import { attributesText } from "../ir/printer.ts";
import {
  changeBody,
  changeOps,
  changeRegions,
  substituteOperands,
} from "../ir/rewrite/substitute.ts";
import { commutative } from "./canonicalize/patterns.ts";
import { onlyComputes } from "../ir/traits.ts";
import { onceForEach } from "../support/memo.ts";
import { visitEach } from "../support/visit-each.ts";

/** The ops that are visible, by what they compute. */
type Seen = Map<string, AnyOp>;

export function commonSubexpressions(kernel: Kernel): Kernel {
  return changeBody(kernel, mergeRegion(kernel.body, new Map(), new Map()));
}

/** The region with equal ops merged; what it adds to `seen` is no longer visible after it. */
function mergeRegion(region: Region, seen: Seen, substitution: Map<Value, Value>): Region {
  const added: string[] = [];
  const ops: AnyOp[] = [];
  visitEach(region.ops, (original) => {
    const op = substituteOperands(original, substitution);
    const key = onlyComputes(op) ? keyOf(op) : undefined;
    const earlier = key === undefined ? undefined : seen.get(key);
    if (earlier !== undefined) {
      visitEach(op.results, (result, index) =>
        substitution.set(result, earlier.results[index] ?? result),
      );
      return;
    }
    if (key !== undefined) {
      seen.set(key, op);
      added.push(key);
    }
    if (op.regions === noSlots) return ops.push(op);
    // A warp of its own computes its own values: those of all four warps are not laid out for it.
    const visible: Seen = op.kind === "warps" ? new Map() : seen;
    ops.push(changeRegions(op, (inner) => mergeRegion(inner, visible, substitution)));
  });
  added.forEach((key) => seen.delete(key));
  return changeOps(region, ops);
}

type OperandRecord = { readonly [name: string]: Value | readonly Value[] | undefined };

function idsText(operand: Value | readonly Value[] | undefined): string {
  if (operand === undefined) return "";
  return "id" in operand ? String(operand.id) : operand.map(({ id }) => id).join();
}

/** The operands in their order, or in one order where it does not matter. */
function operandsText(op: AnyOp): string {
  if (op.kind === "binary") {
    const { id: left } = op.operands.left;
    const { id: right } = op.operands.right;
    const turned = left > right && commutative.has(op.attributes.fn);
    return turned ? `${right} ${left}` : `${left} ${right}`;
  }
  const record = op.operands as OperandRecord;
  let text = "";
  for (const name in opTable[op.kind].operands) text += ` ${idsText(record[name])}`;
  return text;
}

/** What an op computes; the pass runs again until nothing changes, and meets most ops again. */
const keyOf = onceForEach(
  (op: AnyOp): string => `${op.kind} ${operandsText(op)} ${attributesText(op)}`,
);
