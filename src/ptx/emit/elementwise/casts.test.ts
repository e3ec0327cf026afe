/** Conversions run on the emulator, bit for bit what the conversion table says. */
import { expect, test } from "vitest";
import { allElementwise } from "../../../../test/elementwise-probes.ts";
import type { ElementwiseProbe } from "../../../../test/elementwise-probes.ts";
import {
  findDifferences,
  probesOf,
  writtenForSm80,
} from "../../../../test/emulated-differences.ts";
import { sampleOf } from "../../../../test/support/sample.ts";
import { defaultTarget, targets } from "../../../targets/target.ts";
import { slotsOf } from "../values.ts";

const casts = allElementwise().filter(({ kind }) => kind === "cast");
const words = probesOf(casts, "words");

/** Where a word is one element on both sides, words and lone elements are written alike. */
function isNarrow({ operands, result }: ElementwiseProbe): boolean {
  return [...operands, result].some((dtype) => slotsOf(dtype) > 1);
}
const elements = sampleOf(probesOf(casts, "element").filter(isNarrow), 3);

test("words of tiles", () => {
  expect(findDifferences(defaultTarget, words, 1024)).toEqual([]);
});

test("lone elements", () => {
  expect(findDifferences(defaultTarget, elements, 512)).toEqual([]);
});

test("what sm_80 has other instructions for", () => {
  const others = writtenForSm80(sampleOf([...words, ...elements], 2));
  expect(others.length).toBeGreaterThan(50);
  expect(findDifferences(targets.sm_80, others, 512)).toEqual([]);
});
