/**
 * Arrays in formats with scales as files have them: several arrays under names that belong together. Published checkpoints have schemas of their own, which
 * are told apart by their names:
 *
 *   | schema     | arrays of NAME                                                                              | format          |
 *   |------------|---------------------------------------------------------------------------------------------|-----------------|
 *   | gpt-oss    | NAME_blocks u8 […, rows, k / 32, 16], NAME_scales u8 […, rows, k / 32]                      | mxfp4           |
 *   | modelopt   | NAME.weight u8 […, rows, k / 2], NAME.weight_scale F8_E4M3 […, rows, k / 16], NAME.weight_scale_2 F32 | nvfp4 |
 *   |            | NAME.weight F8_E4M3 […], NAME.weight_scale F32 of one number                                 | fp8Block128x128 |
 *   | deepseek   | NAME.weight F8_E4M3 [rows, k], NAME.weight_scale_inv F32 [⌈rows / 128⌉, ⌈k / 128⌉]           | fp8Block128x128 |
 *   | tilewright | NAME.FORMAT.axisN u8, a code a byte; NAME.scales u8 codes or F32; NAME.global_scale F32 []    | every one       |
 *
 * Two codes of 4 bits share a byte, the first one in its lower half. One scale for a whole array is read as scales of blocks that are all equal.
 */
import { f32, f4e2m1fn, f8e4m3fn, u8 } from "../formats/dtype.ts";
import type { DType } from "../formats/dtype.ts";
import {
  fromElements,
  fromNumbers,
  hostArray,
  storageBytes,
  toElements,
  toNumbers,
} from "../formats/hostarray.ts";
import type { HostArray } from "../formats/hostarray.ts";
import { unpackElements } from "../formats/packed.ts";
import { elementCount } from "../formats/shape.ts";
import { fp8Block128x128, mxfp4, nvfp4, scaledFormats } from "../formats/scaled/formats.ts";
import type { ScaledFormat } from "../formats/scaled/formats.ts";
import { scaledHostArray, scaledNumbers } from "../formats/scaled/host-array.ts";
import type { ScaledHostArray } from "../formats/scaled/host-array.ts";
import { scaleShape } from "../formats/scaled/layout.ts";
import { TilewrightError } from "../support/diagnostics.ts";

/** How arrays that belong together are named and laid out. */
export type ScaledSchema = "gpt-oss" | "modelopt" | "deepseek" | "tilewright";

/** Arrays of a file by name. */
export interface NamedArrays {
  readonly [name: string]: HostArray;
}

type Reader = (arrays: NamedArrays, name: string) => ScaledHostArray | undefined;

function own(arrays: NamedArrays, name: string): HostArray | undefined {
  return Object.hasOwn(arrays, name) ? arrays[name] : undefined;
}

/** The bytes of an array as elements of another format; those of 4 bits are two a byte. */
function recast(array: HostArray, dtype: DType, shape: readonly number[]): HostArray {
  const bytes = storageBytes(array.data);
  return fromElements(dtype, shape, unpackElements(dtype, bytes, elementCount(shape)));
}

const readers: { readonly [S in ScaledSchema]: Reader } = {
  "gpt-oss": (arrays, name) => {
    const [blocks, scales] = [own(arrays, `${name}_blocks`), own(arrays, `${name}_scales`)];
    if (blocks?.dtype !== u8 || scales?.dtype !== u8) return undefined;
    const [count = 0, width] = blocks.shape.slice(-2);
    if (width !== 16 || blocks.shape.slice(0, -1).join() !== scales.shape.join()) return undefined;
    const shape = [...blocks.shape.slice(0, -2), count * 32];
    const codes = recast(scales, mxfp4.scale, scales.shape);
    return scaledHostArray(mxfp4, recast(blocks, f4e2m1fn, shape), codes);
  },
  modelopt: (arrays, name) => {
    const [weight, scale, whole] = ["weight", "weight_scale", "weight_scale_2"].map((part) =>
      own(arrays, `${name}.${part}`),
    );
    if (weight === undefined || scale === undefined) return undefined;
    if (weight.dtype === f8e4m3fn && scale.dtype === f32 && elementCount(scale.shape) === 1)
      return withOneScale(weight, toNumbers(scale)[0] ?? NaN);
    if (weight.dtype !== u8 || scale.dtype !== f8e4m3fn || whole?.dtype !== f32) return undefined;
    const [bytes = 0] = weight.shape.slice(-1);
    const elements = recast(weight, f4e2m1fn, [...weight.shape.slice(0, -1), 2 * bytes]);
    return scaledHostArray(nvfp4, elements, scale, { globalScale: toNumbers(whole)[0] ?? NaN });
  },
  deepseek: (arrays, name) => {
    const [weight, scale] = [
      own(arrays, `${name}.weight`),
      own(arrays, `${name}.weight_scale_inv`),
    ];
    if (weight?.dtype !== f8e4m3fn || scale?.dtype !== f32) return undefined;
    return scaledHostArray(fp8Block128x128, weight, scale);
  },
  tilewright: (arrays, name) => {
    const pattern = /^(\w+)\.axis(\d+)$/;
    for (const [key, codes] of Object.entries(arrays)) {
      if (!key.startsWith(`${name}.`)) continue;
      const [, format = "", axis] = pattern.exec(key.slice(name.length + 1)) ?? [];
      const record = Object.values<ScaledFormat>(scaledFormats).find(
        (each) => each.name === format,
      );
      const scales = own(arrays, `${name}.scales`);
      if (record === undefined || scales === undefined || codes.dtype !== u8) continue;
      const whole = own(arrays, `${name}.global_scale`);
      return scaledHostArray(
        record,
        fromElements(record.element, codes.shape, toElements(codes) as Uint8Array),
        record.scale === f32 ? scales : recast(scales, record.scale, scales.shape),
        {
          axis: Number(axis),
          globalScale: whole === undefined ? undefined : (toNumbers(whole)[0] ?? NaN),
        },
      );
    }
    return undefined;
  },
};

