/**
 * Matrix multiply-accumulate: C[m,n] += Σ_k A[m,k]·B[k,n]. This is the one place that says how `dot`
 * and `wgmma` accumulate.
 *
 * The k of a product are walked in order, in **steps**: what one tensor-core instruction takes in, 32
 * bytes of an operand. Where a GPU has such an instruction, a step is exactly what it computes, with its
 * alignment and truncation (see tensor-core.ts). Elsewhere products are exact and are added to the
 * accumulator one after the other in f64; at the end of a step it is rounded to its format, to nearest
 * even.
 *
 * | operands                   | accumulator | step | a step gives                                   |
 * |----------------------------|-------------|------|------------------------------------------------|
 * | f16                        | f32, f16    | 16   | what a tensor core does                        |
 * | bf16                       | f32         | 16   | what a tensor core does                        |
 * | f8e4m3fn, f8e5m2, mixed    | f32         | 16   | promoted: what a tensor core does of f16       |
 * | the same, "fast"           | f32, f16    | 32   | what `wgmma` does                              |
 * | tf32, f32 as "tf32"        | f32         | 8    | what a tensor core does; f32 rounded to tf32   |
 * | f4e2m1fn                   | f32         | 64   | the sum rounded to f32                         |
 * | f32 as "ieee"              | f32         | 1    | the sum rounded to f32                         |
 * | f64                        | f64         | 1    | a fused multiply-add, as a tensor core does    |
 * | i8, u8 or i4, u4, mixed    | i32         | all  | nothing: exact, wraps at the end               |
 *
 * A last step may be shorter.
 *
 * Without tensor cores the work is done in blocks of 128 × 128 × 64. Operands are decoded to f64 and packed in groups of
 * four rows of A and four columns of B, k by k, so that the kernel reads both in order and keeps 4 × 4
 * sums in local variables:
 *
 *   panel of A   a[0,0] a[1,0] a[2,0] a[3,0]   a[0,1] a[1,1] a[2,1] a[3,1]   …
 *   panel of B   b[0,0] b[0,1] b[0,2] b[0,3]   b[1,0] b[1,1] b[1,2] b[1,3]   …
 */
import { f16, tf32 } from "../dtype.ts";
import type { DType, DTypeName, Elements } from "../dtype.ts";
import { fusedMultiplyAdd } from "./fused.ts";
import { narrowElements, widenElements } from "./registers.ts";
import type { NumberElements } from "./registers.ts";
import type { TensorCoreUnit } from "./tensor-core.ts";
import { isTensorAccumulator, isTensorFormat, tensorDot } from "./tensor-dot.ts";

/** How f32 operands are multiplied: as they are, or rounded to tf32. */
export type DotPrecision = "ieee" | "tf32";

export interface DotShape {
  readonly m: number;
  readonly n: number;
  readonly k: number;
  readonly operand: DType;
  /** B's format, where it differs from A's. */
  readonly operandB?: DType | undefined;
  readonly accumulator: DType;
  /** Matters for f32 operands alone; "ieee" when absent. */
  readonly precision?: DotPrecision | undefined;
  /** Matters for FP8 summed in f32; "fast" when absent. */
  readonly accumulation?: "promoted" | "fast" | undefined;
  /** Whose instruction it is: a warpgroup's unless given. */
  readonly unit?: TensorCoreUnit | undefined;
}

interface OperandRule {
  readonly accumulators: readonly DTypeName[];
  /** The formats that the other operand may have. */
  readonly partners: readonly DTypeName[];
  /** Elements of k between two roundings of the accumulator. */
  readonly step: number;
}

const fp8: readonly DTypeName[] = ["f8e4m3fn", "f8e5m2"];
const bytes: readonly DTypeName[] = ["i8", "u8"];
const nibbles: readonly DTypeName[] = ["i4", "u4"];

