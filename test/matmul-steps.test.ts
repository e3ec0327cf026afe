/** The kernels that docs/matmul-steps.md shows are those that bench/gpu/matmul-steps.ts times, word for word. */
import { expect, test } from "vitest";
import { readText } from "./source-files.ts";

const definitions = (text: string): readonly string[] =>
  [...text.matchAll(/^const \w+ = kernel\([\s\S]*?^\);$/gm)].map(([match]) => match);

test("the page shows the kernels that are timed", () => {
  const timed = definitions(readText("bench/gpu/matmul-steps.ts"));
  expect(timed.length).toBe(5);
  expect(definitions(readText("docs/matmul-steps.md"))).toEqual(timed);
});
