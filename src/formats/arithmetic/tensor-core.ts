/**
 * The arithmetic of tensor cores, as measured on an H200: what one `mma` or `wgmma` instruction makes of
 * a row of A, a column of B and an element of C, bit for bit.
 *
 * One step takes in up to 32 bytes of k. Products are exact. All of them and the accumulator are aligned
 * to the largest exponent among them, cut off below F fraction bits (towards zero), and summed exactly.
 * The sum is cut off to the accumulator's format:
 *
 *   F = 13        2^16            1.0000000000000 · 2^16
 *                 8             + 0.0000000000001 · 2^16     kept
 *                 4             + 0.00000000000001…          lost
 *
 * | operands             | instruction | F  | result                                                 |
 * |----------------------|-------------|----|--------------------------------------------------------|
 * | f16, bf16, tf32      | both        | 25 | f32 towards zero; f16 to nearest even                  |
 * | e4m3, e5m2, mixed    | wgmma       | 13 | f32 towards zero, then without its 10 last mantissa bits; f16 to nearest even |
 * | e4m3, e5m2, mixed    | mma         |    | two steps of the f16 unit, see below                   |
 * | e4m3, e5m2, mixed    | tcgen05     | 25 | f32 towards zero; f16 to nearest even; published for a B200 |
 * | f64                  | mma         |    | a chain of fused multiply-adds, k by k                 |
 *
 * The exponent of a product is the sum of the operands' exponents, whatever its significand comes to
 * (1.5 · 1.5 counts as 2^0), and that of a subnormal number is the smallest normal one's. Zeros do not
 * count. A sum beyond the format is infinite; one of zero is +0; a NaN is 0x7fffffff (0x7fff).
 *
 * `mma` on FP8 runs on the f16 unit, in which no number of e4m3 is subnormal: first the k with k mod 4 < 2
 * onto zero, then the others onto that, and C is added to the result as by an ordinary addition, all in the
 * accumulator's format.
 */
import type { Elements } from "../dtype.ts";
import { decodeFloat, encodeFloat, floatFormats } from "../floats.ts";
import { panelColumns, panelJob, zeroExponent } from "./tensor-core-kernel.ts";
import { calmed, hasExtreme, isExtremeSum } from "./tensor-extremes.ts";
import type { DecodedElements } from "./tensor-extremes.ts";

export type TensorCoreFormat = "f16" | "bf16" | "tf32" | "f8e4m3fn" | "f8e5m2";
export type TensorCoreAccumulator = "f32" | "f16";
/** Whose instruction multiplies: `mma` is a warp's, `wgmma` a warpgroup's, `tcgen05.mma` a block's. */
export type TensorCoreUnit = "warp" | "warpgroup" | "block";

/** Rows of an operand: of A, or the columns of B. */
export interface TensorOperand extends DecodedElements {
  readonly format: TensorCoreFormat;
  readonly rows: number;
  readonly k: number;
}

const bytesOf: { readonly [F in TensorCoreFormat]: 1 | 2 | 4 } = {
  f16: 2,
  bf16: 2,
  tf32: 4,
  f8e4m3fn: 1,
  f8e5m2: 1,
};

interface CodeTable {
  readonly values: Float32Array;
  readonly exponents: Int32Array;
}

type TableFormat = Exclude<TensorCoreFormat, "tf32">;
const tables = new Map<TableFormat, CodeTable>();

function exponentOf(
  code: number,
  exponentBits: number,
  mantissaBits: number,
  bias: number,
): number {
  if ((code & ((1 << (exponentBits + mantissaBits)) - 1)) === 0) return zeroExponent;
  return Math.max(1, (code >>> mantissaBits) & ((1 << exponentBits) - 1)) - bias;
}

function tableOf(format: TableFormat): CodeTable {
  const known = tables.get(format);
  if (known !== undefined) return known;
  const { exponentBits, mantissaBits, bias } = floatFormats[format];
  const codes = 2 ** (8 * bytesOf[format]);
  const table = { values: new Float32Array(codes), exponents: new Int32Array(codes) };
  for (let code = 0; code < codes; code++) {
    table.values[code] = decodeFloat(format, code);
    table.exponents[code] = exponentOf(code, exponentBits, mantissaBits, bias);
  }
  tables.set(format, table);
  return table;
}

