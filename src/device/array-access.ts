/**
 * What the operations on whole arrays need: values as bytes, positions of elements, and arrays as other libraries of
 * the process know them, in the fields of DLPack.
 *
 *   share(f32[4, 8])  ->  { data: 0x7f…, byteOffset: 0, shape: [4, 8], strides: [8, 1],
 *                           dtype: { code: 2, bits: 32, lanes: 1 }, device: { type: 2, id: 0 } }
 */
import type { DType, DTypeKind, DTypeName, HostValue } from "../formats/dtype.ts";
import { valueBytes } from "../formats/values.ts";
import { TilewrightError } from "../support/diagnostics.ts";
import { optionText } from "../support/options.ts";
import type { ArrayDescription } from "./binding.ts";
import type { ForeignMemory } from "./backend.ts";
import type { StridedShape } from "./strided-view.ts";

/** A tensor in the fields of DLPack's DLTensor. */
export interface SharedTensor {
  /** The address of the first element. */
  readonly data: bigint;
  /** Where the elements begin in its memory. */
  readonly byteOffset: 0;
  /** The extents of the axes. */
  readonly shape: readonly number[];
  /** In elements. */
  readonly strides: readonly number[];
  /** DLDataType: 0 signed, 1 unsigned, 2 float, 4 bfloat, 6 bool; formats without a code of their own go as bits. */
  readonly dtype: { readonly code: number; readonly bits: number; readonly lanes: 1 };
  /** DLDevice: 2 is CUDA. */
  readonly device: { readonly type: 2; readonly id: number };
}

const typeCodes: { readonly [K in DTypeKind]: number } = {
  signed: 0,
  unsigned: 1,
  float: 2,
  bool: 6,
};

/** Floats that DLPack tells apart from IEEE's, and those that it has no number for here. */
const ownCodes: { readonly [N in DTypeName]?: number } = {
  bf16: 4,
  f8e4m3fn: 10,
  f8e5m2: 12,
  f8e8m0fnu: 14,
  f4e2m1fn: 17,
};

export function sharedTensor(
  { dtype, shape, strides }: ArrayDescription & StridedShape,
  { address, gpu }: ForeignMemory,
): SharedTensor {
  const code = ownCodes[dtype.name] ?? typeCodes[dtype.kind];
  return {
    data: address,
    byteOffset: 0,
    shape,
    strides,
    dtype: { code, bits: dtype.bits, lanes: 1 },
    device: { type: 2, id: gpu },
  };
}

export function withoutAddresses(call: string, device: string): TilewrightError {
  return new TilewrightError({
    code: "TW4027",
    message: `${call} needs memory with an address, which the ${device} does not have`,
    expected: "a GPU",
    found: device,
  });
}

/** The address that a pointer stands for. */
export function requirePointer(pointer: unknown): number {
  const isWhole = typeof pointer === "bigint" || Number.isSafeInteger(pointer);
  const address = isWhole ? Number(pointer) : 0;
  if (address > 0 && Number.isSafeInteger(address) && address % 16 === 0) return address;
  throw new TilewrightError({
    code: "TW4026",
    message: "this is no address that an array can begin at",
    expected: "a multiple of 16 above 0",
    found: optionText(pointer),
    remedy: "give the address on the GPU, as a bigint or a number",
  });
}

/** A zero of any format has no bit set, but for f8e8m0fnu, which has no zero and begins at 2^-127. */
export function zeroPattern(dtype: DType): Uint8Array {
  return new Uint8Array(Math.ceil(dtype.bits / 8));
}

/** The bytes that an element repeats; two of 4 bits make one. */
export function fillPattern(dtype: DType, value: HostValue): Uint8Array {
  const bytes = valueBytes(dtype, value);
  const nibble = (bytes[0] ?? 0) & 15;
  return dtype.bits === 4 ? Uint8Array.of(nibble | (nibble << 4)) : bytes;
}

export function requireValue(dtype: DType, value: unknown): void {
  const wanted =
    dtype.kind === "bool"
      ? "boolean"
      : dtype.bits === 64 && dtype.kind !== "float"
        ? "bigint"
        : "number";
  if (typeof value === wanted) return;
  throw new TilewrightError({
    code: "TW0004",
    message: `an array of ${dtype.name} cannot be filled with ${optionText(value)}`,
    expected: `a ${wanted}`,
    found: optionText(value),
  });
}

/** Refuses elements of another format or shape than where they go. */
export function requireSameElements(
  call: string,
  to: ArrayDescription,
  from: ArrayDescription,
): void {
  const text = ({ dtype, shape }: ArrayDescription): string => `${dtype.name}[${shape.join(", ")}]`;
  if (text(to) === text(from)) return;
  throw new TilewrightError({
    code: "TW4025",
    message: `${call} does not convert or reshape`,
    expected: text(to),
    found: text(from),
    remedy: "give an array of the same format and shape; slice and reshape make views",
  });
}

/** Where an element lies, counted in elements from the first. */
export function flatIndex({ shape, strides }: StridedShape, index: readonly number[]): number {
  const inside =
    index.length === shape.length &&
    index.every((at, axis) => Number.isSafeInteger(at) && at >= 0 && at < (shape[axis] ?? 0));
  if (inside) return index.reduce((place, at, axis) => place + at * (strides[axis] ?? 0), 0);
  throw new TilewrightError({
    code: "TW4025",
    message: `an array of [${shape.join(", ")}] has no element [${index.map(optionText).join(", ")}]`,
    expected: `${shape.length} indices, each within its axis`,
    found: `[${index.map(optionText).join(", ")}]`,
  });
}
