/** The benchmarks' arithmetic and reports; how long anything takes is not tested. */
import { describe, expect, test } from "vitest";
import { drawChart } from "../bench/chart.ts";
import { measure, median } from "../bench/measure.ts";
import type { Benchmark, Measurement } from "../bench/measure.ts";
import {
  formatMilliseconds,
  growthRatio,
  isLinear,
  markdownReport,
  measurementRows,
  printedReport,
  succeeded,
  textTable,
} from "../bench/report.ts";
import type { Report } from "../bench/report.ts";
import { replaceResults } from "../scripts/results-section.ts";

const elements = (amount: number) => ({ amount, unit: "element" });
const fast: Measurement = {
  name: "fast",
  work: elements(1000),
  target: 10,
  median: 2.5,
  minimum: 2,
};
const slow: Measurement = {
  name: "slow & steady",
  work: elements(4000),
  target: 10,
  median: 12,
  minimum: 9,
};

const report = (measurements: readonly Measurement[]): Report => ({
  machine: { processor: "a processor", cores: 2, node: "20.0.0", date: "2026-01-31" },
  rounds: 5,
  measurements,
  growth: [],
});

describe("median", () => {
  test("is the middle value, in whatever order they come", () => {
    expect(median([9, 1, 100, 2, 3])).toBe(3);
  });

  test("is the mean of the two in the middle of an even number", () => {
    expect(median([10, 1, 4, 2])).toBe(3);
  });

  test("compares numbers as numbers", () => {
    expect(median([10, 9, 100])).toBe(10);
  });

  test("of nothing does not exist", () => {
    expect(() => median([])).toThrow("needs a value");
  });
});

describe("measure", () => {
  /** A clock that only the benchmarks move, by the given durations in turn. */
  function timed(durations: { readonly [name: string]: readonly number[] }, repeat?: number) {
    let clock = 0;
    const order: string[] = [];
    const benchmarks = Object.entries(durations).map(([name, times]): Benchmark => {
      let turn = 0;
      return {
        name,
        work: elements(1),
        ...(repeat !== undefined && { repeat }),
        run: () => {
          order.push(name);
          clock += times[turn++] ?? 0;
        },
      };
    });
    return { benchmarks, order, now: () => clock };
  }
  const quietly = { onProgress: () => undefined };

  test("interleaves the benchmarks and leaves the warm-ups out", async () => {
    const { benchmarks, order, now } = timed({ a: [1000, 3, 1, 8], b: [2000, 5, 7, 6] });
    const results = await measure(benchmarks, { rounds: 3, warmups: 1, now, ...quietly });
    expect(order.join("")).toBe("abababab");
    expect(results.map(({ name, median, minimum }) => [name, median, minimum])).toEqual([
      ["a", 3, 1],
      ["b", 6, 5],
    ]);
  });

  test("divides by the repetitions within a round", async () => {
    const { benchmarks, order, now } = timed({ a: [1, 2, 3] }, 3);
    const results = await measure(benchmarks, { rounds: 1, warmups: 0, now, ...quietly });
    expect(order).toHaveLength(3);
    expect(results[0]?.median).toBe(2);
  });
});

describe("reports", () => {
  test("times have three digits that count", () => {
    expect([0.01234, 4.5678, 99.96, 789.4, 999.6, 12345].map(formatMilliseconds)).toEqual([
      "0.0123 ms",
      "4.57 ms",
      "100 ms",
      "789 ms",
      "1.00 s",
      "12.3 s",
    ]);
  });

  test("a table lines up, and says what missed its target", () => {
    const { target: _, ...free } = fast;
    const rows = measurementRows([fast, slow, { ...free, name: "free" }]);
    expect(textTable(rows)).toBe(
      [
        "benchmark       median      min     target   ok             cost       rate",
        "fast           2.50 ms  2.00 ms  < 10.0 ms  yes  2.50 µs/element  0.400 M/s",
        "slow & steady  12.0 ms  9.00 ms  < 10.0 ms   NO  3.00 µs/element  0.333 M/s",
        "free           2.50 ms  2.00 ms                  2.50 µs/element  0.400 M/s",
      ].join("\n"),
    );
  });

  test("growth compares the largest size with the cheapest", () => {
    const sizes = (...medians: readonly number[]) => ({
      title: "growth",
      measurements: medians.map((time, index) => ({
        ...fast,
        work: elements(1000 * 2 ** index),
        median: time,
      })),
    });
    // A launch has a cost of its own, which weighs on small sizes alone.
    expect(growthRatio(sizes(4, 4, 8))).toBe(1);
    expect(isLinear(sizes(4, 4, 8))).toBe(true);
    expect(growthRatio(sizes(1, 4, 16))).toBe(4);
    expect(isLinear(sizes(1, 4, 16))).toBe(false);
  });

  test("a run succeeds when every target is met and all growth is linear", () => {
    expect(succeeded(report([fast]))).toBe(true);
    expect(succeeded(report([fast, slow]))).toBe(false);
    const larger = { ...fast, work: elements(2000), median: 20 };
    const growth = [{ title: "growth", measurements: [fast, larger] }];
    expect(succeeded({ ...report([fast]), growth })).toBe(false);
    expect(printedReport({ ...report([fast]), growth })).toContain("4.00 times the cheapest: NOT");
  });

  test("the page's results are replaced, the rest stays", () => {
    const command = "npm run bench -- --write";
    const page = `before\n<!-- results: written by \`${command}\` -->\nold\n<!-- end of results -->\nafter\n`;
    const replaced = replaceResults(page, command, markdownReport(report([fast])));
    expect(replaced).toMatch(/^before\n/);
    expect(replaced).toMatch(/\nafter\n$/);
    expect(replaced).not.toContain("old");
    expect(replaced).toContain(
      "Measured on 2026-01-31: a processor, 2 cores, Node 20.0.0, 5 rounds.",
    );
    expect(replaced).toContain("| fast | 2.50 ms | 2.00 ms | < 10.0 ms | yes |");
    expect(replaceResults(replaced, command, markdownReport(report([fast])))).toBe(replaced);
    expect(() => replaceResults("no markers", command, "")).toThrow("lacks");
  });
});

describe("chart", () => {
  test("draws time in proportion to the target, at most a quarter beyond it", () => {
    const beyond = { ...slow, median: 1000 };
    const widths = [
      ...drawChart([fast, slow, beyond]).matchAll(/<rect class="(\w+)".*? width="([\d.]+)"/g),
    ];
    expect(widths.map((match) => [match[1], Number(match[2])])).toEqual([
      ["within", 75],
      ["beyond", 360],
      ["beyond", 375],
    ]);
  });

  test("leaves out what has no target and escapes names", () => {
    const { target: _, ...free } = fast;
    const chart = drawChart([{ ...free, name: "free" }, slow]);
    expect(chart).not.toContain("free");
    expect(chart).toContain("slow &amp; steady");
  });
});
