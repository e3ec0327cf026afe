/** Tiles of 144 columns, which are no multiple of 32: whole and cut ones, in pairs, split along k, and stored by lanes. */
import { expect, test } from "vitest";
import { bf16, f16 } from "../../formats/dtype.ts";
import { fromNumbers, toNumbers } from "../../formats/hostarray.ts";
import { tensor, dim } from "../../lang/index.ts";
import { open } from "../../runtime/open.ts";
import type { MatmulConfiguration } from "./configuration.ts";
import { matmul } from "./matmul.ts";

const usual: MatmulConfiguration = {
  ...{ kernel: "persistent", consumers: 2, columns: 144, stages: 2 },
  ...{ schedule: "tiles", swapAB: false, cluster: 1 },
};

test.each([
  ["simulator", bf16, [130, 296, 136], usual],
  ["emulator", f16, [200, 160, 136], { ...usual, cluster: 2 }],
  ["simulator", bf16, [70, 147, 328], { ...usual, consumers: 1, schedule: "stream-k" }],
] as const)("on the %s, of %o and %o", async (name, dtype, [m, n, k], configuration) => {
  const [rows, columns, depth] = [dim("m"), dim("n"), dim("k")];
  const product = matmul({
    a: tensor(dtype, [rows, depth]),
    b: tensor(dtype, [depth, columns], { strides: [1, depth] }),
    configuration,
  });
  // Of -1, 0 and 1, whose sums every format holds.
  const of = (count: number, step: number): number[] =>
    Array.from({ length: count }, (_, index) => (Math.trunc(index * step) % 3) - 1);
  const [left, right] = [of(m * k, 1.37), of(n * k, 2.71)];
  const device = await open(name, { onNotes: () => undefined });
  const { out } = await device.run(product, {
    a: fromNumbers(dtype, [m, k], left),
    b: fromNumbers(dtype, [k, n], right),
  });
  device.dispose();
  const exact = Array.from({ length: m * n }, (_, index) => {
    const [row, column] = [Math.floor(index / n), index % n];
    let sum = 0;
    for (let at = 0; at < k; at += 1)
      sum += (left[row * k + at] ?? NaN) * (right[column * k + at] ?? NaN);
    return sum;
  });
  expect(Math.max(...exact.map(Math.abs))).toBeLessThanOrEqual(256);
  expect([...toNumbers(out)]).toEqual(exact);
});
