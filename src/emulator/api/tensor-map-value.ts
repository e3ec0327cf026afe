/**
 * Tensor maps as parameters. Axes are innermost first, as `cuTensorMapEncodeTiled` takes them; what is
 * left out follows from the array:
 *
 *   bf16[64, 256], { box: [64, 8] }   →   type bf16, extents [256, 64], strides [512], box of 8 rows of 64
 */
import { encodeTensorMap, tensorMapTypeOf } from "../tensor-map.ts";
import type { TensorMap, TensorMapType } from "../tensor-map.ts";
import type { EmulatedArray } from "./array.ts";

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
export const tensorMapSettingNames: readonly string[] = Object.keys(settingNames);

/** A tensor map of an array, for a parameter of 128 bytes. */
export class TensorMapValue {
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

function mapOf({ address, dtype, shape }: EmulatedArray, settings: TensorMapSettings): TensorMap {
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
