/**
 * The accesses that an op makes to memory, a tile on a window each: which lanes hold what, who accesses it where several
 * hold the same, and how much may be moved at once.
 *
 *   | op          | lanes hold                            | accessed by                | at once                        |
 *   |-------------|---------------------------------------|----------------------------|--------------------------------|
 *   | load        | the result                            | every lane that holds it   | 16 bytes                       |
 *   | store       | the value                             | one of those that hold it  | 16 bytes                       |
 *   | atomic      | the value                             | one of those that hold it  | an element, or a sum of several |
 *   | atomic_load | the result                            | one of those that hold it  | an element                     |
 *   | atomic_store | the value                            | one of those that hold it  | an element                     |
 *   | copy_async  | the window, spread along its rows     | one of those that hold it  | 16 bytes, on both sides        |
 *   | prefetch    | likewise                              | likewise                   | 16 bytes                       |
 */
import { isEngineCopy } from "../../ir/ops/asynchronous.ts";
import type { DType } from "../../formats/dtype.ts";
import type { AccessOp } from "../../ir/indexed.ts";
import type { AnyOp, Op, Value } from "../../ir/node.ts";
import type { UnitKind } from "../../ir/ops.ts";
import type { Target } from "../../targets/target.ts";
import { laneMask } from "../algebra/index-bits.ts";
import { replicatedLayout } from "../algebra/register-layout.ts";
import type { DistributedLayout, RegisterLayout } from "../algebra/register-layout.ts";
import { memoryLayouts } from "../model/register-candidates.ts";
import { layoutOf } from "../model/placed-types.ts";
import { acquires, statedOrder } from "../../ir/traits.ts";
import { refOf } from "../../ir/traverse.ts";
import { gatheredTile } from "./gathers.ts";
import type { TileAccess } from "./affine-access.ts";
import { widestBits } from "./contiguous-registers.ts";
import type { GlobalBox, MemoryWindow } from "./window.ts";

/** Who runs an op, on what, and whether anybody reads its results. */
export interface AccessSetting {
  readonly target: Target;
  /** Warps that run it together. */
  readonly warps: number;
  readonly isUsed: (value: Value) => boolean;
}

/** What is asked of a window. */
export interface AccessRequest {
  readonly ref: Value;
  readonly layout: DistributedLayout | undefined;
  readonly shape: readonly number[];
  /** Whether only one of the lanes that hold an element accesses it. */
  readonly once: boolean;
  /** The most elements that are accessed at once. */
  readonly widest: number;
  /** Whether the access may be made by matrices. */
  readonly matrices: boolean;
  /** The access whose index tiles and mask pick elements, where it may have some. */
  readonly op: AccessOp | undefined;
}

/** A window as far as lanes are spread over it. */
type SpreadWindow =
  | Pick<GlobalBox, "kind" | "dtype" | "axes" | "array">
  | { readonly kind: "shared" | "reshaped"; readonly dtype: DType };

/** The windows of a kernel, as whoever asks follows them. */
export type WindowOf = (ref: Value) => SpreadWindow;

type Rules = {
  readonly [K in UnitKind]: (
    op: Op<K>,
    setting: AccessSetting,
    windowOf: WindowOf,
  ) => readonly AccessRequest[];
};

const requestRules: Rules = {
  address_of: ({ operands: { ref } }) => [
    { ref, layout: undefined, shape: [], once: false, widest: 1, matrices: false, op: undefined },
  ],
  load: (op) => {
    const [result] = op.results;
    return [request(op.operands.ref, heldBy(result), { once: false, op })];
  },
  store: (op, { target }) => [
    // Every target loads matrices; storing them came with sm_90.
    request(op.operands.ref, heldBy(op.operands.value), {
      matrices: target.architecture >= 90,
      op,
    }),
  ],
  atomic: (op, setting) => {
    const { value, ref } = op.operands;
    const widest = addedAtOnce(op, setting);
    return [{ ref, ...heldBy(value), once: true, widest, matrices: false, op }];
  },
  atomic_compare_exchange: (op) => {
    const { value, ref } = op.operands;
    return [{ ref, ...heldBy(value), once: true, widest: 1, matrices: false, op }];
  },
  atomic_load: (op) => {
    const { ref } = op.operands;
    return [{ ref, ...heldBy(op.results[0]), once: true, widest: 1, matrices: false, op }];
  },
  atomic_store: (op) => {
    const { value, ref } = op.operands;
    return [{ ref, ...heldBy(value), once: true, widest: 1, matrices: false, op }];
  },
  copy_async: (op, setting, windowOf) => {
    const { source, destination } = op.operands;
    const [far, near] =
      refOf(source).space === "gmem" ? [source, destination] : [destination, source];
    const shape = refOf(near).shape.map(Number);
    const layout = copyLayout(windowOf(far), shape, setting);
    const matrices = op.attributes.by === "plain" && setting.target.architecture >= 90;
    return [far, near].map((ref) => request(ref, { layout, shape }, { matrices }));
  },
  prefetch: (op, { warps }) => {
    const { ref } = op.operands;
    const { dtype, shape: sizes } = refOf(ref);
    const shape = sizes.map(Number);
    const extent = { shape, bits: dtype.bits, warps };
    const [layout] = shape.length === 0 ? [] : memoryLayouts(extent, shape.length - 1);
    return [request(ref, { layout: layout && distributed(layout), shape }, { matrices: false })];
  },
};

