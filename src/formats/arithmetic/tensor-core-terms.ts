/**
 * Products of the tensor cores of Blackwell (`tcgen05.mma`), for operands of any width, with scales of blocks, or
 * sparse. The rule is that of `tensor-core.ts`, with two differences:
 *
 * | kind                       | terms of a step                                | F  |
 * |----------------------------|------------------------------------------------|----|
 * | f16, tf32, f8f6f4          | a product each                                 | 25 |
 * | mxf8f6f4                   | the same; both scales' exponents count as its  | 25 |
 * | mxf4, mxf4nvf4             | sums of 16 products, exact, times both scales  | 35 |
 *
 * Elements are kept as significand and exponent, so that scales of 2^±127 never leave the numbers' range:
 *
 *   e4m3 0x3c = 1.5 · 2^0       significand 1.5, exponent 0
 *   scaled by ue8m0 0x8c        significand 1.5, exponent 13
 */
import { decodeFloat, encodeFloat, floatFormats } from "../floats.ts";
import type { TensorCoreAccumulator } from "./tensor-core.ts";
import { zeroExponent } from "./tensor-core-kernel.ts";

export type TermFormat =
  | "f16"
  | "bf16"
  | "tf32"
  | "f8e4m3fn"
  | "f8e5m2"
  | "f6e2m3fn"
  | "f6e3m2fn"
  | "f4e2m1fn";

/** Rows of an operand: of A, or columns of B. */
export interface Terms {
  readonly rows: number;
  readonly k: number;
  /** Infinite or NaN where the element is. */
  readonly significands: Float32Array;
  /** Far below all others for a zero. */
  readonly exponents: Int32Array;
  /** 1 for a row with an infinity or a NaN. */
  readonly special: Uint8Array;
}

const widths: { readonly [F in TermFormat]: number } = {
  f16: 16,
  bf16: 16,
  tf32: 32,
  f8e4m3fn: 8,
  f8e5m2: 8,
  f6e2m3fn: 6,
  f6e3m2fn: 6,
  f4e2m1fn: 4,
};

/** The width of a format's codes. */
export function termBits(format: TermFormat): number {
  return widths[format];
}

interface TermTable {
  readonly significands: Float32Array;
  readonly exponents: Int32Array;
}

const tables = new Map<TermFormat, TermTable>();

/** Exponent by which a number of a format is aligned: subnormal numbers have the smallest normal one's. */
function alignedExponent(format: TermFormat | TensorCoreAccumulator, code: number): number {
  const { exponentBits, mantissaBits, bias } = floatFormats[format];
  const dropped = format === "tf32" ? 13 : 0;
  const magnitude = (code >>> dropped) & (2 ** (exponentBits + mantissaBits) - 1);
  if (magnitude === 0) return zeroExponent;
  return Math.max(1, magnitude >>> mantissaBits) - bias;
}

function termOf(
  format: TermFormat,
  code: number,
): readonly [significand: number, exponent: number] {
  const value = format === "tf32" ? decodeFloat("f32", code & ~0x1fff) : decodeFloat(format, code);
  const exponent = alignedExponent(format, code);
  if (value === 0 || value - value !== 0) return [value, zeroExponent];
  return [value * 2 ** -exponent, exponent];
}

function tableOf(format: TermFormat): TermTable {
  const known = tables.get(format);
  if (known !== undefined) return known;
  const codes = 2 ** widths[format];
  const table = { significands: new Float32Array(codes), exponents: new Int32Array(codes) };
  for (let code = 0; code < codes; code++) {
    const [significand, exponent] = termOf(format, code);
    table.significands[code] = significand;
    table.exponents[code] = exponent;
  }
  tables.set(format, table);
  return table;
}

/** Decodes rows of codes; −1 as `sign` negates every element. */
export function decodeTerms(
  format: TermFormat,
  codes: Uint8Array | Uint16Array | Uint32Array,
  rows: number,
  sign: 1 | -1 = 1,
): Terms {
  const count = codes.length;
  const significands = new Float32Array(count);
  const exponents = new Int32Array(count);
  const special = new Uint8Array(rows);
  const k = count / rows;
  const table = format === "tf32" ? undefined : tableOf(format);
  for (let index = 0; index < count; index++) {
    const code = codes[index] ?? 0;
    let significand: number;
    if (table === undefined) {
      const term = termOf(format, code);
      significand = term[0];
      exponents[index] = term[1];
    } else {
      significand = table.significands[code] ?? 0;
      exponents[index] = table.exponents[code] ?? 0;
    }
    significands[index] = sign * significand;
    if (significand - significand !== 0) special[Math.floor(index / k)] = 1;
  }
  return { rows, k, significands, exponents, special };
}