const elementsOf = { 1: Uint8Array, 2: Uint16Array, 4: Float32Array } as const;

/** Reads `rows` rows of k from memory; −1 as `sign` negates every element. */
export function decodeTensorOperand(
  format: TensorCoreFormat,
  bytes: Uint8Array,
  rows: number,
  sign: 1 | -1 = 1,
): TensorOperand {
  const width = bytesOf[format];
  // Elements begin at a multiple of their width, as operands in memory do; others are moved to one.
  const { buffer, byteOffset, byteLength } = bytes.byteOffset % width === 0 ? bytes : bytes.slice();
  // Memory that threads share is read as any other.
  const elements = new elementsOf[width](buffer as ArrayBuffer, byteOffset, byteLength / width);
  const { values, exponents, extreme } = decodeElements(format, elements);
  if (sign < 0)
    for (let index = 0; index < values.length; index++) values[index] = -(values[index] as number);
  return { values, exponents, extreme, format, rows, k: values.length / rows };
}

/** Decodes elements: codes, or the numbers of tf32, whose 13 low bits do not matter. */
export function decodeElements(format: TensorCoreFormat, elements: Elements): DecodedElements {
  const values = new Float32Array(elements.length);
  const exponents = new Int32Array(elements.length);
  if (format === "tf32") decodeWords(values, exponents, elements as Float32Array);
  else {
    const table = tableOf(format);
    const codes = elements as Uint16Array;
    for (let index = 0; index < codes.length; index++) {
      const code = codes[index] as number;
      values[index] = table.values[code] as number;
      exponents[index] = table.exponents[code] as number;
    }
  }
  return { values, exponents, extreme: hasExtreme(values, exponents) };
}

function decodeWords(values: Float32Array, exponents: Int32Array, elements: Float32Array): void {
  const words = new Uint32Array(elements.buffer, elements.byteOffset, elements.length);
  const kept = new Uint32Array(values.buffer);
  for (let index = 0; index < words.length; index++) {
    const word = (words[index] as number) & 0xffff_e000;
    kept[index] = word;
    exponents[index] = exponentOf(word, 8, 23, 127);
  }
}

export interface StepRule {
  /** Fraction bits that are kept. */
  readonly fraction: number;
  readonly accumulator: TensorCoreAccumulator;
  /** Of an f32 result. */
  readonly mantissaBits: number;
}

const singles = new Float32Array(1);
const singleBits = new Uint32Array(singles.buffer);
const nanCodes: { readonly [A in TensorCoreAccumulator]: number } = {
  f32: 0x7fff_ffff,
  f16: 0x7fff,
};
const infinityCodes: { readonly [A in TensorCoreAccumulator]: number } = {
  f32: 0x7f80_0000,
  f16: 0x7c00,
};
const signCodes: { readonly [A in TensorCoreAccumulator]: number } = {
  f32: 0x8000_0000,
  f16: 0x8000,
};

/** The code of a finite sum: f32 towards zero, f16 to nearest even; never −0. */
function encodeSum(sum: number, { accumulator, mantissaBits }: StepRule): number {
  if (accumulator === "f16") {
    const code = encodeFloat("f16", sum);
    return code === signCodes.f16 ? 0 : code;
  }
  const magnitude = Math.abs(sum);
  const sign = sum < 0 ? signCodes.f32 : 0;
  if (magnitude >= 2 ** 128) return sign + infinityCodes.f32;
  singles[0] = magnitude;
  let bits = singleBits[0] as number;
  if (singles[0] > magnitude) bits -= 1;
  const dropped = 23 - mantissaBits;
  bits = ((bits >>> dropped) << dropped) >>> 0;
  return bits === 0 ? 0 : sign + bits;
}

/** Elements of an operand that lie some distance apart. */
export interface Run {
  readonly start: number;
  readonly stride: number;
}

