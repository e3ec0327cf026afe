import { expect, test } from "vitest";
import type { GpuFigures } from "../bench/gpu/figures.ts";
import { mathBounds, renderMathTable } from "../src/ptx/math/bounds.ts";
import { markdownTable } from "../src/support/markdown.ts";
import { expectGolden, withSection } from "./golden.ts";
import { readText } from "./source-files.ts";

const page = "docs/arithmetic.md";
const { functions } = JSON.parse(readText("docs/benchmarks/h200.json")) as GpuFigures;
const bounds: { readonly [name: string]: { readonly ulp: number } } = mathBounds.f32;

test("the page on arithmetic prints the bounds of the code, and what was found", () => {
  const rows = Object.entries(functions).map(([name, found]) => [
    `\`${name}\``,
    found.toFixed(2),
    String(bounds[name]?.ulp),
  ]);
  const found = markdownTable(["function", "largest error, ulp", "bound, ulp"], rows);
  const text = withSection(page, readText(page), "functions", renderMathTable());
  expectGolden(page, withSection(page, text, "sweep", found));
});

test("no function was found beyond its bound", () => {
  for (const [name, found] of Object.entries(functions))
    expect(found, name).toBeLessThanOrEqual(bounds[name]?.ulp ?? 0);
});
