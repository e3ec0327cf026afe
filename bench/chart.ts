/**
 * Draws time against target. Every bar has a scale of its own on which the target is the same vertical line,
 * so one look tells which benchmarks are near it.
 *
 *   matmul 512³, checked     ██████████████       │   612 ms
 *   softmax 4096×1024        ███████              │   170 ms
 */
import type { Measurement } from "./measure.ts";
import { formatMilliseconds, withinTarget } from "./report.ts";

const geometry = {
  labels: 270,
  target: 300,
  overshoot: 1.25,
  values: 150,
  row: 28,
  bar: 16,
  top: 32,
};

const style = [
  "text { font: 13px system-ui, sans-serif; fill: #24292f; }",
  ".within { fill: #2f81b7; } .beyond { fill: #c8553d; }",
  ".target { stroke: #6e7781; stroke-dasharray: 4 3; } .note { fill: #6e7781; }",
  "@media (prefers-color-scheme: dark) { text { fill: #d0d7de; } .note { fill: #8b949e; } }",
].join(" ");

/** What the chart is of, and what its line stands for. */
export interface ChartWords {
  readonly title: string;
  readonly line: string;
}

const againstTargets: ChartWords = {
  title: "Time of each benchmark against its target",
  line: "target",
};

/** The chart of those measurements that have a target. */
export function drawChart(
  measurements: readonly Measurement[],
  words: ChartWords = againstTargets,
): string {
  const bars = measurements.flatMap((measurement) =>
    measurement.target === undefined ? [] : [{ measurement, target: measurement.target }],
  );
  const { labels, target, overshoot, values, row, top } = geometry;
  const width = labels + target * overshoot + values;
  const height = top + bars.length * row + 8;
  const line = labels + target;
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}" viewBox="0 0 ${width} ${height}" role="img">`,
    `<title>${words.title}</title>`,
    `<style>${style}</style>`,
    ...bars.map(({ measurement, target: limit }, index) => drawBar(measurement, limit, index)),
    `<line class="target" x1="${line}" y1="${top - 8}" x2="${line}" y2="${height - 4}"/>`,
    `<text class="note" x="${line}" y="${top - 14}" text-anchor="middle">${words.line}</text>`,
    "</svg>",
    "",
  ].join("\n");
}

function drawBar(measurement: Measurement, limit: number, index: number): string {
  const { labels, target, overshoot, row, bar, top } = geometry;
  const y = top + index * row;
  const length = Math.min(measurement.median / limit, overshoot) * target;
  const times = `${formatMilliseconds(measurement.median)} of ${formatMilliseconds(limit)}`;
  const baseline = y + bar - 3;
  return [
    `<text x="${labels - 10}" y="${baseline}" text-anchor="end">${escapeText(measurement.name)}</text>`,
    `<rect class="${withinTarget(measurement) ? "within" : "beyond"}" x="${labels}" y="${y}" width="${length.toFixed(1)}" height="${bar}"/>`,
    `<text x="${labels + target * overshoot + 10}" y="${baseline}">${times}</text>`,
  ].join("\n");
}

function escapeText(text: string): string {
  return text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");
}
