import { readdirSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { generateDocs } from "../scripts/generate-docs.ts";
import { codes } from "../src/support/codes/index.ts";
import { expectGolden } from "./golden.ts";
import { readText, repositoryRoot } from "./source-files.ts";

const files = await generateDocs();

test("the generated pages and drawings are current", () => {
  for (const { path, text } of files) expectGolden(path, text);
});

test("the layouts page shows every drawing, and no others", () => {
  const folder = "docs/images/layouts/";
  const drawn = files
    .map(({ path }) => path)
    .filter((path) => path.startsWith(folder))
    .map((path) => path.slice(folder.length));
  const shown = [...readText("docs/layouts.md").matchAll(/\(images\/layouts\/([^)]+)\)/g)];
  expect(shown.map((match) => match[1])).toEqual(drawn);
  expect(readdirSync(join(repositoryRoot, folder)).sort()).toEqual(drawn.toSorted());
});

test("the diagnostics page has a section for every code", () => {
  const page = files.find(({ path }) => path === "docs/diagnostics.md")?.text ?? "";
  const sections = [...page.matchAll(/^### (TW\d{4}): /gm)].map((match) => match[1]);
  expect(sections).toEqual(Object.keys(codes).sort());
});
