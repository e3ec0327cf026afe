/**
 * Conversions between any two formats, four elements at a time, in the lanes that tiles have:
 *
 * | formats                  | parts                                  |
 * |--------------------------|----------------------------------------|
 * | f32, tf32                | one f32x4                              |
 * | floats below 32 bits     | one i32x4 of their bits                |
 * | i32, u32 and narrower    | one i32x4, extended as the format is   |
 * | bool                     | one i32x4, -1 where true               |
 * | f64; i64, u64            | two f64x2; two i64x2                   |
 *
 * A source is read as what holds it exactly, or rounded to odd, and written from there:
 *
 *   float, narrow integer      f32
 *   f64, i32, u32, i64, u64    f64, then f32 rounded to odd where the target is narrower
 */
import type { DType, FloatName } from "../../formats/dtype.ts";
import { isFloat, isInteger, isWide } from "../../formats/dtype.ts";
import type { ConversionOptions } from "../../formats/floats.ts";
import { op, shuffleLanes, splat } from "../loops/builder.ts";
import type { Expression } from "../loops/ir.ts";
import { canonicalNan, promoteHalves } from "../math/index.ts";
import type { VectorCode } from "../math/index.ts";
import { doubleOfInteger, lowWords, mapHalves, singleOfDouble } from "./doubles.ts";
import type { Halves, SingleRounding } from "./doubles.ts";
import { bitsOfSingle, singleOfBits, withinUnit } from "./floats.ts";
import {
  extended,
  integerOfDouble,
  integerOfSingle,
  saturated,
  saturatedWide,
  truncatedWords,
  wideOfDouble,
  wrapped,
} from "./integers.ts";

export { bitsOfSingle, singleOfBits } from "./floats.ts";
export type { CodedName } from "./floats.ts";

export type Parts = readonly Expression[];

function one(parts: Parts): Expression {
  const [part] = parts;
  if (part === undefined || parts.length !== 1) throw new Error("one vector was expected");
  return part;
}

function two(parts: Parts): Halves {
  const [low, high] = parts;
  if (low === undefined || high === undefined) throw new Error("two vectors were expected");
  return [low, high];
}

/** The elements as another format; the caller has checked that the conversion has these options. */
export function convertParts(
  code: VectorCode,
  from: DType,
  to: DType,
  parts: Parts,
  options: ConversionOptions = {},
): Parts {
  if (from === to && options.overflow !== "unit") return parts;
  if (to.kind === "bool") return [truth(code, from, parts)];
  if (isFloat(to)) return floatParts(code, from, to.name, parts, options);
  if (isFloat(from)) return integerParts(code, from, to, parts, options);
  return betweenIntegers(code, from, to, parts, options.overflow === "saturate");
}

/** Whether elements differ from zero. */
function truth({ builder: b }: VectorCode, from: DType, parts: Parts): Expression {
  if (from.name === "f64" || isWide(from)) {
    const shape = from.name === "f64" ? "f64x2" : "i64x2";
    const zero = splat(shape, 0);
    return b.keep(lowWords(mapHalves(two(parts), (half) => op(`${shape}.ne`, half, zero))));
  }
  if (!isFloat(from)) return b.keep(op("i32x4.ne", one(parts), splat("i32x4", 0)));
  return b.keep(op("f32x4.ne", singleOf(b, from, one(parts)), splat("f32x4", 0)));
}

/** Numbers of floats that f32 holds. */
function singleOf(
  b: VectorCode["builder"],
  { name }: DType<FloatName>,
  part: Expression,
): Expression {
  if (name === "f64") throw new Error("f64 does not fit f32");
  return name === "f32" || name === "tf32" ? part : singleOfBits(b, name, part);
}

/** The source in f32, where that holds all of its numbers. */
function exactSingle(
  { builder: b }: VectorCode,
  from: DType,
  parts: Parts,
): Expression | undefined {
  if (from.name === "f64" || isWide(from)) return undefined;
  if (isFloat(from)) return singleOf(b, from, one(parts));
  if (from.kind === "bool") return b.keep(op("v128.and", one(parts), splat("f32x4", 1)));
  return from.bits <= 16 ? b.keep(op("f32x4.convert_i32x4_s", one(parts))) : undefined;
}

