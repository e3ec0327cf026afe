/** Products whose factors are often one are those of any factors, in warps that have ones and in those that have none. */
import { expect, test } from "vitest";
import { f32 } from "../../../formats/dtype.ts";
import { tensor, kernel } from "../../../lang/index.ts";
import { lower } from "../../../lower/stages.ts";
import { fromNumbers, open, toNumbers } from "../../../index.ts";
import { targets } from "../../../targets/target.ts";
import { printPtx } from "../../printer.ts";

const [rows, columns] = [128, 32];

const scaled = kernel(
  {
    name: "scaled",
    inputs: { x: tensor(f32, [rows, columns]), factor: tensor(f32, [rows, 1]) },
    outputs: { out: tensor(f32, [rows, columns]) },
  },
  ({ x, factor, out }) => {
    out.store(x.load().mul(factor.load().broadcastTo([rows, columns]), { oftenOne: true }));
  },
);

/** Numbers that a product with one leaves as they are, those among them that comparisons tell nothing of. */
const special = [0, -0, 1, -1.5, 3e38, 1e-40, Infinity, -Infinity, Number.NaN, 0.1];

test.each(["simulator", "emulator"] as const)("on the %s", async (kind) => {
  const numbers = Array.from({ length: rows * columns }, (_, i) => special[i % 10] ?? 0);
  // Ones alone, one other factor, factors of all kinds, and again ones, in rows of different warps.
  const factors = Array.from({ length: rows }, (_, row) => {
    if (row < 32 || row >= 96) return 1;
    if (row < 64) return row === 40 ? 0.5 : 1;
    return [0.25, Number.NaN, 1, 0, -1][row % 5] ?? 1;
  });
  const device = await open(kind);
  const { out } = await device.run(scaled, {
    x: fromNumbers(f32, [rows, columns], numbers),
    factor: fromNumbers(f32, [rows, 1], factors),
  });
  device.dispose();
  const wanted = numbers.map((x, i) =>
    Math.fround(Math.fround(x) * (factors[Math.floor(i / columns)] ?? 0)),
  );
  expect([...toNumbers(out)]).toEqual(wanted);
});

test("a warp of ones jumps over them", () => {
  const text = printPtx(lower(scaled.kernel, targets.sm_90a).module);
  expect(text).toMatch(/vote\.sync\.any\.pred (%p\d+), %p\d+, -1;\s+@!\1 bra\.uni \$ones0;/);
  expect(text.indexOf("mul.rn.f32")).toBeGreaterThan(text.indexOf("vote.sync.any"));
  expect(text.lastIndexOf("mul.rn.f32")).toBeLessThan(text.indexOf("$ones0:"));
});
