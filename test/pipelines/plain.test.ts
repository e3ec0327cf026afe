/**
 * Every configuration of `pipeline` is clean and gives the same under many schedules, on the emulator, and when debugged;
 * the last two of every other one, unless all are asked for.
 */
import { describe, expect, test } from "vitest";
import { isTaken } from "../support/sample.ts";
import { choicesText, plainChoices, specializedChoices } from "./choices.ts";
import { plainExpected, plainKernel } from "./plain.ts";
import { opLines, requireClean, requireEmulated } from "./run.ts";

describe.each(
  plainChoices.map((choices, place) => ({ choices, place, title: choicesText(choices) })),
)("a pipeline with $title", ({ choices, place }) => {
  const expected = plainExpected(choices);

  test("is clean and right under many schedules", async () => {
    await requireClean(plainKernel(choices), expected);
  });

  if (!isTaken(place, 2)) return;

  test("gives the same with every copy synchronous", async () => {
    await requireClean(plainKernel({ ...choices, synchronous: true }), expected, 2);
  });

  test("gives the same on the emulator", async () => {
    await requireEmulated(plainKernel(choices), expected);
  });
});

test("eighty configurations are tried, no two alike", () => {
  const plain = plainChoices.map((choices) => `pipeline, ${choicesText(choices)}`);
  const specialized = specializedChoices.map((choices) => `specialized, ${choicesText(choices)}`);
  expect(new Set([...plain, ...specialized]).size).toBeGreaterThanOrEqual(80);
});

test("kernels stay small: nothing is unrolled", () => {
  const lines = (choices: object): number => opLines(String(plainKernel(choices)));
  const deep = lines({ inner: 200, depth: 16 });
  expect(deep).toBe(lines({ inner: 5, depth: 2 }));
  expect(deep).toBeLessThan(300);
});
