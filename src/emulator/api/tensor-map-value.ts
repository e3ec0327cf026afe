/**
 * Tensor maps as parameters. Axes are innermost first, as `cuTensorMapEncodeTiled` takes them; what is
 * left out follows from the array:
 *
 *   bf16[64, 256], { box: [64, 8] }   →   type bf16, extents [256, 64], strides [512], box of 8 rows of 64
 */
import { tensorMapProblem, tensorMapTypeOf } from "../tensor-map.ts";
import type { TensorMap, TensorMapType } from "../tensor-map.ts";
import { TilewrightError } from "../../support/diagnostics.ts";
import type { EmulatedArray } from "./array.ts";

export interface TensorMapSettings {
  /** Elements of the box along each axis, innermost first. */
  readonly box: readonly number[];
  /** Bytes within which rows of the box are swizzled in shared memory; 0 unless given. */
  readonly swizzle?: TensorMap["swizzle"];
  /** What a load gives for elements outside of the array; "zero" unless given. */
  readonly fill?: TensorMap["fill"];
  /** Of the box's elements along each axis every so many are copied; 1 unless given. */
  readonly elementStrides?: readonly number[];
  /** Of the array, unless it is to be seen in another way. */
  readonly type?: TensorMapType;
  readonly extents?: readonly number[];
  /** In bytes, of every axis but the innermost. */
  readonly strides?: readonly number[];
}

/** A tensor map of an array, for a parameter of 128 bytes or in memory. */
export class TensorMapValue {
  readonly array: EmulatedArray;
  /** @internal */
  readonly map: TensorMap;

  /** @internal */
  constructor(array: EmulatedArray, settings: TensorMapSettings) {
    this.array = array;
    this.map = mapOf(array, settings);
    const problem = tensorMapProblem(this.map);
    if (problem !== undefined)
      throw new TilewrightError({
        code: "TW8050",
        message: `this tensor map is invalid: ${problem}`,
      });
    Object.freeze(this);
  }
}

function mapOf({ address, dtype, shape }: EmulatedArray, settings: TensorMapSettings): TensorMap {
  const { box, swizzle = 0, fill = "zero", elementStrides } = settings;
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
    elementStrides,
    swizzle,
    fill,
  };
}
