/**
 * Which way a window is accessed: regular ones lane by lane with immediates and vectors, all others
 * element by element. Layouts that hold copies let one lane of each set of copies write.
 */
import { laneMask, product } from "../../../layout/algebra/bits.ts";
import type { AccessOp } from "../../../ir/indexed.ts";
import type { Size } from "../../../ir/size.ts";
import type { DistributedLayout } from "../../../layout/algebra/register-layout.ts";
import type { Register } from "../../module.ts";
import { integer } from "../../operands.ts";
import type { EmitContext } from "../context.ts";
import type { GlobalValue, RefValue, SharedValue } from "../values.ts";
import { elementAccess, windowShape } from "./element-units.ts";
import { globalAccess, heldWindow, strideOf } from "./global-units.ts";
import type { Truth } from "./guards.ts";
import { scalarParts, tileParts } from "./parts.ts";
import type { TileParts } from "./parts.ts";
import { picksOf } from "./picks.ts";
import type { Picks } from "./picks.ts";
import { reshapeGlobal, reshapeShared } from "./reshape.ts";
import { sharedAccess } from "./shared-units.ts";
import { widestBits } from "./units.ts";
import type { Access } from "./units.ts";

export interface AccessRequest {
  readonly window: RefValue;
  /** Undefined for a window without axes, which every lane accesses. */
  readonly layout: DistributedLayout | undefined;
  readonly shape: readonly number[];
  /** Whether only one of the lanes that hold an element accesses it. */
  readonly once: boolean;
  /** The most elements that are accessed at once, where not as many as there can be. */
  readonly widest?: number;
  /** The access whose index tiles and mask pick elements, where it may have some. */
  readonly op?: AccessOp | undefined;
}

export function planAccess(context: EmitContext, request: AccessRequest): Access {
  const { window, layout, shape } = request;
  const always = request.once ? [firstHolder(context, layout)] : [];
  const widest = request.widest ?? widestBits / window.dtype.bits;
  // Every target loads matrices; storing them came with sm_90.
  const matrices =
    request.widest === undefined && (!request.once || context.target.architecture >= 90);
  const picks = request.op && picksOf(context, request.op, windowShape(window), { layout, shape });
  const regular = regularParts(context, window, { layout, shape, picks });
  const found = regular && regularAccess(context, regular, { always, widest, matrices, picks });
  return found ?? elementAccess(context, { window, layout, shape, always, picks });
}

interface Regular {
  readonly window: GlobalValue | SharedValue;
  readonly parts: TileParts;
  /** Along the axes that index tiles pick along. */
  readonly strides: readonly Size[];
}

function regularAccess(
  context: EmitContext,
  { window, parts, strides }: Regular,
  options: {
    readonly always: readonly Truth[];
    readonly widest: number;
    readonly matrices: boolean;
    readonly picks: Picks | undefined;
  },
): Access | undefined {
  return window.kind === "global"
    ? globalAccess(context, { window, parts, strides, ...options })
    : sharedAccess(context, { window, parts, ...options });
}

/** The window and the lanes' parts of it, where coordinates are sums; as one axis where that helps. */
function regularParts(
  context: EmitContext,
  window: RefValue,
  tile: Pick<AccessRequest, "layout" | "shape"> & { readonly picks: Picks | undefined },
): Regular | undefined {
  const { layout, shape, picks } = tile;
  if (window.kind === "reshaped") return undefined;
  const whole = { window, strides: [] };
  if (layout === undefined) return { ...whole, parts: scalarParts };
  const parts = tileParts(layout, shape);
  if (picks !== undefined && picks.axes.length > 0)
    return parts && pickedParts(window, parts, picks);
  if (parts !== undefined) return { ...whole, parts };
  const flat = [product(shape)];
  const line =
    window.kind === "shared" ? reshapeShared(window, flat) : reshapeGlobal(context, window, flat);
  const lineParts = tileParts(layout, flat);
  return line && lineParts && { ...whole, window: line, parts: lineParts };
}

/** Index tiles pick in global memory by what they add to an address, unless windows bound them besides. */
function pickedParts(
  window: GlobalValue | SharedValue,
  parts: TileParts,
  picks: Picks,
): Regular | undefined {
  if (window.kind === "shared") return undefined;
  const bounded = picks.axes.some(({ axis }) => (window.axes[axis]?.bounds.length ?? 0) > 0);
  if (bounded) return undefined;
  return { window: heldWindow(window, picks), parts, strides: strideOf(window, picks.axes) };
}

/** Whether the lane is the first of those that hold the same; in a warp of its own, of that warp. */
export function firstHolder(
  { code, numbers, scope }: EmitContext,
  layout: DistributedLayout | undefined,
): Truth {
  const all = laneMask(scope.warps);
  const copies = (layout === undefined ? all : layout.replicated) & all;
  if (copies === 0) return true;
  if (copies === all) return scope.warps === 1 ? numbers.leader : numbers.elected;
  const own: Register = code.make("b32", "and.b32", numbers.index, integer(copies));
  return code.make("pred", "setp.eq.u32", own, integer(0));
}
