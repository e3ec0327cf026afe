import { expect, test } from "vitest";
import { generateDocs } from "../scripts/generate-docs.ts";
import { codes } from "../src/support/codes/index.ts";
import { expectGolden } from "./golden.ts";

test("the generated pages are current", async () => {
  for (const { path, text } of await generateDocs()) expectGolden(path, text);
});

test("the diagnostics page has a section for every code", async () => {
  const pages = await generateDocs();
  const page = pages.find(({ path }) => path === "docs/diagnostics.md")?.text ?? "";
  const sections = [...page.matchAll(/^### (TW\d{4}): /gm)].map((match) => match[1]);
  expect(sections).toEqual(Object.keys(codes).sort());
});