/** The result where an infinity or a NaN takes part; undefined where none does. */
function specialSum(
  { accumulator }: StepRule,
  a: DecodedElements,
  { start: left, stride: leftStride }: Run,
  b: DecodedElements,
  { start: right, stride: rightStride }: Run,
  length: number,
  addend: number,
): number | undefined {
  let sum = addend - addend === 0 ? 0 : addend;
  let found = addend - addend !== 0;
  for (let k = 0; k < length; k++) {
    const product =
      (a.values[left + k * leftStride] as number) * (b.values[right + k * rightStride] as number);
    if (product - product === 0) continue;
    sum += product;
    found = true;
  }
  if (!found) return undefined;
  if (sum !== sum) return nanCodes[accumulator];
  return infinityCodes[accumulator] + (sum < 0 ? signCodes[accumulator] : 0);
}

/** One row and one column onto one sum, whatever they hold: the rule itself. */
export function sumRow(
  rule: StepRule,
  a: DecodedElements,
  leftRun: Run,
  b: DecodedElements,
  rightRun: Run,
  length: number,
  code: number,
): number {
  const { start: left, stride: leftStride } = leftRun;
  const { start: right, stride: rightStride } = rightRun;
  const { accumulator, fraction } = rule;
  const addend = decodeFloat(accumulator, code);
  const special = specialSum(rule, a, leftRun, b, rightRun, length, addend);
  if (special !== undefined) return special;
  const { exponentBits, mantissaBits, bias } = floatFormats[accumulator];
  let largest = exponentOf(code, exponentBits, mantissaBits, bias);
  for (let k = 0; k < length; k++)
    largest = Math.max(
      largest,
      (a.exponents[left + k * leftStride] as number) +
        (b.exponents[right + k * rightStride] as number),
    );
  if (largest <= zeroExponent / 2) return 0;
  const scale = 2 ** (fraction - largest);
  let sum = Math.trunc(addend * scale);
  for (let k = 0; k < length; k++)
    sum += Math.trunc(
      (a.values[left + k * leftStride] as number) *
        (b.values[right + k * rightStride] as number) *
        scale,
    );
  return encodeSum(sum / scale, rule);
}

/** One row of A and one column of B onto their sum, by the rule itself. */
function sumOne(
  rule: StepRule,
  a: TensorOperand,
  b: TensorOperand,
  c: Uint32Array,
  index: number,
): number {
  const [row, column] = [Math.floor(index / b.rows), index % b.rows];
  const [left, right] = [
    { start: row * a.k, stride: 1 },
    { start: column * b.k, stride: 1 },
  ];
  return sumRow(rule, a, left, b, right, a.k, c[index] as number);
}

function sumAll(rule: StepRule, a: TensorOperand, b: TensorOperand, c: Uint32Array): void {
  for (let index = 0; index < a.rows * b.rows; index++) c[index] = sumOne(rule, a, b, c, index);
}

/** What is extreme by the rule, and the rest the fast way; whether it could be gone. */
function sumApart(rule: StepRule, a: TensorOperand, b: TensorOperand, c: Uint32Array): boolean {
  if (rule.accumulator !== "f32") return false;
  const left = calmed(a, a.rows, (index) => Math.floor(index / a.k));
  const right = calmed(b, b.rows, (index) => Math.floor(index / b.k));
  const isApart = (code: number, index: number): boolean =>
    left.apart[Math.floor(index / b.rows)] === 1 ||
    right.apart[index % b.rows] === 1 ||
    isExtremeSum(code);
  const apart = c.map((code, index) => Number(isApart(code, index)));
  if (!apart.includes(0)) return false;
  const sums = c.map((code, index) => (apart[index] === 1 ? 0 : code));
  if (!sumPanels(rule, left.elements, right.elements, sums)) return false;
  for (let index = 0; index < c.length; index++)
    c[index] = apart[index] === 1 ? sumOne(rule, a, b, c, index) : (sums[index] as number);
  return true;
}

