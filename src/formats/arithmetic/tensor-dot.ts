/**
 * Products of whole tiles as tensor cores make them, step after step of k (see tensor-core.ts). Operands
 * are decoded once; blocks of at most 128 rows, 128 columns and 256 k go to the kernel:
 *
 *   A  by rows            a[0,0] a[0,1] a[0,2] …
 *   B  four columns at a time, k by k      b[0,0] b[0,1] b[0,2] b[0,3]   b[1,0] b[1,1] …
 *
 * What is missing of a last step, or of a last panel of columns, is zero.
 */
import type { Elements } from "../dtype.ts";
import { panelColumns, panelJob, zeroExponent } from "./tensor-core-kernel.ts";
import { decodeElements, stepRule, sumRow } from "./tensor-core.ts";
import type { TensorCoreAccumulator, TensorCoreFormat, TensorCoreUnit } from "./tensor-core.ts";
import { calmed, isExtremeSum } from "./tensor-extremes.ts";
import type { CalmElements, DecodedElements } from "./tensor-extremes.ts";

export interface TensorDotShape {
  readonly m: number;
  readonly n: number;
  readonly k: number;
  readonly a: TensorCoreFormat;
  readonly b: TensorCoreFormat;
  readonly accumulator: TensorCoreAccumulator;
  /** Elements of k that an instruction takes. */
  readonly step: number;
  /** Whose instruction it is: a warpgroup's unless given. */
  readonly unit?: TensorCoreUnit | undefined;
}

const tensorFormats: readonly string[] = ["f16", "bf16", "tf32", "f8e4m3fn", "f8e5m2"];

export function isTensorFormat(name: string): name is TensorCoreFormat {
  return tensorFormats.includes(name);
}

export function isTensorAccumulator(name: string): name is TensorCoreAccumulator {
  return name === "f32" || name === "f16";
}

const blockRows = 128;
const blockColumns = 128;
const blockDepth = 256;

interface Block {
  readonly row: number;
  readonly rows: number;
  readonly column: number;
  readonly columns: number;
  readonly depth: number;
  readonly depths: number;
}

/** c += a·b; a is m × k, b is k × n and c is m × n, by rows; c holds f32 numbers or f16 codes. */
export function tensorDot(shape: TensorDotShape, a: Elements, b: Elements, c: Elements): void {
  const { m, n, k, step } = shape;
  const left = decodeElements(shape.a, a);
  const right = decodeElements(shape.b, b);
  const calmLeft = calmed(left, m, (index) => Math.floor(index / k));
  const calmRight = calmed(right, n, (index) => index % n);
  const deepest = Math.max(step, Math.floor(blockDepth / step) * step);
  for (let column = 0; column < n; column += blockColumns)
    for (let row = 0; row < m; row += blockRows)
      for (let depth = 0; depth < k; depth += deepest) {
        const block = {
          row,
          rows: Math.min(blockRows, m - row),
          column,
          columns: Math.min(blockColumns, n - column),
          depth,
          depths: Math.min(deepest, k - depth),
        };
        const exactly = (at: number): void => {
          sumExactly(shape, block, left, right, c, at);
        };
        if (multiplyFast(shape, block, left, right, c)) continue;
        if (!multiplyApart(shape, block, calmLeft, calmRight, c, exactly))
          eachElement(shape, block, exactly);
      }
}

