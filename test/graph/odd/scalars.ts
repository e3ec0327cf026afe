/**
 * Elements of StableHLO computed a second time, from its specification and `docs/stablehlo.md` alone: whole numbers as big integers
 * that are wrapped, floats as numbers that are rounded by the widths of their format. Nothing here is the evaluator's.
 */

export type Scalar = number | bigint;

export interface Float {
  readonly exponent: number;
  readonly mantissa: number;
  /** What is beyond the largest number, and whether there are infinities. */
  readonly infinite: boolean;
  readonly largest: number;
}

const floats: { readonly [name: string]: Float } = {
  f64: { exponent: 11, mantissa: 52, infinite: true, largest: Number.MAX_VALUE },
  f32: { exponent: 8, mantissa: 23, infinite: true, largest: (2 - 2 ** -23) * 2 ** 127 },
  bf16: { exponent: 8, mantissa: 7, infinite: true, largest: (2 - 2 ** -7) * 2 ** 127 },
  f16: { exponent: 5, mantissa: 10, infinite: true, largest: 65504 },
  f8E5M2: { exponent: 5, mantissa: 2, infinite: true, largest: 57344 },
  f8E4M3FN: { exponent: 4, mantissa: 3, infinite: false, largest: 448 },
};

export const floatNames = Object.keys(floats);
export const integerNames = [
  "i2",
  "ui2",
  "i4",
  "ui4",
  "i8",
  "ui8",
  "i16",
  "ui16",
  "i32",
  "ui32",
  "i64",
  "ui64",
];

export const isFloat = (element: string): boolean => Object.hasOwn(floats, element);
export const isSigned = (element: string): boolean => element.startsWith("i") && element !== "i1";
export const isInteger = (element: string): boolean => integerNames.includes(element);

export function floatOf(element: string): Float {
  const found = floats[element];
  if (found === undefined) throw new Error(`${element} is no float`);
  return found;
}

export function bitsOf(element: string): number {
  return isFloat(element)
    ? 1 + floatOf(element).exponent + floatOf(element).mantissa
    : Number(element.replace(/^u?i/, ""));
}

/** The nearest number with so many bits; ties go to even, and what is too large to infinity. */
export function rounded(value: number, exponent: number, mantissa: number): number {
  if (!Number.isFinite(value) || value === 0) return value;
  // Most numbers are small and whole, and are there as they are.
  if (
    Number.isInteger(value) &&
    Math.abs(value) <= 2 ** Math.min(mantissa, 2 ** (exponent - 1) - 1)
  )
    return value;
  const bias = 2 ** (exponent - 1) - 1;
  const power = Math.max(floorLog2(Math.abs(value)), 1 - bias);
  // Both scalings are by powers of two; the units of a format lie within those of f64.
  const unit = power - mantissa;
  const scaled =
    Math.abs(value) * 2 ** Math.min(-unit, 1000) * 2 ** (-unit - Math.min(-unit, 1000));
  const whole = evenRounded(scaled);
  const back = whole * 2 ** Math.max(unit, -1000) * 2 ** (unit - Math.max(unit, -1000));
  const most = (2 - 2 ** -mantissa) * 2 ** bias;
  return Math.sign(value) * (back > most ? Infinity : back);
}

function floorLog2(value: number): number {
  const view = new DataView(new ArrayBuffer(8));
  view.setFloat64(0, value);
  const field = (view.getUint16(0) >> 4) & 0x7ff;
  return field === 0 ? floorLog2(value * 2 ** 60) - 60 : field - 1023;
}

export function evenRounded(value: number): number {
  const below = Math.floor(value);
  const part = value - below;
  if (part !== 0.5) return part < 0.5 ? below : below + 1;
  return below % 2 === 0 ? below : below + 1;
}

