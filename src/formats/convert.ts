/**
 * Conversion between any two formats, whole elements at a time, by the rules of `conversion-rules.ts`.
 *
 * Formats make hundreds of pairs. Each pair goes through a small buffer of f64 numbers, so
 * that a format needs one reader and one writer:
 *
 *   source elements --read--> 1024 numbers --write--> target elements
 *
 * An f64 holds every number of every format but the 64-bit integers. Those are read by what the target
 * needs of them:
 *
 *   target      what is read
 *   f64         the nearest f64: this rounding is the conversion
 *   other float the f64 rounded to odd, whose last bit says that there was more; rounding that once
 *               more is rounding the integer (see `floats.ts`)
 *   integer     the low 32 bits, all that wrapping keeps
 *   bool        the f64 rounded to odd; only zero gives zero
 *
 * Choices of the caller (`rounding.ts`) are made between the two: the numbers of the buffer are rounded and cut first, so
 * that writing them is exact.
 *
 * 64-bit elements are handled as pairs of 32-bit words, low word first as on every host JavaScript runs on.
 */
import { TilewrightError } from "../support/diagnostics.ts";
import { conversionRules, numberClass } from "./conversion-rules.ts";
import { isFloat, isWide } from "./dtype.ts";
import type { DType, DTypeName, FloatName, IntegerName, Elements } from "./dtype.ts";
import { requireElements } from "./argument-checks.ts";
import { decodeFloatElements, encodeFloatElements } from "./floats.ts";
import type { ConversionOptions } from "./floats.ts";
import { integerToF64, roundToFloat, wholeNumber } from "./rounding.ts";

type WideName = "i64" | "u64";
type NarrowIntegerName = Exclude<IntegerName, WideName>;

const bufferLength = 1024;
const buffer = new Float64Array(bufferLength);

const wordRange = 2 ** 32;

/** Converts all of `source` into `target`, element by element. The two must not share memory. */
export function convertElements<From extends DTypeName, To extends DTypeName>(
  from: DType<From>,
  to: DType<To>,
  source: Elements<From>,
  target: Elements<To>,
  options?: ConversionOptions,
): void {
  requireElements(from, source);
  requireElements(to, target);
  if (source.length !== target.length) {
    throw new TilewrightError({
      code: "TW0005",
      message: `elements to convert from ${from.name} to ${to.name} differ in length`,
      expected: `${source.length} target elements`,
      found: `${target.length}`,
    });
  }
  convertInto(from, to, source, target, 0, options);
}

/** Converts all of `source` into the elements of `target` from `start` on. */
export function convertInto<From extends DTypeName, To extends DTypeName>(
  from: DType<From>,
  to: DType<To>,
  source: Elements<From>,
  target: Elements<To>,
  start: number,
  options?: ConversionOptions,
): void {
  if (needsNoConversion(from, to, options)) {
    (target as { set(elements: Elements, start: number): void }).set(source, start);
    if (options?.overflow === "saturate" && from.kind !== to.kind)
      cutTopBit(to, target as Elements<WideName>, start, source.length);
    return;
  }
  for (let done = 0; done < source.length; done += bufferLength) {
    const count = Math.min(bufferLength, source.length - done);
    read(from, source, done, count, to, options);
    choose(from, to, count, options);
    write(to, target, start + done, count, from, options);
  }
}

/** Between the 64-bit integers a copy already reads the same bits with the target's sign. */
function needsNoConversion(from: DType, to: DType, options?: ConversionOptions): boolean {
  if (from === to) return options?.overflow !== "unit";
  return isWide(from) && isWide(to);
}

/** What has the top bit is outside of the other 64-bit format: below it or above. */
function cutTopBit(to: DType, target: Elements<WideName>, start: number, count: number): void {
  const bound = to.name === "u64" ? 0n : 2n ** 63n - 1n;
  for (let i = start; i < start + count; i++)
    if (BigInt.asIntN(64, target[i] as bigint) < 0n) target[i] = bound;
}

/** What the options make of the numbers in the buffer. */
function choose(from: DType, to: DType, count: number, options: ConversionOptions = {}): void {
  const { overflow, rounding = isFloat(to) ? "nearest" : "zero" } = options;
  if (isFloat(to)) {
    const isUsual = rounding === "nearest" && (overflow === undefined || overflow === "nan");
    if (isUsual) return;
    for (let i = 0; i < count; i++)
      buffer[i] = roundToFloat(to.name, buffer[i] as number, { overflow, rounding });
  } else if (isFloat(from) && rounding !== "zero" && rounding !== "away") {
    const round = wholeNumber[rounding];
    for (let i = 0; i < count; i++) buffer[i] = round(buffer[i] as number);
  }
}

function read(
  from: DType,
  source: Elements,
  start: number,
  count: number,
  to: DType,
  options: ConversionOptions | undefined,
): void {
  if (isFloat(from)) {
    decodeFloatElements(from.name, source as Elements<FloatName>, start, count, buffer);
  } else if (isWide(from)) {
    readWide(from, source as Elements<WideName>, start, count, to, options);
  } else if (from.kind === "bool") {
    for (let i = 0; i < count; i++) buffer[i] = source[start + i] === 0 ? 0 : 1;
  } else {
    const elements = source as Elements<NarrowIntegerName>;
    for (let i = 0; i < count; i++) buffer[i] = elements[start + i] as number;
  }
}

