/** The GPU's part of the page on benchmarks, which is made from what was measured. */
import { describe, expect, test } from "vitest";
import { TuningTable } from "tilewright/tune";
import { comparisonChart, comparisonMarkdown, families } from "../bench/gpu/comparisons.ts";
import { productShapes } from "../bench/gpu/parts.ts";
import { gpuChart, gpuReport, peersOf } from "../bench/gpu/figures.ts";
import type { GpuFigures } from "../bench/gpu/figures.ts";
import { formatPage } from "../scripts/results-section.ts";
import { expectGolden, withSection } from "./golden.ts";
import { readText } from "./source-files.ts";

const page = "docs/benchmarks.md";
const measured = "docs/benchmarks/h200.json";
const chart = "docs/benchmarks/h200.svg";
const figures = JSON.parse(readText(measured)) as GpuFigures;

test("the page on benchmarks shows the figures of the GPU", async () => {
  const report = gpuReport(figures, chart.slice("docs/".length));
  const text = withSection(page, readText(page), "gpu", report);
  expectGolden(page, await formatPage(text));
  expectGolden(chart, gpuChart(figures));
});

const peersChart = "docs/benchmarks/h200-peers.svg";

test("the page shows what was measured in turns with peers, the worst beside the best", async () => {
  const { comparisons = [] } = figures;
  const tables = [...families(comparisons)].flatMap(([family, own]) => [
    `#### ${family}`,
    comparisonMarkdown(own),
  ]);
  const chart = `![Speed beside the best peer](${peersChart.slice("docs/".length)})`;
  const text = withSection(page, readText(page), "peers", [chart, ...tables].join("\n\n"));
  expectGolden(page, await formatPage(text));
  expectGolden(peersChart, comparisonChart(comparisons, "NVIDIA H200"));
});

test("the tuning file of the page is one, with a measurement of every shape", () => {
  const file = "docs/benchmarks/h200-matmul.jsonl";
  const table = TuningTable.parse(readText(file), file);
  expect(table.text).toBe(readText(file));
  for (const [m, n, k] of productShapes) {
    const measured = table.lines.filter(
      (line) => "rounds" in line && line.bucket["n"] === n && line.bucket["k"] === k,
    );
    expect(measured.length, `${m}x${n}x${k}`).toBeGreaterThan(1);
  }
});

describe("figures of a GPU", () => {
  const result = { name: "softmax 8x8", milliseconds: 2, unit: "TB/s", work: 4e9 } as const;
  const run: GpuFigures = {
    machine: "a machine",
    date: "2026-01-31",
    results: [result],
    peers: { "softmax slow": 4, "softmax quick": 1, "soft quick": 0.1 },
    launchMicroseconds: 4.44,
    functions: {},
  };

  test("peers are those of the same work, the fastest first", () => {
    expect(peersOf(result, run)).toEqual([
      { name: "quick", milliseconds: 1 },
      { name: "slow", milliseconds: 4 },
    ]);
  });

  test("the table has rates, and speed beside the fastest peer", () => {
    const report = gpuReport(run, "chart.svg");
    expect(report).toContain("Measured on 2026-01-31: a machine.");
    expect(report).toContain(
      "| softmax 8x8 | 2.00 ms | 2.00 TB/s | quick 4.00 TB/s; slow 1.00 TB/s | 0.50 |",
    );
    expect(report).toContain("4.4 µs of the host");
  });

  test("the chart's line is the fastest peer's time", () => {
    const drawn = gpuChart({ ...run, peers: { "softmax quick": 4 } });
    expect(drawn).toContain(">fastest peer</text>");
    expect(drawn).toContain('class="within" x="270" y="32" width="150.0"');
    expect(drawn).toContain("2.00 ms of 4.00 ms");
  });
});
