/**
 * A second, slow definition of the number formats for tests to compare with: every number of a format
 * listed in order, a value rounded by searching that list and comparing with the midpoint, integers
 * by BigInt. It shares no code with the library.
 */
import type { DTypeName, FloatName, IntegerName } from "../src/formats/dtype.ts";

/** Formats whose numbers can be listed. */
export type ListedName = Exclude<FloatName, "f64" | "f32">;

interface Layout {
  readonly exponentBits: number;
  readonly mantissaBits: number;
  readonly bias: number;
  /** Which codes of the largest exponent are numbers: none, all but the last, or all. */
  readonly lastExponent: "special" | "last is NaN" | "numbers";
  /** Zero bits below the mantissa. */
  readonly padding: number;
}

const layouts: { readonly [N in Exclude<ListedName, "f8e8m0fnu">]: Layout } = {
  tf32: { exponentBits: 8, mantissaBits: 10, bias: 127, lastExponent: "special", padding: 13 },
  f16: { exponentBits: 5, mantissaBits: 10, bias: 15, lastExponent: "special", padding: 0 },
  bf16: { exponentBits: 8, mantissaBits: 7, bias: 127, lastExponent: "special", padding: 0 },
  f8e4m3fn: { exponentBits: 4, mantissaBits: 3, bias: 7, lastExponent: "last is NaN", padding: 0 },
  f8e5m2: { exponentBits: 5, mantissaBits: 2, bias: 15, lastExponent: "special", padding: 0 },
  f6e2m3fn: { exponentBits: 2, mantissaBits: 3, bias: 1, lastExponent: "numbers", padding: 0 },
  f6e3m2fn: { exponentBits: 3, mantissaBits: 2, bias: 3, lastExponent: "numbers", padding: 0 },
  f4e2m1fn: { exponentBits: 2, mantissaBits: 1, bias: 1, lastExponent: "numbers", padding: 0 },
};

/** `value` times 2^exponent by doubling or halving, exact while the result is normal. */
function scale(value: number, exponent: number): number {
  let result = value;
  for (let i = 0; i < Math.abs(exponent); i++) result = exponent > 0 ? result * 2 : result / 2;
  return result;
}

const lists = new Map<ListedName, Float64Array>();

/** The finite numbers from zero up (for f8e8m0fnu from 2^-127 up) by code, without padding. */
export function finiteNumbers(name: ListedName): Float64Array {
  const known = lists.get(name);
  if (known !== undefined) return known;
  const values: number[] = [];
  if (name === "f8e8m0fnu") {
    for (let code = 0; code < 255; code++) values.push(scale(1, code - 127));
  } else {
    const { exponentBits, mantissaBits, bias, lastExponent } = layouts[name];
    const steps = 2 ** mantissaBits;
    const exponents = 2 ** exponentBits - (lastExponent === "special" ? 1 : 0);
    for (let mantissa = 0; mantissa < steps; mantissa++) {
      values.push(scale(mantissa, 1 - bias - mantissaBits));
    }
    let step = scale(1, 1 - bias - mantissaBits);
    for (let exponent = 1; exponent < exponents; exponent++, step *= 2) {
      for (let mantissa = 0; mantissa < steps; mantissa++) values.push((steps + mantissa) * step);
    }
    if (lastExponent === "last is NaN") values.pop();
  }
  const list = Float64Array.from(values);
  lists.set(name, list);
  return list;
}

/** All codes of a format, sign and specials included. */
export function codesOf(name: ListedName): readonly number[] {
  if (name === "f8e8m0fnu") return Array.from({ length: 256 }, (_, code) => code);
  const { exponentBits, mantissaBits, padding } = layouts[name];
  const count = 2 ** (1 + exponentBits + mantissaBits);
  return Array.from({ length: count }, (_, code) => code * 2 ** padding);
}

export function referenceDecode(name: ListedName, code: number): number {
  const list = finiteNumbers(name);
  if (name === "f8e8m0fnu") return list[code] ?? NaN;
  const { exponentBits, mantissaBits, lastExponent, padding } = layouts[name];
  const signWeight = 2 ** (exponentBits + mantissaBits);
  // Of a byte with a code of 6 bits the others do not count.
  const short = (code / 2 ** padding) % (2 * signWeight);
  const magnitude = short % signWeight;
  const sign = short >= signWeight ? -1 : 1;
  const value = list[magnitude];
  if (value !== undefined) return sign * value;
  return lastExponent === "special" && magnitude === list.length ? sign * Infinity : NaN;
}

/** The code that `value` rounds to, found by search. */
export function referenceEncode(name: ListedName, value: number, overflow = "saturate"): number {
  const list = finiteNumbers(name);
  if (name === "f8e8m0fnu") {
    if (!(value > 0) || value >= scale(1.5, 127)) return 255;
    return nearest(list, value, scale(1, 128), (below) => below + 1);
  }
  const { exponentBits, mantissaBits, padding } = layouts[name];
  const shifted = 2 ** padding;
  const sign = 2 ** (exponentBits + mantissaBits);
  if (Number.isNaN(value)) return nanCode(name);
  const negative = value < 0 || Object.is(value, -0);
  const last = list[list.length - 1] ?? 0;
  const beyond = last + (last - (list[list.length - 2] ?? 0));
  let magnitude = nearest(list, Math.abs(value), beyond, (below) => below + (below % 2));
  if (magnitude === list.length) {
    if (name === "f8e4m3fn" || name === "f8e5m2") {
      if (overflow === "nan") return nanCode(name);
      magnitude--;
    } else if (layouts[name].lastExponent === "numbers") magnitude--;
  }
  return (magnitude + (negative ? sign : 0)) * shifted;
}

