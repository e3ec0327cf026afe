import { test } from "vitest";
import { renderMathTable } from "../src/ptx/math/bounds.ts";
import { expectGolden, withSection } from "./golden.ts";
import { readText } from "./source-files.ts";

const page = "docs/arithmetic.md";

test("the page on arithmetic prints the bounds of the code", () => {
  expectGolden(page, withSection(page, readText(page), "functions", renderMathTable()));
});
