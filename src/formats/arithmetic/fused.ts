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
import { fuseRounded, precisions } from "./exact.ts";
import { acceptsFused } from "./functions.ts";
import type { RoundingManner } from "./functions.ts";
import {
  floatRegisters,
  forEachPiece,
  loadFloats,
  registerElements,
  storeFloats,
} from "./registers.ts";
import { isMannered, roundedElements } from "./rounded.ts";

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
  manner: RoundingManner = {},
): void {
  if (!acceptsFused(dtype)) throw new Error(`fma of ${dtype.name}`);
  if (isMannered(manner)) {
    roundedElements("fma", dtype, [a, b, c], target, manner);
    return;
  }
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
  if (!isTame) return fuseRounded(a, b, c, precisions.f64, "rn");
  const productError = multiplicationError(a, b, product);
  const small = c + productError;
  const smallError = additionError(c, productError, small);
  const large = product + small;
  const largeError = additionError(product, small, large);
  return large + addToOdd(smallError, largeError);
}