/** A number or whole number as an element: wrapped or rounded. */
export function settled(element: string, value: Scalar): Scalar {
  if (element === "i1") return value;
  if (isInteger(element))
    return isSigned(element)
      ? BigInt.asIntN(bitsOf(element), value as bigint)
      : BigInt.asUintN(bitsOf(element), value as bigint);
  const number = value as number;
  const { exponent, mantissa, infinite, largest } = floatOf(element);
  if (element === "f64") return number;
  if (infinite) return rounded(number, exponent, mantissa);
  // Exponents go on for a while, and what lies beyond the largest number is none.
  const least = 2 ** (2 - 2 ** (exponent - 1));
  const near =
    Math.abs(number) < least ? fixed(number, element) : rounded(number, exponent + 2, mantissa);
  return Math.abs(near) > largest ? NaN : near;
}

/** Subnormal numbers are multiples of one unit. */
function fixed(value: number, element: string): number {
  const { exponent, mantissa } = floatOf(element);
  const unit = 2 ** (2 - 2 ** (exponent - 1) - mantissa);
  const whole = evenRounded(Math.abs(value) / unit) * unit;
  return value < 0 || Object.is(value, -0) ? -whole : whole;
}

const least = (element: string): bigint =>
  isSigned(element) ? -(1n << BigInt(bitsOf(element) - 1)) : 0n;
const most = (element: string): bigint =>
  (1n << BigInt(bitsOf(element) - (isSigned(element) ? 1 : 0))) - 1n;
export const rangeOf = (element: string): readonly [bigint, bigint] => [
  least(element),
  most(element),
];

/** A value of one element type as one of another. */
export function converted(value: Scalar, from: string, to: string): Scalar {
  if (to === "i1") return Number(value) !== 0 || Number.isNaN(value) ? 1n : 0n;
  if (isInteger(to)) {
    if (!isFloat(from)) return settled(to, value);
    const number = value as number;
    if (Number.isNaN(number)) return 0n;
    if (number === Infinity) return most(to);
    if (number === -Infinity) return least(to);
    const whole = BigInt(Math.trunc(number));
    return whole < least(to) ? least(to) : whole > most(to) ? most(to) : whole;
  }
  if (isFloat(from)) return settled(to, value);
  return roundedWhole(value as bigint, to);
}

/** A whole number of any size as a float, rounded once. */
function roundedWhole(value: bigint, to: string): Scalar {
  const magnitude = value < 0n ? -value : value;
  const length = magnitude.toString(2).length;
  const extra = Math.max(0, length - 54);
  // The last of 55 bits says whether there is anything below.
  const kept = magnitude >> BigInt(extra);
  const sticky = extra > 0 && kept << BigInt(extra) !== magnitude ? 1n : 0n;
  if (to === "f64") return Number(value);
  const { mantissa } = floatOf(to);
  const drop = Math.max(0, length - (mantissa + 3));
  const short = magnitude >> BigInt(drop);
  const rest = short << BigInt(drop) !== magnitude ? 1n : sticky;
  const near = Number((short << 1n) | rest) * 2 ** (drop - 1);
  return settled(to, value < 0n ? -near : near);
}

/** The bits of an element as an unsigned whole number. */
export function codeOf(element: string, value: Scalar): bigint {
  if (!isFloat(element)) return BigInt.asUintN(bitsOf(element), value as bigint);
  const number = value as number;
  const view = new DataView(new ArrayBuffer(8));
  const { exponent, mantissa, infinite } = floatOf(element);
  const bias = 2 ** (exponent - 1) - 1;
  const sign = BigInt(number < 0 || Object.is(number, -0) ? 1 : 0) << BigInt(exponent + mantissa);
  const ones = (1n << BigInt(exponent)) - 1n;
  if (Number.isNaN(number))
    return (
      (ones << BigInt(mantissa)) |
      (infinite ? 1n << BigInt(mantissa - 1) : (1n << BigInt(mantissa)) - 1n)
    );
  if (!Number.isFinite(number)) return sign | (ones << BigInt(mantissa));
  if (element === "f64") {
    view.setFloat64(0, number);
    return view.getBigUint64(0);
  }
  if (number === 0) return sign;
  const power = Math.max(floorLog2(Math.abs(number)), 1 - bias);
  const whole = BigInt(Math.abs(number) * 2 ** (mantissa - power));
  const subnormal = whole < 1n << BigInt(mantissa);
  return subnormal
    ? sign | whole
    : sign | (BigInt(power + bias) << BigInt(mantissa)) | (whole & ((1n << BigInt(mantissa)) - 1n));
}

