/** Trees as they are stored. */
import { expect, test } from "vitest";
import { Random } from "../../../../support/random.ts";
import { digits, mostLeaf, placeOf, readTrees, sumOf, treeText, unit } from "./trees.ts";
import type { TreeNode } from "./trees.ts";

test("a tree asks for numbers until it comes to a leaf, and all trees are added up", () => {
  const one: TreeNode = {
    ...{ asked: 0, place: 0, above: { leaf: -16 } },
    below: { asked: 1, place: 0, below: { leaf: 43 }, above: { leaf: -27 } },
  };
  const other: TreeNode = { asked: 1, place: 1, below: { leaf: 1 }, above: { leaf: 100 } };
  const text = treeText(one) + treeText(other);
  const trees = readTrees({ thresholds: [[66], [7, 12]], text });
  expect(sumOf(trees, [66, 7])).toBe(unit * (43 + 1));
  expect(sumOf(trees, [66, 8])).toBe(unit * (-27 + 1));
  expect(sumOf(trees, [67, 13])).toBe(unit * (-16 + 100));
});

test("a number's place is how many thresholds it is above", () => {
  for (const [number, place] of [
    [0, 0],
    [1, 0],
    [1.5, 1],
    [4, 2],
    [9, 3],
  ] as const)
    expect(placeOf([1, 2, 4], number)).toBe(place);
});

/** A tree of so many leaves that asks for any of the numbers. */
function randomTree(random: Random, leaves: number, numbers: number): TreeNode {
  if (leaves === 1) return { leaf: random.below(2 * mostLeaf + 1) - mostLeaf };
  const below = 1 + random.below(leaves - 1);
  return {
    ...{ asked: random.below(numbers), place: random.below(digits - 1) },
    below: randomTree(random, below, numbers),
    above: randomTree(random, leaves - below, numbers),
  };
}

/** The leaf that numbers come to by the nodes themselves. */
function walked(node: TreeNode, places: readonly number[]): number {
  if ("leaf" in node) return node.leaf;
  return walked((places[node.asked] ?? 0) > node.place ? node.above : node.below, places);
}

test("random trees give by their text what their nodes say, in characters that stand in a string as they are", () => {
  const random = new Random(11);
  const [count, leaves] = [50, 280];
  const thresholds = Array.from({ length: count }, () =>
    Array.from({ length: digits - 1 }, (_, index) => index),
  );
  const trees = Array.from({ length: 20 }, () => randomTree(random, leaves, count));
  const text = trees.map((tree) => treeText(tree)).join("");
  expect(text).toMatch(/^[#-[\]-~]+$/u);
  const read = readTrees({ thresholds, text });
  for (let turn = 0; turn < 200; turn += 1) {
    const places = Array.from({ length: count }, () => random.below(digits));
    const sum = trees.reduce((all, tree) => all + walked(tree, places), 0);
    expect(
      sumOf(
        read,
        places.map((place) => place - 0.5),
      ),
    ).toBe(unit * sum);
  }
});

test("a tree that is too large for its lengths is refused", () => {
  expect(() => treeText(randomTree(new Random(1), 400, 3))).toThrow("too large");
});
