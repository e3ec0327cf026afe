/**
 * Where the 128 bytes of a tensor map hold what, as an H200's driver and `tensormap.replace` write them; the
 * manual does not say. Words of 32 bits, bits from the lowest:
 *
 *   word    0 – 1   address
 *           2       0 im2col, 4–6 axes − 1, 7–10 type, 11–12 interleaved layout, 13–14 and 22 swizzle,
 *                   15 fill, 16 tf32, 17–18 promotion in the L2 cache
 *           3 – 6   strides / 16, their lower 32 bits       7   their upper 4 bits, from bit 4 × axis
 *           8 – 12  extents − 1
 *           13      element strides − 1, from bit 3 × axis;  24–31 the box's inner extent − 1
 *           14      the box's outer extents − 1, a byte each; of an im2col map its corners
 *           15      pixels of an im2col map − 1
 *           16, 18  bytes of the box and its alignment: of the driver, no copy looks at them
 */

export const tensorMapBytes = 128;
export const largestRank = 5;

/** Bits of a word. */
export interface BitField {
  readonly word: number;
  readonly bit: number;
  readonly bits: number;
}

const second = (bit: number, bits: number): BitField => ({ word: 2, bit, bits });

export const mapFields = {
  im2col: second(0, 1),
  rank: second(4, 3),
  type: second(7, 4),
  interleave: second(11, 2),
  swizzle: second(13, 2),
  wideSwizzle: second(22, 1),
  fill: second(15, 1),
  tf32: second(16, 1),
  pixels: { word: 15, bit: 0, bits: 10 },
  boxBytes: { word: 16, bit: 0, bits: 32 },
  boxAlignment: { word: 18, bit: 0, bits: 32 },
  strideLow: (axis: number): BitField => ({ word: 3 + axis, bit: 0, bits: 32 }),
  strideHigh: (axis: number): BitField => ({ word: 7, bit: 4 * axis, bits: 4 }),
  extent: (axis: number): BitField => ({ word: 8 + axis, bit: 0, bits: 32 }),
  elementStride: (axis: number): BitField => ({ word: 13, bit: 3 * axis, bits: 3 }),
  box: (axis: number): BitField =>
    axis === 0 ? { word: 13, bit: 24, bits: 8 } : { word: 14, bit: 8 * (axis - 1), bits: 8 },
} as const;

/** The corners of an im2col map's bounding box have 16, 8 or 5 bits an axis, by the number of axes. */
const cornerBits = [16, 8, 5];

export function cornerField(rank: number, side: "lower" | "upper", axis: number): BitField {
  const bits = cornerBits[rank - 3] ?? 0;
  return { word: 14, bit: (side === "lower" ? 0 : 16) + bits * axis, bits };
}

export function getField(view: DataView, { word, bit, bits }: BitField): number {
  const value = view.getUint32(4 * word, true) >>> bit;
  return bits === 32 ? value : value & (2 ** bits - 1);
}

export function setField(view: DataView, { word, bit, bits }: BitField, value: number): void {
  if (bits === 32) {
    view.setUint32(4 * word, value, true);
    return;
  }
  const mask = (2 ** bits - 1) << bit;
  const old = view.getUint32(4 * word, true);
  view.setUint32(4 * word, (old & ~mask) | ((value << bit) & mask), true);
}

/** A field whose highest bit is a sign. */
export function getSigned(view: DataView, field: BitField): number {
  const shift = 32 - field.bits;
  return (getField(view, field) << shift) >> shift;
}

export function getStride(view: DataView, axis: number): number {
  const { strideLow, strideHigh } = mapFields;
  return 16 * (getField(view, strideHigh(axis)) * 2 ** 32 + getField(view, strideLow(axis)));
}

/** Bytes; what does not fit 40 bits is lost. */
export function setStride(view: DataView, axis: number, bytes: bigint): void {
  const units = bytes >> 4n;
  setField(view, mapFields.strideLow(axis), Number(units & 0xffff_ffffn));
  setField(view, mapFields.strideHigh(axis), Number((units >> 32n) & 0xfn));
}