/** One block through the kernel; whether its numbers allowed it. */
function multiplyFast(
  shape: TensorDotShape,
  { row, rows, column, columns, depth, depths }: Block,
  left: DecodedElements,
  right: DecodedElements,
  c: Elements,
): boolean {
  if (shape.accumulator !== "f32" || left.extreme || right.extreme) return false;
  const { k, n, step } = shape;
  const { fraction, mantissaBits } = stepRule(shape.a, shape.unit ?? "warpgroup", "f32");
  const steps = Math.ceil(depths / step);
  const padded = steps * step;
  const panels = Math.ceil(columns / panelColumns);
  const job = panelJob({ rows, panels, depth: step, steps, fraction, mantissaBits });
  if (job === undefined) return false;
  if (padded !== depths) job.aExponents.fill(zeroExponent);
  for (let index = 0; index < rows; index++) {
    const from = (row + index) * k + depth;
    job.aValues.set(left.values.subarray(from, from + depths), index * padded);
    job.aExponents.set(left.exponents.subarray(from, from + depths), index * padded);
    if (padded !== depths) job.aValues.fill(0, index * padded + depths, (index + 1) * padded);
  }
  packPanels(job, right, { n, column, columns, depth, depths, padded });
  const sums = c as Float32Array;
  const stride = panels * panelColumns;
  if (stride !== columns) job.sums.fill(0);
  for (let index = 0; index < rows; index++) {
    const from = (row + index) * n + column;
    job.sums.set(sums.subarray(from, from + columns), index * stride);
  }
  if (!job.run()) return false;
  for (let index = 0; index < rows; index++) {
    const found = job.sums.subarray(index * stride, index * stride + columns);
    sums.set(found, (row + index) * n + column);
  }
  return true;
}

function packPanels(
  { bValues, bExponents }: { readonly bValues: Float32Array; readonly bExponents: Int32Array },
  { values, exponents }: DecodedElements,
  block: Omit<Block, "row" | "rows"> & { readonly n: number; readonly padded: number },
): void {
  const { n, column, columns, depth, depths, padded } = block;
  if (padded !== depths || columns % panelColumns !== 0) {
    bValues.fill(0);
    bExponents.fill(zeroExponent);
  }
  for (let k = 0; k < depths; k++) {
    const from = (depth + k) * n + column;
    for (let each = 0; each < columns; each++) {
      const to = ((each >> 2) * padded + k) * panelColumns + (each & 3);
      bValues[to] = values[from + each] as number;
      bExponents[to] = exponents[from + each] as number;
    }
  }
}

const floats = new Float32Array(1);
const floatBits = new Uint32Array(floats.buffer);

/** Calls for each element of a block of c, with its place. */
function eachElement(
  { n }: TensorDotShape,
  { row, rows, column, columns }: Block,
  call: (at: number) => void,
): void {
  for (let index = row; index < row + rows; index++)
    for (let each = column; each < column + columns; each++) call(index * n + each);
}

/** One element of a block by the rule itself, whatever it holds. */
function sumExactly(
  { k, n, step, a, accumulator, unit = "warpgroup" }: TensorDotShape,
  { depth, depths }: Block,
  left: DecodedElements,
  right: DecodedElements,
  c: Elements,
  at: number,
): void {
  const rule = stepRule(a, unit, accumulator);
  const isSingle = accumulator === "f32";
  const sums = c as Float32Array | Uint16Array;
  const [index, each] = [Math.floor(at / n), at % n];
  floats[0] = sums[at] as number;
  let code = isSingle ? (floatBits[0] as number) : (sums[at] as number);
  for (let start = depth; start < depth + depths; start += step) {
    const length = Math.min(step, depth + depths - start);
    const leftRun = { start: index * k + start, stride: 1 };
    const rightRun = { start: start * n + each, stride: n };
    code = sumRow(rule, left, leftRun, right, rightRun, length, code);
  }
  floatBits[0] = code;
  sums[at] = isSingle ? floats[0] : code;
}

/** One block of which what is extreme goes `exactly`, and the rest through the kernel; whether that could be done. */
function multiplyApart(
  shape: TensorDotShape,
  block: Block,
  left: CalmElements<DecodedElements>,
  right: CalmElements<DecodedElements>,
  c: Elements,
  exactly: (at: number) => void,
): boolean {
  if (shape.accumulator !== "f32") return false;
  const sums = c as Float32Array;
  const apart = new Map<number, number>();
  eachElement(shape, block, (at) => {
    const sum = sums[at] as number;
    floats[0] = sum;
    const isApart =
      left.apart[Math.floor(at / shape.n)] === 1 ||
      right.apart[at % shape.n] === 1 ||
      isExtremeSum(floatBits[0] as number);
    if (!isApart) return;
    apart.set(at, sum);
    sums[at] = 0;
  });
  const isDone = multiplyFast(shape, block, left.elements, right.elements, c);
  for (const [at, sum] of apart) {
    sums[at] = sum;
    if (isDone) exactly(at);
  }
  return isDone;
}