const operandRules: { readonly [N in DTypeName]?: OperandRule } = {
  f64: { accumulators: ["f64"], partners: ["f64"], step: 1 },
  f32: { accumulators: ["f32"], partners: ["f32"], step: 1 },
  tf32: { accumulators: ["f32"], partners: ["tf32"], step: 8 },
  f16: { accumulators: ["f32", "f16"], partners: ["f16"], step: 16 },
  bf16: { accumulators: ["f32"], partners: ["bf16"], step: 16 },
  f8e4m3fn: { accumulators: ["f32", "f16"], partners: fp8, step: 32 },
  f8e5m2: { accumulators: ["f32", "f16"], partners: fp8, step: 32 },
  f4e2m1fn: { accumulators: ["f32"], partners: ["f4e2m1fn"], step: 64 },
  i8: { accumulators: ["i32"], partners: bytes, step: Infinity },
  u8: { accumulators: ["i32"], partners: bytes, step: Infinity },
  i4: { accumulators: ["i32"], partners: nibbles, step: Infinity },
  u4: { accumulators: ["i32"], partners: nibbles, step: Infinity },
};

/** Whether products of these operands can be accumulated in that format. */
export function acceptsDot(operand: DType, operandB: DType, accumulator: DType): boolean {
  const rule = operandRules[operand.name];
  return (
    rule !== undefined &&
    rule.partners.includes(operandB.name) &&
    rule.accumulators.includes(accumulator.name)
  );
}

/** Elements of k between two roundings of the accumulator; Infinity where it is not rounded. */
export function dotStep(operand: DType, precision: DotPrecision = "ieee"): number {
  const name = operand.name === "f32" && precision === "tf32" ? "tf32" : operand.name;
  const rule = operandRules[name];
  if (rule === undefined) throw new Error(`dot is not defined for ${operand.name}`);
  return rule.step;
}

const blockRows = 128;
const blockColumns = 128;
const blockDepth = 64;

const leftPanels = new Float64Array(blockRows * blockDepth);
const rightPanels = new Float64Array(blockColumns * blockDepth);
const sums = new Float64Array(blockRows * blockColumns);

/** c += a·b; a is m × k, b is k × n and c is m × n, by rows. */
export function dotElements(shape: DotShape, a: Elements, b: Elements, c: Elements): void {
  const { m, n, k, operand, accumulator, precision = "ieee" } = shape;
  const operandB = shape.operandB ?? operand;
  if (!acceptsDot(operand, operandB, accumulator)) {
    throw new Error(`dot of ${operand.name} and ${operandB.name} in ${accumulator.name}`);
  }
  if (a.length !== m * k || b.length !== k * n || c.length !== m * n) {
    throw new Error(`dot of ${a.length} and ${b.length} elements in ${c.length}`);
  }
  if (shape.accumulation === "promoted" && operand.bits === 8 && accumulator.name === "f32") {
    if (operand.kind === "float") return dotOfHalves(shape, a, b, c);
  }
  const rounded = precision === "tf32" && operand.name === "f32";
  const formatA = rounded ? "tf32" : operand.name;
  const formatB = rounded ? "tf32" : operandB.name;
  if (isTensorFormat(formatA) && isTensorFormat(formatB) && isTensorAccumulator(accumulator.name)) {
    const step = dotStep(operand, precision);
    const tensor = {
      m,
      n,
      k,
      a: formatA,
      b: formatB,
      accumulator: accumulator.name,
      step,
      unit: shape.unit,
    };
    tensorDot(tensor, roundedElements(a, rounded), roundedElements(b, rounded), c);
    return;
  }
  if (operand.name === "f64") {
    doubleDot(shape, a as Float64Array, b as Float64Array, c as Float64Array);
    return;
  }
  roundedDot(shape, a, b, c);
}

/** Exact products, added in f64 and rounded after every step. */
function roundedDot(shape: DotShape, a: Elements, b: Elements, c: Elements): void {
  const { m, n, k, operand, operandB = operand, accumulator, precision } = shape;
  const left = decodeOperand(0, operand, a);
  const right = decodeOperand(1, operandB, b);
  const step = dotStep(operand, precision);
  for (let column = 0; column < n; column += blockColumns) {
    const columns = Math.min(blockColumns, n - column);
    for (let row = 0; row < m; row += blockRows) {
      const rows = Math.min(blockRows, m - row);
      const block = { start: row * n + column, rows, columns, stride: n };
      loadSums(accumulator, c, block);
      for (let depth = 0; depth < k; depth += blockDepth) {
        const depths = Math.min(blockDepth, k - depth);
        packLeft(left, row * k + depth, rows, depths, k);
        packRight(right, depth * n + column, depths, columns, n);
        multiplyBlock(block, depths, step, accumulator);
      }
      storeSums(accumulator, c, block);
    }
  }
}