function withOneScale(weight: HostArray, scale: number): ScaledHostArray {
  const rank = weight.shape.length;
  const counts = scaleShape(fp8Block128x128, weight.shape, rank - 1);
  const scales = new Float32Array(elementCount(counts)).fill(scale);
  return scaledHostArray(fp8Block128x128, weight, hostArray(f32, counts, scales));
}

/** The array in a format with scales that arrays of a file stand for, by any of the schemas. */
export function scaledArrayFrom(arrays: NamedArrays, name: string): ScaledHostArray {
  for (const read of Object.values(readers)) {
    const found = read(arrays, name);
    if (found !== undefined) return found;
  }
  const near = Object.entries(arrays).filter(([key]) => key.startsWith(name));
  throw new TilewrightError({
    code: "TW0112",
    message: `no arrays stand for ${name} in a format with scales`,
    expected: `${name}_blocks and ${name}_scales; ${name}.weight with weight_scale, weight_scale_2 or weight_scale_inv; or ${name}.mxfp4.axis1 and ${name}.scales`,
    found:
      near
        .map(([key, { dtype, shape }]) => `${key} ${dtype.name}[${shape.join(", ")}]`)
        .join(", ") || "none of that name",
  });
}

/** The schema in which arrays of a format are published, where there is one. */
const publishedSchemas: { readonly [name: string]: ScaledSchema | undefined } = {
  mxfp4: "gpt-oss",
  nvfp4: "modelopt",
  fp8Block128x128: "deepseek",
};

type Writer = (name: string, array: ScaledHostArray) => NamedArrays;

const bytesOf = ({ data }: HostArray, shape: readonly number[]): HostArray =>
  hostArray(u8, shape, storageBytes(data));

function globalOf({ globalScale }: ScaledHostArray): HostArray<"f32"> {
  return fromNumbers(f32, [], [globalScale ?? 1]);
}

const writers: { readonly [S in ScaledSchema]: Writer } = {
  "gpt-oss": (name, { elements, scales }) => ({
    [`${name}_blocks`]: bytesOf(elements, [...scales.shape, 16]),
    [`${name}_scales`]: bytesOf(scales, scales.shape),
  }),
  modelopt: (name, array) => {
    const { shape } = array.elements;
    const packed = [...shape.slice(0, -1), (shape.at(-1) ?? 0) / 2];
    return {
      [`${name}.weight`]: bytesOf(array.elements, packed),
      [`${name}.weight_scale`]: array.scales,
      [`${name}.weight_scale_2`]: globalOf(array),
    };
  },
  deepseek: (name, { elements, scales }) => ({
    [`${name}.weight`]: elements,
    [`${name}.weight_scale_inv`]: scales,
  }),
  tilewright: (name, array) => {
    const { format, elements, scales, axis, globalScale } = array;
    const codes = storageBytes(fromCodes(elements).data);
    return {
      [`${name}.${format.name}.axis${axis}`]: hostArray(u8, elements.shape, codes),
      [`${name}.scales`]: scales.dtype === f32 ? scales : bytesOf(scales, scales.shape),
      ...(globalScale !== null && { [`${name}.global_scale`]: globalOf(array) }),
    };
  },
};

/** A code a byte. */
function fromCodes(elements: HostArray): HostArray {
  const { buffer, byteOffset, byteLength } = toElements(elements);
  return hostArray(u8, elements.shape, new Uint8Array(buffer, byteOffset, byteLength));
}

/** How `scaledArrayEntries` writes. */
export interface ScaledEntriesOptions {
  /** That in which the format is published by default, or tilewright's own where there is none. */
  readonly schema?: ScaledSchema | undefined;
}

/** The arrays that stand for one in a format with scales, to be written to a file. */
export function scaledArrayEntries(
  name: string,
  array: ScaledHostArray,
  { schema }: ScaledEntriesOptions = {},
): NamedArrays {
  const { format, elements, axis, layout } = array;
  // Also looks at the array, which may have no types.
  scaledNumbers(array);
  const { shape } = elements;
  const published = publishedSchemas[format.name];
  const whole = format.element.bits !== 4 || (shape.at(-1) ?? 0) % format.block[1] === 0;
  const isPublished = axis === shape.length - 1 && whole;
  const chosen = schema ?? (isPublished ? published : undefined) ?? "tilewright";
  const fits = chosen === "tilewright" || (chosen === published && isPublished);
  if (layout === "plain" && fits && Object.hasOwn(writers, chosen))
    return writers[chosen](name, array);
  throw new TilewrightError({
    code: "TW0109",
    message: `the schema ${chosen} has no such array`,
    expected:
      published === undefined
        ? 'plain scales, and schema: "tilewright"'
        : `plain scales, and schema: "${published}" of whole blocks along the last axis, or "tilewright"`,
    found: `${format.name}[${shape.join(", ")}] along axis ${axis}, ${layout} scales`,
    remedy: "lay the scales out plain, and leave the schema out",
  });
}
