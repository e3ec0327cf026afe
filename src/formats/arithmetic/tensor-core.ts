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
 * | f64                  | mma         |    | a chain of fused multiply-adds, k by k                 |
 *
 * The exponent of a product is the sum of the operands' exponents, whatever its significand comes to
 * (1.5 · 1.5 counts as 2^0), and that of a subnormal number is the smallest normal one's. Zeros do not
 * count. A sum beyond the format is infinite; one of zero is +0; a NaN is 0x7fffffff (0x7fff).
 *
 * `mma` on FP8 runs on the f16 unit: first the k with k mod 4 < 2 onto zero, then the others onto that,
 * and C is added to the result as by an ordinary addition, all in the accumulator's format.
 */
import { decodeFloat, encodeFloat, floatFormats } from "../floats.ts";

export type TensorCoreFormat = "f16" | "bf16" | "tf32" | "f8e4m3fn" | "f8e5m2";
export type TensorCoreAccumulator = "f32" | "f16";
export type TensorCoreUnit = "mma" | "wgmma";

/** Rows of an operand: of A, or the columns of B. */
export interface TensorOperand {
  readonly format: TensorCoreFormat;
  readonly rows: number;
  readonly k: number;
  readonly values: Float64Array;
  /** Of each element; far below all others for a zero. */
  readonly exponents: Int32Array;
  /** Whether a row has an infinity or a NaN. */
  readonly special: Uint8Array;
}

const bytesOf: { readonly [F in TensorCoreFormat]: 1 | 2 | 4 } = {
  f16: 2,
  bf16: 2,
  tf32: 4,
  f8e4m3fn: 1,
  f8e5m2: 1,
};

/** The exponent of a zero; two of them are still below that of any product. */
const zeroExponent = -(2 ** 20);

interface CodeTable {
  readonly values: Float64Array;
  readonly exponents: Int32Array;
}

type TableFormat = Exclude<TensorCoreFormat, "tf32">;
const tables = new Map<TableFormat, CodeTable>();

function exponentOfCode(code: number, mantissaBits: number, exponentBits: number, bias: number) {
  if ((code & ((1 << (mantissaBits + exponentBits)) - 1)) === 0) return zeroExponent;
  return Math.max(1, (code >>> mantissaBits) & ((1 << exponentBits) - 1)) - bias;
}

function tableOf(format: TableFormat): CodeTable {
  const known = tables.get(format);
  if (known !== undefined) return known;
  const { exponentBits, mantissaBits, bias } = floatFormats[format];
  const codes = 2 ** (8 * bytesOf[format]);
  const table = { values: new Float64Array(codes), exponents: new Int32Array(codes) };
  for (let code = 0; code < codes; code++) {
    table.values[code] = decodeFloat(format, code);
    table.exponents[code] = exponentOfCode(code, mantissaBits, exponentBits, bias);
  }
  tables.set(format, table);
  return table;
}

/** Reads `rows` rows of k from memory; −1 as `sign` negates every element. */
export function decodeTensorOperand(
  format: TensorCoreFormat,
  bytes: Uint8Array,
  rows: number,
  sign: 1 | -1 = 1,
): TensorOperand {
  const count = bytes.length / bytesOf[format];
  const operand: TensorOperand = {
    format,
    rows,
    k: count / rows,
    values: new Float64Array(count),
    exponents: new Int32Array(count),
    special: new Uint8Array(rows),
  };
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  if (format === "tf32") readWords(operand, view);
  else readCodes(operand, view, tableOf(format), bytesOf[format]);
  const { values, special, k } = operand;
  for (let index = 0; index < count; index++) {
    const value = values[index] as number;
    if (value - value !== 0) special[Math.floor(index / k)] = 1;
    if (sign < 0) values[index] = -value;
  }
  return operand;
}

function readCodes(
  { values, exponents }: TensorOperand,
  view: DataView,
  table: CodeTable,
  bytes: number,
): void {
  for (let index = 0; index < values.length; index++) {
    const code = bytes === 1 ? view.getUint8(index) : view.getUint16(2 * index, true);
    values[index] = table.values[code] as number;
    exponents[index] = table.exponents[code] as number;
  }
}

/** The 13 low bits of a tf32 register do not matter. */
function readWords({ values, exponents }: TensorOperand, view: DataView): void {
  for (let index = 0; index < values.length; index++) {
    const word = view.getUint32(4 * index, true) & 0xffff_e000;
    values[index] = decodeFloat("tf32", word);
    exponents[index] = exponentOfCode(word, 23, 8, 127);
  }
}

interface StepRule {
  readonly fraction: number;
  readonly accumulator: TensorCoreAccumulator;
  /** Mantissa bits of an f32 result that come out as zero. */
  readonly droppedBits: number;
}

