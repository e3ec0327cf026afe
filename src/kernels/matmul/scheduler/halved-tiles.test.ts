/** Tiles of a last round that are cut into halves of their columns and along k: sums of one other and of several, of both halves, and halves that lie outside. */
import { expect, test } from "vitest";
import { bf16 } from "../../../formats/dtype.ts";
import { fromNumbers, toNumbers } from "../../../formats/hostarray.ts";
import { tensor, dim } from "../../../lang/index.ts";
import { knownCut } from "../../../lang/pipeline/stream-k.ts";
import { open } from "../../../runtime/open.ts";
import type { MatmulConfiguration } from "../configuration.ts";
import { matmul } from "../matmul.ts";
import { tileCount } from "../tile-shapes.ts";

const usual = {
  ...{ kernel: "persistent", consumers: 1, columns: 256, stages: 2 },
  ...{ schedule: "stream-k", swapAB: false, cluster: 1 },
} as const satisfies MatmulConfiguration;

type Lies = "rows" | "columns";
type Cut = Pick<ReturnType<typeof knownCut>, "parts" | "others">;

test.each<
  [device: "simulator" | "emulator", sizes: [number, number, number], lies: Lies, cut: Cut]
>([
  // Blocks are as many as have four steps each.
  ["emulator", [20, 264, 840], "rows", { parts: 1, others: 1 }],
  ["simulator", [70, 100, 1048], "columns", { parts: 2, others: 1 }],
  ["simulator", [20, 136, 1352], "rows", { parts: 2, others: 2 }],
  ["simulator", [9, 400, 1600], "columns", { parts: 3, others: 2 }],
])("on the %s, %o with b by %s, cut into %o", async (name, [m, n, k], lies, cut) => {
  const steps = Math.ceil(k / 64);
  const tiles = tileCount(usual, { m, n, k, batch: 1 });
  const workers = tiles * Math.floor(steps / 4);
  expect(knownCut(tiles, workers, steps, true)).toMatchObject({ ...cut, isHalved: true });
  const [rows, columns, depth] = [dim("m"), dim("n"), dim("k")];
  const product = matmul({
    a: tensor(bf16, [rows, depth]),
    b: tensor(bf16, [depth, columns], lies === "columns" ? { strides: [1, depth] } : {}),
    configuration: usual,
  });
  // Of -1, 0 and 1, whose sums bf16 holds.
  const of = (count: number, step: number): number[] =>
    Array.from({ length: count }, (_, index) => (Math.trunc(index * step) % 3) - 1);
  const [left, right] = [of(m * k, 1.37), of(n * k, 2.71)];
  const device = await open(name, { onNotes: () => undefined });
  const { out } = await device.run(product, {
    a: fromNumbers(bf16, [m, k], left),
    b: fromNumbers(bf16, [k, n], right),
  });
  device.dispose();
  const [down, along] = lies === "columns" ? [1, k] : [n, 1];
  const exact = Array.from({ length: m * n }, (_, index) => {
    const [row, column] = [Math.floor(index / n), index % n];
    let sum = 0;
    for (let at = 0; at < k; at += 1)
      sum += (left[row * k + at] ?? NaN) * (right[column * along + at * down] ?? NaN);
    return sum;
  });
  expect(toNumbers(out)).toEqual(toNumbers(fromNumbers(bf16, [m, n], exact)));
});
