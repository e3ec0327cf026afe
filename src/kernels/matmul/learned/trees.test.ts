/** Trees as they are stored, and how they are grown. */
import { expect, test } from "vitest";
import { boosted } from "../../../../scripts/fit-products/boosting.ts";
import { Random } from "../../../support/random.ts";
import { leaf, placesOf, readTrees, sumOf, unit } from "./trees.ts";

test("a tree asks for numbers until it comes to a leaf, and all trees are added up", () => {
  const trees = readTrees({
    thresholds: [[66], [7, 12]],
    nodes: Uint8Array.from([
      ...[0, 0, 1, 0, leaf, 43, leaf, 256 - 27, leaf, 256 - 16],
      ...[1, 1, leaf, 1, leaf, 100],
    ]),
  });
  expect(sumOf(trees, [66, 7])).toBe(unit * (43 + 1));
  expect(sumOf(trees, [66, 8])).toBe(unit * (-27 + 1));
  expect(sumOf(trees, [67, 13])).toBe(unit * (-16 + 100));
});

test("a number's place is how many thresholds it is above", () => {
  const trees = { thresholds: [[1, 2, 4], []], nodes: new Uint8Array() };
  for (const [number, place] of [
    [0, 0],
    [1, 0],
    [1.5, 1],
    [4, 2],
    [9, 3],
  ] as const)
    expect([...placesOf(trees, [number, 5])]).toEqual([place, 0]);
});

test("trees are grown until they give what depends on two numbers together, and leave out one that tells nothing", () => {
  const random = new Random(3);
  const examples = Array.from({ length: 600 }, () => {
    const numbers = [random.uniform(), random.uniform(), random.uniform()];
    const [x = 0, y = 0] = numbers;
    return { numbers, value: x > 0.5 === y > 0.25 ? 0.2 : -0.1, weight: 1 };
  });
  const boosting = {
    ...{ trees: 80, leaves: 8, examples: 5, rate: 0.2, calm: 1, seed: 1 },
    drawn: { examples: 0.8, numbers: 1 },
  };
  const trees = readTrees(boosted(examples, boosting));
  for (const [x, y, value] of [
    [0.2, 0.1, 0.2],
    [0.8, 0.1, -0.1],
    [0.2, 0.8, -0.1],
    [0.8, 0.8, 0.2],
  ] as const)
    for (const z of [0.1, 0.9]) expect(sumOf(trees, [x, y, z])).toBeCloseTo(value, 1);
});
