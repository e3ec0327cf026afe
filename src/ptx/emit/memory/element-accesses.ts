/**
 * Accesses that are made once for each element, by one of the lanes that hold it: atomic updates, and loads of what others change
 * meanwhile, which must give all holders the same. What that lane has read goes to the others (`broadcast-from-owner.ts`).
 */
import type { OpOf, Value } from "../../../ir/node.ts";
import { copiesAmong } from "../../../layout/access/memory-accesses.ts";
import { layoutOf } from "../../../layout/model/placed-types.ts";
import { lanesPerWarp } from "../../../targets/target.ts";
import type { Register } from "../../module.ts";
import { integer } from "../../operands.ts";
import type { EmitContext } from "../context.ts";
import { tileElements, tileFromElements } from "../elements.ts";
import { elementClass } from "../values.ts";
import type { PlannedAccess } from "./access.ts";
import { shareElements } from "./broadcast-from-owner.ts";
import { meetAfter, meetBefore, orderOf } from "./memory-order.ts";
import { spreadOperand } from "./tiles.ts";
import type { Unit } from "./units.ts";

/** Accesses the element of a unit, and puts what was there into `old` where anybody wants that. */
type AccessElement = (unit: Unit, operands: readonly Register[], old: Register | undefined) => void;

/** A value as the lanes hold it: a register for each of a lane's elements. */
export function heldElements(context: EmitContext, value: Value): readonly Register[] {
  return value.type.kind === "tile"
    ? tileElements(context, spreadOperand(context, value))
    : [context.scalar(value).register];
}

/** Accesses each element once and defines the result where anybody wants it; `fill`, else 0, stands where there is none. */
export function accessElements(
  op: OpOf<"atomic" | "atomic_compare_exchange" | "atomic_load">,
  context: EmitContext,
  access: PlannedAccess,
  values: readonly Value[],
  perform: AccessElement,
  fill?: Value,
): void {
  const { code } = context;
  const { dtype } = context.ref(op.operands.ref);
  const [result] = op.results;
  const wanted = result !== undefined && context.isUsed(result);
  const elements = values.map((value) => heldElements(context, value));
  const filled = fill === undefined ? [] : fillElements(context, fill);
  const { layout, format } = access;
  const type = elementClass(dtype);
  const nothing = (register: number): Register =>
    code.make(type, `mov.${type}`, filled[register] ?? filled[0] ?? integer(0));
  const order = orderOf(op);
  meetBefore(context, order);
  const olds: (Register | undefined)[] = Array.from({ length: format.registers }, () => undefined);
  for (const unit of access.units()) {
    const [register = 0] = unit.registers;
    if (wanted) olds[register] = nothing(register);
    const operands = elements.flatMap((own) => own[register] ?? []);
    perform(unit, operands, olds[register]);
  }
  if (!wanted) {
    meetAfter(context, order);
    return;
  }
  // Elements that are known to lie outside have no unit: what stands where lanes find that out.
  const all = olds.map((old, register) => old ?? nothing(register));
  const reason = op.kind === "atomic_load" ? "what one lane has read" : undefined;
  const shared = shareElements(context, op, dtype, layout, all, reason);
  // Lanes of several warps have met where they were given what one has read.
  if (copiesAmong(layout, context.scope.warps) < lanesPerWarp) meetAfter(context, order);
  if (result.type.kind === "tile") {
    const form = { dtype, shape: result.type.shape, layout: layoutOf(result) };
    context.define(result, tileFromElements(context, form, shared));
  } else {
    const [register] = shared;
    if (register !== undefined) context.define(result, { kind: "scalar", dtype, register });
  }
}

/** What stands where nothing is read: a register for each element, or one for all. */
function fillElements(context: EmitContext, fill: Value): readonly Register[] {
  if (fill.type.kind !== "tile") return [context.scalar(fill).register];
  const tile = context.tile(fill);
  return tileElements(context, tile).slice(0, tile.layout.kind === "splat" ? 1 : undefined);
}
