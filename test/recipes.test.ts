/**
 * The recipes (docs/adding-*.md) are true: what they quote from a file is in the file, line by line, and the files, names and
 * commands that they name exist. A renaming that forgets a recipe fails here.
 *
 *   `src/ir/op-names.ts`:        the last line before a block of text: the block is quoted from this file
 *   fma: "fma",                  its lines are lines of the file, in this order; "…" leaves some out
 *
 * In a row of a table, names in backquotes are looked for in the files that the row names.
 */
import { existsSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { listFiles, readText, repositoryRoot } from "./source-files.ts";

const recipes = listFiles("docs", /^adding-.*\.md$/);
const pathForm = /^(?:src|test|bench|scripts|docs|examples|apps)\/[\w./*-]*\w\/?$/;

/** What stands in backquotes. */
function quotedNames(text: string): readonly string[] {
  return [...text.matchAll(/`([^`\n]+)`/g)].map(([, name = ""]) => name);
}

/** Paths in backquotes, those of commands too: "npx vitest run src/ir test/traits". */
function pathsOf(text: string): readonly string[] {
  return quotedNames(text)
    .flatMap((name) => (name.startsWith("npx vitest run ") ? name.split(" ").slice(3) : name))
    .filter((name) => pathForm.test(name));
}

/** The lines of a block that are not, in this order, lines of the file. */
function missingLines(block: string, file: string): readonly string[] {
  const lines = readText(file)
    .split("\n")
    .map((line) => line.trim());
  let from = 0;
  return block
    .split("\n")
    .map((line) => line.trim())
    .filter((line) => line !== "" && line !== "…")
    .filter((line) => {
      const at = lines.indexOf(line, from);
      if (at >= 0) from = at + 1;
      return at < 0;
    });
}

/** Blocks that a line before them says a file of. */
function blocksOf(page: string): readonly { readonly file: string; readonly block: string }[] {
  return [...readText(page).matchAll(/^(.*)`([^`\n]+)`:\n\n```text\n([\s\S]*?)^```$/gm)].map(
    ([, , file = "", block = ""]) => ({ file, block }),
  );
}

/** A file's text, that of all files below a folder. */
function textOf(path: string): string {
  if (/\.\w+$/.test(path)) return readText(path);
  return listFiles(path.replace(/\/$/, ""), /\.(ts|md)$/)
    .map(readText)
    .join("\n");
}

test("there is a recipe for everything that is added often", () => {
  const listed = readText("CONTRIBUTING.md");
  for (const page of recipes) expect(listed, "CONTRIBUTING.md lists the recipes").toContain(page);
  expect(recipes.length).toBeGreaterThanOrEqual(6);
});

describe.each(recipes)("%s", (page) => {
  test("names files that exist", () => {
    const missing = pathsOf(readText(page)).filter(
      (path) => !path.includes("*") && !existsSync(join(repositoryRoot, path)),
    );
    expect(missing).toEqual([]);
  });

  test("quotes what its files have", () => {
    const blocks = blocksOf(page);
    expect(blocks.length).toBeGreaterThan(0);
    const missing = blocks.flatMap(({ file, block }) =>
      existsSync(join(repositoryRoot, file))
        ? missingLines(block, file).map((line) => `${file}: ${line}`)
        : [`there is no ${file}`],
    );
    expect(missing).toEqual([]);
  });

  test("names what its files have", () => {
    const missing = readText(page)
      .split("\n")
      .filter((line) => line.startsWith("|"))
      .flatMap((row) => {
        const paths = pathsOf(row).filter((path) => !path.includes("*"));
        if (paths.length === 0) return [];
        const text = paths.map(textOf).join("\n");
        return quotedNames(row)
          .filter((name) => /^[\w."-]+$/.test(name) && !pathForm.test(name))
          .filter((name) => !text.includes(name))
          .map((name) => `${name} is not in ${paths.join(", ")}`);
      });
    expect(missing).toEqual([]);
  });

  test("names commands that exist", () => {
    const { scripts } = JSON.parse(readText("package.json")) as {
      readonly scripts: { readonly [name: string]: string };
    };
    const named = [...readText(page).matchAll(/npm run ([\w:-]+)/g)].map(([, name = ""]) => name);
    expect(named.filter((name) => !Object.hasOwn(scripts, name))).toEqual([]);
  });
});
