/**
 * Tensor maps as the emulator keeps them: what `cuTensorMapEncodeTiled` is told, in 128 bytes. The
 * hardware's own encoding is not documented; kernels hand the bytes over without looking inside, so any
 * encoding serves that has the size.
 *
 *   byte  0   4    5    6       7    8        16           40            72    77            82 … 127
 *         magic rank type swizzle fill address  extents − 1  strides       box−1 element       zero
 *         u32  u8   u8   u8      u8   f64      5 × u32      4 × f64       5×u8  strides 5×u8
 *
 * Axes are innermost first, as in the driver's call: `extents[0]` counts the elements that lie side by
 * side, `strides[0]` is the distance in bytes along axis 1.
 */
import type { DTypeName } from "../formats/dtype.ts";
import { TilewrightError } from "../support/diagnostics.ts";

/** In the order of the driver's numbers. */
export const tensorMapTypes = [
  "u8",
  "u16",
  "u32",
  "s32",
  "u64",
  "s64",
  "f16",
  "f32",
  "f64",
  "bf16",
  "f32.ftz",
  "tf32",
  "tf32.ftz",
] as const;
export type TensorMapType = (typeof tensorMapTypes)[number];

export const tensorMapTypeBytes: { readonly [T in TensorMapType]: number } = Object.freeze({
  u8: 1,
  u16: 2,
  u32: 4,
  s32: 4,
  u64: 8,
  s64: 8,
  f16: 2,
  f32: 4,
  f64: 8,
  bf16: 2,
  "f32.ftz": 4,
  tf32: 4,
  "tf32.ftz": 4,
});

/** Formats that a tensor map does not know are bytes to it. */
export const tensorMapTypeOf: { readonly [N in DTypeName]: TensorMapType } = {
  f64: "f64",
  f32: "f32",
  tf32: "f32",
  f16: "f16",
  bf16: "bf16",
  f8e4m3fn: "u8",
  f8e5m2: "u8",
  f8e8m0fnu: "u8",
  f4e2m1fn: "u8",
  i4: "u8",
  i8: "u8",
  i16: "u16",
  i32: "s32",
  i64: "s64",
  u4: "u8",
  u8: "u8",
  u16: "u16",
  u32: "u32",
  u64: "u64",
  bool: "u8",
};

const floatTypes: readonly TensorMapType[] = [
  "f16",
  "f32",
  "f64",
  "bf16",
  "f32.ftz",
  "tf32",
  "tf32.ftz",
];

const swizzleWidths = [0, 32, 64, 128] as const;
const fills = ["zero", "nan"] as const;

export interface TensorMap {
  readonly type: TensorMapType;
  readonly address: number;
  readonly extents: readonly number[];
  /** In bytes, of every axis but the innermost. */
  readonly strides: readonly number[];
  readonly box: readonly number[];
  /** Of the box's elements along each axis every so many are copied; the innermost must be 1. */
  readonly elementStrides?: readonly number[] | undefined;
  readonly swizzle: 0 | 32 | 64 | 128;
  /** What a load writes for elements outside the array. */
  readonly fill: "zero" | "nan";
}

export const tensorMapBytes = 128;
const magic = 0x70614d54;
const largestRank = 5;
const addressAt = 8;
const extentsAt = 16;
const stridesAt = 40;
const boxAt = 72;
const elementStridesAt = 77;

function isCount(value: number | undefined, largest: number): boolean {
  return value !== undefined && Number.isInteger(value) && value >= 1 && value <= largest;
}