const powerRange = 1024;
const powers = Float64Array.from(
  { length: 2 * powerRange },
  (_, index) => 2 ** (index - powerRange),
);

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
function encodeSum(sum: number, { accumulator, droppedBits }: StepRule): number {
  if (accumulator === "f16") {
    const code = encodeFloat("f16", sum);
    return code === signCodes.f16 ? 0 : code;
  }
  const magnitude = Math.abs(sum);
  const sign = sum < 0 ? signCodes.f32 : 0;
  if (magnitude >= 2 ** 128) return sign + infinityCodes.f32;
  singles[0] = magnitude;
  let bits = singleBits[0] as number;
  if ((singles[0] as number) > magnitude) bits -= 1;
  bits = (bits >>> droppedBits) << droppedBits;
  return bits === 0 ? 0 : sign + (bits >>> 0);
}

function exponentOfAccumulator(code: number, accumulator: TensorCoreAccumulator): number {
  return accumulator === "f32" ? exponentOfCode(code, 23, 8, 127) : exponentOfCode(code, 10, 5, 15);
}

/** The k from `from` to `to` of a row of A and a column of B onto an accumulator's code. */
function step(
  rule: StepRule,
  a: TensorOperand,
  row: number,
  b: TensorOperand,
  column: number,
  from: number,
  to: number,
  code: number,
): number {
  const left = row * a.k;
  const right = column * b.k;
  const { values: aValues, exponents: aExponents } = a;
  const { values: bValues, exponents: bExponents } = b;
  const addend = decodeFloat(rule.accumulator, code);
  if (a.special[row] === 1 || b.special[column] === 1 || addend - addend !== 0) {
    const special = specialSum(rule, a, left, b, right, from, to, addend);
    if (special !== undefined) return special;
  }
  let largest = exponentOfAccumulator(code, rule.accumulator);
  for (let k = from; k < to; k++) {
    const exponent = (aExponents[left + k] as number) + (bExponents[right + k] as number);
    if (exponent > largest) largest = exponent;
  }
  if (largest < -powerRange) return 0;
  const scale = powers[rule.fraction - largest + powerRange] as number;
  let sum = Math.trunc(addend * scale);
  for (let k = from; k < to; k++)
    sum += Math.trunc((aValues[left + k] as number) * (bValues[right + k] as number) * scale);
  return encodeSum(sum * (powers[largest - rule.fraction + powerRange] as number), rule);
}

/** The result where an infinity or a NaN takes part; undefined where none does after all. */
function specialSum(
  { accumulator }: StepRule,
  a: TensorOperand,
  left: number,
  b: TensorOperand,
  right: number,
  from: number,
  to: number,
  addend: number,
): number | undefined {
  let sum = addend - addend === 0 ? 0 : addend;
  let found = addend - addend !== 0;
  for (let k = from; k < to; k++) {
    const product = (a.values[left + k] as number) * (b.values[right + k] as number);
    if (product - product === 0) continue;
    sum += product;
    found = true;
  }
  if (!found) return undefined;
  if (sum !== sum) return nanCodes[accumulator];
  return infinityCodes[accumulator] + (sum < 0 ? signCodes[accumulator] : 0);
}

/** An ordinary addition to nearest even of two codes. */
function addCodes(accumulator: TensorCoreAccumulator, left: number, right: number): number {
  const sum = decodeFloat(accumulator, left) + decodeFloat(accumulator, right);
  return sum !== sum ? nanCodes[accumulator] : encodeFloat(accumulator, sum);
}

function isByteFormat(format: TensorCoreFormat): boolean {
  return bytesOf[format] === 1;
}

/** An FP8 operand in the order in which the f16 unit takes it: k mod 4 below 2 first. */
function splitPairs(operand: TensorOperand): TensorOperand {
  const values = new Float64Array(operand.values.length);
  const exponents = new Int32Array(values.length);
  const { k, rows } = operand;
  for (let row = 0; row < rows; row++)
    for (let index = 0; index < k; index++) {
      const half = (index & 2) === 0 ? 0 : k / 2;
      const to = row * k + half + (index >> 2) * 2 + (index & 1);
      values[to] = operand.values[row * k + index] as number;
      exponents[to] = operand.exponents[row * k + index] as number;
    }
  return { ...operand, values, exponents };
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
  const fp8 = isByteFormat(a.format);
  if (fp8 && unit === "mma") {
    multiplyPairs(accumulator, splitPairs(a), splitPairs(b), c);
    return;
  }
  const rule: StepRule = {
    fraction: fp8 ? 13 : 25,
    accumulator,
    droppedBits: fp8 ? 10 : 0,
  };
  for (let row = 0, index = 0; row < a.rows; row++)
    for (let column = 0; column < b.rows; column++, index++)
      c[index] = step(rule, a, row, b, column, 0, a.k, c[index] as number);
}

function multiplyPairs(
  accumulator: TensorCoreAccumulator,
  a: TensorOperand,
  b: TensorOperand,
  c: Uint32Array,
): void {
  const rule: StepRule = { fraction: 25, accumulator, droppedBits: 0 };
  const half = a.k / 2;
  for (let row = 0, index = 0; row < a.rows; row++)
    for (let column = 0; column < b.rows; column++, index++) {
      const first = step(rule, a, row, b, column, 0, half, 0);
      const product = step(rule, a, row, b, column, half, a.k, first);
      c[index] = addCodes(accumulator, c[index] as number, product);
    }
}