function readWide(
  from: DType<WideName>,
  source: Elements<WideName>,
  start: number,
  count: number,
  to: DType,
  { overflow, rounding = "nearest" }: ConversionOptions = {},
): void {
  if (to.name === "f64" && rounding !== "nearest") {
    for (let i = 0; i < count; i++) buffer[i] = integerToF64(source[start + i] as bigint, rounding);
    return;
  }
  const words = wordsOf(source, start, count);
  const toInteger = numberClass(to) === "integer" && overflow !== "saturate";
  for (let i = 0; i < count; i++) {
    const low = words[2 * i] as number;
    const signedHigh = words[2 * i + 1] as number;
    if (toInteger) {
      buffer[i] = low;
    } else {
      const high = from.name === "i64" ? signedHigh : signedHigh >>> 0;
      buffer[i] = to.name === "f64" ? high * wordRange + (low >>> 0) : joinToOdd(high, low >>> 0);
    }
  }
}

function wordsOf(elements: Elements<WideName>, start: number, count: number): Int32Array {
  return new Int32Array(elements.buffer, elements.byteOffset + 8 * start, 2 * count);
}

/** high · 2^32 + low with the bits below 2^11 gathered into one where an f64 might not hold them. */
function joinToOdd(high: number, low: number): number {
  const negative = high < 0;
  const lowMagnitude = negative && low !== 0 ? wordRange - low : low;
  const highMagnitude = negative ? -high - (low === 0 ? 0 : 1) : high;
  const inexact = highMagnitude >= 2 ** 21 && (lowMagnitude & 0x7ff) !== 0;
  const kept = inexact ? ((lowMagnitude & ~0x7ff) | 0x800) >>> 0 : lowMagnitude;
  const magnitude = highMagnitude * wordRange + kept;
  return negative ? -magnitude : magnitude;
}

function write(
  to: DType,
  target: Elements,
  start: number,
  count: number,
  from: DType,
  options: ConversionOptions | undefined,
): void {
  const saturate =
    options?.overflow === "saturate" ||
    conversionRules[numberClass(from)][numberClass(to)].overflow === "saturate";
  if (isFloat(to)) {
    encodeFloatElements(to.name, buffer, target as Elements<FloatName>, start, count, options);
  } else if (isWide(to)) {
    const words = wordsOf(target as Elements<WideName>, start, count);
    if (saturate) writeWideSaturated(to, words, count);
    else writeWideWrapped(words, count);
  } else if (to.kind === "bool") {
    const elements = target as Elements<"bool">;
    for (let i = 0; i < count; i++) elements[start + i] = buffer[i] === 0 ? 0 : 1;
  } else {
    const elements = target as Elements<NarrowIntegerName>;
    if (saturate) writeSaturated(to, elements, start, count);
    else writeWrapped(to, elements, start, count);
  }
}

/** The least and the greatest number of an integer format, the latter rounded up to 2^n for 64 bits. */
function integerRange(dtype: DType): readonly [number, number] {
  const signed = dtype.kind === "signed";
  const span = 2 ** (signed ? dtype.bits - 1 : dtype.bits);
  return [signed ? -span : 0, span - 1];
}

/** Typed arrays of integers truncate what is stored and take NaN as 0, so that bounding is all there is to do. */
function writeSaturated(
  to: DType,
  target: Elements<NarrowIntegerName>,
  start: number,
  count: number,
): void {
  const [least, greatest] = integerRange(to);
  for (let i = 0; i < count; i++) {
    const value = buffer[i] as number;
    target[start + i] = value < least ? least : value > greatest ? greatest : value;
  }
}

/** Typed arrays of integers wrap what is stored; only four bits are ours to cut. */
function writeWrapped(
  to: DType,
  target: Elements<NarrowIntegerName>,
  start: number,
  count: number,
): void {
  if (to.name === "i4") {
    for (let i = 0; i < count; i++) target[start + i] = ((buffer[i] as number) << 28) >> 28;
  } else if (to.name === "u4") {
    for (let i = 0; i < count; i++) target[start + i] = (buffer[i] as number) & 15;
  } else {
    for (let i = 0; i < count; i++) target[start + i] = buffer[i] as number;
  }
}

/** As with typed arrays of integers elsewhere, words of NaN are stored as 0. */
function writeWideSaturated(to: DType, words: Int32Array, count: number): void {
  const [least, greatest] = integerRange(to);
  const greatestHigh = to.kind === "signed" ? 0x7fffffff : -1;
  for (let i = 0; i < count; i++) {
    const value = buffer[i] as number;
    if (value >= greatest) {
      words[2 * i] = -1;
      words[2 * i + 1] = greatestHigh;
    } else {
      const whole = Math.trunc(value < least ? least : value);
      const high = Math.floor(whole / wordRange);
      words[2 * i] = whole - high * wordRange;
      words[2 * i + 1] = high;
    }
  }
}

function writeWideWrapped(words: Int32Array, count: number): void {
  for (let i = 0; i < count; i++) {
    const value = buffer[i] as number;
    words[2 * i] = value;
    words[2 * i + 1] = value < 0 ? -1 : 0;
  }
}
