import { test } from "vitest";
import {
  renderChoiceTable,
  renderConversionTable,
  renderFloatTable,
} from "../src/formats/conversion-rules.ts";
import { expectGolden, withSection } from "./golden.ts";
import { readText } from "./source-files.ts";

const page = "docs/numbers.md";

test("the page on numbers prints the tables of the code", () => {
  const formats = withSection(page, readText(page), "formats", renderFloatTable());
  const conversions = withSection(page, formats, "conversions", renderConversionTable());
  expectGolden(page, withSection(page, conversions, "choices", renderChoiceTable()));
});