/** The element that bits are. */
export function ofCode(element: string, code: bigint): Scalar {
  if (element === "i1") return code;
  if (!isFloat(element)) return settled(element, code);
  const { exponent, mantissa, infinite } = floatOf(element);
  if (element === "f64") {
    const view = new DataView(new ArrayBuffer(8));
    view.setBigUint64(0, code);
    return view.getFloat64(0);
  }
  const bias = 2 ** (exponent - 1) - 1;
  const sign = (code >> BigInt(exponent + mantissa)) & 1n ? -1 : 1;
  const field = Number((code >> BigInt(mantissa)) & ((1n << BigInt(exponent)) - 1n));
  const fraction = Number(code & ((1n << BigInt(mantissa)) - 1n));
  const top = 2 ** exponent - 1;
  if (field === top && infinite) return fraction === 0 ? sign * Infinity : NaN;
  if (field === top && !infinite && fraction === 2 ** mantissa - 1) return NaN;
  return field === 0
    ? sign * fraction * 2 ** (1 - bias - mantissa)
    : sign * (1 + fraction / 2 ** mantissa) * 2 ** (field - bias);
}

type Unary = (x: Scalar, element: string) => Scalar;
type Binary = (x: Scalar, y: Scalar, element: string) => Scalar;

const whole =
  (f: (x: bigint, element: string) => bigint): Unary =>
  (x, element) =>
    settled(element, f(x as bigint, element));
const real =
  (f: (x: number) => number): Unary =>
  (x, element) =>
    settled(element, f(x as number));
const wholes =
  (f: (x: bigint, y: bigint, element: string) => bigint): Binary =>
  (x, y, element) =>
    settled(element, f(x as bigint, y as bigint, element));
const reals =
  (f: (x: number, y: number) => number): Binary =>
  (x, y, element) =>
    settled(element, f(x as number, y as number));

const ones = (code: bigint): bigint =>
  BigInt([...code.toString(2)].filter((c) => c === "1").length);

export const integerUnary: { readonly [op: string]: Unary } = {
  negate: whole((x) => -x),
  abs: whole((x) => (x < 0n ? -x : x)),
  not: whole((x) => ~x),
  sign: whole((x) => (x > 0n ? 1n : x < 0n ? -1n : 0n)),
  popcnt: whole((x, element) => ones(codeOf(element, x))),
  count_leading_zeros: whole((x, element) => {
    const code = codeOf(element, x);
    return BigInt(bitsOf(element)) - (code === 0n ? 0n : BigInt(code.toString(2).length));
  }),
};

export const floatUnary: { readonly [op: string]: Unary } = {
  negate: real((x) => -x),
  abs: real(Math.abs),
  floor: real(Math.floor),
  ceil: real(Math.ceil),
  sign: real(Math.sign),
  sqrt: real(Math.sqrt),
  round_nearest_even: real((x) =>
    Math.abs(x) >= 2 ** 52 || Number.isNaN(x) ? x : signed(evenRounded(Math.abs(x)), x),
  ),
  round_nearest_afz: real((x) =>
    Math.abs(x) >= 2 ** 52 || Number.isNaN(x)
      ? x
      : signed(Math.floor(Math.abs(x)) + (Math.abs(x) - Math.floor(Math.abs(x)) >= 0.5 ? 1 : 0), x),
  ),
};

const signed = (magnitude: number, like: number): number =>
  like < 0 || Object.is(like, -0) ? -magnitude : magnitude;

