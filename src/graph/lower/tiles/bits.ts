/** Elements as the integers that have their bits. */
import { dtypes } from "../../../formats/dtype.ts";
import type { DType } from "../../../formats/dtype.ts";
import { full } from "../../../lang/index.ts";
import type { Tile } from "../../../lang/index.ts";

const signed: { readonly [bits: number]: DType } = {
  8: dtypes.i8,
  16: dtypes.i16,
  32: dtypes.i32,
  64: dtypes.i64,
};
const unsigned: { readonly [bits: number]: DType } = {
  8: dtypes.u8,
  16: dtypes.u16,
  32: dtypes.u32,
  64: dtypes.u64,
};

function widthOf(table: { readonly [bits: number]: DType }, bits: number): DType {
  const found = table[bits];
  if (found === undefined) throw new Error(`no integers of ${bits} bits`);
  return found;
}

export function signedOf(bits: number): DType {
  return widthOf(signed, bits);
}

export function unsignedOf(bits: number): DType {
  return widthOf(unsigned, bits);
}

/** A value of any format, the same in all lanes; a big integer stands for 64 bits. */
export function constantTile(dtype: DType, value: number | bigint | boolean): Tile {
  const wide = dtype.kind !== "float" && dtype.bits === 64;
  return full(dtype, [1], wide && typeof value === "number" ? BigInt(value) : value);
}

/** An element's bits as an integer that has arithmetic. */
export function codeBits(x: Tile): Tile {
  return x.dtype.bits === 4 ? x.bitcast(dtypes.u4).cast(dtypes.u8) : unsignedBits(x);
}

/** The element of a format that has these bits. */
export function ofCodeBits(code: Tile, dtype: DType): Tile {
  const bits = dtype.bits === 4 ? dtypes.u4 : unsignedOf(dtype.bits);
  return (code.dtype === bits ? code : code.cast(bits)).bitcast(dtype);
}

export function signedBits(x: Tile): Tile {
  return x.bitcast(signedOf(x.dtype.bits));
}

export function unsignedBits(x: Tile): Tile {
  return x.bitcast(unsignedOf(x.dtype.bits));
}

/** An integer constant of the format of a tile. */
export function alike(x: Tile, value: number | bigint): Tile {
  return constantTile(x.dtype, value);
}

/** Whether the sign is set, of zeros and NaNs too. */
export function hasSign(x: Tile): Tile<"bool"> {
  const bits = signedBits(x);
  return bits.lt(alike(bits, 0));
}

export function select(condition: Tile, ifTrue: Tile, ifFalse: Tile): Tile {
  return (condition as Tile<"bool">).select(ifTrue, ifFalse);
}

/** The magnitude of one value with the sign of another. */
export function withSignOf(magnitude: Tile, sign: Tile): Tile {
  return select(hasSign(sign), magnitude.neg(), magnitude);
}

/** Integers in the order of floats: -NaN, -∞ … -0, +0 … ∞, NaN. */
export function totalOrderKey(x: Tile): Tile {
  const bits = signedBits(x);
  const { bits: width } = x.dtype;
  const magnitude = (1n << BigInt(width - 1)) - 1n;
  const mask = alike(bits, width === 64 ? magnitude : Number(magnitude));
  return bits.xor(bits.shr(alike(bits, width - 1)).and(mask));
}

/** The same with both zeros as one, and every NaN as the greatest. */
export function weakOrderKey(x: Tile): Tile {
  const key = totalOrderKey(x);
  const { bits: width } = x.dtype;
  const greatest = (1n << BigInt(width - 1)) - 1n;
  const ordered = select(x.eq(alike(x, 0)), alike(key, 0), key);
  return select(x.ne(x), alike(key, width === 64 ? greatest : Number(greatest)), ordered);
}
