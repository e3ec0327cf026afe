/**
 * Tensor maps: what `cuTensorMapEncodeTiled` and `cuTensorMapEncodeIm2col` are told, and the 128 bytes that
 * they make of it (`tensor-map-fields.ts`).
 *
 * Axes are innermost first, as in the driver's calls: `extents[0]` counts the elements that lie side by
 * side, `strides[0]` is the distance in bytes along axis 1. An im2col map (one with `corners`) is of an array
 * of channels, two to four axes of which the outermost counts images; its box counts channels and pixels.
 */
import type { DTypeName } from "../formats/dtype.ts";
import { TilewrightError } from "../support/diagnostics.ts";
import {
  cornerField,
  getField,
  getSigned,
  getStride,
  largestRank,
  mapFields,
  setField,
  setStride,
  tensorMapBytes,
} from "./tensor-map-fields.ts";

export { tensorMapBytes } from "./tensor-map-fields.ts";

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
/** The format of a tensor map's elements, as `CUtensorMapDataType` names it. */
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
  tf32: "tf32",
  f16: "f16",
  bf16: "bf16",
  f8e4m3fn: "u8",
  f8e5m2: "u8",
  f8e8m0fnu: "u8",
  f6e2m3fn: "u8",
  f6e3m2fn: "u8",
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

/** In the order of the numbers in a map, where tf32 is f32 with a bit of its own. */
const encodedTypes: readonly TensorMapType[] = [
  "u8",
  "u16",
  "u32",
  "s32",
  "u64",
  "s64",
  "f16",
  "f32",
  "f32.ftz",
  "f64",
  "bf16",
];

const roundedTypes: { readonly [T in TensorMapType]?: TensorMapType } = {
  f32: "tf32",
  "f32.ftz": "tf32.ftz",
};

const swizzleWidths = [0, 32, 64, 128] as const;
const fills = ["zero", "nan"] as const;

/** How far the box that an im2col map's pixels run through lies inside the array, along its middle axes. */
export interface Corners {
  /** Of the first pixel along each axis. */
  readonly lower: readonly number[];
  /** Beyond the last element of each axis. */
  readonly upper: readonly number[];
}

/**
 * Where an array without elements lies: a map cannot say that it has none, so one at this address says 1 along each axis
 * and all of it is outside. No memory lies there, and no program comes by the address by itself.
 */
export const nowhere = 2 ** 62;

export interface TensorMap {
  readonly type: TensorMapType;
  readonly address: number;
  readonly extents: readonly number[];
  /** In bytes, of every axis but the innermost. */
  readonly strides: readonly number[];
  readonly box: readonly number[];
  /** Of an im2col map. */
  readonly corners?: Corners | undefined;
  /** Of the box's elements along each axis every so many are copied; the innermost must be 1. */
  readonly elementStrides?: readonly number[] | undefined;
  readonly swizzle: 0 | 32 | 64 | 128;
  /** What a load writes for elements outside the array. */
  readonly fill: "zero" | "nan";
}

function isCount(value: number | undefined, largest: number): boolean {
  return value !== undefined && Number.isInteger(value) && value >= 1 && value <= largest;
}

/** What the driver would refuse the map for; undefined where it is sound. */
export function tensorMapProblem(map: TensorMap): string | undefined {
  const { address, extents, strides, box, elementStrides, corners } = map;
  const rank = extents.length;
  if (rank < 1 || rank > largestRank) return `it has ${rank} axes, not 1 to ${largestRank}`;
  const sides = corners === undefined ? rank : 2;
  if (strides.length !== rank - 1 || box.length !== sides)
    return `${rank} axes take ${rank - 1} strides and ${sides} box extents, not ${strides.length} and ${box.length}`;
  if (elementStrides !== undefined && elementStrides.length !== rank)
    return `${rank} axes take as many element strides, not ${elementStrides.length}`;
  if (address % 16 !== 0) return `its address ${address} is no multiple of 16`;
  const extent = extents.find((value) => !isCount(value, 2 ** 32));
  if (extent !== undefined) return `an extent is ${extent}, not 1 to 2^32`;
  const stride = strides.find((value) => !isCount(value, 2 ** 40 - 1) || value % 16 !== 0);
  if (stride !== undefined)
    return `a stride is ${stride} bytes, not a multiple of 16 from 16 to 2^40`;
  const largest = (axis: number): number => (corners !== undefined && axis === 1 ? 1024 : 256);
  const axis = box.findIndex((value, position) => !isCount(value, largest(position)));
  if (axis >= 0) return `the box has an extent of ${box[axis]}, not 1 to ${largest(axis)}`;
  const step = elementStrides?.find((value) => !isCount(value, 8));
  if (step !== undefined) return `an element stride is ${step}, not 1 to 8`;
  return (corners === undefined ? undefined : cornerProblem(map, corners)) ?? rowProblem(map);
}

