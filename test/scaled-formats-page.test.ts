import { test } from "vitest";
import { denseBits } from "../src/formats/packed.ts";
import { scaledFormats } from "../src/formats/scaled/formats.ts";
import type { ScaledFormat } from "../src/formats/scaled/formats.ts";
import { markdownTable } from "../src/support/markdown.ts";
import { expectGolden, withSection } from "./golden.ts";
import { readText } from "./source-files.ts";

const page = "docs/scaled-formats.md";

function formatTable(): string {
  const all: readonly ScaledFormat[] = Object.values(scaledFormats);
  const rows = all.map(({ name, element, scale, block, hasGlobalScale, largest }) => {
    const [across, along] = block;
    const bits = denseBits(element) + scale.bits / (across * along);
    return [
      name,
      element.name,
      `${across} × ${along}`,
      scale.name,
      hasGlobalScale ? "f32" : "",
      String(largest),
      String(Number(bits.toFixed(3))),
    ];
  });
  const header = [
    "format",
    "elements",
    "block",
    "scales",
    "global scale",
    "largest element",
    "bits a number",
  ];
  return markdownTable(header, rows);
}

test("the page on formats with scales prints the table of the code", () => {
  expectGolden(page, withSection(page, readText(page), "scaled formats", formatTable()));
});
