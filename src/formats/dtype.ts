/**
 * The number formats of tilewright: one frozen descriptor a format, and the typed array that holds
 * its values on the host.
 *
 * Values live in *lanes*, one slot an element. A lane holds the number itself where JavaScript has a
 * typed array for it, and the bit pattern where it has none:
 *
 * | format                         | bits | lanes                          |
 * |--------------------------------|------|--------------------------------|
 * | f64                            | 64   | Float64Array                   |
 * | f32, tf32                      | 32   | Float32Array                   |
 * | f16, bf16                      | 16   | Uint16Array, bit patterns      |
 * | f8e4m3fn, f8e5m2, f8e8m0fnu    | 8    | Uint8Array, bit patterns       |
 * | f4e2m1fn                       | 4    | Uint8Array, bit patterns 0..15 |
 * | i4, i8 / i16 / i32             | …    | Int8Array / Int16Array / Int32Array |
 * | u4, u8, bool / u16 / u32       | …    | Uint8Array / Uint16Array / Uint32Array |
 * | i64 / u64                      | 64   | BigInt64Array / BigUint64Array |
 *
 * Memory differs from lanes only for the 4-bit formats, which pack two elements a byte, the first in
 * the low half.
 */
import { madeBy, thisCopy } from "../support/copies.ts";
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
  | "f4e2m1fn";
export type SignedName = "i4" | "i8" | "i16" | "i32" | "i64";
export type UnsignedName = "u4" | "u8" | "u16" | "u32" | "u64";
export type IntegerName = SignedName | UnsignedName;
export type DTypeName = FloatName | IntegerName | "bool";

export type DTypeKind = "float" | "signed" | "unsigned" | "bool";

/** A number format. Compare by identity: there is one descriptor a name. */
export interface DType<N extends DTypeName = DTypeName> {
  readonly name: N;
  /** Bits of an element in packed memory (bool takes a byte, tf32 takes four). */
  readonly bits: 4 | 8 | 16 | 32 | 64;
  readonly kind: DTypeKind;
}

interface LaneArrays {
  f64: Float64Array;
  f32: Float32Array;
  tf32: Float32Array;
  f16: Uint16Array;
  bf16: Uint16Array;
  f8e4m3fn: Uint8Array;
  f8e5m2: Uint8Array;
  f8e8m0fnu: Uint8Array;
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
export type Lanes<N extends DTypeName = DTypeName> = LaneArrays[N];

/** How one value of a format is written in JavaScript. */
export type HostValue<N extends DTypeName = DTypeName> = N extends "i64" | "u64"
  ? bigint
  : N extends "bool"
    ? boolean
    : number;

function define<N extends DTypeName>(name: N, bits: DType["bits"], kind: DTypeKind): DType<N> {
  return Object.freeze(Object.defineProperty({ name, bits, kind }, madeBy, { value: thisCopy }));
}

export const f64 = define("f64", 64, "float");
export const f32 = define("f32", 32, "float");
export const tf32 = define("tf32", 32, "float");
export const f16 = define("f16", 16, "float");
export const bf16 = define("bf16", 16, "float");
export const f8e4m3fn = define("f8e4m3fn", 8, "float");
export const f8e5m2 = define("f8e5m2", 8, "float");
export const f8e8m0fnu = define("f8e8m0fnu", 8, "float");
export const f4e2m1fn = define("f4e2m1fn", 4, "float");
export const i4 = define("i4", 4, "signed");
export const i8 = define("i8", 8, "signed");
export const i16 = define("i16", 16, "signed");
export const i32 = define("i32", 32, "signed");
export const i64 = define("i64", 64, "signed");
export const u4 = define("u4", 4, "unsigned");
export const u8 = define("u8", 8, "unsigned");
export const u16 = define("u16", 16, "unsigned");
export const u32 = define("u32", 32, "unsigned");
export const u64 = define("u64", 64, "unsigned");
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

interface LaneConstructor<N extends DTypeName> {
  new (length: number): Lanes<N>;
  new (buffer: ArrayBufferLike, offset: number, length: number): Lanes<N>;
}

/** The class of each format's lanes. */
export const laneConstructors: { readonly [N in DTypeName]: LaneConstructor<N> } = {
  f64: Float64Array,
  f32: Float32Array,
  tf32: Float32Array,
  f16: Uint16Array,
  bf16: Uint16Array,
  f8e4m3fn: Uint8Array,
  f8e5m2: Uint8Array,
  f8e8m0fnu: Uint8Array,
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

/** `length` lanes of zero bits. */
export function allocateLanes<N extends DTypeName>(dtype: DType<N>, length: number): Lanes<N> {
  return withinMemory(dtype.name, length, () => new laneConstructors[dtype.name](length));
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
