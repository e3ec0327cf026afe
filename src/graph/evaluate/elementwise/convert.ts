/**
 * Conversions between element types as StableHLO has them, scalar to scalar; what remains is rounding or
 * wrapping to the result's type, which storing does.
 *
 * | from            | to integer                  | to i1         | to real        | to complex |
 * |-----------------|-----------------------------|---------------|----------------|------------|
 * | integer, i1     | low bits                    | differs from 0 | rounded once  | real part  |
 * | real            | truncated, saturated, NaN 0 | differs from 0, NaN true | rounded once | real part |
 * | complex         | as its real part            | as its real part | its real part | both parts |
 *
 * Overflow of a float follows the format: f8E4M3FN gives NaN, f8E5M2 and f16 infinity, f4E2M1FN its largest.
 */
import { roundHalfEven } from "../../../formats/arithmetic/special.ts";
import { decodeElement, elements, encodeElement, floatExponents } from "../../ops/index.ts";
import type { ElementType, FloatElement } from "../../ops/index.ts";
import { domainOf } from "../scalars.ts";
import type { Complex, Domain, Scalar } from "../scalars.ts";
import type { ScalarFunction } from "./forms.ts";

/** The least and the greatest number of an integer type. */
function rangeOf(element: ElementType): readonly [bigint, bigint] {
  const { kind, bits } = elements[element];
  const span = 1n << BigInt(kind === "signed" ? bits - 1 : bits);
  return [kind === "signed" ? -span : 0n, span - 1n];
}

function saturate(element: ElementType): (value: number) => number {
  const [least, greatest] = rangeOf(element).map(Number) as [number, number];
  return (value) => (value !== value ? 0 : Math.trunc(Math.max(least, Math.min(greatest, value))));
}

function saturateWide(element: ElementType): (value: number) => bigint {
  const [least, greatest] = rangeOf(element);
  return (value) => {
    if (value !== value) return 0n;
    if (value >= Number(greatest)) return greatest;
    return value <= Number(least) ? least : BigInt(Math.trunc(value));
  };
}

/**
 * The f64 nearest to a big integer for f64 itself; for narrower floats the f64 rounded to odd, whose last
 * bit says that there was more, so that rounding it again is rounding the integer.
 */
function wideToReal(target: ElementType): (value: bigint) => number {
  if (target === "f64") return Number;
  return (value) => {
    const magnitude = value < 0n ? -value : value;
    if (magnitude < 1n << 53n) return Number(value);
    const sticky = (magnitude & 2047n) === 0n ? 0n : 1n;
    const rounded = Number((magnitude >> 11n) | sticky) * 2048;
    return value < 0n ? -rounded : rounded;
  };
}

type Conversion = (to: ElementType) => (value: never) => Scalar;

const identity = (value: Scalar): Scalar => value;
const isTrue = (value: number): number => Number(value !== 0);

const realTo: { readonly [D in Domain]: (to: ElementType) => (value: number) => Scalar } = {
  bool: () => isTrue,
  integer: saturate,
  wide: saturateWide,
  real: () => identity,
  complex: () => (value) => ({ re: value, im: 0 }),
};

const conversions: { readonly [From in Domain]: { readonly [To in Domain]: Conversion } } = {
  bool: { ...realTo, integer: () => identity, wide: () => (value: number) => BigInt(value) },
  integer: { ...realTo, integer: () => identity, wide: () => (value: number) => BigInt(value) },
  wide: {
    bool: () => (value: bigint) => Number(value !== 0n),
    integer: () => (value: bigint) => Number(BigInt.asIntN(32, value)),
    wide: () => identity,
    real: wideToReal,
    complex: () => (value: bigint) => ({ re: Number(value), im: 0 }),
  },
  real: realTo,
  complex: {
    bool:
      () =>
      ({ re }: Complex) =>
        isTrue(re),
    integer:
      (to) =>
      ({ re }: Complex) =>
        saturate(to)(re),
    wide:
      (to) =>
      ({ re }: Complex) =>
        saturateWide(to)(re),
    real:
      () =>
      ({ re }: Complex) =>
        re,
    complex: () => identity,
  },
};

export function conversion(from: ElementType, to: ElementType): ScalarFunction {
  return conversions[domainOf(from)][domainOf(to)](to) as ScalarFunction;
}

const scratch = new Float64Array(1);
const scratchWords = new Uint32Array(scratch.buffer);
const scratchInteger = new BigInt64Array(scratch.buffer);

