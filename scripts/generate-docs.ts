/**
 * Documentation that is derived from the source. `npm run docs` writes it, a test keeps it current.
 *
 *   docs/diagnostics.md  ◀── the registry of codes in src/support/diagnostic-codes
 *   docs/operations.md   ◀── the op table in src/ir/ops
 *   docs/language-features.md  ◀── the rows in test/features
 *   docs/stablehlo-operations.md  ◀── the table of graph ops and the rules of the evaluator
 *   docs/rewrites.md  ◀── the rules of passes of programs that change numbers, in src/graph/verify
 *   docs/images/layouts  ◀── the drawings listed in layout-drawings.ts
 *   docs/images/timelines  ◀── the launches listed in timeline-drawings.ts
 */
import { renderGraphReference } from "../src/graph/reference.ts";
import { renderOperationReference } from "../src/ir/reference.ts";
import { codes } from "../src/support/diagnostic-codes/index.ts";
import type { CodeEntry } from "../src/support/diagnostic-codes/entry.ts";
import { renderFeatures } from "../test/features/page.ts";
import { renderRewrites } from "../test/graph/rewrites/page.ts";
import { drawLayouts } from "./layout-drawings.ts";
import { formatPage } from "./results-section.ts";
import { drawTimelines } from "./timeline-drawings.ts";

/** The areas of the registry by the first digit of a code. */
const areas: { readonly [digit: string]: string } = {
  0: "Number formats, host arrays and files of them",
  1: "Kernel language",
  2: "Tile IR",
  3: "Simulator",
  4: "Device and runtime",
  5: "Command line and test helpers",
  6: "Layouts",
  7: "PTX",
  8: "Emulator",
  9: "Programs",
};

function areaDigit(code: string): string {
  return code.charAt("TW".length);
}

function renderEntry(code: string, entry: CodeEntry): string {
  const lines = [
    `### ${code}: ${entry.title}`,
    "",
    entry.cause,
    "",
    "```text",
    entry.example,
    "```",
    "",
    `Remedy: ${entry.remedy}.`,
  ];
  return lines.join("\n");
}

function renderArea(digit: string, entries: readonly (readonly [string, CodeEntry])[]): string {
  const title = areas[digit];
  if (title === undefined) throw new Error(`codes TW${digit}xxx belong to no documented area`);
  return [`## ${title}`, ...entries.map(([code, entry]) => renderEntry(code, entry))].join("\n\n");
}

/** The reference of all diagnostics, grouped by area and ordered by code. */
export function renderDiagnostics(): string {
  const entries: [string, CodeEntry][] = Object.entries(codes);
  entries.sort(([left], [right]) => (left < right ? -1 : 1));
  const digits = [...new Set(entries.map(([code]) => areaDigit(code)))];
  const sections = digits.map((digit) =>
    renderArea(
      digit,
      entries.filter(([code]) => areaDigit(code) === digit),
    ),
  );
  const introduction = [
    "# Diagnostics",
    "",
    "Every mistake tilewright reports has a code that keeps its meaning for good. A report names the",
    "code, the line in your file, what was expected and found, and one remedy. This page is generated",
    "from the registry in `src/support/diagnostic-codes` by `npm run docs`.",
  ];
  return [introduction.join("\n"), ...sections].join("\n\n") + "\n";
}

/** Every generated file: its path, and its text, of pages in the repository's format. */
export async function generateDocs(): Promise<readonly { path: string; text: string }[]> {
  const pages = [
    { path: "docs/diagnostics.md", text: renderDiagnostics() },
    { path: "docs/operations.md", text: renderOperationReference() },
    { path: "docs/language-features.md", text: renderFeatures() },
    { path: "docs/stablehlo-operations.md", text: renderGraphReference() },
    { path: "docs/rewrites.md", text: renderRewrites() },
  ];
  const formatted = await Promise.all(
    pages.map(async ({ path, text }) => ({ path, text: await formatPage(text) })),
  );
  return [...formatted, ...drawLayouts(), ...(await drawTimelines())];
}
