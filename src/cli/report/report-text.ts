/**
 * A report in words, and as the rows of a table:
 *
 *   axpy on sm_90a
 *     registers       28 a lane, no spills, by the driver
 *     shared memory   none
 *     occupancy       16 blocks a processor, 2048 of 2048 threads; the limit is threads
 *     conversions     none
 *     bank conflicts  none
 *
 *     line  instructions  memory             source
 *     25    14            global load 16 B   const scaled = x.at(here).load().mul(alpha);
 *
 * and the notes on its speed, if there are any.
 */
import { noteText } from "../../ptx/notes/note.ts";
import { formatBytes, formatTable } from "../output.ts";
import type { CountedAccess, KernelReport, LineReport } from "./kernel-report.ts";
import { isOfProducts } from "../../ptx/notes/assembler-notes.ts";
import { productInstructions } from "../../targets/product-instructions.ts";

/** A source line's text; undefined where it cannot be read. */
export type SourceText = (file: string, line: number) => string | undefined;

export function reportText(report: KernelReport, sourceText: SourceText): readonly string[] {
  return [
    `${report.name} on ${report.target.name}`,
    ...formatTable(summaryRows(report).map(([name, text]) => [`  ${name}`, text])),
    "",
    ...formatTable(lineRows(report, sourceText)).map((row) => `  ${row}`),
    ...report.notes.flatMap((note) => [
      "",
      ...noteText(note)
        .split("\n")
        .map((row) => `  ${row}`),
    ]),
  ];
}

export function summaryRows(report: KernelReport): readonly (readonly [string, string])[] {
  const { lines, usage, sharedBytes, target } = report;
  const shared = `${formatBytes(sharedBytes)} of ${formatBytes(target.sharedMemoryPerBlock)}`;
  return [
    ["registers", registersText(report)],
    ["shared memory", sharedBytes === 0 ? "none" : shared],
    ["occupancy", occupancyText(report)],
    ["conversions", conversionsText(lines)],
    ["bank conflicts", banksText(lines)],
    ...(lines.some(({ wgmma }) => wgmma > 0)
      ? [[productInstructions.wgmma.name, wgmmaText(usage?.warnings)] as const]
      : []),
  ];
}

function registersText({ usage, stopped, assembledBy }: KernelReport): string {
  if (stopped !== undefined)
    return `not known: ${stopped.code}, ${stopped.summary} in ${stopped.expected}; ${stopped.remedy}`;
  if (usage === undefined) return "not known: ptxas is not installed";
  const { registers, spillStores, spillLoads } = usage;
  const spills =
    spillStores + spillLoads === 0
      ? "no spills"
      : `spills ${spillStores} bytes and reads ${spillLoads} back`;
  return `${registers} a thread, ${spills}, by ${assembledBy}`;
}

function occupancyText({
  occupancy: { blocks, limit },
  threads,
  target,
  usage,
}: KernelReport): string {
  const used = `${blocks * threads} of ${target.threadsPerProcessor} threads`;
  const known = usage === undefined ? ", registers not counted" : "";
  return `${blocks} ${blocks === 1 ? "block" : "blocks"} a processor, ${used}; the limit is ${limit}${known}`;
}

function conversionsText(lines: readonly LineReport[]): string {
  const all = lines.flatMap(({ conversions }) => conversions);
  if (all.length === 0) return "none";
  return `${all.length}, ${all.reduce((sum, { cost, times }) => sum + cost * times, 0)} cycles in all`;
}

function banksText(lines: readonly LineReport[]): string {
  const lost = lines.reduce((sum, line) => sum + lostWavefronts(line), 0);
  return lost === 0 ? "none" : `${lost} wavefronts more than at best`;
}

function wgmmaText(warnings: readonly string[] | undefined): string {
  if (warnings === undefined) return "not known whether serialised: ptxas is not installed";
  return warnings.length === 0 ? "not serialised" : warnings.join("\n");
}

/** Wavefronts of a line that conflicts of banks cost, each time it runs. */
export function lostWavefronts({ banks }: LineReport): number {
  return banks.reduce((sum, { wavefronts, ideal }) => sum + wavefronts - ideal, 0);
}

function lineRows(
  { lines, usage }: KernelReport,
  sourceText: SourceText,
): readonly (readonly string[])[] {
  const serialised = usage?.warnings.some(isOfProducts) ?? false;
  const rows = lines.map((line) => [
    String(line.line),
    String(line.instructions),
    line.wgmma === 0 ? "" : `${line.wgmma}${serialised ? ", serialised" : ""}`,
    line.accesses.map(accessText).join(", "),
    line.conversions
      .map(({ kind, cost, times }) => `${kind}, ${cost} cycles${times === 1 ? "" : ` × ${times}`}`)
      .join("; "),
    lineBanksText(line),
    (sourceText(line.file, line.line) ?? line.file).trim(),
  ]);
  const heading = [
    "line",
    "instructions",
    productInstructions.wgmma.name,
    "memory",
    "conversions",
    "bank conflicts",
    "source",
  ];
  return withoutEmptyColumns([heading, ...rows]);
}

/** Columns in which only the heading stands. */
function withoutEmptyColumns(rows: readonly (readonly string[])[]): readonly (readonly string[])[] {
  return rows.map((row) =>
    row.filter((_, column) => rows.slice(1).some((other) => (other[column] ?? "") !== "")),
  );
}

export function accessText({ kind, bytes, matrix, count }: CountedAccess): string {
  const width = bytes === undefined ? "" : ` ${bytes} B`;
  const form = matrix === undefined ? "" : matrix === "plain" ? " matrix" : " transposed matrix";
  return `${kind}${width}${form}${count === 1 ? "" : ` × ${count}`}`;
}

function lineBanksText({ banks }: LineReport): string {
  return banks
    .filter(({ wavefronts, ideal }) => wavefronts > ideal)
    .map(({ op, wavefronts, ideal }) => `${op}: ${wavefronts} wavefronts, ${ideal} at best`)
    .join("; ");
}
