/**
 * Comparisons as text and as a drawing, for the terminal and for docs/benchmarks.md. The worst is told beside the best:
 * a mean alone hides where others are faster.
 */
import { drawBench } from "../../src/bench/drawing.ts";
import type { BenchFigures } from "../../src/bench/result.ts";
import { timeText } from "../../src/bench/table.ts";
import { numberTable, textTable } from "../report.ts";
import type { ComparedEntry, ComparedPeer, Comparison } from "./compare.ts";

type Row = readonly string[];

function rateOf({ work, unit }: Comparison, { milliseconds }: ComparedEntry): string {
  const rate = work / milliseconds / 1e9;
  return `${unit === "TB/s" ? rate.toFixed(2) : rate.toFixed(0)} ${unit}`;
}

function ratioOf({ ratio, low, high }: ComparedPeer): string {
  const even = low <= 1 && high >= 1 ? ", even" : "";
  return `${ratio.toFixed(3)} (${low.toFixed(3)} to ${high.toFixed(3)})${even}`;
}

function rowOf(comparison: Comparison): Row {
  const { name, ours, peers } = comparison;
  const [best, ...others] = peers;
  return [
    name,
    timeText(ours.milliseconds),
    rateOf(comparison, ours),
    best === undefined ? "" : `${best.name} ${rateOf(comparison, best)}`,
    best === undefined ? "" : ratioOf(best),
    others.map((peer) => `${peer.name} ${peer.ratio.toFixed(3)}`).join("; "),
  ];
}

const heading: Row = ["work", "ours", "rate", "best peer", "ours beside it", "beside the others"];

/** How ratios to the best peer lie: their geometric mean, the worst and the best. */
export function summary(comparisons: readonly Comparison[]): string {
  const ratios = comparisons.flatMap(({ name, peers: [best] }) =>
    best === undefined ? [] : [{ name, ratio: best.ratio }],
  );
  const [first] = ratios;
  if (first === undefined) return "No peer was measured.";
  const mean = Math.exp(
    ratios.reduce((sum, { ratio }) => sum + Math.log(ratio), 0) / ratios.length,
  );
  const worst = ratios.reduce((least, each) => (each.ratio < least.ratio ? each : least), first);
  const best = ratios.reduce((most, each) => (each.ratio > most.ratio ? each : most), first);
  return `Beside the best peer of each: worst ${worst.ratio.toFixed(3)} (${worst.name}), best ${best.ratio.toFixed(3)} (${best.name}), geometric mean ${mean.toFixed(3)} of ${ratios.length}.`;
}

export function comparisonText(comparisons: readonly Comparison[]): string {
  return `${textTable([heading, ...comparisons.map(rowOf)])}\n${summary(comparisons)}\n`;
}

/** Everything that peers said of how they were timed, or could not do, and what ours is a part of. */
export function methodText(comparison: Comparison): string {
  const { name, rest = 0, ours, peers, measures = [], memory, refused } = comparison;
  return [
    rest === 0 ? name : `${name}, samples ${rest} ms apart`,
    ...[ours, ...peers].map((entry) => `  ${entry.name}: ${entry.how}`),
    ...measures.map(
      (each) => `  of the rate of ${each.name}, ${rateOf(comparison, each)}: ${ratioOf(each)}`,
    ),
    ...(memory === undefined
      ? []
      : [
          `  memory: ${memory.terabytes.toFixed(2)} TB/s; ${(100 * memory.ofRoofline).toFixed(1)}% of the roofline`,
        ]),
    ...[...new Set(refused)].map((reason) => `  not measured: ${reason}`),
    "",
  ].join("\n");
}

/** Families of work, each a table of its own: what comes before the sizes in a name. */
export function families(
  comparisons: readonly Comparison[],
): ReadonlyMap<string, readonly Comparison[]> {
  const found = new Map<string, Comparison[]>();
  for (const comparison of comparisons) {
    const columns = comparison.name.endsWith("(b by columns)");
    const family = `${comparison.name.replace(/ \d.*$/, "")}${columns ? ", b by columns" : ""}`;
    found.set(family, [...(found.get(family) ?? []), comparison]);
  }
  return found;
}

export function comparisonMarkdown(comparisons: readonly Comparison[]): string {
  return [numberTable([heading, ...comparisons.map(rowOf)]), summary(comparisons)].join("\n\n");
}

/** A bar for each case, as long as we are fast beside the best peer. */
export function comparisonChart(comparisons: readonly Comparison[], title: string): string {
  const entries = comparisons.flatMap(({ name, ours, peers: [best] }): readonly BenchFigures[] => {
    if (best === undefined) return [];
    const { ratio, low, high } = best;
    return [
      {
        name,
        clock: "device",
        samples: [],
        milliseconds: ours.milliseconds,
        spread: ours.spread,
        ratio,
        interval: { low, high },
        even: low <= 1 && high >= 1,
      },
    ];
  });
  return drawBench({
    device: title,
    imitated: false,
    against: "best peer",
    rounds: 0,
    entries,
  });
}
