import { expect, test } from "vitest";
import { bf16, f32 } from "../../formats/dtype.ts";
import { tensor, block, cdiv, dim, dot, kernel, loop, zeros } from "../../lang/index.ts";
import { targets } from "../../targets/target.ts";
import { kernelTimeline, timelineDrawing, timelineLines } from "./timeline.ts";

const [m, k] = [dim("m"), dim("k", { multipleOf: 32 })];

const definition = kernel(
  {
    name: "square",
    grid: { i: cdiv(m, 64) },
    inputs: { a: tensor(bf16, [m, k]), b: tensor(bf16, [k, 64]) },
    outputs: { c: tensor(f32, [m, 64]) },
  },
  ({ i, a, b, c }) => {
    const steps = { to: cdiv(k, 32), carry: zeros(f32, [64, 64]) };
    const sum = loop(steps, (step, accumulator) =>
      dot(a.at(block(i, 64), block(step, 32)).load(), b.at(block(step, 32), block(0, 64)).load(), {
        accumulator,
      }),
    );
    c.at(block(i, 64), block(0, 64)).store(sum);
  },
);

test("a loop is shown as the compiler pipelines it, and with the sizes that were used", async () => {
  const timeline = await kernelTimeline(
    { name: "square", definition },
    { m: 100, k: 128 },
    targets.sm_90a,
  );
  const [heading = "", ...lines] = timelineLines(timeline);
  expect(heading).toMatch(/^timeline of square with m = 100, k = 128: \d+ modelled cycles$/);
  expect(lines.join("\n")).toMatch(/main, beside 1 +c0/);
  expect(lines.at(-1)).toBe("  c copies   p multiplies   m loads or stores   = computes   · waits");
  const { shapes } = timelineDrawing(timeline);
  expect(shapes.join("\n")).toContain("wgmma, iteration 3");
});

test("dimensions that are not given are a few tiles", async () => {
  const { dimensions } = await kernelTimeline(
    { name: "square", definition },
    { m: 64 },
    targets.sm_90a,
  );
  expect(dimensions).toEqual({ m: 64, k: 512 });
});
