/**
 * Conversions of tiles between element types, as StableHLO has them. Kernels' `cast` does the same but for FP8, which
 * overflows to NaN (f8E4M3FN) or infinity (f8E5M2) here, and for elements of fewer bits than their format.
 */
import { dtypes, f32, u8 } from "../../../formats/dtype.ts";
import type { DType } from "../../../formats/dtype.ts";
import type { Tile } from "../../../lang/index.ts";
import type { ElementType } from "../../ops/elements.ts";
import { elements } from "../../ops/elements.ts";
import { isStorageOnly, narrowBits, storageOf } from "../storage.ts";
import { alike, constantTile, hasSign, select } from "./bits.ts";

/** An integer of fewer bits than its format has, wrapped to them. */
export function wrapped(x: Tile, element: ElementType): Tile {
  const bits = narrowBits(element);
  if (bits === undefined) return x;
  const distance = alike(x, x.dtype.bits - bits);
  return x.shl(distance).shr(distance);
}

/** The element as a number that has arithmetic. */
export function lifted(x: Tile, element: ElementType): Tile {
  return isStorageOnly(element) ? x.cast(f32) : x;
}

/** What was computed, in the format of the element: rounded to FP8 or wrapped to fewer bits where need be. */
export function settled(x: Tile, element: ElementType): Tile {
  if (!isStorageOnly(element)) return wrapped(x, element);
  return x.dtype === storageOf(element) ? x : toSmallFloat(x, element);
}

const infinityCode = 0x7c;

function toSmallFloat(x: Tile, element: ElementType): Tile {
  if (element === "f8E4M3FN") return x.cast(dtypes.f8e4m3fn, { overflow: "nan" });
  if (element !== "f8E5M2") return x.cast(requireStored(element));
  const rounded = x.cast(dtypes.f8e5m2, { overflow: "nan" });
  const code = rounded.bitcast(u8);
  const isNan = code.and(0x7f).gt(infinityCode);
  const sign = select(hasSign(x), constantTile(u8, 0x80), constantTile(u8, 0));
  const infinity = sign.or(infinityCode);
  return select(isNan.and(x.isNan().not()), infinity, code).bitcast(dtypes.f8e5m2);
}

function requireStored(element: ElementType): DType {
  const dtype = storageOf(element);
  if (dtype === undefined) throw new Error(`devices have no ${element}`);
  return dtype;
}

/** The least and the greatest number of an integer element, where it has fewer bits than its format. */
function narrowRange(element: ElementType): readonly [number, number] | undefined {
  const bits = narrowBits(element);
  if (bits === undefined) return undefined;
  return elements[element].kind === "signed"
    ? [-(2 ** (bits - 1)), 2 ** (bits - 1) - 1]
    : [0, 2 ** bits - 1];
}

export function converted(x: Tile, from: ElementType, to: ElementType): Tile {
  const target = requireStored(to);
  if (from === to) return x;
  const source = lifted(x, from);
  if (isStorageOnly(to))
    return toSmallFloat(elements[from].kind === "float" ? source : source.cast(f32), to);
  const range = elements[from].kind === "float" ? narrowRange(to) : undefined;
  // A float saturates to the element's own range, which is smaller than its format's.
  if (range !== undefined) return source.cast(target).maximum(range[0]).minimum(range[1]);
  return wrapped(source.dtype === target ? source : source.cast(target), to);
}
