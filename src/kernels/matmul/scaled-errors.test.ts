/** What products with scales lose, measured on sums as tensor cores make them, beside the bounds by which it is chosen how they are made. */
import { expect, test } from "vitest";
import { encodeFloat, decodeFloat } from "../../formats/floats.ts";
import { fp8Block1x128, mxfp8e4m3, nvfp4 } from "../../formats/scaled/formats.ts";
import { Random } from "../../support/random.ts";
import { bf16ProductError, isExactInBf16, promotedProductError } from "./scaled-errors.ts";

/** Towards zero, below so many bits of a power of two. */
function cut(value: number, bits: number, power: number): number {
  const unit = 2 ** (power - bits);
  return Math.trunc(value / unit) * unit;
}

function sumOfSteps(terms: readonly number[], step: number, bits: number, kept: number): number {
  let sum = 0;
  for (let at = 0; at < terms.length; at += step) {
    const all = [sum, ...terms.slice(at, at + step)];
    const power = Math.floor(Math.log2(Math.max(...all.map(Math.abs), 2 ** -200)));
    sum = all.reduce((total, each) => total + cut(each, bits, power), 0);
    if (sum !== 0) sum = cut(sum, kept, Math.floor(Math.log2(Math.abs(sum))));
  }
  return sum;
}

test.each([128, 1024])(
  "errors of sums of %i are within what is computed, and no less than a twentieth of it",
  (k) => {
    const random = new Random(7);
    const code = (value: number): number => decodeFloat("f8e4m3fn", encodeFloat("f8e4m3fn", value));
    const half = (value: number): number => decodeFloat("bf16", encodeFloat("bf16", value));
    const squares = { promoted: 0, rounded: 0, exact: 0 };
    const turns = 60;
    for (let turn = 0; turn < turns; turn++) {
      const [a, b] = [0, 1].map(() => Array.from({ length: k }, () => code(random.normal() * 100)));
      const scales = Array.from({ length: k / 128 }, () => Math.fround(1 + random.uniform()));
      const scaleAt = (at: number): number => scales[Math.floor(at / 128)] ?? 1;
      const terms = (a ?? []).map((each, at) => each * (b?.[at] ?? 0));
      const exact = terms.reduce((sum, each, at) => sum + each * scaleAt(at), 0);
      const size = Math.sqrt(terms.reduce((sum, each, at) => sum + (each * scaleAt(at)) ** 2, 0));
      const promoted = scales.reduce(
        (sum, scale, i) =>
          Math.fround(sum + scale * sumOfSteps(terms.slice(128 * i, 128 * (i + 1)), 32, 13, 13)),
        0,
      );
      const rounded = (a ?? []).map((each, at) => half(each * scaleAt(at)) * (b?.[at] ?? 0));
      const powers = terms.map((each, at) => each * 2 ** (Math.floor(at / 32) % 5));
      const exactPowers = powers.reduce((sum, each) => sum + each, 0);
      const sizeOfPowers = Math.hypot(...powers);
      squares.promoted += ((promoted - exact) / size) ** 2;
      squares.rounded += ((sumOfSteps(rounded, 16, 25, 23) - exact) / size) ** 2;
      squares.exact += ((sumOfSteps(powers, 16, 25, 23) - exactPowers) / sizeOfPowers) ** 2;
    }
    const found = (way: keyof typeof squares): number => Math.sqrt(squares[way] / turns);
    const bounds = {
      promoted: promotedProductError(k),
      rounded: bf16ProductError(1, k),
      exact: bf16ProductError(0, k),
    };
    for (const way of ["promoted", "rounded", "exact"] as const) {
      expect(found(way), way).toBeLessThanOrEqual(bounds[way]);
      expect(found(way), way).toBeGreaterThan(bounds[way] / 20);
    }
  },
);

test("MX formats and nvfp4 are exact in bf16, where their products err least; FP8 with scales of f32 loses less as it is", () => {
  expect([mxfp8e4m3, nvfp4, fp8Block1x128].map(isExactInBf16)).toEqual([true, true, false]);
  for (const k of [32, 128, 4096, 1 << 20]) {
    expect(bf16ProductError(0, k)).toBeLessThan(promotedProductError(k));
    expect(promotedProductError(k)).toBeLessThan(bf16ProductError(1, k));
  }
});