/** The fast way; whether it could be gone. */
function sumPanels(rule: StepRule, a: TensorOperand, b: TensorOperand, c: Uint32Array): boolean {
  if (rule.accumulator !== "f32" || a.extreme || b.extreme) return false;
  const { fraction, mantissaBits } = rule;
  const panels = Math.ceil(b.rows / panelColumns);
  const shape = { rows: a.rows, panels, depth: a.k, steps: 1, fraction, mantissaBits };
  const job = panelJob(shape);
  if (job === undefined) return false;
  if (b.rows % panelColumns !== 0) {
    job.bValues.fill(0);
    job.bExponents.fill(zeroExponent);
    job.codes.fill(0);
  }
  job.aValues.set(a.values);
  job.aExponents.set(a.exponents);
  for (let column = 0; column < b.rows; column++) {
    let to = (column >> 2) * panelColumns * b.k + (column & 3);
    for (let index = column * b.k; index < (column + 1) * b.k; index++, to += panelColumns) {
      job.bValues[to] = b.values[index] as number;
      job.bExponents[to] = b.exponents[index] as number;
    }
  }
  const stride = panels * panelColumns;
  for (let row = 0; row < a.rows; row++)
    job.codes.set(c.subarray(row * b.rows, (row + 1) * b.rows), row * stride);
  if (!job.run()) return false;
  for (let row = 0; row < a.rows; row++)
    c.set(job.codes.subarray(row * stride, row * stride + b.rows), row * b.rows);
  return true;
}

function step(rule: StepRule, a: TensorOperand, b: TensorOperand, c: Uint32Array): void {
  if (!sumPanels(rule, a, b, c) && !sumApart(rule, a, b, c)) sumAll(rule, a, b, c);
}

/** An ordinary addition to nearest even of two codes. */
function addCodes(accumulator: TensorCoreAccumulator, left: number, right: number): number {
  const sum = decodeFloat(accumulator, left) + decodeFloat(accumulator, right);
  return sum !== sum ? nanCodes[accumulator] : encodeFloat(accumulator, sum);
}

/** The rule of one step of a unit on operands of a format. */
export function stepRule(
  format: TensorCoreFormat,
  unit: TensorCoreUnit,
  accumulator: TensorCoreAccumulator,
): StepRule {
  return bytesOf[format] === 1 && unit === "warpgroup"
    ? { fraction: 13, accumulator, mantissaBits: 13 }
    : { fraction: 25, accumulator, mantissaBits: 23 };
}

/** The exponent of an FP8 number as f16, in which those of e4m3 are never subnormal. */
function halfExponent(value: number): number {
  singles[0] = value;
  return Math.max(-14, (((singleBits[0] as number) >>> 23) & 0xff) - 127);
}

/** Half of an FP8 operand, as the f16 unit takes it: the k with k mod 4 below 2, or the others. */
function pairsOf(operand: TensorOperand, half: 0 | 1): TensorOperand {
  const { k, rows } = operand;
  const values = new Float32Array(operand.values.length / 2);
  const exponents = new Int32Array(values.length);
  // Two of every four elements lie together, and rows are whole fours.
  for (let to = 0; to < values.length; to++) {
    const value = operand.values[(to >> 1) * 4 + 2 * half + (to & 1)] as number;
    values[to] = value;
    exponents[to] = value === 0 ? zeroExponent : halfExponent(value);
  }
  return { values, exponents, extreme: operand.extreme, format: operand.format, rows, k: k / 2 };
}

/**
 * One instruction: c[row, column] becomes itself plus the product of row and column. `c` holds codes of
 * the accumulator's format, rows of A by columns of B.
 */
export function multiplyAccumulate(
  unit: TensorCoreUnit,
  accumulator: TensorCoreAccumulator,
  a: TensorOperand,
  b: TensorOperand,
  c: Uint32Array,
): void {
  const rule = stepRule(a.format, unit, accumulator);
  if (bytesOf[a.format] !== 1 || unit !== "warp") {
    step(rule, a, b, c);
    return;
  }
  const products = new Uint32Array(c.length);
  step(rule, pairsOf(a, 0), pairsOf(b, 0), products);
  step(rule, pairsOf(a, 1), pairsOf(b, 1), products);
  for (const [index, code] of c.entries())
    c[index] = addCodes(accumulator, code, products[index] as number);
}
