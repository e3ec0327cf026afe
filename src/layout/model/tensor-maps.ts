/**
 * Tensor maps: what TMA must know of an array before it copies boxes of it. A map describes the whole array; a
 * box is one tile of the shared window, and its coordinates say where in the array it lies. Axes of the map are in the
 * order of the shared bytes, innermost first:
 *
 *   a bf16 [m, k], window rows 128 by depth 64 into shared(tile 128 64, swizzle 128)
 *     map "load 64 of k, 128 of m every 2 * k bytes, swizzle 128"
 *
 * The text is what a placed kernel says of a copy, and of a `prefetch_maps` that asks for it ahead. Of one array, equal texts
 * mean equal maps.
 */
import { f32, i64, tf32, u64, u8 } from "../../formats/dtype.ts";
import type { DType } from "../../formats/dtype.ts";
import type { Kernel, Op, Value } from "../../ir/node.ts";
import { ceilDivSize, multiplySizes, sizeText } from "../../ir/size.ts";
import type { Size } from "../../ir/size.ts";
import { walkOps } from "../../ir/traverse.ts";
import type { GlobalBox } from "../access/window.ts";
import type { Swizzle } from "../algebra/shared-layout.ts";
import { tiledAxes } from "../algebra/shared-view.ts";
import type { SharedView } from "../algebra/shared-view.ts";
import { copyWindows, isRounded } from "./copy-methods.ts";
import { storedAs } from "./placed-types.ts";
import type { SharedWindow, Windows } from "./windows.ts";

export interface MapAxis {
  /** The axis of the array. */
  readonly root: number;
  /** The window's axis, for those that were not dropped. */
  readonly window: number | undefined;
  readonly extent: Size;
  readonly box: number;
  /** In bytes; elements of the innermost axis lie side by side. */
  readonly stride: Size;
}

export interface TensorMap {
  /** The parameter or scratch that it describes. */
  readonly root: Value;
  /** What TMA takes the elements for. */
  readonly dtype: DType;
  readonly axes: readonly MapAxis[];
  readonly swizzle: Swizzle;
  readonly fill: "zero" | "nan";
  readonly use: "load" | "store";
  readonly text: string;
}

/** Elements of the array that one of the map's holds: those of 4 bits are copied as bytes. */
export function elementsPerUnit({ bits }: DType): number {
  return bits < 8 ? 8 / bits : 1;
}

/** Maps that were asked for, of the ops of a kernel and what is known of its windows. */
const knownMaps = new WeakMap<Windows, Map<Op<"copy_async">, TensorMap>>();

/** The map of a copy that is made by one. */
export function tensorMapOf(op: Op<"copy_async">, windows: Windows): TensorMap {
  const known = knownMaps.get(windows) ?? new Map<Op<"copy_async">, TensorMap>();
  knownMaps.set(windows, known);
  const map = known.get(op) ?? describedMap(op, windows);
  known.set(op, map);
  return map;
}

function describedMap(op: Op<"copy_async">, windows: Windows): TensorMap {
  const { global, shared, intoShared } = copyWindows(op, windows);
  const { box, dtype, root } = global;
  const view = sharedView(shared, windows);
  if (box === undefined) throw new Error("a tensor copy of what is no box of an array");
  const { fill, reduction } = op.attributes;
  const map = {
    root,
    dtype: isRounded(op) ? tf32 : unitOf(dtype, reduction),
    axes: mapAxes(box, view),
    swizzle: view.layout.swizzle,
    fill,
    use: intoShared ? "load" : "store",
  } as const;
  return { text: mapText(map, dtype), ...map };
}

/** The shared window of a copy that is made by a map. */
function sharedView(shared: SharedWindow, windows: Windows): SharedView {
  const layout = storedAs(windows.definitions.get(shared.root));
  const [view] = (layout && shared.views(layout)) ?? [];
  if (view === undefined) throw new Error("a tensor copy of a window that cannot be described");
  return view;
}

/**
 * What TMA takes the elements for: it has no sum of signed 64-bit numbers, which is that of unsigned ones, and what it
 * took for tf32 it would round, and change the bits of NaNs.
 */
function unitOf(dtype: DType, reduction: Op<"copy_async">["attributes"]["reduction"]): DType {
  if (dtype.bits < 8) return u8;
  if (dtype === tf32) return f32;
  return reduction === "add" && dtype === i64 ? u64 : dtype;
}

function mapAxes({ array, axes, dtype }: GlobalBox, view: SharedView): readonly MapAxis[] {
  const tiled = tiledAxes(view)?.axes ?? [];
  const kept = axes.map(({ root }, window) => {
    const { inner = 1, step = 0 } = tiled[window] ?? {};
    return { root, window, inner, step: inner > 1 ? step : Infinity };
  });
  const dropped = array.flatMap((_, root) =>
    kept.some((axis) => axis.root === root)
      ? []
      : [{ root, window: undefined, inner: 1, step: Infinity }],
  );
  const contiguous = (root: number): boolean => array[root]?.stride === 1;
  const sorted = [...kept, ...dropped].sort((left, right) => {
    const first = Number(contiguous(right.root)) - Number(contiguous(left.root));
    return first !== 0
      ? first
      : left.step === right.step
        ? right.root - left.root
        : left.step - right.step;
  });
  const unit = elementsPerUnit(dtype);
  return sorted.map(({ root, window, inner }, index) => {
    const { extent = 1, stride = 1 } = array[root] ?? {};
    const within = index === 0 ? unit : 1;
    return {
      root,
      window,
      extent: ceilDivSize(extent, within),
      box: inner / within,
      stride: multiplySizes(ceilDivSize(stride, unit), Math.max(1, dtype.bits / 8)),
    };
  });
}

function mapText(map: Omit<TensorMap, "text">, dtype: DType): string {
  const axes = map.axes.map(({ box, extent, stride }, index) => {
    const every = index === 0 ? "" : ` every ${sizeText(stride)} bytes`;
    return `${box} of ${sizeText(extent)}${every}`;
  });
  return [
    `${map.use} ${axes.join(", ")}`,
    ...(map.swizzle === 0 ? [] : [`swizzle ${map.swizzle}`]),
    ...(map.fill === "zero" ? [] : [`outside ${map.fill}`]),
    ...(map.dtype === dtype ? [] : [`as ${map.dtype.name}`]),
  ].join(", ");
}

/** The maps by which a placed kernel copies, each once, by the array that it describes and its text. */
export function tensorMaps(
  { body }: Kernel,
  windows: Windows,
): ReadonlyMap<Value, ReadonlyMap<string, TensorMap>> {
  const maps = new Map<Value, Map<string, TensorMap>>();
  walkOps(body, (op) => {
    if (op.kind !== "copy_async" || op.attributes.by !== "tensor") return;
    const map = tensorMapOf(op, windows);
    const ofArray = maps.get(map.root) ?? new Map<string, TensorMap>();
    maps.set(map.root, ofArray.set(map.text, map));
  });
  return maps;
}
