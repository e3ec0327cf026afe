/** The headings of pages as links name them, and what stands below each. */
import { readText } from "../source-files.ts";

/** "### Pin and convert" is pin-and-convert, as on GitHub. */
export function anchorOf(heading: string): string {
  const words = heading
    .replace(/^#+ /, "")
    .toLowerCase()
    .replaceAll(/[^\p{L}\p{N}\s_-]/gu, "");
  return words.trim().replaceAll(/\s/g, "-");
}

/** What stands under a heading up to the next one of its level or above; undefined where there is none. */
export function sectionOf(page: string, anchor: string): string | undefined {
  const lines = readText(`docs/${page}`).split("\n");
  const depths = lines.map((line) => /^(#+) /.exec(line)?.[1]?.length ?? 0);
  const start = lines.findIndex(
    (line, index) =>
      (depths[index] ?? 0) > 0 && !isInBlock(lines, index) && anchorOf(line) === anchor,
  );
  if (start < 0) return undefined;
  const depth = depths[start] ?? 0;
  const end = depths.findIndex(
    (each, index) => index > start && each > 0 && each <= depth && !isInBlock(lines, index),
  );
  return lines.slice(start, end < 0 ? undefined : end).join("\n");
}

/** A line that begins with # within a block of code is no heading. */
function isInBlock(lines: readonly string[], index: number): boolean {
  return lines.slice(0, index).filter((line) => line.startsWith("```")).length % 2 === 1;
}

/** The blocks of code in a text. */
export function blocksOf(text: string): readonly string[] {
  return [...text.matchAll(/^```(?:ts|text)\b.*\n([\s\S]*?)^```$/gm)].map(
    ([, block = ""]) => block,
  );
}
