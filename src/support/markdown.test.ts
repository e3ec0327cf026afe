import { format } from "oxfmt";
import { expect, test } from "vitest";
import { markdownTable } from "./markdown.ts";

const header = ["op", "computes"];

test("a row is a line, and bars in cells do not end them", () => {
  const rows = [
    ["abs", "|x|"],
    ["next", "x"],
  ];
  expect(markdownTable(header, rows)).toBe(
    [
      "<!-- oxfmt-ignore -->",
      "| op | computes |",
      "| --- | --- |",
      "| abs | \\|x\\| |",
      "| next | x |",
    ].join("\n"),
  );
  expect(markdownTable(["op", "ns", "ms"], [], { numbers: true })).toContain("| --- | --: | --: |");
});

test("a longer cell changes its own line alone, and so it stays when the page is formatted", async () => {
  const pageOf = (cell: string) =>
    `# Ops\n\n${markdownTable(header, [
      ["abs", "x"],
      ["next", cell],
      ["sign", "1"],
    ])}\n`;
  const [before, after] = [pageOf("x"), pageOf("the least number above x")];
  const linesBefore = before.split("\n");
  const changed = after.split("\n").filter((line, at) => line !== linesBefore[at]);
  expect(changed).toEqual(["| next | the least number above x |"]);
  const { code } = await format("page.md", after);
  expect(code).toBe(after);
});
