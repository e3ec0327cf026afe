/**
 * Pages that people write and a command completes: what lies between two markers is the command's, the rest
 * stays as it is.
 *
 *   <!-- results: written by `npm run bench -- --write` -->
 *   …
 *   <!-- end of results -->
 */
import { readFileSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { format } from "oxfmt";

const closing = "<!-- end of results -->";

/** The page with the results of `command` replaced. */
export function replaceResults(page: string, command: string, results: string): string {
  const opening = `<!-- results: written by \`${command}\` -->`;
  const start = page.indexOf(opening);
  const end = page.indexOf(closing);
  if (start < 0 || end < start) throw new Error(`the page lacks ${opening} … ${closing}`);
  return `${page.slice(0, start + opening.length)}\n\n${results}\n\n${page.slice(end)}`;
}

/** A page in the repository's format. */
export async function formatPage(text: string): Promise<string> {
  const { code, errors } = await format("page.md", text, { printWidth: 100 });
  const [error] = errors;
  if (error !== undefined) throw new Error(error.message);
  return code;
}

/** Replaces the results in a page of docs/, in the repository's format. */
export async function writeResults(name: string, command: string, results: string): Promise<void> {
  const path = fileURLToPath(new URL(`../docs/${name}`, import.meta.url));
  const page = replaceResults(readFileSync(path, "utf8"), command, results);
  writeFileSync(path, await formatPage(page));
}
