/**
 * Computes equal things once. Two ops are equal where kind, operands and attributes are; the second is
 * dropped where the first is visible:
 *
 *   %1 = binary %0, %0 {fn = mul}
 *   if %c then { %2 = binary %0, %0 {fn = mul} … }       %2 becomes %1
 *        otherwise { %3 = unary %0 {fn = neg} }          seen only in here
 *   %4 = unary %0 {fn = neg}                             not %3
 */
import type { AnyOp, Kernel, Region, Value } from "../ir/node.ts";
import { attributesText } from "../ir/printer.ts";
import {
  changeBody,
  changeOps,
  changeRegions,
  substituteOperands,
} from "../ir/rewrite/substitute.ts";
import { operandValues } from "../ir/traverse.ts";
import { commutative } from "./canonicalize/patterns.ts";
import { onlyComputes } from "./effects.ts";

type Seen = ReadonlyMap<string, AnyOp>;

export function commonSubexpressions(kernel: Kernel): Kernel {
  return changeBody(kernel, mergeRegion(kernel.body, new Map(), new Map()));
}

function mergeRegion(region: Region, outside: Seen, substitution: Map<Value, Value>): Region {
  const seen = new Map(outside);
  const ops: AnyOp[] = [];
  for (const original of region.ops) {
    const op = substituteOperands(original, substitution);
    const key = onlyComputes(op) ? keyOf(op) : undefined;
    const earlier = key === undefined ? undefined : seen.get(key);
    if (earlier !== undefined) {
      for (const [index, result] of op.results.entries())
        substitution.set(result, earlier.results[index] ?? result);
      continue;
    }
    if (key !== undefined) seen.set(key, op);
    // A warp of its own computes its own values: those of all four warps are not laid out for it.
    const visible: Seen = op.kind === "warps" ? new Map() : seen;
    ops.push(changeRegions(op, (inner) => mergeRegion(inner, visible, substitution)));
  }
  return changeOps(region, ops);
}

function keyOf(op: AnyOp): string {
  const operands = operandValues(op).map(({ id }) => id);
  if (op.kind === "binary" && commutative.has(op.attributes.fn)) operands.sort((a, b) => a - b);
  // A list of operands and an optional one are told apart by the schema; how many there are, by the count.
  const present = Object.entries(op.operands).map(([name, value]) =>
    Array.isArray(value) ? `${name}${value.length}` : value === undefined ? "" : name,
  );
  return `${op.kind} ${present.join()} ${operands.join()} ${attributesText(op)}`;
}
