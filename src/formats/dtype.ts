/**
 * The number formats of tilewright: one frozen descriptor a format, and the typed array that holds
 * its values on the host.
 *
 * Values live in *elements*, one slot an element. An element holds the number itself where JavaScript has a
 * typed array for it, and the bit pattern where it has none:
 *
 * | format                         | bits | elements                          |
 * |--------------------------------|------|--------------------------------|
 * | f64                            | 64   | Float64Array                   |
 * | f32, tf32                      | 32   | Float32Array                   |
 * | f16, bf16                      | 16   | Uint16Array, bit patterns      |
 * | f8e4m3fn, f8e5m2, f8e8m0fnu    | 8    | Uint8Array, bit patterns       |
 * | f6e2m3fn, f6e3m2fn             | 8    | Uint8Array, bit patterns 0..63 |
 * | f4e2m1fn                       | 4    | Uint8Array, bit patterns 0..15 |
 * | i4, i8 / i16 / i32             | …    | Int8Array / Int16Array / Int32Array |
 * | u4, u8, bool / u16 / u32       | …    | Uint8Array / Uint16Array / Uint32Array |
 * | i64 / u64                      | 64   | BigInt64Array / BigUint64Array |
 *
 * Memory differs from elements only for the 4-bit formats, which pack two elements a byte, the first in
 * the low half. The 6-bit formats take a byte each, whose two upper bits are not looked at; files hold them densely.
 */
import { madeBy, thisCopy } from "../support/duplicate-library.ts";
import { TilewrightError } from "../support/diagnostics.ts";

export type FloatName =
  | "f64"
  | "f32"
  | "tf32"
  | "f16"
  | "bf16"
  | "f8e4m3fn"
  | "f8e5m2"
  | "f8e8m0fnu"
  | "f6e2m3fn"
  | "f6e3m2fn"
  | "f4e2m1fn";
export type SignedName = "i4" | "i8" | "i16" | "i32" | "i64";
export type UnsignedName = "u4" | "u8" | "u16" | "u32" | "u64";
export type IntegerName = SignedName | UnsignedName;
/** The name of a number format, such as `"f32"`. */
export type DTypeName = FloatName | IntegerName | "bool";

export type DTypeKind = "float" | "signed" | "unsigned" | "bool";

/** A number format. Compare by identity: there is one descriptor a name. */
export interface DType<N extends DTypeName = DTypeName> {
  /** Its name, such as `"bf16"`. */
  readonly name: N;
  /** Bits of an element in packed memory (bool takes a byte, as do the 6-bit floats; tf32 takes four). */
  readonly bits: 4 | 8 | 16 | 32 | 64;
  /** Whether its numbers are floats, integers with or without sign, or truth values. */
  readonly kind: DTypeKind;
}

interface ElementArrays {
  f64: Float64Array;
  f32: Float32Array;
  tf32: Float32Array;
  f16: Uint16Array;
  bf16: Uint16Array;
  f8e4m3fn: Uint8Array;
  f8e5m2: Uint8Array;
  f8e8m0fnu: Uint8Array;
  f6e2m3fn: Uint8Array;
  f6e3m2fn: Uint8Array;
  f4e2m1fn: Uint8Array;
  i4: Int8Array;
  i8: Int8Array;
  i16: Int16Array;
  i32: Int32Array;
  i64: BigInt64Array;
  u4: Uint8Array;
  u8: Uint8Array;
  u16: Uint16Array;
  u32: Uint32Array;
  u64: BigUint64Array;
  bool: Uint8Array;
}

/** The typed array that holds one element of `N` a slot. */
export type Elements<N extends DTypeName = DTypeName> = ElementArrays[N];

/** How one value of a format is written in JavaScript. */
export type HostValue<N extends DTypeName = DTypeName> = N extends "i64" | "u64"
  ? bigint
  : N extends "bool"
    ? boolean
    : number;

function define<N extends DTypeName>(name: N, bits: DType["bits"], kind: DTypeKind): DType<N> {
  return Object.freeze(Object.defineProperty({ name, bits, kind }, madeBy, { value: thisCopy }));
}

