/** Products of f32 made of parts, against exact sums: what each way of splitting promises. */
import { expect, test } from "vitest";
import { f32 } from "../formats/dtype.ts";
import { fromNumbers, toNumbers } from "../formats/hostarray.ts";
import { array, dot, kernel } from "./index.ts";
import type { SplitPrecision } from "./index.ts";
import { open } from "../runtime/open.ts";
import { Random } from "../support/random.ts";

const [rows, columns, depth] = [16, 16, 64];

const product = (precision: SplitPrecision | "ieee") =>
  kernel(
    {
      name: "product",
      inputs: {
        a: array(f32, [rows, depth]),
        b: array(f32, [depth, columns]),
        c: array(f32, [rows, columns]),
      },
      outputs: { out: array(f32, [rows, columns]) },
    },
    ({ a, b, c, out }) => {
      out.store(dot(a.load(), b.load(), { accumulator: c.load(), precision }));
    },
  );

/** The greatest error of a result beside the sum of the absolute values of its products. */
async function worstError(precision: SplitPrecision | "ieee", seed: number): Promise<number> {
  const random = new Random(seed);
  const numbers = (count: number): Float32Array =>
    Float32Array.from(
      { length: count },
      () => (random.bits() / 2 ** 32 - 0.3) * 2 ** (random.bits() % 8),
    );
  const [a, b] = [numbers(rows * depth), numbers(depth * columns)];
  const device = await open("simulator");
  const { out } = await device.run(product(precision), {
    a: fromNumbers(f32, [rows, depth], a),
    b: fromNumbers(f32, [depth, columns], b),
    c: fromNumbers(f32, [rows, columns], new Float32Array(rows * columns)),
  });
  device.dispose();
  let worst = 0;
  for (const [index, found] of toNumbers(out).entries()) {
    const [i, j] = [Math.floor(index / columns), index % columns];
    let [sum, magnitude] = [0, 0];
    for (let l = 0; l < depth; l += 1) {
      const term = (a[i * depth + l] ?? NaN) * (b[l * columns + j] ?? NaN);
      sum += term;
      magnitude += Math.abs(term);
    }
    worst = Math.max(worst, Math.abs(found - sum) / magnitude);
  }
  return worst;
}

test("errors are those of the bits that are kept", async () => {
  const seed = 11;
  const errors = new Map<string, number>();
  for (const precision of ["ieee", "tf32", "tf32x3", "bf16x3", "bf16x6", "bf16x9"] as const)
    errors.set(precision, await worstError(precision, seed));
  const of = (precision: string): number => errors.get(precision) ?? NaN;
  // Half a unit of 11 bits for each factor; what is left of 16 bits twice; four steps of 16 that are cut off, and the rest.
  expect(of("tf32")).toBeLessThan(2 ** -10);
  expect(of("tf32")).toBeGreaterThan(2 ** -16);
  expect(of("bf16x3")).toBeLessThan(2 ** -15);
  expect(of("bf16x3")).toBeGreaterThan(2 ** -21);
  for (const precision of ["tf32x3", "bf16x6", "bf16x9"])
    expect(of(precision), `${precision}, seed ${seed}`).toBeLessThan(2 ** -20);
});

test("sums go on from the accumulator; what is not finite, and the greatest numbers, stay what they are", async () => {
  const device = await open("simulator");
  const greatest = (2 - 2 ** -23) * 2 ** 127;
  const firsts = [Infinity, NaN, greatest, -greatest, 2 ** -149, 1.5];
  const a = new Float32Array(rows * depth);
  for (const [row, first] of firsts.entries()) a[row * depth] = first;
  const b = new Float32Array(depth * columns);
  for (let column = 0; column < columns; column += 1) b[column] = 0.5;
  // Both are less than their first parts, so that the others are negative.
  [b[1], b[2]] = [0.1, 1e30];
  for (const precision of ["tf32x3", "bf16x3", "bf16x6", "bf16x9"] as const) {
    const { out } = await device.run(product(precision), {
      a: fromNumbers(f32, [rows, depth], a),
      b: fromNumbers(f32, [depth, columns], b),
      c: fromNumbers(f32, [rows, columns], new Float32Array(rows * columns).fill(1)),
    });
    const values = firsts.map((_, row) => toNumbers(out)[row * columns] ?? NaN);
    expect(values.slice(0, 2)).toEqual([Infinity, NaN]);
    expect(Math.abs((values[2] ?? NaN) / (greatest / 2) - 1)).toBeLessThan(2 ** -15);
    expect(values[3]).toBe(-(values[2] ?? NaN));
    expect(values.slice(4)).toEqual([1, 1.75]);
    expect(toNumbers(out)[1]).toBe(Infinity);
    expect([0, 2, 3].map((row) => toNumbers(out)[row * columns + 2])).toEqual([
      ...[Infinity, Infinity, -Infinity],
    ]);
  }
  device.dispose();
});