/** The exponent of a finite number other than zero, subnormal numbers of f64 included. */
function exponentOf(value: number): number {
  scratch[0] = Math.abs(value);
  const exponent = ((scratchWords[1] as number) >>> 20) - 1023;
  return exponent > -1023 ? exponent : exponentOf(value * 2 ** 60) - 60;
}

/**
 * Rounds to fewer bits: too large becomes infinite, what would be subnormal becomes zero. As in XLA it is the code of the number that is
 * rounded: subnormal numbers of the element keep their unit, and of two equally near codes the even one is taken, which
 * without mantissa bits is the one with the even exponent.
 */
export function reducePrecision(
  element: FloatElement,
  exponentBits: number,
  mantissaBits: number,
): (value: number) => number {
  const greatest = 2 ** (exponentBits - 1) - 1;
  const { exponentBits: own, bias } = floatExponents[element];
  const isNarrower = exponentBits < own;
  return (value) => {
    // Without mantissa bits there is no NaN.
    if (value !== value) return mantissaBits === 0 ? Infinity : NaN;
    if (!Number.isFinite(value) || value === 0) return value;
    const exponent = Math.max(exponentOf(value), 1 - bias);
    const parity = mantissaBits === 0 ? exponent + bias + 1 : 0;
    const rounded = roundToUnit(value, exponent - mantissaBits, parity);
    if (!isNarrower) return rounded;
    if (rounded !== 0 && exponentOf(rounded) > greatest) return Math.sign(value) * Infinity;
    return Math.abs(rounded) < 2 ** (1 - greatest) ? value * 0 : rounded;
  };
}

/** The multiple of 2^unit next to a number; `parity` is added to the multiple where ties go to the even one. */
function roundToUnit(value: number, unit: number, parity: number): number {
  // Two factors, since the unit itself may be below what an f64 can hold.
  const scaled = unit < -1000 ? value * 2 ** 600 * 2 ** (-unit - 600) : value * 2 ** -unit;
  const shift = Math.abs(parity % 2);
  const whole = Math.sign(scaled) * (roundHalfEven(Math.abs(scaled) + shift) - shift);
  return unit < -1000 ? whole * 2 ** (unit + 600) * 2 ** -600 : whole * 2 ** unit;
}

/** One step of a float element from x towards y. */
export function nextAfter(element: FloatElement): (x: number, y: number) => number {
  const step = element === "f64" ? stepDouble : stepCoded(element);
  return (x, y) => {
    if (x !== x || y !== y) return NaN;
    if (x === y) return y;
    return step(x, y > x);
  };
}

function stepDouble(value: number, up: boolean): number {
  if (value === 0) return up ? Number.MIN_VALUE : -Number.MIN_VALUE;
  scratch[0] = value;
  scratchInteger[0] = (scratchInteger[0] as bigint) + (value > 0 === up ? 1n : -1n);
  return scratch[0];
}

const scratchFloat = new Float32Array(1);
const scratchFloatBits = new Uint32Array(scratchFloat.buffer);

function stepCoded(element: Exclude<FloatElement, "f64">): (value: number, up: boolean) => number {
  const sign = 2 ** (elements[element].bits - 1);
  return (value, up) => {
    const code = value === 0 ? (up ? 0 : sign) : bitsOfReal(element, value);
    return realOfBits(element, code + (value === 0 || value > 0 === up ? 1 : -1));
  };
}

/** The bits of a float of at most 32. */
export function bitsOfReal(element: Exclude<FloatElement, "f64">, value: number): number {
  if (element !== "f32") return encodeElement(element, value);
  scratchFloat[0] = value;
  return scratchFloatBits[0] as number;
}

function realOfBits(element: Exclude<FloatElement, "f64">, bits: number): number {
  if (element !== "f32") return decodeElement(element, bits);
  scratchFloatBits[0] = bits;
  return scratchFloat[0] as number;
}

/** Below zero, zero or above as `left` comes before `right`: -NaN, -∞ … -0, +0 … ∞, NaN. */
export function totalOrder(left: number, right: number): number {
  const rank = nanRank(left) - nanRank(right);
  if (rank !== 0 || left !== left) return rank;
  if (left !== right) return left < right ? -1 : 1;
  return left === 0 ? Number(Object.is(right, -0)) - Number(Object.is(left, -0)) : 0;
}

function nanRank(value: number): number {
  if (value === value) return 0;
  scratch[0] = value;
  return (scratchWords[1] as number) >>> 31 === 1 ? -1 : 1;
}