/** Whatever the op moves, as much of it at once as there can be, by one of the lanes that hold it. */
function request(
  ref: Value,
  { layout, shape }: Pick<AccessRequest, "layout" | "shape">,
  {
    once = true,
    matrices = true,
    op,
  }: { readonly once?: boolean; readonly matrices?: boolean; readonly op?: AccessOp },
): AccessRequest {
  const widest = widestBits / refOf(ref).dtype.bits;
  return { ref, layout, shape, once, widest, matrices, op };
}

/** Where lanes hold a tile; a scalar is one element of every lane. */
function heldBy(value: Value | undefined): Pick<AccessRequest, "layout" | "shape"> {
  if (value?.type.kind !== "tile") return { layout: undefined, shape: [] };
  const layout = layoutOf(value);
  const { shape } = value.type;
  return { layout: layout.kind === "splat" ? replicatedLayout : layout, shape };
}

/** Lanes side by side along the rows of the window in global memory. */
function copyLayout(
  far: SpreadWindow,
  shape: readonly number[],
  { warps }: AccessSetting,
): DistributedLayout {
  const contiguous =
    far.kind === "global" ? far.axes.findIndex(({ root }) => far.array[root]?.stride === 1) : -1;
  const axis = contiguous < 0 ? shape.length - 1 : contiguous;
  const layouts = memoryLayouts({ shape, bits: far.dtype.bits, warps }, axis);
  const [layout] = layouts.filter(({ kind }) => kind !== "splat");
  if (layout === undefined) throw new Error("no layout for a copy");
  return distributed(layout);
}

function distributed(layout: RegisterLayout): DistributedLayout {
  if (layout.kind === "splat") throw new Error("a window is spread over lanes");
  return layout;
}

/** Sums of floats up to 32 bits that nobody asks the old values of: 16 bytes, or a word of shared memory. */
function addedAtOnce(op: Op<"atomic">, { target, isUsed }: AccessSetting): number {
  const { attributes, operands, results } = op;
  const { dtype, space } = refOf(operands.ref);
  const packed = dtype.name === "f32" || dtype.name === "f16" || dtype.name === "bf16";
  const sideBySide =
    attributes.fn === "add" &&
    !acquires(statedOrder(op)) &&
    packed &&
    target.architecture >= 90 &&
    results.every((result) => !isUsed(result)) &&
    operands.value.type.kind === "tile";
  if (!sideBySide) return 1;
  return (space === "gmem" ? widestBits : wordBits) / dtype.bits;
}

const wordBits = 32;

/** The accesses of an op by lanes; none for an op that makes none. */
export function requestsOf(
  op: AnyOp,
  setting: AccessSetting,
  windowOf: WindowOf,
): readonly AccessRequest[] {
  if (!accessesByThreads(op)) return [];
  // TypeScript cannot see that the rule and the op share their kind.
  const rule = requestRules[op.kind as UnitKind] as (
    op: AnyOp,
    setting: AccessSetting,
    windowOf: WindowOf,
  ) => readonly AccessRequest[];
  return rule(op, setting, windowOf);
}

function isUnitKind(op: AnyOp): op is AnyOp & { readonly kind: UnitKind } {
  return op.kind in requestRules;
}

/** Whether lanes access memory for the op, so that it has a unit; TMA needs none. */
export function accessesByThreads(op: AnyOp): boolean {
  return isUnitKind(op) && !(op.kind === "copy_async" && isEngineCopy(op.attributes));
}

/** The lanes, as bits of their number, that hold copies of what others hold. */
export function copiesAmong(layout: DistributedLayout | undefined, warps: number): number {
  const all = laneMask(warps);
  return (layout === undefined ? all : layout.replicated) & all;
}

/** The access as facts know it. */
export function accessOf(
  { layout, shape, once, widest, matrices, op }: AccessRequest,
  window: MemoryWindow,
  { warps }: AccessSetting,
): TileAccess {
  const together = !once || copiesAmong(layout, warps) === 0;
  const ownBlock = window.kind === "shared" && !window.ofPeer;
  return {
    window,
    layout,
    shape,
    widest,
    matrices: matrices && together && ownBlock,
    gather: op && gatheredTile(op, layout, shape),
  };
}
