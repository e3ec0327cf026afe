/**
 * NaNs that keep their bits: those of f64, and those that conversions carry from one format to another.
 *
 * | instruction         | NaN operands                                | no NaN operand     |
 * |---------------------|---------------------------------------------|--------------------|
 * | f64 arithmetic      | one of them comes through, made quiet       | 0xfff8000000000000 |
 * | cvt to and from f64 | sign and upper fraction stay, made quiet    |                    |
 * | f64 sums in memory  | one of them comes through as it is          | 0xfff8000000000000 |
 * | all others          | the one NaN of the format                   | the same           |
 *
 * Which of several operands comes through depends on the instruction: of a + b it is b.
 */
import { pairResult } from "./wide.ts";

const doubles = new Float64Array(1);
const wides = new BigUint64Array(doubles.buffer);

const quiet = 0x80000;
const fraction = 0xfffff;
const sign = 0x80000000;

/**
 * Leaves the NaN that comes of operands in the pair: the first NaN among them. Each is given as number, low
 * and high word; the words count where the number is NaN.
 */
export function chooseNaN(...operands: readonly number[]): void {
  for (let at = 0; at < operands.length; at += 3) {
    const value = operands[at] as number;
    if (value === value) continue;
    pairResult[0] = operands[at + 1] as number;
    pairResult[1] = (operands[at + 2] as number) | quiet;
    return;
  }
  pairResult[0] = 0;
  pairResult[1] = 0xfff80000 | 0;
}

/** The f64 NaN of one in f32 bits, left in the pair. */
export function widenNaN(bits: number): void {
  pairResult[0] = bits << 29;
  pairResult[1] = (bits & sign) | 0x7ff80000 | ((bits >>> 3) & fraction);
}

/** The f32 bits of an f64 NaN. */
export function narrowNaN(low: number, high: number): number {
  return (high & sign) | 0x7fc00000 | ((high & fraction) << 3) | (low >>> 29);
}

/** The f16 code of an f64 NaN. */
export function narrowNaNToHalf(high: number): number {
  return ((high & sign) >>> 16) | 0x7e00 | ((high & fraction) >>> 10);
}

/** The bf16 code of an f64 NaN. */
export function narrowNaNToBfloat(high: number): number {
  return ((high & sign) >>> 16) | 0x7fc0 | ((high & fraction) >>> 13);
}

const wideQuiet = 0x8_0000_0000_0000n;
const madeNaN = 0xfff8_0000_0000_0000n;

function isNaNOf(bits: bigint): boolean {
  return (bits & 0x7fff_ffff_ffff_ffffn) > 0x7ff0_0000_0000_0000n;
}

function sum(left: bigint, right: bigint): bigint {
  wides[0] = left;
  const first = doubles[0] as number;
  wides[0] = right;
  const total = first + (doubles[0] as number);
  if (total !== total) return madeNaN;
  doubles[0] = total;
  return wides[0];
}

/** An f64 sum that global memory makes by itself: it hands NaNs on as they are. */
export function sumInGlobal(old: bigint, operand: bigint): bigint {
  if (isNaNOf(operand)) return operand;
  return isNaNOf(old) ? old : sum(old, operand);
}

/** The same in shared memory, where an ordinary addition makes it. */
export function sumInShared(old: bigint, operand: bigint): bigint {
  if (isNaNOf(old)) return old | wideQuiet;
  return isNaNOf(operand) ? operand | wideQuiet : sum(old, operand);
}