/** FP8 as f16, which has all its numbers: products are as exact, and sums as those of f16. */
function dotOfHalves(shape: DotShape, a: Elements, b: Elements, c: Elements): void {
  const halves = (dtype: DType, elements: Elements): Uint16Array => {
    const values = new Float64Array(elements.length);
    widenElements(dtype, elements, 0, elements.length, values);
    const made = new Uint16Array(elements.length);
    narrowElements(f16, values, made);
    return made;
  };
  const { operand, operandB = operand } = shape;
  const converted = { ...shape, operand: f16, operandB: f16, accumulation: undefined };
  dotElements(converted, halves(operand, a), halves(operandB, b), c);
}

/** f64, where a product is exact in no format that there is: each is added with one rounding, k after k. */
function doubleDot({ m, n, k }: DotShape, a: Float64Array, b: Float64Array, c: Float64Array): void {
  for (let row = 0; row < m; row++)
    for (let depth = 0; depth < k; depth++) {
      const left = a[row * k + depth] as number;
      for (let column = 0; column < n; column++) {
        const at = row * n + column;
        c[at] = fusedMultiplyAdd(left, b[depth * n + column] as number, c[at] as number);
      }
    }
}

/** The numbers of both operands, kept from call to call since a call has so many. */
const operandValues = [new Float64Array(0), new Float64Array(0)];

function decodeOperand(operand: 0 | 1, dtype: DType, elements: Elements): Float64Array {
  let values = operandValues[operand];
  if (values?.length !== elements.length) {
    values = new Float64Array(elements.length);
    operandValues[operand] = values;
  }
  if (dtype.kind === "float") widenElements(dtype, elements, 0, elements.length, values);
  else values.set(elements as NumberElements);
  return values;
}

/** f32 numbers rounded to tf32, where that is asked for. */
function roundedElements(elements: Elements, toTf32: boolean): Elements {
  if (!toTf32) return elements;
  const rounded = new Float32Array(elements.length);
  narrowElements(tf32, Float64Array.from(elements as Float32Array), rounded);
  return rounded;
}

/** Packs `rows` rows of A from `start` on, `stride` apart; a last group of fewer than four leaves the rest as it was. */
function packLeft(
  source: Float64Array,
  start: number,
  rows: number,
  depths: number,
  stride: number,
): void {
  for (let row = 0; row < rows; row++) {
    let write = (row >> 2) * 4 * depths + (row & 3);
    const read = start + row * stride;
    for (let k = 0; k < depths; k++) {
      leftPanels[write] = source[read + k] as number;
      write += 4;
    }
  }
}

function packRight(
  source: Float64Array,
  start: number,
  depths: number,
  columns: number,
  stride: number,
): void {
  for (let k = 0; k < depths; k++) {
    const read = start + k * stride;
    for (let column = 0; column < columns; column++) {
      rightPanels[((column >> 2) * depths + k) * 4 + (column & 3)] = source[
        read + column
      ] as number;
    }
  }
}

/** A block of the rows of C. */
interface Block {
  readonly start: number;
  readonly rows: number;
  readonly columns: number;
  readonly stride: number;
}

/** Distance of rows in the sums: a multiple of the four that the kernel writes. */
function sumStride({ columns }: Block): number {
  return (columns + 3) & ~3;
}

/** Calls `move` for each run of elements that lie together in both C and the sums. */
function forEachRun(
  block: Block,
  move: (element: number, sum: number, count: number) => void,
): void {
  const { start, rows, columns, stride } = block;
  const apart = sumStride(block);
  if (apart === stride) {
    move(start, 0, rows * columns);
    return;
  }
  for (let row = 0; row < rows; row++) move(start + row * stride, row * apart, columns);
}

function loadSums(accumulator: DType, c: Elements, block: Block): void {
  forEachRun(block, (element, sum, count) => {
    const target = sums.subarray(sum, sum + count);
    if (accumulator.kind === "float") widenElements(accumulator, c, element, count, target);
    else target.set((c as Int32Array).subarray(element, element + count));
  });
}

function storeSums(accumulator: DType, c: Elements, block: Block): void {
  forEachRun(block, (element, sum, count) => {
    const source = sums.subarray(sum, sum + count);
    const target = c.subarray(element, element + count);
    // An Int32Array wraps the exact sums that it is given.
    if (accumulator.kind === "float") narrowElements(accumulator, source, target);
    else (target as Int32Array).set(source);
  });
}