const width = (element: string): bigint => BigInt(bitsOf(element));

function quotient(x: bigint, y: bigint): bigint {
  return y === 0n ? -1n : x / y;
}

function power(x: bigint, y: bigint, element: string): bigint {
  if (y < 0n) return x === 1n ? 1n : x === -1n ? (y % 2n === 0n ? 1n : -1n) : 0n;
  let [result, square, left] = [1n, x, y];
  for (; left > 0n; left >>= 1n) {
    if (left & 1n) result = settled(element, result * square) as bigint;
    square = settled(element, square * square) as bigint;
  }
  return result;
}

/** Amounts are taken as unsigned: negative ones are beyond the width. */
const amount = (y: bigint, element: string): bigint => codeOf(element, y);

export const integerBinary: { readonly [op: string]: Binary } = {
  add: wholes((x, y) => x + y),
  subtract: wholes((x, y) => x - y),
  multiply: wholes((x, y) => x * y),
  divide: wholes(quotient),
  remainder: wholes((x, y) => (y === 0n ? x : x % y)),
  maximum: wholes((x, y) => (x > y ? x : y)),
  minimum: wholes((x, y) => (x < y ? x : y)),
  and: wholes((x, y) => x & y),
  or: wholes((x, y) => x | y),
  xor: wholes((x, y) => x ^ y),
  power: wholes(power),
  shift_left: wholes((x, y, e) => (amount(y, e) >= width(e) ? 0n : x << amount(y, e))),
  shift_right_logical: wholes((x, y, e) =>
    amount(y, e) >= width(e) ? 0n : codeOf(e, x) >> amount(y, e),
  ),
  shift_right_arithmetic: wholes((x, y, e) => {
    const value = BigInt.asIntN(bitsOf(e), x);
    return amount(y, e) >= width(e) ? (value < 0n ? -1n : 0n) : value >> amount(y, e);
  }),
};

export const floatBinary: { readonly [op: string]: Binary } = {
  add: reals((x, y) => x + y),
  subtract: reals((x, y) => x - y),
  multiply: reals((x, y) => x * y),
  divide: reals((x, y) => x / y),
  remainder: reals((x, y) => x % y),
  maximum: reals(Math.max),
  minimum: reals(Math.min),
};

export const boolBinary: { readonly [op: string]: Binary } = {
  add: (x, y) => (x as bigint) | (y as bigint),
  multiply: (x, y) => (x as bigint) & (y as bigint),
  maximum: (x, y) => (x as bigint) | (y as bigint),
  minimum: (x, y) => (x as bigint) & (y as bigint),
  and: (x, y) => (x as bigint) & (y as bigint),
  or: (x, y) => (x as bigint) | (y as bigint),
  xor: (x, y) => (x as bigint) ^ (y as bigint),
};

/** The table of ops of two operands that an element type has. */
export function binaryOf(element: string): { readonly [op: string]: Binary } {
  return element === "i1" ? boolBinary : isFloat(element) ? floatBinary : integerBinary;
}

/** A float as a whole number that rises with its total order. */
export function ordinal(element: string, value: Scalar): bigint {
  const code = codeOf(element, value);
  const sign = 1n << BigInt(bitsOf(element) - 1);
  return code & sign ? -(code ^ sign) - 1n : code;
}

export const directions = ["EQ", "NE", "LT", "LE", "GT", "GE"] as const;
export type Direction = (typeof directions)[number];

export function compared(
  direction: Direction,
  x: Scalar,
  y: Scalar,
  element: string,
  total = false,
): bigint {
  const [a, b] = total ? [ordinal(element, x), ordinal(element, y)] : [x, y];
  const holds = {
    EQ: a === b,
    NE: a !== b,
    LT: a < b,
    LE: a <= b,
    GT: a > b,
    GE: a >= b,
  }[direction];
  return holds ? 1n : 0n;
}
