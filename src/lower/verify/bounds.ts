/**
 * Whether every bound is tested or follows from facts, and whether every unit is one that its access can be made by. What
 * is asked of a window is asked of facts again: that elements lie inside what it was cut from, on both sides, for each
 * window on the way to the array.
 *
 *   slice_ref %x offsets(%i) {sizes = [64], dropped = [], guard = []}      %i is below n, not below n − 63
 */
import type { AccessOp } from "../../ir/indexed.ts";
import { factsOf } from "../../ir/range-analysis/index.ts";
import type { Facts } from "../../ir/range-analysis/index.ts";
import type { AnyOp, Kernel, Op, PlacedFor, Value } from "../../ir/node.ts";
import { countUses } from "../../ir/rewrite/analysis.ts";
import { sizeText } from "../../ir/size.ts";
import { reject } from "../../ir/verify/report.ts";
import { pairProblem } from "../../layout/access/cp-async.ts";
import { testedIndexText, unprovedIndices } from "../../layout/access/gathers.ts";
import { unprovedPlaces } from "../../layout/access/indexed-barriers.ts";
import { accessOf, accessesByThreads, requestsOf } from "../../layout/access/memory-accesses.ts";
import type { AccessSetting } from "../../layout/access/memory-accesses.ts";
import { boundText, namedBounds } from "../../layout/access/slice.ts";
import type { StatedBound, Testing } from "../../layout/access/slice.ts";
import { parseUnits, unitProblem } from "../../layout/access/unit.ts";
import { unproved, WindowModel } from "../../layout/access/window-model.ts";
import { windowOfAccess } from "../../layout/access/window.ts";
import type { Index, Sides } from "../../layout/access/window.ts";
import { walkAgents } from "./walk.ts";

export function verifyBounds(kernel: Kernel, { target }: PlacedFor): void {
  const facts = factsOf(kernel);
  const windows = new WindowModel(kernel, facts, (op) => tested(op, facts));
  const uses = countUses(kernel.body);
  walkAgents(kernel, (op, { warps }) => {
    if (op.kind === "slice_ref") for (const result of op.results) windows.of(result);
    verifyPlaces(op, kernel, facts);
    if (!accessesByThreads(op)) return;
    if ("indices" in op.operands) verifyIndices(op as AccessOp, facts);
    verifyUnits(op, windows, { target, warps, isUsed: (value) => uses.has(value) });
  });
}

/** What the slice says that it tests, as far as that is enough. */
function tested(op: Op<"slice_ref">, facts: Facts): Testing<Index> {
  const { guard = [] } = op.attributes;
  const named = namedBounds(guard);
  if (named === undefined)
    return reject(op, "TW6209", `a guard names no bound`, {
      expected: "an axis, its level, and the side: 0 below",
      found: guard.join(),
    });
  return (stated) => {
    const sides = named.get(`${stated.axis} ${stated.level}`) ?? { low: false, high: false };
    const open = unproved(facts, stated);
    const left = { low: open.low && !sides.low, high: open.high && !sides.high };
    if (left.low || left.high) refuse(op, stated, left);
    return sides;
  };
}

function refuse(op: AnyOp, stated: StatedBound<Index>, left: Sides): never {
  const { axis, count, size } = stated;
  return reject(
    op,
    "TW6209",
    `${sizeText(count)} elements along axis ${axis} may lie outside of ${sizeText(size)}, and nothing tests it`,
    { expected: `{guard = ["${boundText(stated, left)}"]}`, found: guardText(op) },
  );
}

function guardText(op: AnyOp): string {
  const { guard = [] } = op.attributes as { readonly guard?: readonly string[] };
  return `{guard = [${guard.map((each) => JSON.stringify(each)).join(", ")}]}`;
}

function verifyIndices(op: AccessOp, facts: Facts): void {
  const { guard = [] } = op.attributes;
  for (const position of unprovedIndices(op, facts)) {
    const text = testedIndexText(position);
    if (!guard.includes(text))
      reject(op, "TW6209", `indices of ${op.kind} may lie outside, and nothing tests them`, {
        expected: `{guard = ["${text}"]}`,
        found: guardText(op),
      });
  }
}

function verifyPlaces(op: AnyOp, kernel: Kernel, facts: Facts): void {
  const { guard = [] } = op.attributes as { readonly guard?: readonly string[] };
  const untested = unprovedPlaces(op, kernel, facts).find(({ text }) => !guard.includes(text));
  if (untested === undefined) return;
  reject(op, "TW6209", `an index of ${op.kind} may lie outside, and nothing tests it`, {
    expected: `{guard = ["${untested.text}"]}`,
    found: guardText(op),
  });
}

function verifyUnits(op: AnyOp, windows: WindowModel, setting: AccessSetting): void {
  const windowOf = (ref: Value) => windowOfAccess(op, windows.of(ref));
  const requests = requestsOf(op, setting, windowOf);
  const accesses = requests.map((request) => accessOf(request, windowOf(request.ref), setting));
  const [first] = accesses;
  if (first === undefined) return;
  const { unit: text = "" } = op.attributes as { readonly unit?: string };
  const units = parseUnits(text, first.window.dtype.bits) ?? [];
  if (units.length !== accesses.length)
    reject(op, "TW6209", `${op.kind} has no unit for each of its accesses`, {
      expected: `${accesses.length} units`,
      found: text,
    });
  accesses.forEach((access, position) => {
    const unit = units[position];
    const problem = unit && unitProblem(access, unit);
    if (problem !== undefined)
      reject(op, "TW6209", `${op.kind} cannot be made by ${text}: ${problem}`, {
        expected: "a unit that the window and the layout allow",
        found: text,
      });
  });
  if (op.kind !== "copy_async" || op.attributes.by !== "cp.async") return;
  const problem = pairProblem(accesses, units);
  if (problem !== undefined)
    reject(op, "TW6209", `cp.async cannot copy by ${text}: ${problem}`, {
      expected: "units that both sides have",
      found: text,
    });
}
