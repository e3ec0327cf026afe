/**
 * Golden files: text that a test expects to stay as it is. `npm run golden:update` rewrites them, and
 * the difference is read in review.
 */
import { existsSync, mkdirSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { expect } from "vitest";
import { readText, repositoryRoot } from "./source-files.ts";

/** Compares `text` with the file at `path`, relative to the root, or writes it when updating. */
export function expectGolden(path: string, text: string): void {
  if (process.env["UPDATE_GOLDEN"] === "1") {
    mkdirSync(dirname(join(repositoryRoot, path)), { recursive: true });
    writeFileSync(join(repositoryRoot, path), text);
    return;
  }
  const recorded = existsSync(join(repositoryRoot, path)) ? readText(path) : "";
  expect(text, `${path} is not current: npm run golden:update`).toBe(recorded);
}

/** The text of a page with what stands between two markers of it replaced. */
export function withSection(page: string, text: string, name: string, content: string): string {
  const begin = `<!-- generated: ${name} -->`;
  const end = `<!-- end of ${name} -->`;
  const [before, rest, ...others] = text.split(begin);
  const after = rest?.split(end)[1];
  expect(others, `${page} has one section "${name}"`).toEqual([]);
  expect(after, `${page} has a section "${name}" with an end`).toBeDefined();
  return `${before}${begin}\n\n${content}\n\n${end}${after}`;
}