export function nanCode(name: ListedName): number {
  const codes = {
    tf32: 0x7fc00000,
    f16: 0x7e00,
    bf16: 0x7fc0,
    f8e4m3fn: 0x7f,
    f8e5m2: 0x7e,
    f8e8m0fnu: 0xff,
    f6e2m3fn: 0x20,
    f6e3m2fn: 0x20,
    f4e2m1fn: 0x8,
  };
  return codes[name];
}

/** Index of the nearest number; one past the end means that `value` rounds to `beyond`. */
function nearest(
  list: Float64Array,
  value: number,
  beyond: number,
  tie: (below: number) => number,
): number {
  let below = 0;
  let above = list.length;
  while (above - below > 1) {
    const middle = (below + above) >> 1;
    if ((list[middle] ?? Infinity) <= value) below = middle;
    else above = middle;
  }
  const low = list[below] ?? 0;
  const high = list[above] ?? beyond;
  const midpoint = low / 2 + high / 2;
  if (value < midpoint) return below;
  return value > midpoint ? above : tie(below);
}

/** `value` rounded to 24 or 53 significant bits, halfway to even: exact for integers. */
function roundInteger(value: bigint, precision: number): number {
  const magnitude = value < 0n ? -value : value;
  const extra = BigInt(Math.max(0, magnitude.toString(2).length - precision));
  const unit = 1n << extra;
  const rest = magnitude % unit;
  let rounded = magnitude - rest;
  if (2n * rest > unit || (2n * rest === unit && (rounded / unit) % 2n === 1n)) rounded += unit;
  return Number(value < 0n ? -rounded : rounded);
}

const precisions: { readonly [N in Exclude<FloatName, "f8e8m0fnu">]: number } = {
  f64: 53,
  f32: 24,
  tf32: 11,
  f16: 11,
  bf16: 8,
  f8e4m3fn: 4,
  f8e5m2: 3,
  f6e2m3fn: 4,
  f6e3m2fn: 3,
  f4e2m1fn: 2,
};

function integerToNumber(value: bigint, to: FloatName): number {
  if (to !== "f8e8m0fnu") return roundInteger(value, precisions[to]);
  if (value <= 0n) return Number(value);
  const floor = 1n << BigInt(value.toString(2).length - 1);
  return Number(2n * value >= 3n * floor ? 2n * floor : floor);
}

function isFloatName(name: DTypeName): name is FloatName {
  return name.includes("f");
}

const greatestIntegers: { readonly [N in IntegerName]?: bigint } = Object.fromEntries(
  [4n, 8n, 16n, 32n, 64n].flatMap((bits) => [
    [`i${bits}`, 2n ** (bits - 1n) - 1n],
    [`u${bits}`, 2n ** bits - 1n],
  ]),
);

function numberToInteger(value: number, to: IntegerName): bigint {
  const greatest = greatestIntegers[to] ?? 0n;
  const least = to.startsWith("i") ? -greatest - 1n : 0n;
  if (Number.isNaN(value)) return 0n;
  if (value === Infinity) return greatest;
  if (value === -Infinity) return least;
  const whole = BigInt(value < 0 ? Math.ceil(value) : Math.floor(value));
  if (whole > greatest) return greatest;
  return whole < least ? least : whole;
}

/**
 * The lane that `value` becomes: a number from a float, a BigInt from an integer, a boolean from a
 * bool. Lanes of floats are codes for the listed formats but tf32, numbers elsewhere.
 */
export function referenceElement(
  value: number | bigint | boolean,
  to: DTypeName,
  overflow = "saturate",
): number | bigint {
  const source = typeof value === "boolean" ? BigInt(value) : value;
  if (to === "bool")
    return typeof source === "bigint" ? Number(source !== 0n) : source === 0 ? 0 : 1;
  if (isFloatName(to)) {
    const number = typeof source === "bigint" ? integerToNumber(source, to) : source;
    if (to === "f64") return number;
    if (to === "f32") return Math.fround(number);
    const code = referenceEncode(to, number, overflow);
    return to === "tf32" ? referenceDecode(to, code) : code;
  }
  const bits = Number(to.slice(1));
  const whole = typeof source === "bigint" ? source : numberToInteger(source, to);
  const wrapped = to.startsWith("i") ? BigInt.asIntN(bits, whole) : BigInt.asUintN(bits, whole);
  return bits === 64 ? wrapped : Number(wrapped);
}

const doubleValue = new Float64Array(1);
const doubleBits = new BigInt64Array(doubleValue.buffer);

/** The next f64 after a positive one, upwards or downwards. */
export function neighbour(value: number, direction: 1 | -1): number {
  doubleValue[0] = value;
  doubleBits[0] = (doubleBits[0] ?? 0n) + BigInt(direction);
  return doubleValue[0];
}
