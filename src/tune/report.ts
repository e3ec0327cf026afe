/**
 * What a tuner found: for each case the choices from the fastest on, and why others were rejected.
 *
 *   m=4096, n=4096, k=4096 on NVIDIA H200: best 174.2 µs
 *     µs     times best  spread  choice
 *     174.2  1.000       0.4%    columns=256 stages=4
 *     179.9  1.033       0.3%    columns=128 stages=6
 *     rejected, plan: columns=256 stages=9: TW9904: …
 */
import { isMeasured, isRejected } from "../device/tuning/line.ts";
import type { Choice, Sizes, TuningLine } from "../device/tuning/line.ts";
import type { Verdict } from "./majority-reference.ts";

/** What `tune` found for one case. */
export interface CaseReport {
  /** The sizes of the case. */
  readonly sizes: Sizes;
  /** The sizes, rounded to those that share a choice. */
  readonly bucket: Sizes;
  /** Whether times are estimates of a model, since there was no GPU. */
  readonly modelled: boolean;
  /** Every choice that is known: measured ones from the fastest on, then rejected ones. */
  readonly lines: readonly TuningLine[];
  /** How many of them were measured or rejected now; the others are from before. */
  readonly fresh: number;
  /** Choices that there was no time for, or of which nobody knows whether they are right. */
  readonly left: number;
  /** What the results of new choices were held against; nothing where there were none, or no GPU. */
  readonly checked?: Verdict;
}

/** What `tune` found: the best choice of each case, and what every other one took. */
export class TuneReport {
  /** What was found for each case, in order. */
  readonly cases: readonly CaseReport[];

  /** @internal */
  constructor(cases: readonly CaseReport[]) {
    this.cases = cases;
  }

  /** The fastest choice of a case; undefined where none was measured. */
  best(index = 0): Choice | undefined {
    const [line] = this.cases[index]?.lines ?? [];
    return line === undefined || isRejected(line) ? undefined : line.choice;
  }

  /** What was found, as a table of text. */
  table(): string {
    return this.cases.map(caseText).join("\n");
  }
}

function pairs(record: { readonly [name: string]: unknown }, between: string): string {
  return Object.entries(record)
    .map(([name, value]) => `${name}=${String(value)}`)
    .join(between);
}

function caseText({ sizes, modelled, lines, fresh, left, checked }: CaseReport): string {
  const times = lines.flatMap((line) => (isRejected(line) ? [] : [line]));
  const best = times[0]?.us ?? NaN;
  const gpu = lines[0]?.gpu ?? "";
  const said = modelled
    ? `no GPU: estimates of a model of ${gpu}, not measurements`
    : `on ${gpu}: ${times.length === 0 ? "none was measured" : `best ${best.toFixed(1)} µs`}`;
  const rows = [
    ["µs", "times best", "spread", "choice"],
    ...times.map((line) => [
      line.us.toFixed(1),
      (line.us / best).toFixed(3),
      isMeasured(line) ? `${(100 * line.spread).toFixed(1)}%` : "model",
      pairs(line.choice, " "),
    ]),
  ];
  const widths = [0, 1, 2].map((column) =>
    Math.max(...rows.map((row) => row[column]?.length ?? 0)),
  );
  const texts = rows.map(
    (row) => `  ${row.map((cell, column) => cell.padEnd(widths[column] ?? 0)).join("  ")}`,
  );
  const rejected = lines
    .filter(isRejected)
    .map(
      ({ rejected: why, choice, reason }) => `  rejected, ${why}: ${pairs(choice, " ")}: ${reason}`,
    );
  const why = checked?.by === "undecided" ? "" : ', for want of time or as "most" says';
  const unmeasured = left === 0 ? [] : [`  not measured${why}: ${left}`];
  const judged = checked === undefined ? [] : [`  ${checked.text}`];
  const head = `${pairs(sizes, ", ")} ${said} (${fresh} of ${lines.length} choices are new)`;
  return `${[head, ...judged, ...texts, ...rejected, ...unmeasured].join("\n")}\n`;
}