/** Scales of blocks along k: their codes, rows of `perRow`. */
export interface BlockScales {
  readonly format: "ue8m0" | "ue4m3";
  readonly codes: Uint8Array;
  readonly perRow: number;
}

/** A scale as significand and exponent; NaN where it is none. The sign of ue4m3 does not count. */
function scaleTerm(format: BlockScales["format"], code: number): readonly [number, number] {
  if (format === "ue8m0") return code === 255 ? [NaN, zeroExponent] : [1, code - 127];
  return termOf("f8e4m3fn", code & 0x7f);
}

/** Elements times powers of two, a scale for each block of a row. */
export function scaledTerms(terms: Terms, { format, codes, perRow }: BlockScales): Terms {
  const { rows, k } = terms;
  const significands = terms.significands.slice();
  const exponents = terms.exponents.slice();
  const special = terms.special.slice();
  const block = k / perRow;
  for (let row = 0; row < rows; row++)
    for (let at = 0; at < k; at++) {
      const code = codes[row * perRow + Math.floor(at / block)] ?? 0;
      const [significand, exponent] = scaleTerm(format, code);
      const index = row * k + at;
      if (significand !== significand) {
        significands[index] = NaN;
        special[row] = 1;
      } else if ((exponents[index] ?? 0) !== zeroExponent)
        exponents[index] = (exponents[index] ?? 0) + exponent;
    }
  return { rows, k, significands, exponents, special };
}

export interface TermProduct {
  readonly a: Terms;
  readonly b: Terms;
  /** Codes of the accumulator's format: rows of A by rows of B. */
  readonly c: Uint32Array;
  readonly accumulator: TensorCoreAccumulator;
  /** D is divided by 2 to this before anything is added. */
  readonly scaleD?: number | undefined;
  /** Of a sparse A: for each of its elements, the k of B that it is multiplied by. */
  readonly indices?: Uint16Array | undefined;
}

/** Fraction bits below the largest exponent. */
const fraction = 25;
/** Products that lie this far below the largest one are cut off whole. */
const reach = 63;
/** 2^(fraction − distance), the distance from 0 down to `reach`; 0 beyond. */
const powers = Float64Array.from({ length: reach + 1 }, (_, distance) =>
  distance > fraction + 4 ? 0 : 2 ** (fraction - distance),
);

const nanCodes = { f32: 0x7fff_ffff, f16: 0x7fff } as const;
const infinityCodes = { f32: 0x7f80_0000, f16: 0x7c00 } as const;
const signCodes = { f32: 0x8000_0000, f16: 0x8000 } as const;
const singles = new Float32Array(1);
const singleBits = new Uint32Array(singles.buffer);

/** The code of a sum: f32 towards zero, f16 to nearest even; never −0. */
function encodeSum(accumulator: TensorCoreAccumulator, sum: number): number {
  if (sum === 0) return 0;
  if (accumulator === "f16") {
    const code = encodeFloat("f16", sum);
    return code === signCodes.f16 ? 0 : code;
  }
  const magnitude = Math.abs(sum);
  const sign = sum < 0 ? signCodes.f32 : 0;
  if (magnitude >= 2 ** 128) return sign + infinityCodes.f32;
  singles[0] = magnitude;
  const bits = (singleBits[0] ?? 0) - (singles[0] > magnitude ? 1 : 0);
  return bits === 0 ? 0 : sign + bits;
}

function encodeSpecial(accumulator: TensorCoreAccumulator, sum: number): number {
  if (sum !== sum) return nanCodes[accumulator];
  return infinityCodes[accumulator] + (sum < 0 ? signCodes[accumulator] : 0);
}

/** The elements of B that each row of a sparse A is multiplied by, as a B of its own. */
function selected(b: Terms, row: number, k: number, indices: Uint16Array, into: Terms): void {
  for (let column = 0; column < b.rows; column++)
    for (let at = 0; at < k; at++) {
      const from = column * b.k + (indices[row * k + at] ?? 0);
      into.significands[column * k + at] = b.significands[from] ?? 0;
      into.exponents[column * k + at] = b.exponents[from] ?? 0;
    }
}

/** Rows of an operand that a row of the other one is multiplied by. */
type Lines = Pick<Terms, "significands" | "exponents">;

