/** How the trees that correct the model of products are grown. */
import { expect, test } from "vitest";
import { boosted } from "../scripts/fit-products/boosting.ts";
import { readTrees, sumOf } from "../src/kernels/matmul/cost/learned/trees.ts";
import { Random } from "../src/support/random.ts";

test("trees are grown until they give what depends on two numbers together, and neither what tells nothing nor what a group has in common", () => {
  const random = new Random(3);
  const examples = Array.from({ length: 600 }, (_, index) => {
    const numbers = [random.uniform(), random.uniform(), random.uniform()];
    const [x = 0, y = 0] = numbers;
    const group = Math.floor(index / 12);
    return { group, numbers, value: group + (x > 0.5 === y > 0.25 ? 0.2 : -0.1), weight: 1 };
  });
  const boosting = {
    ...{ trees: 80, leaves: 8, examples: 5, rate: 0.2, calm: 1, seed: 1 },
    drawn: { groups: 0.8, numbers: 1 },
  };
  const trees = readTrees(boosted(examples, boosting));
  const less = sumOf(trees, [0.8, 0.1, 0.5]);
  for (const [x, y, more] of [
    [0.2, 0.1, 0.3],
    [0.8, 0.1, 0],
    [0.2, 0.8, 0],
    [0.8, 0.8, 0.3],
  ] as const)
    for (const z of [0.1, 0.9]) expect(sumOf(trees, [x, y, z]) - less).toBeCloseTo(more, 1);
});
