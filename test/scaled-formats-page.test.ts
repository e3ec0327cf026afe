import { test } from "vitest";
import { array, nn } from "tilewright/arrays";
import { f32, fromNumbers } from "tilewright";
import type { ScaledFormatName } from "tilewright";
import { denseBits } from "../src/formats/packed.ts";
import { scaledFormats } from "../src/formats/scaled/formats.ts";
import type { ScaledFormat } from "../src/formats/scaled/formats.ts";
import { markdownTable } from "../src/support/markdown.ts";
import { expectGolden, withSection } from "./golden.ts";
import { readText } from "./source-files.ts";
import { Random } from "../src/support/random.ts";

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

/** What is lost of numbers of the normal distribution: the root of the mean square of the error, beside that of the numbers. */
async function errorOf(name: ScaledFormatName): Promise<number> {
  const random = new Random(1);
  const shape = [128, 128];
  const values = Float32Array.from({ length: 128 * 128 }, () => random.normal());
  const x = array(fromNumbers(f32, shape, values));
  const back = await nn.dequantizeBlocks(nn.quantizeBlocks(x, name), "f64").read();
  const squares = (list: Iterable<number>): number =>
    Array.from(list).reduce((sum, each) => sum + each * each, 0);
  const apart = values.map((value, index) => value - (back.data[index] ?? NaN));
  return Math.sqrt(squares(apart) / squares(values));
}

interface Bar {
  readonly name: string;
  readonly error: number;
}

/** A bar a format, as long as its error. */
function drawErrors(bars: readonly Bar[]): string {
  const most = Math.max(...bars.map(({ error }) => error));
  const rows = bars.map(({ name, error }, index) => {
    const y = 10 + 26 * index;
    const width = Math.round((360 * error) / most);
    return [
      `<text x="132" y="${y + 14}" text-anchor="end">${name}</text>`,
      `<rect x="140" y="${y}" width="${width}" height="20" rx="2" fill="#4c78a8"/>`,
      `<text x="${146 + width}" y="${y + 14}">${(100 * error).toFixed(1)} %</text>`,
    ].join("");
  });
  const height = 20 + 26 * bars.length;
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 570 ${height}" font-family="sans-serif" font-size="13"><rect width="570" height="${height}" fill="#fff"/>\n${rows.join("\n")}\n</svg>\n`;
}

test("the page on formats with scales prints the table of the code, and draws errors", async () => {
  expectGolden(page, withSection(page, readText(page), "scaled formats", formatTable()));
  const bars: Bar[] = [];
  for (const { name } of Object.values(scaledFormats))
    bars.push({ name, error: await errorOf(name) });
  expectGolden("docs/images/scaled-formats/errors.svg", drawErrors(bars));
});
