/**
 * Attention, bf16 with heads of 128: softmax(q kᵀ / √128) v, block of columns by block of columns, as FlashAttention-3 does.
 * One thread copies. Two others have 64 rows each; a thread starts the scores of the next step before the values of its
 * own, so that the tensor cores have work of one thread while the other computes a softmax:
 *
 *   copy      q k0 v0 k1 v1 k2 …
 *   first     scores 0 · softmax 0 · scores 1, values 0 · softmax 1          · scores 2, values 1 · softmax 2 …
 *   second             scores 0    · softmax 0          · scores 1, values 0 · softmax 1          · scores 2, values 1 …
 */
import {
  accumulator,
  tensor,
  bf16,
  block,
  cdiv,
  constant,
  dim,
  f32,
  full,
  i32,
  iota,
  kernel,
  processors,
  slice,
  tiles,
  toNumbers,
  warpSpecialized,
  wgmma,
  when,
  zeros,
} from "tilewright";
import type { Device, Ref, Scalar, Tile } from "tilewright";
import { compareWithReference } from "tilewright/testing";
import type { Comparison } from "tilewright/testing";
import { roundoff } from "./support/roundoff.ts";
import { normal } from "./support/data.ts";
import { productElement } from "./support/product.ts";

const [width, half, columns] = [128, 64, 128];
const rows = 2 * half;
const scale = Math.LOG2E / Math.sqrt(width);
const fast = { approximate: true } as const;

/** The powers of a step's scores, what sums so far are scaled by, and the largest score and sum of each row. */
function softmax(scores: Tile<"f32">, { most, sum }: { most: Tile<"f32">; sum: Tile<"f32"> }) {
  const high = most.maximum(scores.max({ axis: 1, keepDims: true }).mul(scale));
  const change = most.sub(high).exp2(fast);
  const powers = scores.fma(scale, high.neg()).exp2(fast);
  const total = sum.mul(change).add(powers.sum({ axis: 1, keepDims: true }));
  return { rows: { most: high, sum: total }, powers, change };
}

/** Scores without those of columns after their row. */
function masked(scores: Tile<"f32">, top: Scalar<"i32">, left: Scalar<"i32">): Tile<"f32"> {
  const column = iota(i32, [half, columns], { axis: 1 }).add(left);
  const visible = column.le(iota(i32, [half, columns], { axis: 0 }).add(top));
  const crosses = left.add(columns - 1).gt(top);
  const shown = (): Tile<"f32"> => visible.select(scores, full(f32, [half, columns], -Infinity));
  return when(crosses, shown, () => scores);
}

export const attentionOf = ({ causal = false } = {}) => {
  const [heads, s] = [dim("heads"), dim("s", { multipleOf: 128 })];
  const operand = tensor(bf16, [heads, s, width]);
  return kernel(
    {
      name: "attention",
      grid: { worker: processors },
      threads: ["copy", "first", "second"],
      inputs: { q: operand, k: operand, v: operand },
      outputs: { out: operand },
    },
    ({ q, k, v, out }) => {
      const [count, last] = [cdiv(s, rows), constant(i32, cdiv(s, rows)).sub(1)];
      const placeOf = (i: Scalar<"i32">) => (causal ? last.sub(i).maximum(0) : i); // most work first
      const order = causal ? { i: count, h: heads } : { h: heads, i: count };
      const manual = { manual: true };
      warpSpecialized(
        {
          tiles: tiles(order, { alternate: causal }),
          grid: ({ i }) => ({ step: (causal ? placeOf(i) : last).add(1) }),
          inputs: {
            query: { at: ({ i, h }) => q.at(h, block(placeOf(i), rows)), depth: 2 },
            key: { at: ({ h, step }) => k.at(h, block(step, columns)), ...manual, early: true },
            value: { at: ({ h, step }) => v.at(h, block(step, columns)), ...manual },
          },
          outputs: {
            result: ({ i, h, part }) => out.at(h, block(placeOf(i).mul(2).add(part), half)),
          },
          registers: { copy: 24, compute: 240 },
          waitReadOnly: true,
        },
        ({ i, part, query, result, steps, wait, release }) => {
          const top = placeOf(i).mul(2).add(part).mul(half);
          const mine = query.at(slice(part.mul(half), half));
          const scores = (key: Ref<"bf16">) =>
            wgmma(accumulator(f32, [half, columns]), mine, key.transpose());
          const values = (sums: Tile<"f32">, powers: Tile<"bf16">, value: Ref<"bf16">) =>
            wgmma(accumulator(f32, [half, width], sums), powers, value);
          const visible = (found: Tile<"f32">, step: Scalar<"i32">) =>
            causal ? masked(found, top, step.mul(columns)) : found;
          const found = scores(wait("key")).wait();
          release("key");
          const none = { most: full(f32, [half, 1], -Infinity), sum: zeros(f32, [half, 1]) };
          const begun = softmax(visible(found, constant(i32, 0)), none);
          const powers = begun.powers.cast(bf16);
          const carry = { rows: begun.rows, powers, sums: zeros(f32, [half, width]) };
          const end = steps(carry, ({ step, wait, release }, before) => {
            const next = scores(wait("key"));
            const running = values(before.sums, before.powers, wait("value"));
            const found = next.wait({ pending: 1 }); // values still run
            release("key");
            const { rows, powers, change } = softmax(visible(found, step.add(1)), before.rows);
            const sums = running.wait();
            release("value");
            return { rows, powers: powers.cast(bf16), sums: sums.mul(change) };
          });
          const sums = values(end.sums, end.powers, wait("value")).wait();
          release("value");
          result.store(sums.div(end.rows.sum, fast).cast(bf16));
        },
      );
    },
  );
};

export const attention = attentionOf();

export async function main(device: Device): Promise<Comparison> {
  const [heads, s] = [1, 256];
  const [q, k, v] = [18, 19, 20].map((seed) => normal(bf16, [heads, s, width], seed));
  if (q === undefined || k === undefined || v === undefined) throw new Error("three operands");
  const { out } = await device.run(attentionOf({ causal: true }), { q, k, v });
  const [left, right, given] = [toNumbers(q), toNumbers(k), toNumbers(v)];
  const weights = Array.from({ length: s }, (_, row) => weightsOf(left, right, row));
  return compareWithReference(out, (index) => {
    const [row, column] = [Math.floor(index / width), index % width];
    let [value, magnitude] = [0, 0];
    for (const [at, weight] of (weights[row] ?? []).entries()) {
      const term = weight * (given[at * width + column] ?? NaN);
      value += term;
      magnitude += Math.abs(term);
    }
    // Powers are rounded to bf16, and so is the result; sums of f32 and fast powers add less than 2⁻¹².
    const error = magnitude * (roundoff.bf16 + 2 ** -12);
    return { value, bound: error + (Math.abs(value) + error) * roundoff.bf16 };
  });
}

/** What a row gives each of the columns up to its own, in float64. */
function weightsOf(left: Float64Array, right: Float64Array, row: number): readonly number[] {
  const own = left.subarray(row * width, (row + 1) * width);
  const powers = Array.from({ length: row + 1 }, (_, at) => {
    const other = right.subarray(at * width, (at + 1) * width);
    const { value } = productElement(own, other, { width: 1, depth: width }, 0);
    return Math.exp(value / Math.sqrt(width));
  });
  const total = powers.reduce((sum, power) => sum + power, 0);
  return powers.map((power) => power / total);
}
