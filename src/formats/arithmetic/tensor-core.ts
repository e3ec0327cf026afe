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
  /** 2 to the exponent of each element; 0 for a zero, infinite for an infinity or a NaN. */
  readonly magnitudes: Float64Array;
}

const bytesOf: { readonly [F in TensorCoreFormat]: 1 | 2 | 4 } = {
  f16: 2,
  bf16: 2,
  tf32: 4,
  f8e4m3fn: 1,
  f8e5m2: 1,
};

interface CodeTable {
  readonly values: Float64Array;
  readonly magnitudes: Float64Array;
}

type TableFormat = Exclude<TensorCoreFormat, "tf32">;
const tables = new Map<TableFormat, CodeTable>();

function magnitudeOf(value: number, code: number, name: TableFormat): number {
  if (value === 0) return 0;
  if (value - value !== 0) return Infinity;
  const { exponentBits, mantissaBits, bias } = floatFormats[name];
  return 2 ** (Math.max(1, (code >>> mantissaBits) & ((1 << exponentBits) - 1)) - bias);
}

function tableOf(format: TableFormat): CodeTable {
  const known = tables.get(format);
  if (known !== undefined) return known;
  const codes = 2 ** (8 * bytesOf[format]);
  const table = { values: new Float64Array(codes), magnitudes: new Float64Array(codes) };
  for (let code = 0; code < codes; code++) {
    const value = decodeFloat(format, code);
    table.values[code] = value;
    table.magnitudes[code] = magnitudeOf(value, code, format);
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
    magnitudes: new Float64Array(count),
  };
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  if (format === "tf32") readWords(operand, view);
  else readCodes(operand, view, tableOf(format), bytesOf[format]);
  const { values } = operand;
  if (sign < 0)
    for (let index = 0; index < count; index++) values[index] = -(values[index] as number);
  return operand;
}

function readCodes(
  { values, magnitudes }: TensorOperand,
  view: DataView,
  table: CodeTable,
  bytes: number,
): void {
  for (let index = 0; index < values.length; index++) {
    const code = bytes === 1 ? view.getUint8(index) : view.getUint16(2 * index, true);
    values[index] = table.values[code] as number;
    magnitudes[index] = table.magnitudes[code] as number;
  }
}

/** The 13 low bits of a tf32 register do not matter. */
function readWords({ values, magnitudes }: TensorOperand, view: DataView): void {
  for (let index = 0; index < values.length; index++) {
    const word = view.getUint32(4 * index, true) & 0xffff_e000;
    values[index] = decodeFloat("tf32", word);
    magnitudes[index] = magnitudeOfSingle(word);
  }
}

interface StepRule {
  /** 2 to the fraction bits that are kept. */
  readonly grid: number;
  readonly accumulator: TensorCoreAccumulator;
  /** Mantissa bits of an f32 result that come out as zero. */
  readonly droppedBits: number;
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

const smallestNormal = 2 ** -126;

/** The magnitude of an f32 from its code; Infinity for an infinity or a NaN. */
function magnitudeOfSingle(code: number): number {
  singleBits[0] = code & infinityCodes.f32;
  const magnitude = singles[0] as number;
  return magnitude === 0 && (code & 0x7fff_ffff) !== 0 ? smallestNormal : magnitude;
}

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
  if (singles[0] > magnitude) bits -= 1;
  bits = ((bits >>> droppedBits) << droppedBits) >>> 0;
  return bits === 0 ? 0 : sign + bits;
}

/** The result where an infinity or a NaN takes part. */
function specialSum(
  { accumulator }: StepRule,
  a: TensorOperand,
  left: number,
  b: TensorOperand,
  right: number,
  length: number,
  addend: number,
): number {
  let sum = addend - addend === 0 ? 0 : addend;
  for (let k = 0; k < length; k++) {
    const product = (a.values[left + k] as number) * (b.values[right + k] as number);
    if (product - product !== 0) sum += product;
  }
  if (sum !== sum) return nanCodes[accumulator];
  return infinityCodes[accumulator] + (sum < 0 ? signCodes[accumulator] : 0);
}

/** Four columns of B side by side, k by k, so that one pass over a row of A serves four sums. */
interface Panels {
  readonly values: Float64Array;
  readonly magnitudes: Float64Array;
}

const panelColumns = 4;

function packPanels({ values, magnitudes, rows, k }: TensorOperand): Panels {
  const size = Math.ceil(rows / panelColumns) * panelColumns * k;
  const packed = { values: new Float64Array(size), magnitudes: new Float64Array(size) };
  for (let column = 0; column < rows; column++) {
    let to = (column >> 2) * panelColumns * k + (column & 3);
    for (let index = column * k; index < (column + 1) * k; index++, to += panelColumns) {
      packed.values[to] = values[index] as number;
      packed.magnitudes[to] = magnitudes[index] as number;
    }
  }
  return packed;
}

/** Accumulators of four columns, their magnitudes, and what becomes of them. */
const addends = new Float64Array(panelColumns);
const largest = new Float64Array(panelColumns);
const sums = new Float64Array(panelColumns);

/**
 * The `length` k of a row of A at `left` and of a panel at `right` onto the addends: `largest` gets the
 * largest magnitudes, `sums` the sums, where all of it is finite.
 */
