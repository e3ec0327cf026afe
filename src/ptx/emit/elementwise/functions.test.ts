/** Functions run on the emulator, bit for bit what the arithmetic on lanes gives. */
import { expect, test } from "vitest";
import { allElementwise, isExact } from "../../../../test/elementwise-probes.ts";
import type { ElementwiseProbe } from "../../../../test/elementwise-probes.ts";
import {
  findDifferences,
  findDistances,
  probesOf,
  writtenForSm80,
} from "../../../../test/emulated-differences.ts";
import { inexactFunctions } from "../../../../test/support/inexact-functions.ts";
import { sampleOf } from "../../../../test/support/sample.ts";
import { defaultTarget, targets } from "../../../targets/target.ts";
import { slotsOf } from "../values.ts";

const functions = allElementwise().filter(
  (computes) => computes.kind !== "cast" && isExact(computes),
);
const words = probesOf(functions, "words");

/** Where a word is one element, words and lone elements are written alike. */
function isNarrow({ operands }: ElementwiseProbe): boolean {
  return operands.some((dtype) => slotsOf(dtype) > 1);
}
const elements = sampleOf(probesOf(functions, "element").filter(isNarrow), 2);

test("words of tiles", () => {
  expect(findDifferences(defaultTarget, words, 1024)).toEqual([]);
});

test("lone elements", () => {
  expect(findDifferences(defaultTarget, elements, 512)).toEqual([]);
});

test("what sm_80 has other instructions for", () => {
  const others = writtenForSm80([...words, ...elements]);
  expect(new Set(others.flatMap(({ operands }) => operands.map(({ name }) => name)))).toEqual(
    new Set(["tf32", "bf16"]),
  );
  expect(findDifferences(targets.sm_80, others, 1024)).toEqual([]);
});

test("functions that are not exact come near", () => {
  const inexact = allElementwise().filter((computes) => !isExact(computes));
  const distances = findDistances(defaultTarget, probesOf(inexact, "words"), 512);
  // Each of them in each of the five floats that have arithmetic.
  expect(distances.size).toBe(inexactFunctions.size * 5);
  const far = [...distances].filter(([{ result }, distance]) => {
    // What f32 has wrong moves a narrower float by one number at most.
    const allowed = result.name === "f32" || result.name === "f64" ? 4 : 1;
    return distance > allowed;
  });
  expect(far.map(([{ name }, distance]) => `${name}: ${distance}`)).toEqual([]);
});
