/**
 * Packed memory: the bytes that lanes take in a buffer of the GPU, little-endian.
 *
 *   f16 lanes  3c00 4000           bytes  00 3c 00 40
 *   u4 lanes   1 2 3               bytes  21 03        two a byte, the first in the low half
 *
 * Only the 4-bit formats differ from the lanes' own memory, hosts of JavaScript being little-endian.
 */
import { TilewrightError } from "../support/diagnostics.ts";
import { allocateLanes, packedBytes, u8 } from "./dtype.ts";
import type { DType, DTypeName, Lanes } from "./dtype.ts";
import { arrayKind, otherStorage, requireDType, requireLanes } from "./kinds.ts";
import { elementCount } from "./shape.ts";

/** The bytes of `lanes`; the upper half of the last is zero after an odd number of 4-bit lanes. */
export function packLanes<N extends DTypeName>(dtype: DType<N>, lanes: Lanes<N>): Uint8Array {
  requireLanes(dtype, lanes);
  if (dtype.bits === 4) return packNibbles(lanes as Lanes<"u4" | "i4">);
  return new Uint8Array(lanes.buffer, lanes.byteOffset, lanes.byteLength).slice();
}

/** The first `count` elements of packed memory. */
export function unpackLanes<N extends DTypeName>(
  dtype: DType<N>,
  bytes: Uint8Array,
  count: number,
): Lanes<N> {
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
  const lanes = allocateLanes(dtype, count);
  if (dtype.bits === 4) unpackNibbles(dtype, bytes, lanes as Lanes<"u4" | "i4">);
  else new Uint8Array(lanes.buffer).set(bytes.subarray(0, length));
  return lanes;
}

function packNibbles(lanes: Uint8Array | Int8Array): Uint8Array {
  const bytes = new Uint8Array((lanes.length + 1) >> 1);
  for (let i = 0; i < lanes.length; i++) {
    const nibble = (lanes[i] as number) & 15;
    bytes[i >> 1] = (i & 1) === 0 ? nibble : (bytes[i >> 1] as number) | (nibble << 4);
  }
  return bytes;
}

function unpackNibbles(dtype: DType, bytes: Uint8Array, lanes: Uint8Array | Int8Array): void {
  for (let i = 0; i < lanes.length; i++) {
    const nibble = ((bytes[i >> 1] as number) >> ((i & 1) * 4)) & 15;
    lanes[i] = dtype.kind === "signed" ? (nibble << 28) >> 28 : nibble;
  }
}