function sumPanel(
  grid: number,
  a: TensorOperand,
  left: number,
  panels: Panels,
  right: number,
  length: number,
): void {
  const { values, magnitudes } = panels;
  const { values: aValues, magnitudes: aMagnitudes } = a;
  let largest0 = largest[0] as number;
  let largest1 = largest[1] as number;
  let largest2 = largest[2] as number;
  let largest3 = largest[3] as number;
  for (let k = 0, at = right; k < length; k++, at += panelColumns) {
    const magnitude = aMagnitudes[left + k] as number;
    largest0 = Math.max(largest0, magnitude * (magnitudes[at] as number));
    largest1 = Math.max(largest1, magnitude * (magnitudes[at + 1] as number));
    largest2 = Math.max(largest2, magnitude * (magnitudes[at + 2] as number));
    largest3 = Math.max(largest3, magnitude * (magnitudes[at + 3] as number));
  }
  const scale0 = grid / largest0;
  const scale1 = grid / largest1;
  const scale2 = grid / largest2;
  const scale3 = grid / largest3;
  let sum0 = Math.trunc((addends[0] as number) * scale0);
  let sum1 = Math.trunc((addends[1] as number) * scale1);
  let sum2 = Math.trunc((addends[2] as number) * scale2);
  let sum3 = Math.trunc((addends[3] as number) * scale3);
  for (let k = 0, at = right; k < length; k++, at += panelColumns) {
    const value = aValues[left + k] as number;
    sum0 += Math.trunc(value * (values[at] as number) * scale0);
    sum1 += Math.trunc(value * (values[at + 1] as number) * scale1);
    sum2 += Math.trunc(value * (values[at + 2] as number) * scale2);
    sum3 += Math.trunc(value * (values[at + 3] as number) * scale3);
  }
  largest[0] = largest0;
  largest[1] = largest1;
  largest[2] = largest2;
  largest[3] = largest3;
  sums[0] = sum0 / scale0;
  sums[1] = sum1 / scale1;
  sums[2] = sum2 / scale2;
  sums[3] = sum3 / scale3;
}

/** The k from `from` on, `length` of them, of all rows and columns, onto the codes in `c`. */
function step(
  rule: StepRule,
  a: TensorOperand,
  b: TensorOperand,
  panels: Panels,
  from: number,
  length: number,
  c: Uint32Array,
): void {
  const { accumulator, grid } = rule;
  const halves = tableOf("f16");
  for (let row = 0; row < a.rows; row++)
    for (let column = 0; column < b.rows; column += panelColumns) {
      const count = Math.min(panelColumns, b.rows - column);
      const index = row * b.rows + column;
      for (let each = 0; each < count; each++) {
        const code = c[index + each] as number;
        if (accumulator === "f32") {
          largest[each] = magnitudeOfSingle(code);
          singleBits[0] = code;
          addends[each] = singles[0] as number;
        } else {
          largest[each] = halves.magnitudes[code] as number;
          addends[each] = halves.values[code] as number;
        }
      }
      const right = column * b.k + from * panelColumns;
      sumPanel(grid, a, row * a.k + from, panels, right, length);
      for (let each = 0; each < count; each++)
        c[index + each] = settle(
          rule,
          a,
          row * a.k + from,
          b,
          (column + each) * b.k + from,
          length,
          each,
        );
    }
}

/** The code of one of the four sums. */
function settle(
  rule: StepRule,
  a: TensorOperand,
  left: number,
  b: TensorOperand,
  right: number,
  length: number,
  each: number,
): number {
  const size = largest[each] as number;
  if (size === 0) return 0;
  if (size - size === 0) return encodeSum(sums[each] as number, rule);
  return specialSum(rule, a, left, b, right, length, addends[each] as number);
}

/** An ordinary addition to nearest even of two codes. */
function addCodes(accumulator: TensorCoreAccumulator, left: number, right: number): number {
  const sum = decodeFloat(accumulator, left) + decodeFloat(accumulator, right);
  return sum !== sum ? nanCodes[accumulator] : encodeFloat(accumulator, sum);
}

/** An FP8 operand in the order in which the f16 unit takes it: k mod 4 below 2 first. */
function splitPairs(operand: TensorOperand): TensorOperand {
  const values = new Float64Array(operand.values.length);
  const magnitudes = new Float64Array(values.length);
  const { k, rows } = operand;
  for (let row = 0; row < rows; row++)
    for (let index = 0; index < k; index++) {
      const half = (index & 2) === 0 ? 0 : k / 2;
      const to = row * k + half + (index >> 2) * 2 + (index & 1);
      values[to] = operand.values[row * k + index] as number;
      magnitudes[to] = operand.magnitudes[row * k + index] as number;
    }
  return { ...operand, values, magnitudes };
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
  const fp8 = bytesOf[a.format] === 1;
  if (fp8 && unit === "mma") {
    multiplyPairs(accumulator, splitPairs(a), splitPairs(b), c);
    return;
  }
  const rule: StepRule = fp8
    ? { grid: 2 ** 13, accumulator, droppedBits: 10 }
    : { grid: 2 ** 25, accumulator, droppedBits: 0 };
  step(rule, a, b, packPanels(b), 0, a.k, c);
}

function multiplyPairs(
  accumulator: TensorCoreAccumulator,
  a: TensorOperand,
  b: TensorOperand,
  c: Uint32Array,
): void {
  const rule: StepRule = { grid: 2 ** 25, accumulator, droppedBits: 0 };
  const half = a.k / 2;
  const panels = packPanels(b);
  const products = new Uint32Array(c.length);
  step(rule, a, b, panels, 0, half, products);
  step(rule, a, b, panels, half, half, products);
  for (const [index, code] of c.entries())
    c[index] = addCodes(accumulator, code, products[index] as number);
}
