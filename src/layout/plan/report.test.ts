import { expect, test } from "vitest";
import { tensor, bf16, dot, f32, kernel, loop, smem, zeros } from "tilewright";
import { defaultTarget } from "../../targets/target.ts";
import { placeKernel } from "./place.ts";
import { placementReport } from "./report.ts";

test("a report names instructions, conversions with line and cost, and shared memory", () => {
  const definition = kernel(
    {
      name: "report",
      grid: { i: 1 },
      inputs: { x: tensor(f32, [64, 64]) },
      outputs: { out: tensor(f32, [64, 64]) },
      scratch: { a: smem(bf16, [64, 64]), b: smem(bf16, [64, 64]) },
    },
    ({ x, out, a, b }) => {
      a.store(x.load().cast(bf16));
      b.store(x.load().cast(bf16));
      const sum = loop({ to: 4, carry: zeros(f32, [64, 64]) }, (_, carried) =>
        dot(a.load(), b.load(), { accumulator: carried }),
      );
      out.store(sum.exp().layoutCast("flat(R0 R1 L0 L1 L2 L3 L4 W0 W1)"));
    },
  );
  const report = placementReport(placeKernel(definition.kernel, defaultTarget));
  const expected = [
    /^report on sm_90a$/,
    /^products$/,
    /^ {2}.*report\.test\.ts:\d+:\d+ {2}dot {2}wgmma: both operands are windows of shared memory$/,
    /^conversions: 1, \d+ cycles in all$/,
    /^ {2}.*report\.test\.ts:\d+:\d+ {2}exp reads loop {2}shared {2}16384 bytes {2}\d+ cycles$/,
    /^ {4}from \(L2 L3 L4 R1 W0 W1 \| R0 L0 L1\)$/,
    /^ {4}to {3}\(L4 W0 W1 \| R0 R1 L0 L1 L2 L3\)$/,
    /^shared memory: \d+ of 232448 bytes$/,
    /^ {7}0 {4}8192 bytes {2}a {2}shared\(swizzle 128\)$/,
  ];
  const lines = report.split("\n");
  for (const [index, line] of expected.entries()) expect(lines[index]).toMatch(line);
});

test("where nothing is converted, that is said", () => {
  const definition = kernel(
    {
      name: "copy",
      grid: { i: 1 },
      inputs: { x: tensor(f32, [64]) },
      outputs: { out: tensor(f32, [64]) },
    },
    ({ x, out }) => {
      out.store(x.load());
    },
  );
  const report = placementReport(placeKernel(definition.kernel, defaultTarget));
  expect(report).toBe("copy on sm_90a\nno conversions\n");
});