function cornerProblem({ extents }: TensorMap, { lower, upper }: Corners): string | undefined {
  const middle = extents.length - 2;
  if (middle < 1) return `an im2col map has 3 to ${largestRank} axes, not ${extents.length}`;
  if (lower.length !== middle || upper.length !== middle)
    return `${extents.length} axes take ${middle} corners either way, not ${lower.length} and ${upper.length}`;
  const { bits } = cornerField(extents.length, "lower", 0);
  const limit = 2 ** (bits - 1);
  const corner = [...lower, ...upper].find((value) => value < -limit || value >= limit);
  if (corner !== undefined) return `a corner is ${corner}, not ${-limit} to ${limit - 1}`;
  const empty = lower.findIndex(
    (first, axis) => first > (extents[axis + 1] ?? 0) - 1 + (upper[axis] ?? 0),
  );
  return empty < 0 ? undefined : `its bounding box has no pixel along axis ${empty + 1}`;
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
      expected: "a tensor map that TMA takes",
      found: problem,
    });
  const bytes = new Uint8Array(tensorMapBytes);
  const view = new DataView(bytes.buffer);
  const { type, extents, strides, elementStrides } = map;
  view.setBigUint64(0, BigInt(map.address), true);
  setField(view, mapFields.rank, extents.length - 1);
  const code = encodedTypes.findIndex((plain) => plain === type || roundedTypes[plain] === type);
  setField(view, mapFields.type, code);
  setField(view, mapFields.tf32, encodedTypes[code] === type ? 0 : 1);
  setField(view, mapFields.swizzle, swizzleWidths.indexOf(map.swizzle));
  setField(view, mapFields.fill, fills.indexOf(map.fill));
  for (const [axis, extent] of extents.entries())
    setField(view, mapFields.extent(axis), extent - 1);
  for (const [axis, stride] of strides.entries()) setStride(view, axis, BigInt(stride));
  for (const axis of extents.keys())
    setField(view, mapFields.elementStride(axis), (elementStrides?.[axis] ?? 1) - 1);
  encodeBox(view, map);
  return bytes;
}

function encodeBox(
  view: DataView,
  { type, box, corners, swizzle, elementStrides }: TensorMap,
): void {
  const [inner = 1, pixels = 1] = box;
  // The driver counts what lies wholly between element strides.
  const counts =
    corners === undefined
      ? box.map((side, axis) => Math.floor(side / (elementStrides?.[axis] ?? 1)))
      : box;
  const elements = counts.reduce((product, count) => product * count, 1);
  setField(view, mapFields.boxBytes, elements * tensorMapTypeBytes[type]);
  setField(view, mapFields.boxAlignment, swizzle === 0 ? 16 : 8 * swizzle);
  setField(view, mapFields.box(0), inner - 1);
  if (corners === undefined) {
    for (const [axis, side] of box.entries()) setField(view, mapFields.box(axis), side - 1);
    return;
  }
  const rank = corners.lower.length + 2;
  setField(view, mapFields.im2col, 1);
  setField(view, mapFields.pixels, pixels - 1);
  for (const side of ["lower", "upper"] as const)
    for (const [axis, corner] of corners[side].entries())
      setField(view, cornerField(rank, side, axis), corner);
}

/** What 128 bytes say; undefined where a map never says that. It may still be one that the driver refuses. */
export function decodeTensorMap(bytes: Uint8Array): TensorMap | undefined {
  if (bytes.length < tensorMapBytes) return undefined;
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const rank = getField(view, mapFields.rank) + 1;
  const plain = encodedTypes[getField(view, mapFields.type)];
  const swizzle = swizzleWidths[getField(view, mapFields.swizzle)];
  const fill = fills[getField(view, mapFields.fill)];
  const isForeign =
    getField(view, mapFields.interleave) !== 0 || getField(view, mapFields.wideSwizzle) !== 0;
  if (rank > largestRank || isForeign) return undefined;
  if (plain === undefined || swizzle === undefined || fill === undefined) return undefined;
  const isRounded = getField(view, mapFields.tf32) === 1;
  const axes = Array.from({ length: rank }, (_, axis) => axis);
  return {
    type: (isRounded ? roundedTypes[plain] : undefined) ?? plain,
    address: Number(view.getBigUint64(0, true)),
    extents: axes.map((axis) => getField(view, mapFields.extent(axis)) + 1),
    strides: axes.slice(1).map((axis) => getStride(view, axis - 1)),
    ...decodeBox(view, axes),
    elementStrides: axes.map((axis) => getField(view, mapFields.elementStride(axis)) + 1),
    swizzle,
    fill,
  };
}

function decodeBox(view: DataView, axes: readonly number[]): Pick<TensorMap, "box" | "corners"> {
  const side = (axis: number): number => getField(view, mapFields.box(axis)) + 1;
  if (getField(view, mapFields.im2col) === 0) return { box: axes.map(side) };
  const corners = (which: "lower" | "upper"): readonly number[] =>
    axes.slice(2).map((axis) => getSigned(view, cornerField(axes.length, which, axis - 2)));
  return {
    box: [side(0), getField(view, mapFields.pixels) + 1],
    corners: { lower: corners("lower"), upper: corners("upper") },
  };
}