/** 64-bit floats (IEEE binary64). */
export const f64 = define("f64", 64, "float");
/** 32-bit floats (IEEE binary32). */
export const f32 = define("f32", 32, "float");
/** 32-bit floats whose last 13 bits tensor cores ignore (TensorFloat-32): a sign, 8 bits of exponent, 10 of mantissa. */
export const tf32 = define("tf32", 32, "float");
/** 16-bit floats (IEEE binary16): 5 bits of exponent, 10 of mantissa. */
export const f16 = define("f16", 16, "float");
/** 16-bit floats with the range of f32 (bfloat16): 8 bits of exponent, 7 of mantissa. */
export const bf16 = define("bf16", 16, "float");
/** 8-bit floats with 4 bits of exponent and 3 of mantissa, up to 448, without infinities. */
export const f8e4m3fn = define("f8e4m3fn", 8, "float");
/** 8-bit floats with 5 bits of exponent and 2 of mantissa, up to 57,344. */
export const f8e5m2 = define("f8e5m2", 8, "float");
/** 8-bit powers of two without sign, as scales of blocks are stored. */
export const f8e8m0fnu = define("f8e8m0fnu", 8, "float");
/** 6-bit floats with 2 bits of exponent and 3 of mantissa, up to 7.5: one to a byte. */
export const f6e2m3fn = define("f6e2m3fn", 8, "float");
/** 6-bit floats with 3 bits of exponent and 2 of mantissa, up to 28: one to a byte. */
export const f6e3m2fn = define("f6e3m2fn", 8, "float");
/** 4-bit floats, up to 6: two to a byte. */
export const f4e2m1fn = define("f4e2m1fn", 4, "float");
/** 4-bit signed integers: two to a byte. */
export const i4 = define("i4", 4, "signed");
/** 8-bit signed integers. */
export const i8 = define("i8", 8, "signed");
/** 16-bit signed integers. */
export const i16 = define("i16", 16, "signed");
/** 32-bit signed integers. */
export const i32 = define("i32", 32, "signed");
/** 64-bit signed integers, bigints on the host. */
export const i64 = define("i64", 64, "signed");
/** 4-bit unsigned integers: two to a byte. */
export const u4 = define("u4", 4, "unsigned");
/** 8-bit unsigned integers. */
export const u8 = define("u8", 8, "unsigned");
/** 16-bit unsigned integers. */
export const u16 = define("u16", 16, "unsigned");
/** 32-bit unsigned integers. */
export const u32 = define("u32", 32, "unsigned");
/** 64-bit unsigned integers, bigints on the host. */
export const u64 = define("u64", 64, "unsigned");
/** Truth values, a byte each. */
export const bool = define("bool", 8, "bool");

/** Every format by name. */
export const dtypes: { readonly [N in DTypeName]: DType<N> } = Object.freeze({
  f64,
  f32,
  tf32,
  f16,
  bf16,
  f8e4m3fn,
  f8e5m2,
  f8e8m0fnu,
  f6e2m3fn,
  f6e3m2fn,
  f4e2m1fn,
  i4,
  i8,
  i16,
  i32,
  i64,
  u4,
  u8,
  u16,
  u32,
  u64,
  bool,
});

export const dtypeNames = Object.freeze(Object.keys(dtypes)) as readonly DTypeName[];

export function isFloat(dtype: DType): dtype is DType<FloatName> {
  return dtype.kind === "float";
}

export function isInteger(dtype: DType): dtype is DType<IntegerName> {
  return dtype.kind === "signed" || dtype.kind === "unsigned";
}

/** 64-bit integers are the formats whose host values are BigInt. */
export function isWide(dtype: DType): dtype is DType<"i64" | "u64"> {
  return dtype.name === "i64" || dtype.name === "u64";
}

interface ElementConstructor<N extends DTypeName> {
  new (length: number): Elements<N>;
  new (buffer: ArrayBufferLike, offset: number, length: number): Elements<N>;
}

/** The class of each format's elements. */
export const elementConstructors: { readonly [N in DTypeName]: ElementConstructor<N> } = {
  f64: Float64Array,
  f32: Float32Array,
  tf32: Float32Array,
  f16: Uint16Array,
  bf16: Uint16Array,
  f8e4m3fn: Uint8Array,
  f8e5m2: Uint8Array,
  f8e8m0fnu: Uint8Array,
  f6e2m3fn: Uint8Array,
  f6e3m2fn: Uint8Array,
  f4e2m1fn: Uint8Array,
  i4: Int8Array,
  i8: Int8Array,
  i16: Int16Array,
  i32: Int32Array,
  i64: BigInt64Array,
  u4: Uint8Array,
  u8: Uint8Array,
  u16: Uint16Array,
  u32: Uint32Array,
  u64: BigUint64Array,
  bool: Uint8Array,
};

/** `length` elements of zero bits. */
export function allocateElements<N extends DTypeName>(
  dtype: DType<N>,
  length: number,
): Elements<N> {
  return withinMemory(dtype.name, length, () => new elementConstructors[dtype.name](length));
}

/** What is made of so many elements, where the process has room for it. */
export function withinMemory<T>(elements: string, count: number, make: () => T): T {
  try {
    return make();
  } catch (error) {
    if (!(error instanceof RangeError)) throw error;
    throw new TilewrightError({
      code: "TW0009",
      message: `this process has no room for ${count} elements of ${elements}`,
      expected: "as many elements as the process has memory for",
      found: error.message,
    });
  }
}

/** Bytes that `count` consecutive elements take in packed memory. */
export function packedBytes(dtype: DType, count: number): number {
  return Math.ceil((count * dtype.bits) / 8);
}
