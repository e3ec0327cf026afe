/**
 * Ops on memory. Any layout can be loaded and stored; what it costs depends on how many bytes a lane moves
 * at once, how many sectors of global memory a warp touches, and on banks of shared memory. Reports of
 * shared memory speak of the allocation by its name.
 */
import type { AnyOp, Op, Value } from "../../ir/node.ts";
import { repetitionsOf } from "../../ir/indexed.ts";
import type { AccessOp } from "../../ir/indexed.ts";
import { opName } from "../../ir/op-names.ts";
import type { memoryOps } from "../../ir/ops/memory.ts";
import { registersPerLane } from "../algebra/register-layout.ts";
import type { RegisterLayout } from "../algebra/register-layout.ts";
import { laneMask } from "../algebra/index-bits.ts";
import { parseSharedLayout, sharedBytes, swizzlePattern } from "../algebra/shared-layout.ts";
import type { SharedLayout } from "../algebra/shared-layout.ts";
import { contiguousAxis, globalCost, SharedAccesses } from "../model/access-cost.ts";
import type { MatrixUse } from "../model/access-cost.ts";
import { memoryLayouts } from "../model/register-candidates.ts";
import { swizzleCandidates } from "../model/swizzle-candidates.ts";
import { costs } from "../model/cost.ts";
import { gatheredWindow } from "../model/gather-cost.ts";
import { globalKey } from "../model/windows.ts";
import type { GlobalWindow, SharedWindow } from "../model/windows.ts";
import { typeKey } from "./context.ts";
import type { LayoutContext } from "./context.ts";
import type { RegisterVariable, SharedVariable } from "./statements.ts";
import type { Rules } from "./values.ts";

/** Proposes layouts for the access, states its price, and asks for index tiles and the mask beside its elements. */
function access(op: AccessOp, variable: RegisterVariable, context: LayoutContext): void {
  const { windows, functions } = context.surroundings;
  const window = windows.of(op.operands.ref);
  if (window.space === "gmem") accessGlobal(op, gatheredWindow(window, op), variable, context);
  else if (op.operands.indices.length > 0) accessBanks(op, variable, context);
  else accessShared(op, window, variable, context);
  for (const { value, ...spread } of repetitionsOf(op, variable.shape))
    context.read(op, value, { kind: "image", function: functions.repeat(spread), variable });
}

function extentOf({ shape, dtype, warps }: RegisterVariable) {
  return { shape, bits: dtype.bits, warps };
}

function accessGlobal(
  op: AnyOp,
  window: GlobalWindow,
  variable: RegisterVariable,
  context: LayoutContext,
): void {
  const { shape } = variable;
  const axis = contiguousAxis(window) ?? shape.length - 1;
  context.propose(variable, "memory", memoryLayouts(extentOf(variable), axis));
  const key = `global ${typeKey(variable)} of ${globalKey(window)}`;
  context.price([variable], key, op, `global memory of ${opName(op)}`, () => {
    return (layout: RegisterLayout) => globalCost(layout, window, shape);
  });
}

function accessShared(
  op: AnyOp,
  window: SharedWindow,
  variable: RegisterVariable,
  context: LayoutContext,
): void {
  const last = variable.shape.length - 1;
  context.propose(variable, "memory", memoryLayouts(extentOf(variable), last));
  const message = `banks of shared memory for ${opName(op)}`;
  const matrices = matrixUse(op, variable, context);
  const key = `shared ${window.text}, matrices ${matrices?.apart ?? "never"}`;
  context.price([variable, context.allocation(window)], key, op, message, () => {
    const accesses = new SharedAccesses(window, matrices);
    return (registers: RegisterLayout, shared: SharedLayout) => accesses.cost(registers, shared);
  });
}

/** As accesses are emitted (`../access/memory-accesses.ts`): masks pick elements, and of lanes that hold the same one stores it. */
function matrixUse(
  op: AnyOp,
  { warps }: RegisterVariable,
  { surroundings: { target } }: LayoutContext,
): MatrixUse | undefined {
  if (op.kind === "load" && op.operands.where === undefined) return { apart: 0 };
  const stores = op.kind === "store" && op.operands.where === undefined;
  return stores && target.architecture >= 90 ? { apart: laneMask(warps) } : undefined;
}