/** One instruction: c becomes itself plus the products of rows of A and rows of B. */
export function multiplyTerms(product: TermProduct): void {
  const { a, b, c, accumulator, scaleD = 0, indices } = product;
  const { k } = a;
  const columns = b.rows;
  const gathered: Terms | undefined = indices && {
    ...b,
    k,
    significands: new Float32Array(columns * k),
    exponents: new Int32Array(columns * k),
  };
  const right = gathered ?? b;
  const addends = addendsOf(c, accumulator, scaleD);
  for (let row = 0; row < a.rows; row++) {
    if (gathered !== undefined && indices !== undefined) selected(b, row, k, indices, gathered);
    const left: Lines = {
      significands: a.significands.subarray(row * k, (row + 1) * k),
      exponents: a.exponents.subarray(row * k, (row + 1) * k),
    };
    for (let column = 0; column < columns; column++) {
      const index = row * columns + column;
      const addend = addends.values[index] ?? 0;
      const isSpecial = a.special[row] === 1 || b.special[column] === 1 || addend - addend !== 0;
      const special = isSpecial ? specialSum(left, right, column * k, k, addend) : undefined;
      c[index] =
        special === undefined
          ? sumOfTerms(
              left,
              right,
              column * k,
              k,
              addend,
              addends.exponents[index] ?? 0,
              accumulator,
            )
          : encodeSpecial(accumulator, special);
    }
  }
}

/** The code of a finite sum of products and what is there. */
function sumOfTerms(
  { significands: sa, exponents: ea }: Lines,
  { significands: sb, exponents: eb }: Lines,
  from: number,
  k: number,
  addend: number,
  exponent: number,
  accumulator: TensorCoreAccumulator,
): number {
  let largest = exponent;
  for (let at = 0; at < k; at++) {
    const sum = (ea[at] ?? 0) + (eb[from + at] ?? 0);
    if (sum > largest) largest = sum;
  }
  if (largest <= zeroExponent / 2) return 0;
  let sum = Math.trunc(addend * 2 ** (fraction - largest));
  for (let at = 0; at < k; at++) {
    const distance = largest - (ea[at] ?? 0) - (eb[from + at] ?? 0);
    if (distance > reach) continue;
    // Below 2^27 in magnitude, so that an integer conversion cuts off.
    sum += ((sa[at] ?? 0) * (sb[from + at] ?? 0) * (powers[distance] ?? 0)) | 0;
  }
  return encodeSum(accumulator, sum * 2 ** (largest - fraction));
}

/** What is in the accumulators, divided by 2^scale. */
function addendsOf(
  c: Uint32Array,
  accumulator: TensorCoreAccumulator,
  scale: number,
): { readonly values: Float64Array; readonly exponents: Int32Array } {
  const values = new Float64Array(c.length);
  const exponents = new Int32Array(c.length);
  const divisor = 2 ** -scale;
  const asSingles = new Float32Array(c.buffer, c.byteOffset, c.length);
  for (let index = 0; index < c.length; index++) {
    const code = c[index] ?? 0;
    if ((code & (accumulator === "f32" ? 0x7fff_ffff : 0x7fff)) === 0) {
      exponents[index] = zeroExponent;
      continue;
    }
    values[index] =
      (accumulator === "f32" ? (asSingles[index] ?? 0) : decodeFloat("f16", code)) * divisor;
    exponents[index] =
      accumulator === "f32"
        ? Math.max(1, (code >>> 23) & 0xff) - 127 - scale
        : Math.max(1, (code >>> 10) & 0x1f) - 15 - scale;
  }
  return { values, exponents };
}

/** The infinite or NaN sum where an infinity or a NaN takes part; undefined where none does. */
function specialSum(
  { significands: sa }: Lines,
  { significands: sb }: Lines,
  from: number,
  k: number,
  addend: number,
): number | undefined {
  let sum = addend - addend === 0 ? 0 : addend;
  for (let at = 0; at < k; at++) {
    const product = (sa[at] ?? 0) * (sb[from + at] ?? 0);
    if (product - product !== 0) sum += product;
  }
  return sum - sum === 0 ? undefined : sum;
}

/* ---- four-bit elements with scales ---- */

/** Elements of e2m1, doubled so that they are whole, with their scales. */
export interface ScaledNibbles {
  readonly rows: number;
  readonly k: number;
  readonly doubled: Int8Array;
  readonly scales: BlockScales;
}

/** Elements that are summed exactly. */
const group = 16;
const groupFraction = 35;
const doubledValues = Int8Array.from([0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12]);

export function decodeNibbles(
  codes: Uint8Array,
  rows: number,
  scales: BlockScales,
  sign: 1 | -1 = 1,
): ScaledNibbles {
  const doubled = Int8Array.from(codes, (code) => sign * (doubledValues[code & 15] ?? 0));
  return { rows, k: codes.length / rows, doubled, scales };
}

