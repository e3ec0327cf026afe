/**
 * The TypeScript blocks of the README, of docs/, and of comments that editors show (`@example`). Each becomes a module of its
 * own, moved down by blank lines so that an error names the line in the page or the source.
 */
import { listFiles, readText } from "../source-files.ts";

export interface Snippet {
  /** The page and the line of the block's first line: "docs/guide.md:12". */
  readonly title: string;
  readonly code: string;
  /** "docs-guide-md-12.ts" */
  readonly file: string;
}

function snippetsOf(page: string): readonly Snippet[] {
  return snippetsIn(page, readText(page));
}

/** Those of a source file, where each line begins with the asterisk of its comment. */
function snippetsOfSource(file: string): readonly Snippet[] {
  const text = readText(file);
  return text.includes(" * @example\n") ? snippetsIn(file, text.replaceAll(/^ *\* ?/gm, "")) : [];
}

function snippetsIn(page: string, text: string): readonly Snippet[] {
  return [...text.matchAll(/^```(?:ts|typescript)\b.*\n([\s\S]*?)^```$/gm)].map((match) => {
    const line = text.slice(0, match.index).split("\n").length + 1;
    const code = match[1] ?? "";
    return {
      title: `${page}:${line}`,
      code: "\n".repeat(line - 1) + code,
      file: `${page.replaceAll(/[/.]/g, "-")}-${line}.ts`,
    };
  });
}

/** A program may open with comments; its first statement is an import. */
export function isProgram({ code }: Snippet): boolean {
  return /^(\s|\/\/.*\n)*import\b/.test(code);
}

const pages = [...listFiles("", /^README\.md$/), ...listFiles("docs", /\.md$/)];
const sources = listFiles("src", /(?<!\.test)\.ts$/);
export const snippets = [...pages.flatMap(snippetsOf), ...sources.flatMap(snippetsOfSource)];
export const programs = snippets.filter(isProgram);
