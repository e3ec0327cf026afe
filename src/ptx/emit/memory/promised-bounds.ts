/**
 * Access that is promised to be in bounds. Code for GPUs tests nothing of it; code for the emulator tests what would be masked, and traps,
 * which the emulator tells as what it is:
 *
 *   x: [n]   x.at(slice(i, 64)).load({ inBounds: true })            i < 0 or i + 64 > n                     trap
 *            x.at(slice(i, 64)).load({ where, inBounds: true })     an element that `where` names, outside  trap
 *
 * Indices, and windows that must lie inside anyway, are asked for as ever then (`bounds-traps.ts`, `gathers.ts`).
 */
import type { AnyOp, Value } from "../../../ir/node.ts";
import { inBoundsText, isPromisedInside } from "../../../ir/promises.ts";
import { accessesOf } from "../../../ir/traits.ts";
import { accessesByThreads, requestsOf } from "../../../layout/access/memory-accesses.ts";
import type { AccessRequest } from "../../../layout/access/memory-accesses.ts";
import { insideAxes, windowShape } from "../../../layout/access/window.ts";
import type { Register } from "../../module.ts";
import { integer } from "../../operands.ts";
import type { EmitContext } from "../context.ts";
import type { RefValue } from "../values.ts";
import { elementAccess } from "./element-units.ts";
import { gatherOf } from "./gathers.ts";
import { addIndex, indexRegister, sizeIndex } from "./positions.ts";

/** The window as an access sees it that is promised to be inside. */
export function insideRef(window: RefValue): RefValue {
  if (window.kind === "shared") return { ...window, required: [] };
  const axes = insideAxes(window.axes);
  if (window.kind === "global") return { ...window, axes, required: [] };
  return { ...window, axes, required: [], source: insideRef(window.source) };
}

/** Traps where what the op accesses is not inside, as it was promised; in code that tests promises. */
export function checkInBounds(context: EmitContext, op: AnyOp): void {
  if (!context.checksPromises || !isPromisedInside(op)) return;
  const { position } = op.location;
  context.messages.push({ kind: "promise", text: inBoundsText, values: [], position });
  const setting = {
    target: context.target,
    warps: context.scope.warps,
    isUsed: context.isUsed.bind(context),
  };
  const requests = accessesByThreads(op) ? requestsOf(op, setting, (ref) => context.ref(ref)) : [];
  const picking = requests.filter(isPicking);
  for (const request of picking) trapWhere(context, brokenByElement(context, request));
  const picked = new Set(picking.map(({ ref }) => ref));
  const whole = new Set(
    accessesOf(op).flatMap(({ value }) => (value.type.kind === "ref" ? [value] : [])),
  );
  for (const ref of whole) if (!picked.has(ref)) trapWhere(context, brokenByWindow(context, ref));
}

function trapWhere({ code }: EmitContext, broken: readonly Register[]): void {
  for (const each of broken)
    code.guarded(each, () => {
      code.emit("trap", [], "a promise does not hold");
    });
}

/** Whether a mask or indices say which elements are accessed. */
function isPicking({ op }: AccessRequest): boolean {
  return op !== undefined && (op.operands.indices.length > 0 || op.operands.where !== undefined);
}

/** Where a window that is accessed as a whole leaves what it was cut from. */
function brokenByWindow(context: EmitContext, ref: Value): readonly Register[] {
  const { code } = context;
  const broken: Register[] = [];
  for (let window = context.ref(ref); window.kind !== "shared"; window = window.source) {
    for (const { size: count, bounds } of window.axes)
      for (const { start, size, low, high } of bounds) {
        const first = indexRegister(context, start);
        if (low) broken.push(code.make("pred", "setp.lt.s32", first, integer(0)));
        if (!high) continue;
        const own = sizeIndex(context, count);
        const end = indexRegister(context, addIndex(context, start, own));
        const limit = indexRegister(context, sizeIndex(context, size));
        broken.push(code.make("pred", "setp.gt.s32", end, limit));
      }
    if (window.kind === "global") break;
  }
  return broken;
}

/** Where an element that a mask or indices name lies outside. */
function brokenByElement(context: EmitContext, request: AccessRequest): readonly Register[] {
  const { code } = context;
  const { ref, layout, shape, op } = request;
  const window = context.ref(ref);
  const gather = op && gatherOf(context, op, windowShape(window), { layout, shape }, true);
  const unitsOf = (seen: RefValue) =>
    elementAccess(context, { window: seen, layout, shape, always: [], gather }).units();
  const bounded = new Map(unitsOf(window).map(({ registers: [own], guard }) => [own, { guard }]));
  return unitsOf(insideRef(window)).flatMap(({ registers: [own], guard: named }) => {
    const inside = bounded.get(own);
    if (inside === undefined)
      return [named ?? code.make("pred", "setp.eq.u32", code.constant("b32", 0), integer(0))];
    if (inside.guard === undefined || inside.guard === named) return [];
    const outside = code.make("pred", "not.pred", inside.guard);
    return [named === undefined ? outside : code.make("pred", "and.pred", outside, named)];
  });
}