/** Bank conflicts of a warp's indices are a matter of chance: so many of its lanes share one, on average. */
const collidingLanes = 4;

/** Shared memory picked by index tiles, element by element. */
function accessBanks(op: AnyOp, variable: RegisterVariable, context: LayoutContext): void {
  const { shape } = variable;
  context.propose(variable, "memory", memoryLayouts(extentOf(variable), shape.length - 1));
  const each = costs.sharedInstruction + collidingLanes * costs.sharedWavefront;
  const message = `banks of shared memory for ${opName(op)}`;
  context.price([variable], `banks ${shape.join()}`, op, message, () => {
    return (layout: RegisterLayout) => each * registersPerLane(layout, shape);
  });
}

function allocate(
  op: Op<"alloc"> | Op<"union_member">,
  root: Value | undefined,
  context: LayoutContext,
): void {
  if (root === undefined) return;
  const { name = opName(op), layout } = op.attributes;
  const variable = context.allocate(op, root, name);
  context.propose(variable, "memory", swizzleCandidates(variable.shape, variable.dtype.bits));
  if (op.kind === "union_member") requireOffset(op, variable, context);
  if (layout === undefined) return;
  context.pin(variable, parseSharedLayout(layout), {
    op,
    message: `${name} is stored as ${layout}`,
    pinned: true,
    relax: `remove the layout of ${name}`,
  });
}

/** A swizzle counts from multiples of its pattern, and the union begins at one. */
function requireOffset(
  op: Op<"union_member">,
  variable: SharedVariable,
  context: LayoutContext,
): void {
  const { offset } = op.attributes;
  const bytes = sharedBytes(variable.shape, variable.dtype.bits);
  const union = context.surroundings.windows.definitions.get(op.operands.union);
  const reason = {
    op: union ?? op,
    message: `${variable.label} begins at byte ${offset} of its union`,
    relax: `put ${variable.label} first in its group`,
  };
  context.require(
    [variable],
    `offset ${offset} of ${bytes}`,
    reason,
    () => (layout: SharedLayout) => {
      const pattern = swizzlePattern(layout.swizzle);
      if (offset % pattern !== 0) return `${layout.text} begins at multiples of ${pattern} bytes`;
      const whole = layout.swizzle === 0 || bytes % layout.swizzle === 0;
      return whole || `${layout.text} stores multiples of ${layout.swizzle} bytes`;
    },
  );
}

/** The value's variable for the access, which is also that of the old elements an atomic gives. */
function write(
  op: Exclude<AccessOp, Op<"load">>,
  values: readonly Value[],
  context: LayoutContext,
): void {
  const [first] = values;
  if (first?.type.kind !== "tile") return;
  const variable = context.registers(op, first.type, `what ${opName(op)} writes`);
  for (const value of values) context.read(op, value, { kind: "variable", variable });
  access(op, variable, context);
  for (const result of op.results) context.share(result, variable);
}

const nothing = (): void => undefined;

export const memoryRules: Rules<typeof memoryOps> = {
  alloc(op, context) {
    if (op.attributes.space === "smem") allocate(op, op.results[0], context);
  },
  alloc_union: nothing,
  union_member: (op, context) => {
    allocate(op, op.results[0], context);
  },
  slice_ref: nothing,
  transpose_ref: nothing,
  reshape_ref: nothing,
  peer_ref: nothing,
  address_of: nothing,
  select_ref: nothing,

  load(op, context) {
    const variable = context.define(op, op.results[0]);
    if (variable === undefined) return;
    const { fill } = op.operands;
    if (fill?.type.kind === "tile") context.read(op, fill, { kind: "variable", variable });
    access(op, variable, context);
  },
  store: (op, context) => {
    write(op, [op.operands.value], context);
  },
  atomic: (op, context) => {
    write(op, [op.operands.value], context);
  },
  atomic_compare_exchange: (op, context) => {
    write(op, [op.operands.value, op.operands.expected], context);
  },
  atomic_load: (op, context) => {
    write(op, [op.operands.fill], context);
  },
  atomic_store: (op, context) => {
    write(op, [op.operands.value], context);
  },
};
