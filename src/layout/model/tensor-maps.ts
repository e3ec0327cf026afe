/**
 * Tensor maps: what TMA must know of an array before it copies boxes of it. A map describes the whole array; a
 * box is one tile of the shared window, and its coordinates say where in the array it lies. Axes of the map are in the
 * order of the shared bytes, innermost first:
 *
 *   a bf16 [m, k], window rows 128 by depth 64 into shared(tile 128 64, swizzle 128)
 *     map "load 64 of k, 128 of m every 2 * k bytes, swizzle 128"
 *
 * Boxes at the ends of long axes may have fewer elements, and then have a map of their own. The text is what a placed kernel says of a copy, and of a `prefetch_maps` that asks for it ahead. Of one array, equal texts
 * mean equal maps.
 */
import { f32, i64, tf32, u32, u64, u8 } from "../../formats/dtype.ts";
import type { DType } from "../../formats/dtype.ts";
import type { Kernel, Op, Value } from "../../ir/node.ts";
import { ceilDivSize, multiplySizes, sizeText } from "../../ir/size.ts";
import type { Size } from "../../ir/size.ts";
import { walkOps } from "../../ir/traverse.ts";
import type { GlobalBox, WindowAxis } from "../access/window.ts";
import type { Swizzle } from "../algebra/shared-layout.ts";
import { tiledAxes } from "../algebra/shared-view.ts";
import type { SharedView } from "../algebra/shared-view.ts";
import { boxPlanOf, copyWindows, isRounded } from "./copy-methods.ts";
import { storedAs } from "./placed-types.ts";
import { boxesOf } from "./tensor-boxes.ts";
import type { Box, MapGroup } from "./tensor-boxes.ts";
import type { SharedWindow, Windows } from "./windows.ts";

export interface MapAxis {
  /** The axes of the array that it stands for, outermost first: one, unless the array has more than a map can have. */
  readonly roots: readonly MapRoot[];
  readonly extent: Size;
  readonly box: number;
  /** In bytes; elements of the innermost axis lie side by side. */
  readonly stride: Size;
}

export interface MapRoot {
  /** The axis of the array. */
  readonly root: number;
  /** The window's axis, for those that were not dropped. */
  readonly window: number | undefined;
  readonly extent: Size;
  /** Whether indices may be outside, and would be those of other elements of the map's axis. */
  readonly tested: boolean;
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

/** A copy taken apart: its boxes, and the maps by which they are copied. */
export interface TensorCopy {
  readonly maps: readonly TensorMap[];
  readonly boxes: readonly (Box & { readonly map: TensorMap })[];
  /** What a placed kernel says of it. */
  readonly text: string;
}

/** Copies that were asked for, of the ops of a kernel and what is known of its windows. */
const knownCopies = new WeakMap<Windows, Map<Op<"copy_async">, TensorCopy>>();

/** The maps and boxes of a copy that is made by them. */
export function tensorCopyOf(op: Op<"copy_async">, windows: Windows): TensorCopy {
  const known = knownCopies.get(windows) ?? new Map<Op<"copy_async">, TensorCopy>();
  knownCopies.set(windows, known);
  const copy = known.get(op) ?? describedCopy(op, windows);
  known.set(op, copy);
  return copy;
}

/** Texts of several maps, one behind the other. */
const separator = "; ";

function describedCopy(op: Op<"copy_async">, windows: Windows): TensorCopy {
  const { global, shared } = copyWindows(op, windows);
  const view = sharedView(shared, windows);
  const plan = boxPlanOf(global, view);
  if (typeof plan === "string") throw new Error(`a tensor copy of a window where ${plan}`);
  const maps = new Map<string, TensorMap>();
  const boxes = boxesOf(plan, view).map((box) => {
    const size = box.sizes.join();
    const map = maps.get(size) ?? describedMap(op, windows, plan.groups, box.sizes);
    maps.set(size, map);
    return { ...box, map };
  });
  const texts = [...maps.values()].map(({ text }) => text);
  return { maps: [...maps.values()], boxes, text: texts.join(separator) };
}

/** The maps that the text of a copy names. */
export function mapTextsOf(text: string): readonly string[] {
  return text.split(separator);
}

function describedMap(
  op: Op<"copy_async">,
  windows: Windows,
  groups: readonly MapGroup[],
  sizes: readonly number[],
): TensorMap {
  const { global, shared, intoShared } = copyWindows(op, windows);
  const { box, dtype, root } = global;
  const view = sharedView(shared, windows);
  if (box === undefined) throw new Error("a tensor copy of what is no box of an array");
  const { fill, reduction } = op.attributes;
  const map = {
    root,
    dtype: isRounded(op) ? tf32 : unitOf(dtype, reduction),
    axes: mapAxes(box, view, groups, sizes),
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
 * What TMA takes the elements for: it has no sum of signed 64-bit numbers, which is that of unsigned ones, and no signed bits; and what
 * it took for tf32 it would round, and change the bits of NaNs.
 */
function unitOf(dtype: DType, reduction: Op<"copy_async">["attributes"]["reduction"]): DType {
  if (dtype.bits < 8) return u8;
  if (dtype === tf32) return f32;
  const asBits = reduction === "and" || reduction === "or" || reduction === "xor";
  if (asBits && dtype.kind === "signed") return dtype === i64 ? u64 : u32;
  return reduction === "add" && dtype === i64 ? u64 : dtype;
}

function mapAxes(
  { array, axes, dtype }: GlobalBox,
  view: SharedView,
  groups: readonly MapGroup[],
  sizes: readonly number[],
): readonly MapAxis[] {
  const tiled = tiledAxes(view)?.axes ?? [];
  const windowOf = (root: number): number | undefined => {
    const window = axes.findIndex((axis) => axis.root === root);
    return window < 0 ? undefined : window;
  };
  const described = groups.map(({ roots, extent, stride }) => {
    const [first = 0] = roots;
    const window = roots.length === 1 ? windowOf(first) : undefined;
    const { inner = 1, step = 0 } = (window === undefined ? undefined : tiled[window]) ?? {};
    return {
      roots: roots.map((root, position) => ({
        root,
        window: windowOf(root),
        extent: array[root]?.extent ?? 1,
        tested: position > 0 && mayOverhang(axes[windowOf(root) ?? -1]),
      })),
      extent,
      stride,
      size: window === undefined ? 1 : (sizes[window] ?? 1),
      step: inner > 1 ? step : Infinity,
    };
  });
  const sorted = described.toSorted((left, right) => {
    const first = Number(right.stride === 1) - Number(left.stride === 1);
    return first !== 0
      ? first
      : left.step === right.step
        ? (right.roots[0]?.root ?? 0) - (left.roots[0]?.root ?? 0)
        : left.step - right.step;
  });
  const unit = elementsPerUnit(dtype);
  return sorted.map(({ roots, extent, stride, size }, index) => {
    const within = index === 0 ? unit : 1;
    return {
      roots,
      extent: ceilDivSize(extent, within),
      box: size / within,
      stride: multiplySizes(ceilDivSize(stride, unit), Math.max(1, dtype.bits / 8)),
    };
  });
}

function mayOverhang(axis: WindowAxis | undefined): boolean {
  return axis?.bounds.some(({ low, high }) => low || high) ?? false;
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
    for (const map of tensorCopyOf(op, windows).maps) {
      const ofArray = maps.get(map.root) ?? new Map<string, TensorMap>();
      maps.set(map.root, ofArray.set(map.text, map));
    }
  });
  return maps;
}
