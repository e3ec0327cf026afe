/**
 * Every folder says why it exists, and shows it: by the header of its index.ts, or by a README.md where it has none. Asked of the
 * folders of src, down to two levels where there are three files of code or more, and of those of test, bench, apps and scripts.
 *
 *   src/layout/solver/README.md      a title, a sentence or two, and an example in a block
 *   src/lang/index.ts                a comment with the same, its example indented
 */
import { existsSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { readText, repositoryRoot } from "./source-files.ts";

function entriesOf(folder: string): readonly { readonly name: string; isDirectory(): boolean }[] {
  return readdirSync(join(repositoryRoot, folder), { withFileTypes: true });
}

function foldersIn(folder: string): readonly string[] {
  return entriesOf(folder)
    .filter((entry) => entry.isDirectory() && !entry.name.startsWith("."))
    .map(({ name }) => `${folder}/${name}`);
}

/** Files of code; folders of data say in their names what they hold. */
function filesIn(folder: string): number {
  return entriesOf(folder).filter(({ name }) => /\.(ts|mjs)$/.test(name)).length;
}

const others = ["apps", "bench", "scripts", "test"];
const top = foldersIn("src");
const folders = [
  ...others,
  ...others.flatMap(foldersIn).filter((folder) => filesIn(folder) >= 3),
  ...top,
  ...top.flatMap(foldersIn).filter((folder) => filesIn(folder) >= 3),
];

/** What a README lacks. */
function lackOfPage(page: string): string | undefined {
  const text = readText(page);
  if (!/^# \S/.test(text)) return "has no title";
  if (!/^[^#`\n|-].{60,}/m.test(text)) return "does not say why the folder exists";
  return /^```text\n[\s\S]+?^```$/m.test(text) ? undefined : "has no example in a block of text";
}

/** What the header of an index lacks: an example is indented by three spaces, or a table. */
function lackOfIndex(file: string): string | undefined {
  const [header = ""] = /^\/\*\*[\s\S]*?\*\//.exec(readText(file)) ?? [];
  if (!/^(\/\*\*| \*) [A-Z`]/m.test(header))
    return "does not begin by saying why the folder exists";
  return /^ \* ( {2}\S|\|)/m.test(header) ? undefined : "has no example in its header";
}

function lackOf(folder: string): readonly string[] {
  const [page, index] = [`${folder}/README.md`, `${folder}/index.ts`];
  const has = (file: string): boolean => existsSync(join(repositoryRoot, file));
  const [file, lack] = has(page) ? [page, lackOfPage(page)] : [index, undefined];
  if (!has(file)) return [`${folder} has neither an index.ts nor a README.md`];
  const found = has(page) ? lack : lackOfIndex(index);
  return found === undefined ? [] : [`${file} ${found}`];
}

test("folders say why they exist, with an example", () => {
  expect(folders.flatMap(lackOf)).toEqual([]);
  expect(folders.length).toBeGreaterThan(80);
});

/** Files of a user, in examples. */
const ofUsers = ["gemm.ts", "kernel.ts"];

test("pages of folders name files that exist", () => {
  const missing = folders
    .filter((folder) => existsSync(join(repositoryRoot, folder, "README.md")))
    .flatMap((folder) =>
      [...readText(`${folder}/README.md`).matchAll(/([\w./-]+\.(?:ts|mjs|md))\b/g)]
        .map(([, name = ""]) => name)
        .filter((name) => !ofUsers.includes(name))
        .filter((name) =>
          [folder, ""].every((from) => !existsSync(join(repositoryRoot, from, name))),
        )
        .map((name) => `${folder}/README.md names ${name}`),
    );
  expect(missing).toEqual([]);
});

test("the pages that say where what is name files and folders that exist, by whole paths", () => {
  const named = (page: string, pattern: RegExp, base: string): readonly string[] =>
    [...readText(page).matchAll(pattern)]
      .map(([, path = ""]) => path)
      .filter((path) => !existsSync(join(repositoryRoot, base, path)))
      .map((path) => `${page} names ${base}${path}`);
  const parts = /## The parts of src\/ptx\n([^#]*)/.exec(readText("docs/ptx.md"))?.[1] ?? "";
  const ofPtx = [...parts.matchAll(/`([\w/-]+\.ts)`/g)].map(([, path = ""]) => path);
  expect(ofPtx.length).toBeGreaterThan(10);
  expect(ofPtx.filter((path) => !existsSync(join(repositoryRoot, "src/ptx", path)))).toEqual([]);
  expect(named("docs/architecture.md", /`(src\/[\w./-]*[\w/])`/g, "")).toEqual([]);
});
