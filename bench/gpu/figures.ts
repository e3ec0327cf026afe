/**
 * What was measured on a GPU: kept as data in docs/benchmarks, from which `npm run docs` makes the section of
 * docs/benchmarks.md, its chart, and the column of errors found in docs/arithmetic.md.
 *
 *   npm run bench:gpu -- --part matmul-1 --json docs/benchmarks/h200.json    comparisons; the rest stays
 *   npm run docs                                             page and chart
 */
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { drawChart } from "../chart.ts";
import type { Comparison } from "./compare.ts";
import type { Measurement } from "../measure.ts";
import { formatMilliseconds, numberTable } from "../report.ts";

export interface GpuResult {
  readonly name: string;
  readonly milliseconds: number;
  readonly unit: "TB/s" | "TFLOP/s";
  /** Bytes or operations of one run. */
  readonly work: number;
}

/** One run of the benchmarks. */
export interface GpuRun {
  readonly date: string;
  readonly results: readonly GpuResult[];
  /** Milliseconds of others for the same work, by their names. */
  readonly peers: { readonly [name: string]: number };
  /** What the host spends on a bound launch. */
  readonly launchMicroseconds: number;
}

export interface GpuFigures extends GpuRun {
  /** Interleaved rounds beside peers. */
  readonly comparisons?: readonly Comparison[];
  readonly machine: string;
  /** The largest error of each f32 function over all operands, in ulp, as `function-errors.ts` found it. */
  readonly functions: { readonly [name: string]: number };
}

/** Puts comparisons into a file of figures, in place of earlier ones of the same names. */
export function addComparisons(path: string, added: readonly Comparison[]): void {
  const before: { readonly comparisons?: readonly Comparison[] } = existsSync(path)
    ? (JSON.parse(readFileSync(path, "utf8")) as object)
    : {};
  const byName = new Map((before.comparisons ?? []).map((each) => [each.name, each]));
  for (const each of added) byName.set(each.name, each);
  const comparisons = [...byName.values()];
  writeFileSync(path, `${JSON.stringify({ ...before, comparisons }, undefined, 2)}\n`);
}

interface Peer {
  readonly name: string;
  readonly milliseconds: number;
}

/** Who else did the work, the fastest first: "softmax torch" is a peer of "softmax 16384x8192". */
export function peersOf({ name }: GpuResult, { peers }: GpuRun): readonly Peer[] {
  const work = `${name.replace(/ \d+x\d+$/, "")} `;
  return Object.entries(peers)
    .filter(([peer]) => peer.startsWith(work))
    .map(([peer, milliseconds]) => ({ name: peer.slice(work.length), milliseconds }))
    .sort((left, right) => left.milliseconds - right.milliseconds);
}

function rateText({ unit, work }: GpuResult, milliseconds: number): string {
  return `${(work / milliseconds / 1e9).toFixed(unit === "TB/s" ? 2 : 0)} ${unit}`;
}

function resultRow(result: GpuResult, run: GpuRun): readonly string[] {
  const peers = peersOf(result, run);
  const [fastest] = peers;
  return [
    result.name,
    formatMilliseconds(result.milliseconds),
    rateText(result, result.milliseconds),
    peers.map(({ name, milliseconds }) => `${name} ${rateText(result, milliseconds)}`).join("; "),
    fastest === undefined ? "" : (fastest.milliseconds / result.milliseconds).toFixed(2),
  ];
}

/** The section of the page. */
export function gpuReport(figures: GpuFigures, chart: string): string {
  const { machine, date, results, launchMicroseconds } = figures;
  return [
    `Measured on ${date}: ${machine}.`,
    `![Time beside that of the fastest peer](${chart})`,
    numberTable([
      ["benchmark", "median", "rate", "peers", "speed, fastest peer = 1"],
      ...results.map((result) => resultRow(result, figures)),
    ]),
    `A bound launch takes ${launchMicroseconds.toFixed(1)} µs of the host.`,
  ].join("\n\n");
}

/** Each time beside that of the fastest peer. */
export function gpuChart(figures: GpuFigures): string {
  const measurements = figures.results.flatMap((result): readonly Measurement[] => {
    const [fastest] = peersOf(result, figures);
    if (fastest === undefined) return [];
    const { name, milliseconds, work, unit } = result;
    return [
      {
        name: `${name} (${fastest.name})`,
        work: { amount: work, unit },
        target: fastest.milliseconds,
        median: milliseconds,
        minimum: milliseconds,
      },
    ];
  });
  return drawChart(measurements, {
    title: "Time of each kernel beside that of the fastest peer",
    line: "fastest peer",
  });
}
