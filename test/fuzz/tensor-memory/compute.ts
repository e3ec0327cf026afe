/**
 * What a plan gives, in float64, with a bound of how far tensor cores may be from it. An instruction adds 32 bytes of k at a time to a sum: products and the sum are cut
 * off 25 bits below the largest of them, and the result is rounded to the format of the sum. Whole numbers that fit lose nothing.
 */
import { floatFormats } from "../../../src/formats/floats.ts";
import { isFloat } from "../../../src/formats/dtype.ts";
import type { DType } from "../../../src/formats/dtype.ts";

/** Numbers, and how far each may be off; NaN where anything may be. */
export interface Cells {
  readonly values: Float64Array;
  readonly bounds: Float64Array;
}

export function cellsOf(count: number): Cells {
  return { values: new Float64Array(count), bounds: new Float64Array(count) };
}

/** A factor by rows of k: [rows, k] of a, [columns, k] of b. */
export interface Factor {
  readonly dtype: DType;
  readonly values: Float64Array;
  /** Of blocks of 32 along k, row by row. */
  readonly scales?: Float64Array | undefined;
}

export interface Product {
  readonly rows: number;
  readonly columns: number;
  readonly depth: number;
  readonly a: Factor;
  readonly b: Factor;
  readonly sum: DType;
  readonly adds: boolean;
  /** Whether all are whole numbers. */
  readonly isWhole: boolean;
}

/** Where the sums of a product lie among others. */
export interface SumWindow {
  readonly cells: Cells;
  readonly start: number;
  readonly stride: number;
}

/** Magnitudes as exponents count: that of a subnormal number is the least normal one. */
function magnitudesOf({ dtype, values, scales }: Factor, depth: number): Float64Array {
  const least = isFloat(dtype) ? 2 ** (1 - floatFormats[dtype.name].bias) : 0;
  return values.map((value, at) => {
    const scale = scaleAt(scales, depth, at);
    return value === 0 ? 0 : Math.max(Math.abs(value), least) * scale;
  });
}

function scaleAt(scales: Float64Array | undefined, depth: number, at: number): number {
  if (scales === undefined) return 1;
  const [row, k] = [Math.floor(at / depth), at % depth];
  return scales[row * (depth / 32) + (k >> 5)] ?? NaN;
}

/** The rounding of a sum to its format, and where whole numbers end. */
const roundings: {
  readonly [name: string]: readonly [relative: number, least: number, most: number, whole: number];
} = {
  f32: [2 ** -23, 2 ** -149, 2 ** 127, 2 ** 24],
  f16: [2 ** -11, 2 ** -25, 65_000, 2 ** 11],
  i32: [0, 0, 2 ** 31, 2 ** 31],
};

export function multiply(product: Product, { cells, start, stride }: SumWindow): void {
  const { rows, columns, depth, a, b, sum, adds, isWhole } = product;
  const step = 256 / a.dtype.bits;
  const [left, right] = [a, b].map((factor) => ({
    values: factor.values.map((value, at) => value * scaleAt(factor.scales, depth, at)),
    magnitudes: magnitudesOf(factor, depth),
  }));
  const rounding = roundings[sum.name];
  if (left === undefined || right === undefined || rounding === undefined)
    throw new Error("a product has two factors and a known sum");
  const [relative, least, most, whole] = rounding;
  for (let row = 0; row < rows; row += 1)
    for (let column = 0; column < columns; column += 1) {
      const at = start + row * stride + column;
      let value = adds ? (cells.values[at] ?? NaN) : 0;
      let bound = adds ? (cells.bounds[at] ?? NaN) : 0;
      for (let from = 0; from < depth; from += step) {
        let [total, largest, magnitude] = [value, Math.abs(value) + bound, Math.abs(value) + bound];
        for (let k = from; k < from + step; k += 1) {
          const [l, r] = [row * depth + k, column * depth + k];
          const term = (left.values[l] ?? NaN) * (right.values[r] ?? NaN);
          total += term;
          magnitude += Math.abs(term);
          largest = Math.max(largest, (left.magnitudes[l] ?? NaN) * (right.magnitudes[r] ?? NaN));
        }
        value = total;
        if (isWhole && bound === 0 && magnitude < whole) continue;
        bound += (step + 1) * 2 ** -25 * largest + magnitude * 2 ** -48;
        bound += relative * (Math.abs(total) + bound) + least;
        // Near the end of the format sums may be infinite.
        if (!(magnitude + bound < most)) bound = NaN;
      }
      cells.values[at] = value;
      cells.bounds[at] = bound;
    }
}

/** Elements that lie farther from what was computed than they may; undefined where none does. */
export function farthest({ values, bounds }: Cells, found: Float64Array): string | undefined {
  for (const [at, value] of values.entries()) {
    const bound = bounds[at] ?? NaN;
    const own = found[at] ?? NaN;
    if (Number.isNaN(bound) || Number.isNaN(value)) continue;
    if (!(Math.abs(own - value) <= bound))
      return `element ${at} is ${own}, computed ${value} within ${bound}`;
  }
  return undefined;
}