/** What the driver would refuse the map for; undefined where it is sound. */
export function tensorMapProblem(map: TensorMap): string | undefined {
  const { address, extents, strides, box, elementStrides } = map;
  const rank = extents.length;
  if (rank < 1 || rank > largestRank) return `it has ${rank} axes, not 1 to ${largestRank}`;
  if (strides.length !== rank - 1 || box.length !== rank)
    return `${rank} axes take ${rank - 1} strides and ${rank} box extents, not ${strides.length} and ${box.length}`;
  if (elementStrides !== undefined && elementStrides.length !== rank)
    return `${rank} axes take as many element strides, not ${elementStrides.length}`;
  if (address % 16 !== 0) return `its address ${address} is no multiple of 16`;
  const extent = extents.find((value) => !isCount(value, 2 ** 32));
  if (extent !== undefined) return `an extent is ${extent}, not 1 to 2^32`;
  const stride = strides.find((value) => !isCount(value, 2 ** 40 - 1) || value % 16 !== 0);
  if (stride !== undefined)
    return `a stride is ${stride} bytes, not a multiple of 16 from 16 to 2^40`;
  const side = box.find((value) => !isCount(value, 256));
  if (side !== undefined) return `the box has an extent of ${side}, not 1 to 256`;
  const step = elementStrides?.find((value) => !isCount(value, 8));
  if (step !== undefined) return `an element stride is ${step}, not 1 to 8`;
  return rowProblem(map);
}

function rowProblem({ type, box, swizzle, fill }: TensorMap): string | undefined {
  const row = (box[0] ?? 0) * tensorMapTypeBytes[type];
  if (row % 16 !== 0) return `a row of the box has ${row} bytes, no multiple of 16`;
  if (swizzle !== 0 && row > swizzle)
    return `a row of the box has ${row} bytes, more than the swizzle of ${swizzle}`;
  if (fill === "nan" && !floatTypes.includes(type)) return `${type} has no NaN to fill with`;
  return undefined;
}

/** The 128 bytes to hand to a kernel. */
export function encodeTensorMap(map: TensorMap): Uint8Array {
  const problem = tensorMapProblem(map);
  if (problem !== undefined)
    throw new TilewrightError({
      code: "TW8050",
      message: `this tensor map is invalid: ${problem}`,
    });
  const bytes = new Uint8Array(tensorMapBytes);
  const view = new DataView(bytes.buffer);
  view.setUint32(0, magic, true);
  view.setUint8(4, map.extents.length);
  view.setUint8(5, tensorMapTypes.indexOf(map.type));
  view.setUint8(6, swizzleWidths.indexOf(map.swizzle));
  view.setUint8(7, fills.indexOf(map.fill));
  view.setFloat64(addressAt, map.address, true);
  for (const [axis, extent] of map.extents.entries())
    view.setUint32(extentsAt + 4 * axis, extent - 1, true);
  for (const [axis, stride] of map.strides.entries())
    view.setFloat64(stridesAt + 8 * axis, stride, true);
  for (const [axis, extent] of map.box.entries()) view.setUint8(boxAt + axis, extent - 1);
  for (const axis of map.extents.keys())
    view.setUint8(elementStridesAt + axis, map.elementStrides?.[axis] ?? 1);
  return bytes;
}

/** What 128 bytes say; undefined where they are no tensor map. */
export function decodeTensorMap(bytes: Uint8Array): Required<TensorMap> | undefined {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  if (bytes.length < tensorMapBytes || view.getUint32(0, true) !== magic) return undefined;
  const rank = view.getUint8(4);
  const type = tensorMapTypes[view.getUint8(5)];
  const swizzle = swizzleWidths[view.getUint8(6)];
  const fill = fills[view.getUint8(7)];
  if (rank < 1 || rank > largestRank) return undefined;
  if (type === undefined || swizzle === undefined || fill === undefined) return undefined;
  const axes = Array.from({ length: rank }, (_, axis) => axis);
  return {
    type,
    address: view.getFloat64(addressAt, true),
    extents: axes.map((axis) => view.getUint32(extentsAt + 4 * axis, true) + 1),
    strides: axes.slice(1).map((axis) => view.getFloat64(stridesAt + 8 * (axis - 1), true)),
    box: axes.map((axis) => view.getUint8(boxAt + axis) + 1),
    elementStrides: axes.map((axis) => view.getUint8(elementStridesAt + axis)),
    swizzle,
    fill,
  };
}
