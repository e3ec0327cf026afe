/** Attention in float64 as its page has it, and numbers to try it on. */
import { expect } from "vitest";
import { bf16, f32 } from "../../src/formats/dtype.ts";
import type { DType } from "../../src/formats/dtype.ts";
import { fromNumbers } from "../../src/formats/hostarray.ts";
import type { AttentionConfiguration } from "../../src/kernels/attention/configuration.ts";
import type { Window } from "../../src/kernels/attention/problem.ts";

export interface AttentionCase {
  readonly name: string;
  /** b, s, t, h, kv, d, e. */
  readonly sizes: readonly [number, number, number, number, number, number, number];
  readonly dtype?: DType<"bf16"> | DType<"f16"> | DType<"f32">;
  readonly causal?: boolean;
  readonly window?: Window;
  readonly softCap?: number;
  readonly scale?: number;
  readonly sinks?: boolean;
  /** Which axes of the bias are whole. */
  readonly bias?: readonly boolean[];
  /** Rows see columns of equal remainder by 3. */
  readonly masked?: boolean;
  /** Scores fall with the distance, more in later heads. */
  readonly slopes?: boolean;
  readonly configuration?: AttentionConfiguration;
  readonly kernel?: AttentionConfiguration["kernel"];
}

type Given = ReturnType<typeof inputsOf>;

/** Numbers between -1 and 1 that every format holds exactly. */
export function numbersOf(count: number, seed: number): readonly number[] {
  return Array.from({ length: count }, (_, index) => {
    const mixed = Math.imul(index + 1, 2654435761) ^ Math.imul(seed, 40503);
    return (((mixed >>> 8) & 127) - 64) / 64;
  });
}

export function inputsOf({
  sizes: [b, s, t, h, kv, d, e],
  dtype = bf16,
  bias,
  sinks,
}: AttentionCase) {
  const made = (own: DType, shape: readonly number[], seed: number) => {
    const values = numbersOf(
      shape.reduce((product, extent) => product * extent, 1),
      seed,
    );
    return { shape, values, array: fromNumbers(own, shape, values) };
  };
  return {
    q: made(dtype, [b, s, h, d], 1),
    k: made(dtype, [b, t, kv, d], 2),
    v: made(dtype, [b, t, kv, e], 3),
    bias:
      bias &&
      made(
        f32,
        [b, h, s, t].map((size, axis) => (bias[axis] === true ? size : 1)),
        4,
      ),
    sinks: sinks === true ? made(f32, [h], 5) : undefined,
  };
}

/** softmax(score) · v and the logarithm of the sum, in float64, as the documentation has it. */
export function expected(one: AttentionCase, given: Given) {
  const [b, s, t, h, kv, d, e] = one.sizes;
  const { q, k, v, bias, sinks } = given;
  const at = (of: { shape: readonly number[]; values: readonly number[] }, ...place: number[]) =>
    of.values[
      place.reduce(
        (sum, index, axis) => sum * (of.shape[axis] ?? 1) + (of.shape[axis] === 1 ? 0 : index),
        0,
      )
    ] ?? NaN;
  const scale = one.scale ?? 1 / Math.sqrt(d);
  const left = one.window?.left ?? Infinity;
  const right = one.causal === true ? 0 : (one.window?.right ?? Infinity);
  const out: number[] = [];
  const logSumExp = new Float64Array(b * h * s);
  for (let batch = 0; batch < b; batch += 1)
    for (let row = 0; row < s; row += 1)
      for (let head = 0; head < h; head += 1) {
        const shared = Math.floor(head / (h / kv));
        const scores = Array.from({ length: t }, (_, column) => {
          if (column < row - left || column > row + right) return -Infinity;
          if (one.masked === true && row % 3 !== column % 3) return -Infinity;
          let sum = 0;
          for (let i = 0; i < d; i += 1)
            sum += at(q, batch, row, head, i) * at(k, batch, column, shared, i);
          let score = sum * scale;
          if (one.softCap !== undefined) score = one.softCap * Math.tanh(score / one.softCap);
          if (bias) score += at(bias, batch, head, row, column);
          if (one.slopes === true) score -= Math.abs(row - column) * 0.125 * (head + 1);
          return score;
        });
        if (sinks) scores.push(sinks.values[head] ?? NaN);
        const high = Math.max(-1e300, ...scores);
        const powers = scores.map((score) => Math.exp(score - high));
        const sum = powers.reduce((total, power) => total + power, 0);
        logSumExp[(batch * h + head) * s + row] = high + Math.log(sum);
        for (let i = 0; i < e; i += 1) {
          let value = 0;
          for (let column = 0; column < t; column += 1)
            value += (powers[column] ?? 0) * at(v, batch, column, shared, i);
          out.push(sum === 0 ? 0 : value / sum);
        }
      }
  return { out, logSumExp };
}

export function closeTo(found: ArrayLike<number>, wanted: ArrayLike<number>, bound: number): void {
  expect(found.length).toBe(wanted.length);
  const wrong = Array.from(found).findIndex((value, index) => {
    const other = wanted[index] ?? NaN;
    return value !== other && !(Math.abs(value - other) <= bound * Math.max(1, Math.abs(other)));
  });
  expect(
    wrong === -1 ? "all within the bound" : `[${wrong}]: ${found[wrong]} for ${wanted[wrong]}`,
  ).toBe("all within the bound");
}
