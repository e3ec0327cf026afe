/**
 * Conversions between formats. Floats go through f64, which holds every narrower number exactly; integers
 * of 64 bits go through BigInt where a number would not hold them.
 */
import { precisions, roundInteger, roundTo } from "../../formats/arithmetic/exact.ts";
import type { Precision, Rounding } from "../../formats/arithmetic/exact.ts";
import { bitsOfSingle, encodeBfloat, encodeHalf, roundAndFlush, roundToEven } from "./floats.ts";
import { setWide, setWideNumber, toSigned, toUnsigned } from "./wide.ts";

export type IntegerRounding = "rni" | "rzi" | "rmi" | "rpi";

/** A number without its fraction. */
export function roundToInteger(value: number, mode: IntegerRounding): number {
  if (mode === "rni") return roundToEven(value);
  if (mode === "rzi") return Math.trunc(value);
  return mode === "rmi" ? Math.floor(value) : Math.ceil(value);
}

/** A float as an integer of up to 32 bits, clamped to its range; NaN gives `nan`. */
export function toInteger(
  value: number,
  mode: IntegerRounding,
  low: number,
  high: number,
  nan: number,
): number {
  if (value !== value) return nan;
  const rounded = roundToInteger(value, mode);
  return (rounded < low ? low : rounded > high ? high : rounded) | 0;
}

const twoTo63 = 2 ** 63;
const twoTo64 = 2 ** 64;

/** A float as a 64-bit integer, clamped; left in the pair. NaN gives the top bit alone. */
export function toWideInteger(value: number, mode: IntegerRounding, signed: boolean): void {
  if (value !== value) return setWide(1n << 63n);
  const rounded = roundToInteger(value, mode);
  if (signed) {
    if (rounded >= twoTo63) return setWide((1n << 63n) - 1n);
    if (rounded < -twoTo63) return setWide(-(1n << 63n));
  } else {
    if (rounded >= twoTo64) return setWide((1n << 64n) - 1n);
    if (rounded < 0) return setWide(0n);
  }
  if (Math.abs(rounded) < 2 ** 53) setWideNumber(rounded);
  else setWide(BigInt(rounded));
}

/** A 64-bit integer as a float of a precision. */
export function fromWideInteger(
  low: number,
  high: number,
  signed: boolean,
  precision: Precision,
  mode: Rounding,
): number {
  const exact = (signed ? high : high >>> 0) * 4294967296 + (low >>> 0);
  if (Math.abs(exact) < 2 ** 52) return roundTo(exact, precision, mode);
  return roundInteger(signed ? toSigned(low, high) : toUnsigned(low, high), precision, mode);
}

export function fromInteger(value: number, precision: Precision, mode: Rounding): number {
  return roundTo(value, precision, mode);
}

/** A number as the bits of an f32, with another rounding than to nearest. */
export function singleRounded(value: number, mode: Rounding): number {
  return mode === "rn" ? Math.fround(value) : roundTo(value, precisions.f32, mode);
}

/** The same with `.ftz`, which flushes as that of arithmetic does. */
export function singleFlushed(value: number, mode: Rounding): number {
  return roundAndFlush(mode === "rn" ? value : roundTo(value, precisions.endless, mode));
}

/** The tf32 bits of a number. `rna` only cuts those of a NaN, and takes one off to make it "finite". */
export function encodeTf32(
  value: number,
  bits: number,
  mode: Rounding,
  relu: boolean,
  finite: boolean,
): number {
  if (value !== value) {
    if (mode !== "rna") return 0x7fffe000;
    return ((bits & ~0x1fff) - (finite ? 0x2000 : 0)) | 0;
  }
  let rounded = roundTo(value, precisions.tf32, mode);
  if (relu && !(rounded > 0)) rounded = 0;
  const { maxFinite } = precisions.tf32;
  if (finite) rounded = Math.max(-maxFinite, Math.min(maxFinite, rounded));
  return bitsOfSingle(rounded);
}

/** A pair of f16 or bf16 codes with modifiers applied to each number. */
export function encodePart(
  value: number,
  format: "f16" | "bf16",
  mode: Rounding,
  relu: boolean,
  finite: boolean,
): number {
  if (value !== value) return 0x7fff;
  const precision = precisions[format];
  let rounded = mode === "rn" ? value : roundTo(value, precision, mode);
  if (relu && !(rounded > 0)) rounded = 0;
  const code = format === "f16" ? encodeHalf(rounded) : encodeBfloat(rounded);
  if (!finite) return code;
  const infinity = format === "f16" ? 0x7c00 : 0x7f80;
  return (code & 0x7fff) === infinity ? code - 1 : code;
}

/** A 64-bit integer clamped to another integer type; left in the pair. */
export function clampWide(
  low: number,
  high: number,
  fromSigned: boolean,
  bits: number,
  signed: boolean,
): void {
  const value = fromSigned ? toSigned(low, high) : toUnsigned(low, high);
  const top = 1n << BigInt(signed ? bits - 1 : bits);
  const least = signed ? -top : 0n;
  setWide(value < least ? least : value >= top ? top - 1n : value);
}