/** The source in f64: exactly, or rounded as asked where it has more digits. */
function doubleOf(
  { builder: b }: VectorCode,
  from: DType,
  parts: Parts,
  rounding: SingleRounding,
): Halves {
  if (from.name === "f64") return two(parts);
  const isSigned = from.kind === "signed";
  if (isWide(from))
    return mapHalves(two(parts), (half) => doubleOfInteger(b, half, isSigned, rounding));
  const value = one(parts);
  const name = isSigned ? "f64x2.convert_low_i32x4_s" : "f64x2.convert_low_i32x4_u";
  const upper = b.keep(shuffleLanes(value, value, [2, 3, 2, 3]));
  return [b.keep(op(name, value)), b.keep(op(name, upper))];
}

function floatParts(
  code: VectorCode,
  from: DType,
  to: FloatName,
  parts: Parts,
  options: ConversionOptions,
): Parts {
  const { builder: b } = code;
  const { overflow, rounding = "nearest" } = options;
  const directed = rounding === "away" ? "nearest" : rounding;
  const single = exactSingle(code, from, parts);
  if (to === "f64") {
    const halves =
      single === undefined ? doubleOf(code, from, parts, directed) : promoteHalves(b, single);
    const cut = overflow === "unit" ? mapHalves(halves, (half) => unitOfDouble(b, half)) : halves;
    return isFloat(from) ? mapHalves(cut, (half) => canonicalNan(code, 64, half)) : cut;
  }
  if (to === "f32") {
    const value = single ?? singleOfDouble(b, doubleOf(code, from, parts, "odd"), directed);
    const cut = overflow === "unit" ? withinUnit(b, value) : value;
    return [isFloat(from) ? canonicalNan(code, 32, cut) : cut];
  }
  const value = single ?? singleOfDouble(b, doubleOf(code, from, parts, "odd"), "odd");
  return [bitsOfSingle(b, to, value, options)];
}

function unitOfDouble(b: VectorCode["builder"], half: Expression): Expression {
  const isAbove = op("f64x2.gt", half, splat("f64x2", 0));
  return b.keep(op("v128.and", isAbove, op("f64x2.pmin", half, splat("f64x2", 1))));
}

const wholeNumbers = { nearest: "nearest", down: "floor", up: "ceil" } as const;

function integerParts(
  code: VectorCode,
  from: DType<FloatName>,
  to: DType,
  parts: Parts,
  { rounding = "zero" }: ConversionOptions,
): Parts {
  const { builder: b } = code;
  // Towards zero is what integers are cut to anyway.
  const whole = (shape: "f32x4" | "f64x2", value: Expression): Expression =>
    rounding === "zero" || rounding === "away"
      ? value
      : b.keep(op(`${shape}.${wholeNumbers[rounding]}`, value));
  const single = exactSingle(code, from, parts);
  if (single !== undefined) {
    const value = whole("f32x4", single);
    if (!isWide(to)) return [integerOfSingle(b, to, value)];
    return wideOfDouble(b, to, promoteHalves(b, value));
  }
  const halves = mapHalves(two(parts), (half) => whole("f64x2", half));
  return isWide(to) ? wideOfDouble(b, to, halves) : [integerOfDouble(b, to, halves)];
}

function betweenIntegers(
  { builder: b }: VectorCode,
  from: DType,
  to: DType,
  parts: Parts,
  saturates: boolean,
): Parts {
  if (from.kind === "bool") {
    const ones = b.keep(op("v128.and", one(parts), splat("i32x4", 1)));
    return isWide(to) ? extended(b, to, ones) : [ones];
  }
  if (!isInteger(from) || !isInteger(to)) throw new Error(`${from.name} to ${to.name}`);
  if (!isWide(from) && !isWide(to)) {
    const part = one(parts);
    return [saturates ? saturated(b, from, to, part) : wrapped(b, to, part)];
  }
  const halves = isWide(from) ? two(parts) : extended(b, from, one(parts));
  const cut = saturates ? mapHalves(halves, (half) => saturatedWide(b, from, to, half)) : halves;
  return isWide(to) ? cut : [wrapped(b, to, truncatedWords(b, cut))];
}
