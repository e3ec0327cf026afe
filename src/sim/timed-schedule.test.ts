/** Cycles that the timed schedule counts, and the chart of a run. */
import { describe, expect, test } from "vitest";
import { runKernel } from "../../test/simulation.ts";
import { bf16, f32 } from "../formats/dtype.ts";
import { fromNumbers } from "../formats/hostarray.ts";
import {
  accumulator,
  tensor,
  barrier,
  copyAsync,
  kernel,
  loop,
  slice,
  smem,
  wgmma,
} from "../lang/index.ts";
import { RunTimeline, timelineChart, timelinePanel, timelineText } from "./index.ts";

const steps = 4;
const depth = 64;

/** One thread copies all blocks ahead, the other multiplies them as they come. */
const product = kernel(
  {
    name: "product",
    threads: ["load", "multiply"],
    inputs: { a: tensor(bf16, [64, steps * depth]), b: tensor(bf16, [steps * depth, 64]) },
    outputs: { c: tensor(f32, [64, 64]) },
    scratch: {
      left: smem(bf16, [steps, 64, depth]),
      right: smem(bf16, [steps, depth, 64]),
      full: barrier({ count: steps, arrivals: 2 }),
    },
  },
  ({ a, b, c, left, right, full, load, multiply }) => {
    load(() => {
      loop(steps, (step) => {
        const here = slice(step.mul(depth), depth);
        copyAsync(a.at(slice(0, 64), here), left.at(step), { barrier: full.at(step) });
        copyAsync(b.at(here, slice(0, 64)), right.at(step), { barrier: full.at(step) });
      });
    });
    multiply(() => {
      const sum = loop({ to: steps, carry: accumulator(f32, [64, 64]) }, (step, running) => {
        full.at(step).wait();
        return wgmma(running, left.at(step), right.at(step));
      });
      c.at(slice(0, 64), slice(0, 64)).store(sum.wait());
    });
  },
);

const numbers = (count: number) => Float64Array.from({ length: count }, (_, at) => (at % 7) - 3);
const inputs = {
  a: fromNumbers(bf16, [64, steps * depth], numbers(64 * steps * depth)),
  b: fromNumbers(bf16, [steps * depth, 64], numbers(64 * steps * depth)),
};

async function timed() {
  const timeline = new RunTimeline();
  const run = await runKernel(product, inputs, { schedule: "timed", timeline });
  const context = { dimensions: new Map<string, number>(), grid: product.kernel.grid };
  return { run, timeline, chart: timelineChart(timeline, context, { blocks: 1, rows: 20 }) };
}

describe("the timed schedule", () => {
  test("gives what the fixed one gives, the same way every time", async () => {
    const [first, again, fixed] = [await timed(), await timed(), await runKernel(product, inputs)];
    expect(first.run.findings).toEqual([]);
    expect(first.run.numbers("c")).toEqual(fixed.numbers("c"));
    expect(again.timeline.spans.map(({ from, to }) => [from, to])).toEqual(
      first.timeline.spans.map(({ from, to }) => [from, to]),
    );
  });

  test("copies take turns on TMA, by their bytes", async () => {
    const { spans } = (await timed()).timeline;
    const ends = spans
      .filter(({ kind, op }) => kind === "beside" && op.kind === "copy_async")
      .map(({ to }) => to);
    // 64 × 64 elements of two bytes, 64 bytes a cycle.
    const gaps = ends.slice(1).map((end, at) => end - (ends[at] ?? 0));
    expect(gaps).toEqual(new Array(2 * steps - 1).fill((64 * depth * 2) / 64));
  });

  test("a product begins when its blocks are there, and each thread is in one place at a time", async () => {
    const { spans } = (await timed()).timeline;
    const of = (kind: string, op: string) =>
      spans.filter((span) => span.kind === kind && span.op.kind === op);
    const landed = of("beside", "copy_async").map(({ to }) => to);
    for (const [step, { from }] of of("beside", "wgmma").entries())
      expect(from).toBeGreaterThanOrEqual(landed[2 * step + 1] ?? Infinity);
    for (const thread of ["load", "multiply"]) {
      const own = spans.filter(({ kind, place }) => kind !== "beside" && place.thread === thread);
      for (const [at, { from }] of own.entries())
        expect(from).toBeGreaterThanOrEqual(own[at - 1]?.to ?? 0);
    }
  });
});

describe("the chart", () => {
  test("has a row for each thread and for what runs beside it, with iterations", async () => {
    const { chart } = await timed();
    expect(chart.complete).toBe(true);
    const labels = chart.rows.map(({ track }) => track);
    expect(labels.filter((label) => !label.includes("beside"))).toEqual(["load", "multiply"]);
    const products = chart.rows
      .filter(({ track }) => track.startsWith("multiply, beside"))
      .flatMap(({ bars }) => bars);
    expect(products.map(({ iterations }) => iterations)).toEqual([[0], [1], [2], [3]]);
    expect(new Set(products.map(({ activity }) => activity))).toEqual(new Set(["multiplies"]));
    const copies = chart.rows.find(({ track }) => track === "load, beside 1")?.bars[0];
    expect(copies?.hint).toMatch(/^copy_async, iteration 0, timed-schedule\.test\.ts:\d+$/);
  });

  test("is as wide in letters as asked for, and says in a drawing what each bar is", async () => {
    const { chart } = await timed();
    const lines = timelineText(chart, 60);
    const widest = Math.max(...chart.rows.map(({ track }) => track.length));
    for (const line of lines) expect(line.length).toBeLessThanOrEqual(widest + 2 + 60);
    expect(lines.find((line) => line.startsWith("multiply "))).toMatch(/=?·+.*p/);
    const { shapes } = timelinePanel("product", chart);
    const text = shapes.join("\n");
    expect(text).toContain("waits at barrier_wait, iteration 0");
    expect(text).not.toMatch(/<title>[^<]*[\\/]/);
  });

  test("says where rows are left out", async () => {
    const { timeline } = await timed();
    const context = { dimensions: new Map<string, number>(), grid: product.kernel.grid };
    const chart = timelineChart(timeline, context, { blocks: 1, rows: 2 });
    expect([chart.rows.length, chart.complete]).toEqual([2, false]);
  });
});
