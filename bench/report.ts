/** The measurements as a table for people, as Markdown and as the results section of a page. */
import { markdownTable } from "../src/support/markdown.ts";
import type { Measurement } from "./measure.ts";

/** Measurements of one computation at several sizes: the cost per unit should not grow. */
export interface Growth {
  readonly title: string;
  readonly measurements: readonly Measurement[];
}

export interface Machine {
  readonly processor: string;
  readonly cores: number;
  readonly node: string;
  readonly date: string;
}

export interface Report {
  readonly machine: Machine;
  readonly rounds: number;
  readonly measurements: readonly Measurement[];
  readonly growth: readonly Growth[];
}

type Row = readonly string[];

/** How much dearer a unit may be at the largest size than at a smaller one before growth counts as more than linear. */
const growthTolerance = 1.5;

export function withinTarget({ median, target }: Measurement): boolean {
  return target === undefined || median < target;
}

/**
 * What a unit costs at the largest size over what it costs where it is cheapest: 1 where time is proportional
 * to work. Small sizes may be dearer, for what a launch costs whatever its size.
 */
export function growthRatio({ measurements }: Growth): number {
  const costs = measurements.map(nanosecondsPerUnit);
  return (costs.at(-1) ?? NaN) / Math.min(...costs);
}

export function isLinear(growth: Growth): boolean {
  return growthRatio(growth) < growthTolerance;
}

/** Whether every target is met and everything grows linearly. */
export function succeeded({ measurements, growth }: Report): boolean {
  return measurements.every(withinTarget) && growth.every(isLinear);
}

function nanosecondsPerUnit({ median, work }: Measurement): number {
  return (median * 1e6) / work.amount;
}

/** A time with three digits that count: 0.0123 ms, 4.56 ms, 789 ms, 1.23 s. */
export function formatMilliseconds(milliseconds: number): string {
  if (milliseconds >= 999.5) return `${(milliseconds / 1000).toPrecision(3)} s`;
  return `${milliseconds < 99.95 ? milliseconds.toPrecision(3) : milliseconds.toFixed(0)} ms`;
}

/** What one unit of work costs: 3.11 ns/MAC, 17.7 µs/op. */
function formatCost(measurement: Measurement): string {
  const cost = nanosecondsPerUnit(measurement);
  const [value, unit] = cost < 999.5 ? [cost, "ns"] : [cost / 1000, "µs"];
  return `${value < 99.95 ? value.toPrecision(3) : value.toFixed(0)} ${unit}/${measurement.work.unit}`;
}

/** Millions of units of work in a second. */
function formatRate(measurement: Measurement): string {
  const rate = 1000 / nanosecondsPerUnit(measurement);
  return `${rate < 99.95 ? rate.toPrecision(3) : rate.toFixed(0)} M/s`;
}

export function measurementRows(measurements: readonly Measurement[]): readonly Row[] {
  return [
    ["benchmark", "median", "min", "target", "ok", "cost", "rate"],
    ...measurements.map((measurement) => {
      const { name, median, minimum, target } = measurement;
      return [
        name,
        formatMilliseconds(median),
        formatMilliseconds(minimum),
        target === undefined ? "" : `< ${formatMilliseconds(target)}`,
        target === undefined ? "" : verdict(withinTarget(measurement)),
        formatCost(measurement),
        formatRate(measurement),
      ];
    }),
  ];
}

export function growthRows({ title, measurements }: Growth): readonly Row[] {
  return [
    [title, "work", "median", "cost"],
    ...measurements.map((measurement) => [
      measurement.name,
      `${measurement.work.amount} ${measurement.work.unit}s`,
      formatMilliseconds(measurement.median),
      formatCost(measurement),
    ]),
  ];
}

export function growthVerdict(growth: Growth): string {
  const ratio = growthRatio(growth).toFixed(2);
  const conclusion = isLinear(growth) ? "linear" : "NOT linear";
  return `a unit at the largest size costs ${ratio} times the cheapest: ${conclusion}`;
}

function verdict(ok: boolean): string {
  return ok ? "yes" : "NO";
}

/** Columns two spaces apart; all but the first end at their right edge, where digits line up. */
export function textTable(rows: readonly Row[]): string {
  const widths = (rows[0] ?? []).map((_, column) =>
    Math.max(...rows.map((row) => row[column]?.length ?? 0)),
  );
  const align = (cell: string, column: number): string =>
    column === 0 ? cell.padEnd(widths[0] ?? 0) : cell.padStart(widths[column] ?? 0);
  return rows.map((row) => row.map(align).join("  ").trimEnd()).join("\n");
}

export function numberTable([heading = [], ...body]: readonly Row[]): string {
  return markdownTable(heading, body, { numbers: true });
}

/** The report for a terminal. */
export function printedReport({ measurements, growth }: Report): string {
  const sections = growth.map((each) => `${textTable(growthRows(each))}\n${growthVerdict(each)}`);
  return [textTable(measurementRows(measurements)), ...sections].join("\n\n");
}

/** The report as the results section of a page. */
export function markdownReport({ machine, rounds, measurements, growth }: Report): string {
  const { processor, cores, node, date } = machine;
  return [
    `Measured on ${date}: ${processor}, ${cores} cores, Node ${node}, ${rounds} rounds.`,
    "![Time against target](benchmarks.svg)",
    numberTable(measurementRows(measurements)),
    ...growth.flatMap((each) => [
      numberTable(growthRows(each)),
      `${each.title}: ${growthVerdict(each)}.`,
    ]),
  ].join("\n\n");
}
