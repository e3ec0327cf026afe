/**
 * Every TypeScript block in the README and in docs/ runs as pasted, and its types hold. A block that
 * is not a whole program is fenced as text.
 *
 * Each block becomes a module of its own, moved down by blank lines so that an error names the line in
 * the page. A block that uses vitest brings its own tests.
 */
import { mkdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { describe, expect, test, vi } from "vitest";
import { listFiles, readText, repositoryRoot } from "./source-files.ts";
import { typeErrors } from "./type-check.ts";

interface Snippet {
  /** The page and the line of the block's first line: "docs/guide.md:12". */
  readonly title: string;
  readonly code: string;
  readonly path: string;
}

const folder = join(repositoryRoot, "test/.snippets");

function snippetsOf(page: string): readonly Snippet[] {
  const text = readText(page);
  return [...text.matchAll(/^```(?:ts|typescript)\b.*\n([\s\S]*?)^```$/gm)].map((match) => {
    const line = text.slice(0, match.index).split("\n").length + 1;
    const name = `${page.replaceAll(/[/.]/g, "-")}-${line}.ts`;
    const code = match[1] ?? "";
    return {
      title: `${page}:${line}`,
      code: "\n".repeat(line - 1) + code,
      path: join(folder, name),
    };
  });
}

/** A program may open with comments; its first statement is an import. */
function isProgram(code: string): boolean {
  return /^(\s|\/\/.*\n)*import\b/.test(code);
}

const config = {
  extends: "../../tsconfig.json",
  compilerOptions: { noUnusedLocals: false, noUnusedParameters: false },
  include: ["*.ts"],
};

const pages = [...listFiles("", /^README\.md$/), ...listFiles("docs", /\.md$/)];
const snippets = pages.flatMap(snippetsOf);
const programs = snippets.filter(({ code }) => isProgram(code));

rmSync(folder, { recursive: true, force: true });
mkdirSync(folder, { recursive: true });
for (const { path, code } of programs) writeFileSync(path, code);

describe("snippets of the documentation", () => {
  test("are whole programs", () => {
    const fragments = snippets.filter(({ code }) => !isProgram(code)).map(({ title }) => title);
    expect(fragments, "begin these with their imports, or fence them as text").toEqual([]);
  });

  test("have no type errors", async () => {
    expect(await typeErrors(folder, config)).toEqual([]);
  });

  for (const { title, path, code } of programs) {
    const run = () => import(pathToFileURL(path).href);
    if (/from "vitest"/.test(code)) {
      describe(title, async () => {
        await run();
      });
    } else {
      test(`${title} runs`, async () => {
        const printed = vi.spyOn(console, "log").mockReturnValue(undefined);
        try {
          await run();
        } finally {
          printed.mockRestore();
        }
      });
    }
  }
});
