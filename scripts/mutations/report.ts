/** What became of the faults, for a terminal and for docs/mutation.md. */
import { markdownTable } from "../../src/support/markdown.ts";
import type { Fault } from "./faults.ts";

/** A timeout counts as caught: a test run that never ends is noticed. */
export type Verdict = "caught" | "timeout" | "survived";

export interface Result {
  readonly fault: Fault;
  readonly verdict: Verdict;
  /** The first test that failed. */
  readonly detail: string;
  readonly seconds: number;
}

export interface AreaSummary {
  readonly area: string;
  readonly faults: number;
  readonly caught: number;
}

/** The share of faults that must be caught. */
export const requiredShare = 0.95;

export function isCaught({ verdict }: Result): boolean {
  return verdict !== "survived";
}

/** How many of each area were caught, and of all together. */
export function summarize(results: readonly Result[]): readonly AreaSummary[] {
  const areas = [...new Set(results.map(({ fault }) => fault.area))];
  const summary = (area: string, some: readonly Result[]): AreaSummary => ({
    area,
    faults: some.length,
    caught: some.filter(isCaught).length,
  });
  return [
    ...areas.map((area) =>
      summary(
        area,
        results.filter(({ fault }) => fault.area === area),
      ),
    ),
    summary("all", results),
  ];
}

export function share({ faults, caught }: AreaSummary): number {
  return faults === 0 ? 1 : caught / faults;
}

export function enoughCaught(results: readonly Result[]): boolean {
  return results.filter(isCaught).length >= requiredShare * results.length;
}

function percent(summary: AreaSummary): string {
  return `${(100 * share(summary)).toFixed(1)}%`;
}

export function resultLine({ fault, verdict, detail, seconds }: Result): string {
  return [verdict.padEnd(8), `${seconds.toFixed(1)} s`.padStart(7), fault.id.padEnd(36), detail]
    .join("  ")
    .trimEnd();
}

export function printedSummary(results: readonly Result[]): string {
  return summarize(results)
    .map((summary) => {
      const count = `${summary.caught} of ${summary.faults}`;
      return `${summary.area.padEnd(12)} ${count.padStart(10)}  ${percent(summary)}`;
    })
    .join("\n");
}

function code(text: string): string {
  const trimmed = text.trim();
  if (trimmed === "") return "nothing";
  return trimmed.includes("`") ? `\`\` ${trimmed} \`\`` : `\`${trimmed}\``;
}

/** Faults that no test noticed, with the line that each changes. */
function survivorTable(survivors: readonly Result[]): string {
  const rows = survivors.map(({ fault }) => [
    fault.id,
    `${fault.file.replace("src/", "")}: ${code(fault.find)} becomes ${code(fault.replace)}`,
  ]);
  return `No test noticed these:\n\n${markdownTable(["fault", "change"], rows)}`;
}

/** The results section of the page: how many of each area were caught, and the faults that were not. */
export function markdownReport(results: readonly Result[], date: string): string {
  const summaries = summarize(results);
  const all = summaries.at(-1);
  const sentence =
    all === undefined
      ? ""
      : `On ${date} the tests caught ${all.caught} of ${all.faults} faults, ${percent(all)}.`;
  const rows = summaries.map((summary) => [
    summary.area,
    String(summary.faults),
    String(summary.caught),
    percent(summary),
  ]);
  const survivors = results.filter((result) => !isCaught(result));
  return [
    sentence,
    markdownTable(["area", "faults", "caught", "share"], rows),
    ...(survivors.length === 0 ? [] : [survivorTable(survivors)]),
  ].join("\n\n");
}
