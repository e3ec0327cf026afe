/**
 * Conversions to and from floats of 4, 6 and 8 bits that newer GPUs have, and those that round by random bits.
 *
 *   | format       | NaN becomes            | beyond range          |
 *   |--------------|------------------------|-----------------------|
 *   | e4m3, e5m2   | 0x7f                   | the largest           |
 *   | e2m3, e3m2   | the largest, positive  | the largest           |
 *   | e2m1         | the largest, positive  | the largest           |
 *   | ue8m0        | 0xff                   | 0xff, or 0xfe         |
 *
 * Random bits are added to as many bits of what is dropped, from its top; a carry rounds away from zero. The assembler's
 * language leaves open how they line up where more bits are dropped than there are random ones: the rest is cut off here.
 */
import { decodeFloat, encodeFloat, floatFormats } from "../../formats/floats.ts";
import { bitsOfSingle } from "./floats.ts";

/** Formats that conversions pack two or four of into a register. */
export type SmallFloat = "f8e4m3fn" | "f8e5m2" | "f6e2m3fn" | "f6e3m2fn" | "f4e2m1fn";

const nanCodes: { readonly [F in SmallFloat]: number } = {
  f8e4m3fn: 0x7f,
  f8e5m2: 0x7f,
  f6e2m3fn: 0x1f,
  f6e3m2fn: 0x1f,
  f4e2m1fn: 0x07,
};

/** The code of a number, saturated beyond range. */
export function encodeSmall(name: SmallFloat, value: number, relu: boolean): number {
  if (value !== value) return nanCodes[name];
  return encodeFloat(name, relu && value <= 0 ? 0 : value);
}

export function decodeSmall(name: SmallFloat, code: number): number {
  return decodeFloat(name, code);
}

/** An f32 as a power of two, its sign dropped: cut, or to the next one. */
export function encodeScale(bits: number, up: boolean, finite: boolean): number {
  const magnitude = bits & 0x7fffffff;
  if (magnitude > 0x7f800000) return 0xff;
  const exponent = magnitude >>> 23;
  const mantissa = magnitude & 0x7fffff;
  // The least power is 2^-127, which is half of the least normal number.
  const isAbove = exponent === 0 ? magnitude > 0x400000 : mantissa !== 0;
  const code = exponent + (up && exponent < 255 && isAbove ? 1 : 0);
  return finite ? Math.min(code, 0xfe) : code;
}

/** The bf16 code of a power of two. */
export function decodeScale(code: number): number {
  if (code === 0) return 0x0040;
  return code === 0xff ? 0x7fff : code << 7;
}

/** A number cut to a format's, or the next one from zero where the random bits carry. */
function roundRandomly(
  name: SmallFloat | "f16" | "bf16",
  value: number,
  random: number,
  count: number,
): number {
  if (value === 0 || value !== value || Math.abs(value) === Infinity) return value;
  const { mantissaBits, bias } = floatFormats[name];
  const magnitude = Math.abs(value);
  const exponent = Math.max(((bitsOfSingle(magnitude) >>> 23) & 0xff) - 127, 1 - bias);
  const unit = 2 ** (exponent - mantissaBits);
  const quotient = magnitude / unit;
  const kept = Math.floor(quotient);
  const dropped = Math.floor((quotient - kept) * 2 ** count);
  const rounded = (kept + (dropped + random >= 2 ** count ? 1 : 0)) * unit;
  return value < 0 ? -rounded : rounded;
}

/** A code of a small format, rounded by the low `count` bits of `random`. */
export function encodeSmallRandomly(
  name: SmallFloat,
  value: number,
  random: number,
  count: number,
  relu: boolean,
): number {
  const bits = random & (2 ** count - 1);
  const rounded = roundRandomly(name, value, bits, count);
  const { maxFinite } = floatFormats[name];
  return encodeSmall(name, Math.max(-maxFinite, Math.min(maxFinite, rounded)), relu);
}

/** A code of f16 or bf16, rounded by the low 13 or 16 bits of `random`. */
export function encodeHalfRandomly(
  name: "f16" | "bf16",
  value: number,
  random: number,
  relu: boolean,
  finite: boolean,
): number {
  if (value !== value) return 0x7fff;
  const count = name === "f16" ? 13 : 16;
  const rounded = roundRandomly(name, value, random & (2 ** count - 1), count);
  const kept = relu && rounded <= 0 ? 0 : rounded;
  const { maxFinite } = floatFormats[name];
  const beyond = Math.sign(kept) * (finite ? maxFinite : Infinity);
  const result = Math.abs(kept) > maxFinite ? beyond : kept;
  return name === "f16" ? encodeFloat("f16", result) : bitsOfSingle(result) >>> 16;
}