/** Significands and exponents of the scales of each group of 16, and whether a row has a NaN. */
function groupScales({ rows, k, scales }: ScaledNibbles): Terms {
  const perRow = k / group;
  const significands = new Float32Array(rows * perRow);
  const exponents = new Int32Array(rows * perRow);
  const special = new Uint8Array(rows);
  for (let row = 0; row < rows; row++)
    for (let at = 0; at < perRow; at++) {
      const code = scales.codes[row * scales.perRow + Math.floor((at * scales.perRow) / perRow)];
      const [significand, exponent] = scaleTerm(scales.format, code ?? 0);
      significands[row * perRow + at] = significand;
      exponents[row * perRow + at] = exponent;
      if (significand !== significand) special[row] = 1;
    }
  return { rows, k: perRow, significands, exponents, special };
}

/** The exact sum of a group's products: `first` is its first element of A. */
function groupSum(
  a: Int8Array,
  first: number,
  b: Int8Array,
  from: number,
  offset: number,
  indices: Uint16Array | undefined,
): number {
  let sum = 0;
  for (let at = 0; at < group; at++) {
    const k = indices === undefined ? offset + at : (indices[first + at] ?? 0);
    sum += (a[first + at] ?? 0) * (b[from + k] ?? 0);
  }
  return sum / 4;
}

/** The code of a sum of groups and what is there; `sums` have the groups' significands. */
function sumOfGroups(
  sums: Float64Array,
  exponents: Int32Array,
  addend: number,
  exponent: number,
): number {
  const largest = exponents.reduce((most, each) => Math.max(most, each), exponent);
  if (largest <= zeroExponent / 2) return 0;
  let total = Math.trunc(addend * 2 ** (groupFraction - largest));
  for (let at = 0; at < sums.length; at++) {
    const below = largest - (exponents[at] ?? 0);
    if (below <= 80) total += Math.trunc((sums[at] ?? 0) * 2 ** (groupFraction - below));
  }
  return encodeSum("f32", total * 2 ** (largest - groupFraction));
}

/** One instruction of mxf4 or mxf4nvf4. Of a sparse A, `indices` tell the k of B of each of its elements. */
export function multiplyNibbles(
  a: ScaledNibbles,
  b: ScaledNibbles,
  c: Uint32Array,
  indices?: Uint16Array,
): void {
  const columns = b.rows;
  // A sparse A has half of k: its groups are those of the k that they stand for.
  const groups = a.k / group;
  const scalesA = groupScales(a);
  const scalesB = groupScales({ ...b, k: a.k });
  const addends = addendsOf(c, "f32", 0);
  const sums = new Float64Array(groups);
  const exponents = new Int32Array(groups);
  for (let row = 0; row < a.rows; row++)
    for (let column = 0; column < columns; column++) {
      const index = row * columns + column;
      const addend = addends.values[index] ?? 0;
      if (scalesA.special[row] === 1 || scalesB.special[column] === 1 || addend !== addend) {
        c[index] = nanCodes.f32;
        continue;
      }
      if (addend - addend !== 0) continue;
      for (let at = 0; at < groups; at++) {
        const [left, right] = [row * groups + at, column * groups + at];
        const first = row * a.k + at * group;
        const factor = (scalesA.significands[left] ?? 0) * (scalesB.significands[right] ?? 0);
        const sum = groupSum(a.doubled, first, b.doubled, column * b.k, at * group, indices);
        sums[at] = sum * factor;
        exponents[at] = (scalesA.exponents[left] ?? 0) + (scalesB.exponents[right] ?? 0);
      }
      c[index] = sumOfGroups(sums, exponents, addend, addends.exponents[index] ?? 0);
    }
}

/* ---- integers ---- */

/** One instruction of 8-bit integers: sums are exact, and wrap beyond 32 bits or stop at the limits. */
export function multiplyBytesExactly(
  a: Int16Array,
  b: Int16Array,
  rows: number,
  columns: number,
  c: Uint32Array,
  saturates: boolean,
  indices?: Uint16Array,
): void {
  const k = a.length / rows;
  const depth = b.length / columns;
  for (let row = 0; row < rows; row++)
    for (let column = 0; column < columns; column++) {
      let sum = 0;
      for (let at = 0; at < k; at++) {
        const other = indices === undefined ? at : (indices[row * k + at] ?? 0);
        sum += (a[row * k + at] ?? 0) * (b[column * depth + other] ?? 0);
      }
      const index = row * columns + column;
      const total = ((c[index] ?? 0) | 0) + sum;
      c[index] = saturates ? Math.min(2 ** 31 - 1, Math.max(-(2 ** 31), total)) : total;
    }
}
