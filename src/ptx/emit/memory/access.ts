/**
 * The accesses of an op to memory, each by the unit that the kernel says: regular ones lane by lane with immediates and
 * vectors, all others element by element. Layouts that hold copies let one lane of each set of copies write.
 */
import type { AnyOp, Value } from "../../../ir/node.ts";
import { isPromisedInside } from "../../../ir/promises.ts";
import { regularAccess } from "../../../layout/access/affine-access.ts";
import { copiesAmong, requestsOf } from "../../../layout/access/memory-accesses.ts";
import type { AccessRequest } from "../../../layout/access/memory-accesses.ts";
import { parseUnits } from "../../../layout/access/unit.ts";
import type { Unit } from "../../../layout/access/unit.ts";
import { windowShape } from "../../../layout/access/window.ts";
import { laneMask } from "../../../layout/algebra/index-bits.ts";
import { registersPerLane } from "../../../layout/algebra/register-layout.ts";
import type { DistributedLayout } from "../../../layout/algebra/register-layout.ts";
import { refOf } from "../../../ir/traverse.ts";
import type { Location } from "../../../support/location.ts";
import type { Register } from "../../module.ts";
import { integer } from "../../operands.ts";
import type { EmitContext } from "../context.ts";
import type { GlobalValue, Position, RefValue, SharedValue } from "../values.ts";
import { elementAccess } from "./element-units.ts";
import { reshapeBox } from "./global.ts";
import { globalAccess } from "./global-units.ts";
import type { Truth } from "./guards.ts";
import type { Format } from "./loads.ts";
import { gatherOf } from "./gathers.ts";
import { insideRef } from "./promised-bounds.ts";
import { zeroPosition } from "./positions.ts";
import { sharedAccess } from "./shared-units.ts";
import { requireShort } from "./address-arithmetic.ts";
import type { Access } from "./units.ts";

/** An access, and what a tile of it is in memory. */
export interface PlannedAccess extends Access {
  readonly layout: DistributedLayout | undefined;
  readonly format: Format;
  /** Whether an instruction may move more than one element of a lane. */
  readonly several: boolean;
}

/** The accesses that the op makes, in the order of its windows. */
export function accessesBy(context: EmitContext, op: AnyOp): readonly PlannedAccess[] {
  const { target, scope } = context;
  const setting = { target, warps: scope.warps, isUsed: context.isUsed.bind(context) };
  const windowOf = (ref: Value): RefValue =>
    isPromisedInside(op) ? insideRef(context.ref(ref)) : context.ref(ref);
  const requests = requestsOf(op, setting, windowOf);
  const { unit: text = "" } = op.attributes as { readonly unit?: string };
  return requests.map((request, position) => {
    const { bits } = refOf(request.ref).dtype;
    const unit = parseUnits(text, bits)?.[position];
    if (unit === undefined) throw new Error(`nothing is decided of how ${op.kind} accesses memory`);
    const { layout, shape } = request;
    const registers = layout === undefined ? 1 : registersPerLane(layout, shape);
    const several = "elements" in unit && unit.elements > 1;
    const access = accessBy(context, { ...request, window: windowOf(request.ref) }, unit);
    return { ...access, layout, format: { bits, registers }, several };
  });
}

/** The access of an op that has one. */
export function onlyAccess(context: EmitContext, op: AnyOp): PlannedAccess {
  const [access, ...others] = accessesBy(context, op);
  if (access === undefined || others.length > 0) throw new Error(`${op.kind} has one access`);
  return access;
}

/** Whatever a view is seen through is found by coordinates of 32 bits. */
function requireCoordinates(context: EmitContext, window: RefValue, location: Location): void {
  if (window.kind !== "reshaped") return;
  for (const size of windowShape(window.source)) requireShort(context, size, location);
  requireCoordinates(context, window.source, location);
}

function accessBy(
  context: EmitContext,
  request: AccessRequest & { readonly window: RefValue },
  unit: Unit,
): Access {
  const { layout, shape, op, window } = request;
  const always = request.once ? [firstHolder(context, layout)] : [];
  const byElements = unit.kind === "elements";
  const gather = op && gatherOf(context, op, windowShape(window), { layout, shape }, byElements);
  if (byElements) requireCoordinates(context, window, op?.location ?? context.kernel.location);
  if (unit.kind === "elements")
    return elementAccess(context, { window, layout, shape, always, gather });
  const regular = regularAccess<Position, GlobalValue, SharedValue>(
    window,
    { layout, shape, gather },
    { flatten: (whole, line) => reshapeBox(context, whole, line), zero: zeroPosition },
  );
  if (regular === undefined) throw new Error(`%${request.ref.id} has no regular places`);
  const { window: box, parts, strides } = regular;
  return box.kind === "global"
    ? globalAccess(context, { window: box, parts, strides, always, gather }, unit)
    : sharedAccess(context, { window: box, parts, always, gather }, unit);
}

/** Whether the lane is the first of those that hold the same; in a warp of its own, of that warp. */
export function firstHolder(
  { code, numbers, scope }: EmitContext,
  layout: DistributedLayout | undefined,
): Truth {
  const copies = copiesAmong(layout, scope.warps);
  if (copies === 0) return true;
  if (copies === laneMask(scope.warps)) return scope.warps === 1 ? numbers.leader : numbers.elected;
  const own: Register = code.make("b32", "and.b32", numbers.index, integer(copies));
  return code.make("pred", "setp.eq.u32", own, integer(0));
}
