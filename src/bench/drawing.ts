/**
 * The figures of a bench as a drawing: a bar for each entry, as long as it is fast beside the entry that ratios are
 * to, with the interval of that ratio over its end.
 *
 *   ours    ███████████████├┤      174.2 µs  1.032 (1.030 to 1.034)
 *   plain   ███████████████│       179.8 µs
 */
import { escapeText } from "../layout/drawing/svg.ts";
import type { BenchData, BenchFigures } from "./result.ts";
import { ratioText, timeText } from "./table.ts";

const geometry = { character: 7.5, bars: 320, values: 290, row: 30, bar: 16, top: 34 };

/** Room for the longest name. */
function labelWidth({ entries }: BenchData): number {
  const longest = Math.max(...entries.map(({ name }) => name.length));
  return Math.max(180, Math.ceil(longest * geometry.character) + 20);
}

const style = [
  "text { font: 13px system-ui, sans-serif; fill: #24292f; }",
  ".bar { fill: #2f81b7; } .base { fill: #8c959f; } .line { stroke: #6e7781; stroke-dasharray: 4 3; }",
  ".interval { stroke: #24292f; stroke-width: 1.5; fill: none; }",
  "@media (prefers-color-scheme: dark) { text { fill: #d0d7de; } .interval { stroke: #d0d7de; } }",
].join(" ");

export function drawBench(data: BenchData): string {
  const { bars, values, row, top } = geometry;
  const labels = labelWidth(data);
  const longest = Math.max(
    ...data.entries.map(({ interval, ratio }) => Math.max(interval.high, ratio)),
    1,
  );
  const scale = bars / longest;
  const width = labels + bars + values;
  const height = top + data.entries.length * row + 6;
  const line = labels + scale;
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}" viewBox="0 0 ${width} ${height}" role="img">`,
    `<title>${escapeText(`Speed beside ${data.against} on ${data.device}`)}</title>`,
    `<style>${style}</style>`,
    ...data.entries.flatMap((figures, index) =>
      drawRow(figures, index, { scale, labels, against: data.against }),
    ),
    `<line class="line" x1="${line.toFixed(1)}" y1="${top - 8}" x2="${line.toFixed(1)}" y2="${height - 4}"/>`,
    `<text x="${line.toFixed(1)}" y="${top - 14}" text-anchor="middle">${escapeText(data.against)}</text>`,
    "</svg>",
    "",
  ].join("\n");
}

function drawRow(
  figures: BenchFigures,
  index: number,
  { scale, labels, against }: { scale: number; labels: number; against: string },
): readonly string[] {
  const { bars, row, bar, top } = geometry;
  const { name, ratio, interval, milliseconds } = figures;
  const y = top + index * row;
  const base = name === against;
  const place = (value: number): string => (labels + value * scale).toFixed(1);
  const middle = y + bar / 2;
  const words = base ? timeText(milliseconds) : `${timeText(milliseconds)}  ${ratioText(figures)}`;
  return [
    `<text x="${labels - 10}" y="${y + bar - 3}" text-anchor="end">${escapeText(name)}</text>`,
    `<rect class="${base ? "base" : "bar"}" x="${labels}" y="${y}" width="${(ratio * scale).toFixed(1)}" height="${bar}"/>`,
    ...(base
      ? []
      : [
          `<path class="interval" d="M${place(interval.low)} ${y + 2}V${y + bar - 2}M${place(interval.low)} ${middle}H${place(interval.high)}M${place(interval.high)} ${y + 2}V${y + bar - 2}"/>`,
        ]),
    `<text x="${labels + bars + 10}" y="${y + bar - 3}">${escapeText(words)}</text>`,
  ];
}
