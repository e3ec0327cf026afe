/**
 * Products of FP8 whose blocks of 32 along k have scales of powers of two, as tensor cores of Blackwell make them: a step for each block, in which the
 * scales count as exponents (`tensor-core-terms.ts`).
 */
import type { Elements } from "../dtype.ts";
import { decodeTerms, multiplyTerms, scaledTerms } from "./tensor-core-terms.ts";
import type { TermFormat, Terms } from "./tensor-core-terms.ts";

const block = 32;

export interface ScaledProduct {
  readonly m: number;
  readonly n: number;
  readonly k: number;
  readonly formats: readonly [a: TermFormat, b: TermFormat];
  /** Codes: a is m × k, b is k × n. */
  readonly a: Uint8Array;
  readonly b: Uint8Array;
  /** Codes of scales, rows of `scaleColumns`. */
  readonly scales: readonly [a: Uint8Array, b: Uint8Array];
  readonly scaleColumns: number;
}

/** c += a · b, times the scales of each block; c holds f32 numbers. */
export function multiplyScaled(product: ScaledProduct, c: Elements): void {
  if (!(c instanceof Float32Array)) throw new Error("products with scales are summed in f32");
  const { m, n, k, formats, a, b, scales, scaleColumns } = product;
  const codes = new Uint32Array(c.buffer, c.byteOffset, c.length);
  const terms = (side: 0 | 1, rows: number, from: number): Terms => {
    const part = new Uint8Array(rows * block);
    for (let row = 0; row < rows; row++)
      for (let at = 0; at < block; at++)
        part[row * block + at] =
          (side === 0 ? a[row * k + from + at] : b[(from + at) * n + row]) ?? 0;
    const own = Uint8Array.from({ length: rows }, (_, row) => {
      return scales[side][row * scaleColumns + from / block] ?? 0;
    });
    const decoded = decodeTerms(formats[side], part, rows);
    return scaledTerms(decoded, { format: "ue8m0", codes: own, perRow: 1 });
  };
  for (let from = 0; from < k; from += block)
    multiplyTerms({ a: terms(0, m, from), b: terms(1, n, from), c: codes, accumulator: "f32" });
}
