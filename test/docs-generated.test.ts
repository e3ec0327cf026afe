import { readdirSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { generateDocs } from "../scripts/generate-docs.ts";
import { codes } from "../src/support/diagnostic-codes/index.ts";
import { expectGolden } from "./golden.ts";
import { readText, repositoryRoot } from "./source-files.ts";

const files = await generateDocs();

test("the generated pages and drawings are current", () => {
  for (const { path, text } of files) expectGolden(path, text);
});

test.each([
  ["layouts", "docs/layouts.md"],
  ["timelines", "docs/pipelines.md"],
])("drawings of %s are all shown by %s, which shows no others", (name, page) => {
  const folder = `docs/images/${name}/`;
  const drawn = files
    .map(({ path }) => path)
    .filter((path) => path.startsWith(folder))
    .map((path) => path.slice(folder.length));
  const shown = [...readText(page).matchAll(new RegExp(`\\(images/${name}/([^)]+)\\)`, "g"))];
  expect(new Set(shown.map((match) => match[1]))).toEqual(new Set(drawn));
  expect(readdirSync(join(repositoryRoot, folder)).sort()).toEqual(drawn.toSorted());
});

test("the diagnostics page has a section for every code", () => {
  const page = files.find(({ path }) => path === "docs/diagnostics.md")?.text ?? "";
  const sections = [...page.matchAll(/^### (TW\d{4}): /gm)].map((match) => match[1]);
  expect(sections).toEqual(Object.keys(codes).sort());
});
