/**
 * Rewrites programs that were written for names which have changed since, by the rows of docs/renames.json.
 *
 *   npm run rename -- FILES…            rewrites them in place, and says what was renamed in each
 *   npm run rename -- --check FILES…    writes nothing; status 1 where something would be renamed
 *
 * FILES are .ts, .tsx, .mts, .cts, .mjs, .js, .jsx or .cjs, relative to where npm was called. What was renamed once
 * stays as it is. A line that only a reader can decide about, such as options that come from another file, is named.
 */
import { readFileSync, writeFileSync } from "node:fs";
import { resolve } from "node:path";
import { refuse, scriptArguments } from "../arguments.ts";
import type { Renamed } from "./edits.ts";
import { renameText, Unreadable } from "./rename-text.ts";
import { readRenames } from "./table.ts";
import type { Rename } from "./table.ts";

const { values, positionals } = scriptArguments(import.meta.url, { check: { type: "boolean" } });
if (positionals.length === 0) refuse("which files?");

const rows = readRenames();
const tally = { changed: 0, failed: 0 };
for (const file of positionals) renameFile(file);
const { changed, failed } = tally;
const verb = values.check ? "would change" : "changed";
const last = failed === 0 ? "" : `, ${failed} could not be read`;
process.stdout.write(`${changed} of ${positionals.length} files ${verb}${last}\n`);
process.exitCode = failed > 0 || (values.check && changed > 0) ? 1 : 0;

function renameFile(file: string): void {
  const path = resolve(process.env["INIT_CWD"] ?? ".", file);
  const before = attempt(file, () => readFileSync(path, "utf8"));
  const renamed =
    before === undefined ? undefined : attempt(file, () => renameText(path, before, rows));
  if (before === undefined || renamed === undefined) {
    tally.failed += 1;
    return;
  }
  if (renamed.text !== before) {
    tally.changed += 1;
    if (!values.check) writeFileSync(path, renamed.text);
  }
  process.stdout.write(`${file}: ${summary(renamed)}\n`);
  for (const note of renamed.notes) process.stdout.write(`  ${file}:${note}\n`);
}

function attempt<Value>(file: string, read: () => Value): Value | undefined {
  try {
    return read();
  } catch (error) {
    process.stderr.write(`${file}: ${reasonOf(error)}\n`);
    return undefined;
  }
}

function reasonOf(error: unknown): string {
  if (error instanceof Unreadable) return `does not parse, at ${error.message}`;
  const code: unknown = error instanceof Error ? Reflect.get(error, "code") : undefined;
  if (code === "ENOENT") return "there is no such file";
  if (code === "EISDIR") return "is a folder; name the files";
  return error instanceof Error ? error.message : String(error);
}

function summary({ applied }: Renamed): string {
  const parts = [...applied].map(
    ([row, count]) => `${label(row)}${count === 1 ? "" : ` (${count})`}`,
  );
  return parts.length === 0 ? "nothing to rename" : parts.join(", ");
}

function label({ kind, of, old, new: now }: Rename): string {
  const owner = kind === "export" || kind === "type" ? "" : `${of.join(", ")}: `;
  return `${owner}${old} → ${now}`;
}
