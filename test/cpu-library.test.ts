/** Operations of the library on the CPU device, whose plans are for caches: against references of their own. */
import { afterAll, beforeAll, expect, test } from "vitest";
import type { Device } from "tilewright";
import { f32, fromNumbers, open, tensor, toNumbers } from "tilewright";
import { matmul, scan, softmax, sort } from "tilewright/kernels";
import { Random } from "../src/support/random.ts";

let device: Device;
beforeAll(async () => {
  device = await open("cpu", { threads: 1 });
});
afterAll(() => {
  device.dispose();
});

const seed = 5;

function numbers(count: number): Float64Array {
  const random = new Random(seed);
  return Float64Array.from({ length: count }, () => Math.fround(random.uniform() - 0.5));
}

test.each([3, 100, 4097, 20_000])("sorts rows of %s", async (length) => {
  const values = numbers(2 * length);
  const x = fromNumbers(f32, [2, length], values);
  const sorted = sort({ x: tensor(f32, [2, length]) });
  const { out } = await device.run(sorted, { x });
  const expected = [0, 1].flatMap((row) => [
    ...values.slice(row * length, (row + 1) * length).sort(),
  ]);
  expect([...toNumbers(out)]).toEqual(expected);
});

test.each([
  [1, 1, 1],
  [5, 7, 3],
  [65, 130, 67],
  [130, 300, 20],
  [200, 17, 300],
])("multiplies %s × %s × %s", async (m, n, k) => {
  const [a, b] = [numbers(m * k), numbers(k * n)];
  const product = matmul({ a: tensor(f32, [m, k]), b: tensor(f32, [k, n]), precision: "ieee" });
  const { out } = await device.run(product, {
    a: fromNumbers(f32, [m, k], a),
    b: fromNumbers(f32, [k, n], b),
  });
  const found = toNumbers(out);
  for (let i = 0; i < m; i++)
    for (let j = 0; j < n; j++) {
      let [sum, size] = [0, 0];
      for (let step = 0; step < k; step++) {
        const term = (a[i * k + step] ?? 0) * (b[step * n + j] ?? 0);
        sum += term;
        size += Math.abs(term);
      }
      // A rounding of each sum, and of each product where nothing is fused.
      expect(Math.abs((found[i * n + j] ?? NaN) - sum)).toBeLessThanOrEqual(
        2 * k * 2 ** -24 * size,
      );
    }
});

test("softmax and running sums", async () => {
  const [rows, columns] = [3, 1000];
  const values = numbers(rows * columns);
  const x = fromNumbers(f32, [rows, columns], values);
  const { out } = await device.run(softmax({ x: tensor(f32, [rows, columns]) }), { x });
  const found = toNumbers(out);
  const { out: sums } = await device.run(scan({ x: tensor(f32, [rows, columns]) }), { x });
  const running = toNumbers(sums);
  for (let row = 0; row < rows; row++) {
    const own = values.slice(row * columns, (row + 1) * columns);
    const total = own.reduce((sum, value) => sum + Math.exp(value), 0);
    let [sum, size] = [0, 0];
    for (const [i, value] of own.entries()) {
      // A rounding of each sum, and a few of the exponential, the difference and the quotient.
      const exact = Math.exp(value) / total;
      expect(Math.abs((found[row * columns + i] ?? NaN) - exact)).toBeLessThanOrEqual(
        (columns + 8) * 2 ** -24 * exact,
      );
      sum += value;
      size += Math.abs(value);
      const error = Math.abs((running[row * columns + i] ?? NaN) - sum);
      expect(error).toBeLessThanOrEqual(columns * 2 ** -24 * size + 2 ** -126);
    }
  }
});
