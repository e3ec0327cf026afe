/**
 * Fused multiply-add: a·b + c with one rounding.
 *
 * Formats up to 24 bits: the product is exact in f64, so only the sum has to be handed on to the
 * format's rounding without a rounding of its own. It is rounded to odd: where it is inexact the last
 * bit is set, which keeps the sum off the format's midpoints without moving it across one.
 *
 *   exact sum   1.0000000596046447… + 2^-60    just above the midpoint of two f32 numbers
 *   nearest f64 1.0000000596046447…            the midpoint itself: f32 would round to even, down
 *   odd f64     1.0000000596046450…            above the midpoint: f32 rounds up, as it should
 *
 * f64: a·b is the sum of two f64 (Veltkamp and Dekker), and adding c gives three, of which the two
 * small ones are added rounded to odd before the last, nearest, rounding (Boldo and Melquiond). Where
 * an exponent is so extreme that the parts could overflow or vanish, BigInt does it.
 */
import type { DType, Elements } from "../dtype.ts";
import { acceptsFused } from "./functions.ts";
import {
  floatRegisters,
  forEachPiece,
  loadFloats,
  registerElements,
  storeFloats,
} from "./registers.ts";

const elements = floatRegisters;
const elementWords = new Int32Array(elements.buffer);
const second = registerElements;
const third = 2 * registerElements;

/** What a + b lost when it was rounded to `sum`. */
function additionError(a: number, b: number, sum: number): number {
  const partOfB = sum - a;
  return a - (sum - partOfB) + (b - partOfB);
}

/** Makes the element `index`, a rounded sum that lost `error`, the odd one of the exact sum's neighbours. */
function makeOdd(index: number, error: number): void {
  const low = elementWords[2 * index] as number;
  if ((low & 1) !== 0) return;
  if (error > 0 === (elements[index] as number) > 0) {
    elementWords[2 * index] = low | 1;
  } else {
    elementWords[2 * index] = low - 1;
    if (low === 0) elementWords[2 * index + 1] = (elementWords[2 * index + 1] as number) - 1;
  }
}

function fuseNarrow(count: number): void {
  for (let i = 0; i < count; i++) {
    const product = (elements[i] as number) * (elements[second + i] as number);
    const addend = elements[third + i] as number;
    const sum = product + addend;
    const error = additionError(product, addend, sum);
    elements[i] = sum;
    // Infinite and NaN sums have no error to speak of: it is NaN, which neither test accepts.
    if (error > 0 || error < 0) makeOdd(i, error);
  }
}

function fuseF64(count: number): void {
  for (let i = 0; i < count; i++) {
    elements[i] = fusedMultiplyAdd(
      elements[i] as number,
      elements[second + i] as number,
      elements[third + i] as number,
    );
  }
}

/** a·b + c in every element; `target` may be one of the operands. */
export function fusedMultiplyAddElements(
  dtype: DType,
  a: Elements,
  b: Elements,
  c: Elements,
  target: Elements,
): void {
  if (!acceptsFused(dtype)) throw new Error(`fma of ${dtype.name}`);
  const loop = dtype.name === "f64" ? fuseF64 : fuseNarrow;
  forEachPiece(target.length, (start, count) => {
    loadFloats(dtype, a, start, count, 0);
    loadFloats(dtype, b, start, count, 1);
    loadFloats(dtype, c, start, count, 2);
    loop(count);
    storeFloats(dtype, target, start, count);
  });
}

/* ---- f64 ---- */

const extreme = 2 ** 900;
const splitter = 2 ** 27 + 1;

const scratch = new Float64Array(1);
const scratchBits = new BigInt64Array(scratch.buffer);

function addToOdd(a: number, b: number): number {
  const sum = a + b;
  const error = additionError(a, b, sum);
  if (error === 0) return sum;
  scratch[0] = sum;
  const bits = scratchBits[0] as bigint;
  if ((bits & 1n) === 0n) scratchBits[0] = error > 0 === sum > 0 ? bits + 1n : bits - 1n;
  return scratch[0];
}

/** What a·b lost when it was rounded to `product`. */
function multiplicationError(a: number, b: number, product: number): number {
  const spreadA = a * splitter;
  const highA = spreadA - (spreadA - a);
  const lowA = a - highA;
  const spreadB = b * splitter;
  const highB = spreadB - (spreadB - b);
  const lowB = b - highB;
  return lowA * lowB - (product - highA * highB - lowA * highB - highA * lowB);
}

/** a·b + c in f64 with one rounding. */
export function fusedMultiplyAdd(a: number, b: number, c: number): number {
  const product = a * b;
  // With a factor that is zero, infinite or NaN nothing is rounded but the sum.
  if (a === 0 || b === 0 || !Number.isFinite(a) || !Number.isFinite(b)) return product + c;
  if (!Number.isFinite(c)) return c;
  const size = Math.abs(product);
  const isTame =
    size < extreme &&
    size > 1 / extreme &&
    Math.abs(c) < extreme &&
    Math.abs(a) < extreme &&
    Math.abs(b) < extreme;
  if (!isTame) return fuseExactly(a, b, c);
  const productError = multiplicationError(a, b, product);
  const small = c + productError;
  const smallError = additionError(c, productError, small);
  const large = product + small;
  const largeError = additionError(product, small, large);
  return large + addToOdd(smallError, largeError);
}

/** A finite number as `mantissa` · 2^`exponent`. */
function decompose(value: number): { readonly mantissa: bigint; readonly exponent: number } {
  scratch[0] = value;
  const bits = BigInt.asUintN(64, scratchBits[0] as bigint);
  const biased = Number((bits >> 52n) & 0x7ffn);
  const fraction = bits & 0xfffffffffffffn;
  const magnitude = biased === 0 ? fraction : fraction | 0x10000000000000n;
  return { mantissa: bits >> 63n ? -magnitude : magnitude, exponent: Math.max(biased, 1) - 1075 };
}

function fuseExactly(a: number, b: number, c: number): number {
  const left = decompose(a);
  const right = decompose(b);
  const addend = decompose(c);
  const productExponent = left.exponent + right.exponent;
  const exponent = Math.min(productExponent, addend.exponent);
  const sum =
    ((left.mantissa * right.mantissa) << BigInt(productExponent - exponent)) +
    (addend.mantissa << BigInt(addend.exponent - exponent));
  return roundExact(sum, exponent);
}

/** `mantissa` · 2^`exponent` rounded to the nearest f64, ties to even. */
function roundExact(mantissa: bigint, exponent: number): number {
  if (mantissa === 0n) return 0;
  const magnitude = mantissa < 0n ? -mantissa : mantissa;
  const bitLength = magnitude.toString(2).length;
  // The last place of the result: that of a 53-bit number, or of the subnormal ones.
  const place = Math.max(exponent + bitLength - 53, -1074);
  const drop = place - exponent;
  let kept = magnitude << BigInt(Math.max(-drop, 0));
  if (drop > 0) {
    const shift = BigInt(drop);
    kept = magnitude >> shift;
    const rest = magnitude - (kept << shift);
    const half = 1n << (shift - 1n);
    if (rest > half || (rest === half && (kept & 1n) === 1n)) kept += 1n;
  }
  const result =
    place > 960 ? Number(kept) * 2 ** 960 * 2 ** (place - 960) : Number(kept) * 2 ** place;
  return mantissa < 0n ? -result : result;
}