/** Adds the product of the packed panels to the sums, in steps. */
function multiplyBlock(block: Block, depths: number, step: number, accumulator: DType): void {
  const { rows, columns } = block;
  const stride = sumStride(block);
  const toFloat32 = accumulator.name === "f32";
  const stepDepths = Math.min(step, depths);
  for (let column = 0; column < columns; column += 4)
    for (let row = 0; row < rows; row += 4) {
      const corner = row * stride + column;
      multiplyPanels(row * depths, column * depths, corner, stride, depths, stepDepths, toFloat32);
    }
}

/**
 * Adds the product of a panel of A at `left` and one of B at `right` to the 4 × 4 sums at `corner`,
 * rounding them to f32 after every `step` of the `depths`.
 */
// Sixteen sums in local variables take a line each to load, to add to, to round and to store.
// eslint-disable-next-line max-lines-per-function
function multiplyPanels(
  left: number,
  right: number,
  corner: number,
  stride: number,
  depths: number,
  step: number,
  toFloat32: boolean,
): void {
  const row0 = corner;
  const row1 = corner + stride;
  const row2 = corner + 2 * stride;
  const row3 = corner + 3 * stride;
  let c00 = sums[row0] as number;
  let c01 = sums[row0 + 1] as number;
  let c02 = sums[row0 + 2] as number;
  let c03 = sums[row0 + 3] as number;
  let c10 = sums[row1] as number;
  let c11 = sums[row1 + 1] as number;
  let c12 = sums[row1 + 2] as number;
  let c13 = sums[row1 + 3] as number;
  let c20 = sums[row2] as number;
  let c21 = sums[row2 + 1] as number;
  let c22 = sums[row2 + 2] as number;
  let c23 = sums[row2 + 3] as number;
  let c30 = sums[row3] as number;
  let c31 = sums[row3 + 1] as number;
  let c32 = sums[row3 + 2] as number;
  let c33 = sums[row3 + 3] as number;
  let a = left;
  let b = right;
  const end = left + 4 * depths;
  while (a < end) {
    const stepEnd = Math.min(a + 4 * step, end);
    for (; a < stepEnd; a += 4, b += 4) {
      const b0 = rightPanels[b] as number;
      const b1 = rightPanels[b + 1] as number;
      const b2 = rightPanels[b + 2] as number;
      const b3 = rightPanels[b + 3] as number;
      const a0 = leftPanels[a] as number;
      c00 += a0 * b0;
      c01 += a0 * b1;
      c02 += a0 * b2;
      c03 += a0 * b3;
      const a1 = leftPanels[a + 1] as number;
      c10 += a1 * b0;
      c11 += a1 * b1;
      c12 += a1 * b2;
      c13 += a1 * b3;
      const a2 = leftPanels[a + 2] as number;
      c20 += a2 * b0;
      c21 += a2 * b1;
      c22 += a2 * b2;
      c23 += a2 * b3;
      const a3 = leftPanels[a + 3] as number;
      c30 += a3 * b0;
      c31 += a3 * b1;
      c32 += a3 * b2;
      c33 += a3 * b3;
    }
    if (toFloat32) {
      c00 = Math.fround(c00);
      c01 = Math.fround(c01);
      c02 = Math.fround(c02);
      c03 = Math.fround(c03);
      c10 = Math.fround(c10);
      c11 = Math.fround(c11);
      c12 = Math.fround(c12);
      c13 = Math.fround(c13);
      c20 = Math.fround(c20);
      c21 = Math.fround(c21);
      c22 = Math.fround(c22);
      c23 = Math.fround(c23);
      c30 = Math.fround(c30);
      c31 = Math.fround(c31);
      c32 = Math.fround(c32);
      c33 = Math.fround(c33);
    }
  }
  sums[row0] = c00;
  sums[row0 + 1] = c01;
  sums[row0 + 2] = c02;
  sums[row0 + 3] = c03;
  sums[row1] = c10;
  sums[row1 + 1] = c11;
  sums[row1 + 2] = c12;
  sums[row1 + 3] = c13;
  sums[row2] = c20;
  sums[row2 + 1] = c21;
  sums[row2 + 2] = c22;
  sums[row2 + 3] = c23;
  sums[row3] = c30;
  sums[row3 + 1] = c31;
  sums[row3 + 2] = c32;
  sums[row3 + 3] = c33;
}
