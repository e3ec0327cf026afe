/** Prints the table of features: what a user writes, where it is described, and what shows that it holds. */
import { markdownTable } from "../../src/support/markdown.ts";
import { casesOf, features } from "./index.ts";
import type { Feature } from "./feature.ts";

const introduction = `# What the language can do, and what shows it

Each row is a test. What is *written* stands in an example under the heading that the page leads to. The *cases* are kernels whose results the
simulator and the emulator both give, and an independent reference too; ptxas takes each of them for the *targets*. What is *refused* is a bad
program for each code, reported on the line that wrote it. A GPU runs the cases with \`npm run test:gpu\`. The rows are in \`test/features\`;
\`npm run docs\` writes this page from them.`;

function row(feature: Feature): readonly string[] {
  const { name, written, page, cases, refused } = feature;
  const shown = casesOf(feature);
  const targets = new Set(shown.flatMap(({ targets: own = ["sm_90a"] }) => own));
  const codes = "none" in refused ? [] : [...new Set(refused.map(({ code }) => code))].sort();
  const link = (code: string): string => `[${code}](diagnostics.md#${code.toLowerCase()})`;
  return [
    name,
    written.map((text) => `\`${text}\``).join(" "),
    `[${page.replace(/#.*$/, "")}](${page})`,
    typeof cases === "function" ? `${shown.length}` : cases.none,
    typeof cases === "function" ? [...targets].sort().join(", ") : "–",
    "none" in refused ? refused.none : codes.map(link).join(" "),
  ];
}

export function renderFeatures(): string {
  const rows = features.toSorted((left, right) => (left.name < right.name ? -1 : 1)).map(row);
  const header = ["what", "written", "page", "cases", "targets", "refused"];
  return `${introduction}\n\n${markdownTable(header, rows)}\n`;
}
