/** How the trees that correct the model of products are grown. */
import { expect, test } from "vitest";
import { boosted } from "../scripts/fit-products/boosting.ts";
import { readTrees, sumOf } from "../src/kernels/matmul/learned/trees.ts";
import { Random } from "../src/support/random.ts";

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
