/**
 * A report as a drawing: a row for each source line, a column for each thing that costs time, and the
 * darker a cell, the more of its column's sum lies in that line.
 */
import {
  gridPanel,
  legendPanel,
  stackPanels,
  svgDocument,
  textPanel,
} from "../../layout/drawing/svg.ts";
import type { CellStyle, Panel } from "../../layout/drawing/svg.ts";
import type { KernelReport, LineReport } from "./kernel-report.ts";
import { accessText, lostWavefronts, summaryRows } from "./report-text.ts";
import type { SourceText } from "./report-text.ts";
import { productInstructions } from "../../targets/product-instructions.ts";

interface Column {
  readonly title: string;
  readonly amount: (line: LineReport) => number;
}

const accesses =
  (start: string) =>
  (line: LineReport): number =>
    line.accesses
      .filter(({ kind }) => kind.startsWith(start))
      .reduce((sum, { count }) => sum + count, 0);

const columns: readonly Column[] = [
  { title: "instructions", amount: ({ instructions }) => instructions },
  { title: "global", amount: accesses("global") },
  { title: "shared", amount: accesses("shared") },
  { title: "spills", amount: accesses("spill") },
  { title: productInstructions.wgmma.name, amount: ({ wgmma }) => wgmma },
  {
    title: "conversion",
    amount: ({ conversions }) =>
      conversions.reduce((sum, { cost, times }) => sum + cost * times, 0),
  },
  { title: "lost to banks", amount: lostWavefronts },
];

export function drawReports(
  reports: readonly KernelReport[],
  sourceText: SourceText,
  timelines: readonly Panel[] = [],
): string {
  const note = "numbers of PTX instructions; conversions in cycles; banks in wavefronts";
  const legend = legendPanel(
    [0, 0.5, 1].map((share) => ({ fill: shade(share), label: `${100 * share} % of the column` })),
    note,
  );
  const panels = reports.map((report) => reportPanel(report, sourceText));
  return svgDocument(stackPanels([...panels, legend, ...timelines], 24));
}

function reportPanel(report: KernelReport, sourceText: SourceText): Panel {
  const { lines, name, target } = report;
  const summary = summaryRows(report).map(([title, text]) => `${title}: ${text}`);
  const sums = columns.map(({ amount }) => lines.reduce((sum, line) => sum + amount(line), 0));
  return stackPanels([
    textPanel([`${name} on ${target.name}`, ...summary]),
    gridPanel({
      columnLabels: columns.map(({ title }) => title),
      rowLabels: lines.map((line) => rowLabel(line, sourceText)),
      cells: lines.map((line) =>
        columns.map((column, index) => cell(column, line, sums[index] ?? 0)),
      ),
    }),
  ]);
}

const longestLabel = 64;

function rowLabel({ file, line }: LineReport, sourceText: SourceText): string {
  const text = (sourceText(file, line) ?? file).trim();
  const shown = text.length > longestLabel ? `${text.slice(0, longestLabel - 1)}…` : text;
  return `${line}  ${shown}`;
}

function cell({ title, amount }: Column, line: LineReport, sum: number): CellStyle {
  const value = amount(line);
  const words = line.accesses.map(accessText).join(", ");
  return {
    fill: shade(sum === 0 ? 0 : value / sum),
    // Columns are as wide as their labels, and must be as wide as their headings.
    label: centred(value === 0 ? "" : String(value), title.length),
    hint: `line ${line.line}, ${title}: ${value}${words === "" ? "" : ` (${words})`}`,
    mark: undefined,
  };
}

function centred(text: string, width: number): string {
  return text.padStart(Math.ceil((width + text.length) / 2)).padEnd(width);
}

/** From near white to a strong orange on which black letters still read. */
function shade(share: number): string {
  const mix = (from: number, to: number): string =>
    Math.round(from + (to - from) * share)
      .toString(16)
      .padStart(2, "0");
  return `#${mix(0xf6, 0xff)}${mix(0xf6, 0x9d)}${mix(0xf6, 0x3c)}`;
}
