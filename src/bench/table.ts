/**
 * The figures of a bench as text:
 *
 *   entry         time  spread  TB/s  TFLOP/s  of roofline  times plain
 *   ours      174.2 µs    0.4%  0.58    789.0        79.8%  1.032 (1.030 to 1.034)
 *   plain     179.8 µs    0.3%  0.56    764.4        77.3%
 *   other     180.1 µs    0.9%  0.56    763.0        77.1%  0.999 (0.996 to 1.002), even
 */
import type { BenchClock, BenchData, BenchFigures } from "./result.ts";

export function benchTable({ entries, against, device, imitated }: BenchData): string {
  const columns: readonly Column[] = [
    ["entry", ({ name, clock }) => `${name}${clockText[clock]}`],
    ["time", ({ milliseconds }) => timeText(milliseconds)],
    ["spread", ({ spread }) => `${(100 * spread).toFixed(1)}%`],
    // Rates of what only imitates a GPU would be taken for those of one.
    ...(imitated ? [] : rateColumns),
    [`times ${against}`, (figures) => (figures.name === against ? "" : ratioText(figures))],
  ];
  const kept = columns.filter(([, cell]) => entries.some((figures) => cell(figures) !== ""));
  const rows = [
    kept.map(([head]) => head),
    ...entries.map((figures) => kept.map(([, cell]) => cell(figures))),
  ];
  const widths = kept.map((_, column) => Math.max(...rows.map((row) => row[column]?.length ?? 0)));
  const lines = rows.map((row) =>
    row
      .map((text, column) => aligned(text, column, widths, kept))
      .join("  ")
      .trimEnd(),
  );
  if (imitated && entries.some(({ clock }) => clock === "device"))
    lines.push(`times of the ${device} on this machine, which tell nothing of a GPU`);
  return `${lines.join("\n")}\n`;
}

const rateColumns: readonly Column[] = [
  ["TB/s", ({ terabytes }) => terabytes?.toPrecision(3) ?? ""],
  ["TFLOP/s", ({ teraflops }) => teraflops?.toPrecision(4) ?? ""],
  [
    "of roofline",
    ({ ofRoofline }) => (ofRoofline === undefined ? "" : `${(100 * ofRoofline).toFixed(1)}%`),
  ],
];

const clockText: { readonly [C in BenchClock]: string } = {
  device: "",
  host: " (by the host's clock)",
  own: " (by its own clock)",
};

type Column = readonly [head: string, cell: (figures: BenchFigures) => string];

/** Names and ratios stand at the left of their column, numbers at the right. */
function aligned(
  text: string,
  column: number,
  widths: readonly number[],
  kept: readonly Column[],
): string {
  const width = widths[column] ?? 0;
  const left = column === 0 || (kept[column]?.[0] ?? "").startsWith("times ");
  return left ? text.padEnd(width) : text.padStart(width);
}

export function ratioText({ ratio, interval, even }: BenchFigures): string {
  const range = `${interval.low.toFixed(3)} to ${interval.high.toFixed(3)}`;
  return `${ratio.toFixed(3)} (${range})${even ? ", even" : ""}`;
}

export function timeText(milliseconds: number): string {
  if (milliseconds >= 1000) return `${(milliseconds / 1000).toPrecision(4)} s`;
  if (milliseconds >= 1) return `${milliseconds.toPrecision(4)} ms`;
  return `${(milliseconds * 1000).toPrecision(4)} µs`;
}
