import { expect, test } from "vitest";
import { renderConversionTable, renderFloatTable } from "../src/formats/conversion-rules.ts";
import { expectGolden } from "./golden.ts";
import { readText } from "./source-files.ts";

const page = "docs/numbers.md";

/** The page with the text between two markers replaced. */
function withSection(text: string, name: string, content: string): string {
  const begin = `<!-- generated: ${name} -->`;
  const end = `<!-- end of ${name} -->`;
  const [before, rest, ...others] = text.split(begin);
  const after = rest?.split(end)[1];
  expect(others, `${page} has one section "${name}"`).toEqual([]);
  expect(after, `${page} has a section "${name}" with an end`).toBeDefined();
  return `${before}${begin}\n\n${content}\n\n${end}${after}`;
}

test("the page on numbers prints the tables of the code", () => {
  const formats = withSection(readText(page), "formats", renderFloatTable());
  expectGolden(page, withSection(formats, "conversions", renderConversionTable()));
});
