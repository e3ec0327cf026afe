/**
 * Which way a window is accessed: regular ones lane by lane with immediates and vectors, all others
 * element by element. Layouts that hold copies let one lane of each set of copies write.
 */
import { product, threadsPerProgram, lanesPerWarp } from "../../../layout/algebra/bits.ts";
import type { DistributedLayout } from "../../../layout/algebra/register-layout.ts";
import type { Register } from "../../module.ts";
import { integer } from "../../operands.ts";
import type { EmitContext } from "../context.ts";
import type { GlobalValue, RefValue, SharedValue } from "../values.ts";
import { elementAccess } from "./element-units.ts";
import { globalAccess } from "./global-units.ts";
import type { Truth } from "./guards.ts";
import { scalarParts, tileParts } from "./parts.ts";
import type { TileParts } from "./parts.ts";
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
}

export function planAccess(context: EmitContext, request: AccessRequest): Access {
  const { window, layout, shape } = request;
  const always = request.once ? [firstHolder(context, layout)] : [];
  const widest = request.widest ?? widestBits / window.dtype.bits;
  // Every target loads matrices; storing them came with sm_90.
  const matrices =
    request.widest === undefined && (!request.once || context.target.architecture >= 90);
  const regular = regularParts(context, window, layout, shape);
  const found = regular && regularAccess(context, regular, { always, widest, matrices });
  return found ?? elementAccess(context, { window, layout, shape, always });
}

interface Regular {
  readonly window: GlobalValue | SharedValue;
  readonly parts: TileParts;
}

function regularAccess(
  context: EmitContext,
  { window, parts }: Regular,
  options: {
    readonly always: readonly Truth[];
    readonly widest: number;
    readonly matrices: boolean;
  },
): Access | undefined {
  return window.kind === "global"
    ? globalAccess(context, { window, parts, ...options })
    : sharedAccess(context, { window, parts, ...options });
}

/** The window and the lanes' parts of it, where coordinates are sums; as one axis where that helps. */
function regularParts(
  context: EmitContext,
  window: RefValue,
  layout: DistributedLayout | undefined,
  shape: readonly number[],
): Regular | undefined {
  if (window.kind === "reshaped") return undefined;
  if (layout === undefined) return { window, parts: scalarParts };
  const parts = tileParts(layout, shape);
  if (parts !== undefined) return { window, parts };
  const flat = [product(shape)];
  const line =
    window.kind === "shared" ? reshapeShared(window, flat) : reshapeGlobal(context, window, flat);
  const lineParts = tileParts(layout, flat);
  return line && lineParts && { window: line, parts: lineParts };
}

/** Whether the lane is the first of those that hold the same; in a warp of its own, of that warp. */
export function firstHolder(
  { code, numbers, scope }: EmitContext,
  layout: DistributedLayout | undefined,
): Truth {
  const all = (scope.oneWarp ? lanesPerWarp : threadsPerProgram) - 1;
  const copies = (layout === undefined ? all : layout.replicated) & all;
  if (copies === 0) return true;
  if (copies === all) return scope.oneWarp ? numbers.leader : numbers.elected;
  const own: Register = code.make("b32", "and.b32", numbers.index, integer(copies));
  return code.make("pred", "setp.eq.u32", own, integer(0));
}
