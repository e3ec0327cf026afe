/**
 * The error experience: what a user reads after a mistake. Every entry of the tables is made, and its
 * report must have the right code, point at the marked line, say what was expected and found and what to
 * do, and show the user's own frames only.
 */
import { describe, expect, test } from "vitest";
import { TilewrightError } from "tilewright";
import { asynchronousMistakes } from "./asynchronous.ts";
import { callMistakes } from "./calls.ts";
import { controlMistakes } from "./control.ts";
import { launchMistakes } from "./launch.ts";
import { memoryMistakes } from "./memory.ts";
import type { Mistake, MistakeTable } from "./mistake.ts";
import { runningMistakes } from "./running.ts";
import { specificationMistakes } from "./specification.ts";
import { tileMistakes } from "./tiles.ts";
import { valueMistakes } from "./values.ts";

const tables: { readonly [title: string]: MistakeTable } = {
  values: valueMistakes,
  tiles: tileMistakes,
  memory: memoryMistakes,
  "asynchronous work": asynchronousMistakes,
  "control flow": controlMistakes,
  specifications: specificationMistakes,
  launches: launchMistakes,
  calls: callMistakes,
  "running kernels": runningMistakes,
};

/** Spellings of the IR, which no user has written. */
const internalNames =
  /\b(copy_async|barrier_\w+|semaphore_\w+|wgmma_wait|slice_ref|\w+_ref|proxy_fence|on_threads|block_sync|cluster_\w+|debug_\w+|alloc(?:_\w+)?|union_member|yield\w*|operand \w+ of)\b/;

async function reportOf({ make }: Mistake): Promise<TilewrightError> {
  try {
    await make();
  } catch (error) {
    if (error instanceof TilewrightError) return error;
    throw error;
  }
  throw new Error("nothing was reported");
}

function expectWords(report: TilewrightError, mistake: Mistake): void {
  expect(report.summary).toContain(mistake.message ?? "");
  expect([report.expected, report.found], report.message).not.toContain("");
  expect(report.expected).toContain(mistake.expected ?? "");
  expect(report.found).toContain(mistake.found ?? "");
  expect(report.remedy).toContain(mistake.remedy ?? "");
  expect(report.message).not.toMatch(internalNames);
  for (const [position, note] of (mistake.notes ?? []).entries())
    expect(report.notes[position]?.message ?? "").toContain(note);
}

/** The report stands at the marked line, and every frame below it is the user's. */
function expectPlace(report: TilewrightError, { file, lineOf }: MistakeTable, name: string): void {
  const { position } = report;
  expect({ file: position?.file, line: position?.line }, report.message).toEqual({
    file,
    line: lineOf(name),
  });
  expect(position?.column).toBeGreaterThan(0);
  const [, frames = ""] = (report.stack ?? "").split(report.message);
  expect(frames).not.toMatch(/\/src\/|node_modules|node:/);
  for (const { position: place } of report.notes)
    if (place !== undefined) expect(place.file).toContain("/test/mistakes/");
}

describe.each(Object.entries(tables))("%s", (_, table) => {
  test.each(table.mistakes)("$code, $name", async (mistake) => {
    const report = await reportOf(mistake);
    expect(report.code, report.message).toBe(mistake.code);
    expectWords(report, mistake);
    expectPlace(report, table, mistake.name);
  });
});

test("the mistakes are many and different", async () => {
  const mistakes = Object.values(tables).flatMap((table) => table.mistakes);
  expect(mistakes.length).toBeGreaterThanOrEqual(150);
  const reports = await Promise.all(mistakes.map(reportOf));
  const texts = reports.map(({ code, summary, found, notes }) =>
    [code, summary, found, ...notes.map(({ message }) => message)].join("; "),
  );
  expect(texts.filter((text, position) => texts.indexOf(text) !== position)).toEqual([]);
  expect(new Set(reports.map(({ code }) => code)).size).toBeGreaterThanOrEqual(100);
});
