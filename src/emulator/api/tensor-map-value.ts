/**
 * Tensor maps as parameters. Axes are innermost first, as `cuTensorMapEncodeTiled` takes them; what is
 * left out follows from the array:
 *
 *   bf16[64, 256], { box: [64, 8] }   →   type bf16, extents [256, 64], strides [512], box of 8 rows of 64
 */
import { TilewrightError } from "../../support/diagnostics.ts";
import type { Location } from "../../support/location.ts";
import { isRecord, optionText, requireKnownOptions } from "../../support/options.ts";
import { encodeTensorMap, tensorMapTypeOf, tensorMapTypes } from "../tensor-map.ts";
import type { TensorMap, TensorMapType } from "../tensor-map.ts";
import type { EmulatedArray } from "./array.ts";

/** Settings of a tensor map, as `cuTensorMapEncodeTiled` takes them. */
export interface TensorMapSettings {
  /** Elements of the box along each axis, innermost first; of an im2col map channels and pixels. */
  readonly box: readonly number[];
  /** Of an im2col map: the box of pixels, as `cuTensorMapEncodeIm2col` takes it. */
  readonly corners?: TensorMap["corners"];
  /** Bytes within which rows of the box are swizzled in shared memory; 0 unless given. */
  readonly swizzle?: TensorMap["swizzle"] | undefined;
  /** What a load gives for elements outside of the array; "zero" unless given. */
  readonly fill?: TensorMap["fill"] | undefined;
  /** Of the box's elements along each axis every so many are copied; 1 unless given. */
  readonly elementStrides?: readonly number[] | undefined;
  /** Of the array, unless it is to be seen in another way. */
  readonly type?: TensorMapType | undefined;
  /** Extents of the axes, innermost first; those of the array unless given. */
  readonly extents?: readonly number[] | undefined;
  /** In bytes, of every axis but the innermost. */
  readonly strides?: readonly number[] | undefined;
}

const settingNames: { readonly [N in keyof TensorMapSettings]-?: true } = {
  box: true,
  corners: true,
  swizzle: true,
  fill: true,
  elementStrides: true,
  type: true,
  extents: true,
  strides: true,
};

/** Refuses settings that are no settings, where types were erased. */
export function requireTensorMapSettings(settings: TensorMapSettings, location: Location): void {
  requireKnownOptions("tensorMap", settings, Object.keys(settingNames), "TW4015", location);
  for (const name of ["box", "extents", "strides", "elementStrides"] as const) {
    const value: unknown = settings[name];
    if (!isNumbers(value) && (value !== undefined || name === "box"))
      throw impossibleSetting(name, "a list of numbers", value, location);
  }
  const { corners, swizzle = 0, fill = "zero", type } = settings;
  if (
    corners !== undefined &&
    !(isRecord(corners) && isNumbers(corners.lower) && isNumbers(corners.upper))
  )
    throw impossibleSetting(
      "corners",
      "{ lower, upper }, a list of numbers each",
      corners,
      location,
    );
  if (![0, 32, 64, 128].includes(swizzle))
    throw impossibleSetting("swizzle", "0, 32, 64 or 128", swizzle, location);
  if (!["zero", "nan"].includes(fill))
    throw impossibleSetting("fill", `"zero" or "nan"`, fill, location);
  if (type !== undefined && !tensorMapTypes.includes(type))
    throw impossibleSetting("type", tensorMapTypes.join(", "), type, location);
}

function isNumbers(value: unknown): boolean {
  return Array.isArray(value) && value.every(Number.isSafeInteger);
}

function impossibleSetting(
  name: string,
  expected: string,
  value: unknown,
  location: Location,
): TilewrightError {
  return new TilewrightError({
    code: "TW4016",
    message: `${name} of tensorMap cannot be ${optionText(value)}`,
    location,
    expected,
    found: optionText(value),
  });
}

/** A tensor map of an array, for a parameter of 128 bytes. */
export class TensorMapValue {
  /** The array that it describes. */
  readonly array: EmulatedArray;
  /** As the hardware encodes it, for kernels that find their maps in memory. */
  readonly bytes: Uint8Array;

  /** @internal */
  constructor(array: EmulatedArray, settings: TensorMapSettings) {
    this.array = array;
    this.bytes = encodeTensorMap(mapOf(array, settings));
    Object.freeze(this);
  }
}

/** The map of an array at an address. */
export function mapOf(
  { address, dtype, shape }: Pick<EmulatedArray, "address" | "dtype" | "shape">,
  settings: TensorMapSettings,
): TensorMap {
  const { box, corners, swizzle = 0, fill = "zero", elementStrides } = settings;
  // Of 4-bit formats a byte holds two elements, which lie side by side.
  const inner = (shape.at(-1) ?? 1) * (dtype.bits === 4 ? 0.5 : 1);
  const elements = [inner, ...shape.slice(0, -1).reverse()];
  const extents = settings.extents ?? elements;
  let bytes = Math.max(1, dtype.bits / 8);
  const strides = elements.slice(0, -1).map((extent) => (bytes *= extent));
  return {
    type: settings.type ?? tensorMapTypeOf[dtype.name],
    address,
    extents,
    strides: settings.strides ?? strides,
    box,
    corners,
    elementStrides,
    swizzle,
    fill,
  };
}
