/**
 * Every configuration of `warpSpecialized` is clean and gives the same under many schedules, on the emulator, and when debugged;
 * the last two of every other one, unless all are asked for.
 */
import { describe, expect, test } from "vitest";
import { isTaken } from "../support/sample.ts";
import { choicesText, specializedChoices } from "./choices.ts";
import { opLines, requireClean, requireEmulated } from "./run.ts";
import { specializedExpected, warpSpecializedKernel } from "./warp-specialized.ts";

describe.each(
  specializedChoices.map((choices, place) => ({ choices, place, title: choicesText(choices) })),
)("specialized threads with $title", ({ choices, place }) => {
  const expected = specializedExpected(choices);

  test("are clean and right under many schedules", async () => {
    await requireClean(warpSpecializedKernel(choices), expected);
  });

  if (!isTaken(place, 2)) return;

  test("give the same with every copy synchronous", async () => {
    await requireClean(warpSpecializedKernel({ ...choices, synchronous: true }), expected, 2);
  });

  test("give the same on the emulator", async () => {
    await requireEmulated(warpSpecializedKernel(choices), expected);
  });
});

test("kernels stay small: nothing is unrolled, and computing threads share their code", () => {
  const lines = (choices: object): number => opLines(String(warpSpecializedKernel(choices)));
  expect(lines({ depth: 16, steps: 100, computing: 4 })).toBe(lines({ depth: 2 }));
});
