/**
 * Products of narrow floats whose blocks along k have scales, as tensor cores of Blackwell make them: a step for each instruction, in which scales of
 * powers of two count as exponents, or groups of FP4 are summed exactly and multiplied with theirs (`tensor-core-terms.ts`).
 */
import type { Elements } from "../dtype.ts";
import {
  decodeNibbles,
  decodeTerms,
  multiplyNibbles,
  multiplyTerms,
  scaledTerms,
} from "./tensor-core-terms.ts";
import type { BlockScales, TermFormat } from "./tensor-core-terms.ts";

export interface ScaledProduct {
  readonly m: number;
  readonly n: number;
  readonly k: number;
  readonly formats: readonly [a: TermFormat, b: TermFormat];
  /** Elements of k of one instruction, and how many of them share a scale. */
  readonly depth: number;
  readonly block: number;
  /** Codes: a is m × k, b is k × n. */
  readonly a: Uint8Array;
  readonly b: Uint8Array;
  /** Codes of scales, rows of so many columns. */
  readonly scales: readonly [a: Uint8Array, b: Uint8Array];
  readonly scaleColumns: readonly [a: number, b: number];
  readonly scaleFormat: BlockScales["format"];
}

/** Elements of k of an instruction that sums FP4 in exact groups. */
const groupedDepth = 64;

interface Factor {
  readonly codes: Uint8Array;
  readonly rows: number;
  readonly scales: BlockScales;
}

/** c += a · b, times the scales of each block; c holds f32 numbers. */
export function multiplyScaled(product: ScaledProduct, c: Elements): void {
  if (!(c instanceof Float32Array)) throw new Error("products with scales are summed in f32");
  const { m, n, k, formats, depth } = product;
  const sums = new Uint32Array(c.buffer, c.byteOffset, c.length);
  for (let from = 0; from < k; from += depth) {
    const [a, b] = [factorOf(product, 0, m, from), factorOf(product, 1, n, from)];
    if (depth === groupedDepth) {
      const left = decodeNibbles(a.codes, m, a.scales);
      multiplyNibbles(left, decodeNibbles(b.codes, n, b.scales), sums);
      continue;
    }
    const [left, right] = [
      decodeTerms(formats[0], a.codes, m),
      decodeTerms(formats[1], b.codes, n),
    ];
    multiplyTerms({
      a: scaledTerms(left, a.scales),
      b: scaledTerms(right, b.scales),
      ...{ c: sums, accumulator: "f32" },
    });
  }
}

/** What one instruction takes of a factor, as rows of k. */
function factorOf(product: ScaledProduct, side: 0 | 1, rows: number, from: number): Factor {
  const { n, k, a, b, depth, block, scales, scaleColumns, scaleFormat } = product;
  const codes = new Uint8Array(rows * depth);
  for (let row = 0; row < rows; row++)
    for (let at = 0; at < depth; at++)
      codes[row * depth + at] =
        (side === 0 ? a[row * k + from + at] : b[(from + at) * n + row]) ?? 0;
  const perRow = depth / block;
  const own = new Uint8Array(rows * perRow);
  for (let row = 0; row < rows; row++)
    for (let at = 0; at < perRow; at++)
      own[row * perRow + at] = scales[side][row * scaleColumns[side] + from / block + at] ?? 0;
  return { codes, rows, scales: { format: scaleFormat, codes: own, perRow } };
}
