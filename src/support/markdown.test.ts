import { expect, test } from "vitest";
import { markdownTable } from "./markdown.ts";

test("columns line up, and bars in cells do not end them", () => {
  expect(
    markdownTable(
      ["op", "computes"],
      [
        ["abs", "|x|"],
        ["next", "x"],
      ],
    ),
  ).toBe(
    [
      "| op   | computes |",
      "| ---- | -------- |",
      "| abs  | \\|x\\|    |",
      "| next | x        |",
    ].join("\n"),
  );
});
