/**
 * Tuning files on disk. A tuner appends while it measures, so that an interrupt loses no more than what is being
 * measured, and replaces the file by a sorted one at the end, in one step: a reader meets the old file or the new one.
 */
import { appendFile, readFile, rename, writeFile } from "node:fs/promises";
import { delimiter } from "node:path";
import process from "node:process";
import { TuningTable } from "../device/tuning/table.ts";
import { TilewrightError } from "../support/diagnostics.ts";
import { environmentValue } from "./environment.ts";

/** The files that TILEWRIGHT_TUNING names, with the system's separator of paths between them. */
export function namedTuning(): readonly string[] {
  return (environmentValue("TILEWRIGHT_TUNING") ?? "")
    .split(delimiter)
    .filter((path) => path !== "");
}

/** What a file holds; nothing where there is none, or one that was hardly begun, and that is allowed. */
export async function readTuning(
  path: string,
  { mayBeMissing = false }: { readonly mayBeMissing?: boolean } = {},
): Promise<TuningTable> {
  try {
    const text = await readFile(path, "utf8");
    if (mayBeMissing && TuningTable.isBarelyStarted(text)) return new TuningTable([]);
    return TuningTable.parse(text, path);
  } catch (error) {
    if (error instanceof TilewrightError) throw error;
    if (mayBeMissing && isMissing(error)) return new TuningTable([]);
    throw cannotOpen(path, error);
  }
}

/** Adds lines at the end; a file that is not there begins with its first line. */
export async function appendTuning(path: string, lines: string): Promise<void> {
  await attempt(path, async () => {
    const before = await readFile(path, "utf8").catch((error: unknown) => {
      if (isMissing(error)) return undefined;
      throw error;
    });
    if (before === undefined || TuningTable.isBarelyStarted(before))
      await writeFile(path, TuningTable.start + lines);
    else if (before.endsWith("\n")) await appendFile(path, lines);
    // What an interrupt cut off goes, and a last line that is whole stays: the table says which it is.
    else await replaceTuning(path, TuningTable.parse(before, path).text + lines);
  });
}

/** How often a file was replaced: the new ones of one process have names of their own. */
let replaced = 0;

export async function replaceTuning(path: string, text: string): Promise<void> {
  await attempt(path, async () => {
    replaced += 1;
    const beside = `${path}.${process.pid}.${replaced}.new`;
    await writeFile(beside, text);
    await rename(beside, path);
  });
}

async function attempt(path: string, work: () => Promise<void>): Promise<void> {
  try {
    await work();
  } catch (error) {
    if (error instanceof TilewrightError) throw error;
    throw cannotOpen(path, error);
  }
}

function isMissing(error: unknown): boolean {
  return error instanceof Error && "code" in error && error.code === "ENOENT";
}

function cannotOpen(path: string, error: unknown): TilewrightError {
  return new TilewrightError({
    code: "TW9811",
    message: `${path} cannot be opened as a tuning file`,
    expected: "a file that can be read and written",
    found: error instanceof Error ? error.message : String(error),
    remedy: isMissing(error)
      ? "check the path, which is relative to the working directory; tilewright tune --file PATH makes the file in a folder that is there"
      : "give a path that may be read and written to, and that no folder stands in the way of",
  });
}
