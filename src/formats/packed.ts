/**
 * Packed memory: the bytes that elements take in a buffer of the GPU, little-endian.
 *
 *   f16 elements  3c00 4000           bytes  00 3c 00 40
 *   u4 elements   1 2 3               bytes  21 03        two a byte, the first in the low half
 *
 * Only the 4-bit formats differ from the elements' own memory, hosts of JavaScript being little-endian. Dense storage, which files have, is the same
 * but for the 6-bit formats, whose elements then follow each other without gaps, the first in the lowest bits: four take three bytes.
 */
import { TilewrightError } from "../support/diagnostics.ts";
import { allocateElements, packedBytes, u8 } from "./dtype.ts";
import type { DType, DTypeName, Elements } from "./dtype.ts";
import { arrayKind, otherStorage, requireDType, requireElements } from "./argument-checks.ts";
import { elementCount } from "./shape.ts";

/** The bytes of `elements`; the upper half of the last is zero after an odd number of 4-bit elements. */
export function packElements<N extends DTypeName>(
  dtype: DType<N>,
  elements: Elements<N>,
): Uint8Array {
  requireElements(dtype, elements);
  if (dtype.bits === 4) return packNibbles(elements as Elements<"u4" | "i4">);
  return new Uint8Array(elements.buffer, elements.byteOffset, elements.byteLength).slice();
}

/** The first `count` elements of packed memory. */
export function unpackElements<N extends DTypeName>(
  dtype: DType<N>,
  bytes: Uint8Array,
  count: number,
): Elements<N> {
  requireDType(dtype);
  if (arrayKind(bytes) !== "Uint8Array") throw otherStorage(u8, "Uint8Array", bytes);
  const length = packedBytes(dtype, elementCount([count]));
  if (bytes.length < length) {
    throw new TilewrightError({
      code: "TW0006",
      message: `too few bytes for ${count} elements of ${dtype.name}`,
      expected: `${length} bytes`,
      found: `${bytes.length}`,
    });
  }
  const elements = allocateElements(dtype, count);
  if (dtype.bits === 4) unpackNibbles(dtype, bytes, elements as Elements<"u4" | "i4">);
  else new Uint8Array(elements.buffer).set(bytes.subarray(0, length));
  return elements;
}

/** The bits of an element in dense storage. */
export function denseBits({ name, bits }: DType): number {
  return name === "f6e2m3fn" || name === "f6e3m2fn" ? 6 : bits;
}

/** Bytes that `count` elements take in dense storage. */
export function denseBytes(dtype: DType, count: number): number {
  return Math.ceil((count * denseBits(dtype)) / 8);
}

/** The bytes of `elements` in dense storage; bits behind the last one are zero. */
export function packDense<N extends DTypeName>(dtype: DType<N>, elements: Elements<N>): Uint8Array {
  if (denseBits(dtype) !== 6) return packElements(dtype, elements);
  const bytes = new Uint8Array(denseBytes(dtype, elements.length));
  packElements(dtype, elements).forEach((code, i) => {
    const [byte, bit] = [(6 * i) >> 3, (6 * i) & 7];
    const placed = (code & 63) << bit;
    bytes[byte] = (bytes[byte] ?? 0) | placed;
    if (bit > 2) bytes[byte + 1] = placed >> 8;
  });
  return bytes;
}

/** The first `count` elements of dense storage. */
export function unpackDense<N extends DTypeName>(
  dtype: DType<N>,
  bytes: Uint8Array,
  count: number,
): Elements<N> {
  if (denseBits(dtype) !== 6) return unpackElements(dtype, bytes, count);
  const codes = Uint8Array.from({ length: count }, (_, i) => {
    const [byte, bit] = [(6 * i) >> 3, (6 * i) & 7];
    const pair = (bytes[byte] ?? 0) | ((bytes[byte + 1] ?? 0) << 8);
    return (pair >> bit) & 63;
  });
  return unpackElements(dtype, codes, count);
}

function packNibbles(elements: Uint8Array | Int8Array): Uint8Array {
  const bytes = new Uint8Array((elements.length + 1) >> 1);
  for (let i = 0; i < elements.length; i++) {
    const nibble = (elements[i] as number) & 15;
    bytes[i >> 1] = (i & 1) === 0 ? nibble : (bytes[i >> 1] as number) | (nibble << 4);
  }
  return bytes;
}

function unpackNibbles(dtype: DType, bytes: Uint8Array, elements: Uint8Array | Int8Array): void {
  for (let i = 0; i < elements.length; i++) {
    const nibble = ((bytes[i >> 1] as number) >> ((i & 1) * 4)) & 15;
    elements[i] = dtype.kind === "signed" ? (nibble << 28) >> 28 : nibble;
  }
}
