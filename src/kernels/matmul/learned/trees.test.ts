/** Trees as they are stored. */
import { expect, test } from "vitest";
import { digits, leaf, nodesOf, nodesText, placesOf, readTrees, sumOf, unit } from "./trees.ts";

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

test("nodes are written as characters that stand in a string as they are, and read again", () => {
  const values = Array.from({ length: 255 }, (_, index) => (index - 127) & 255);
  const asked = Array.from({ length: 40 }, (_, index) => [index, digits - 1 - index]).flat();
  const nodes = Uint8Array.from([...asked, ...values.flatMap((value) => [leaf, value])]);
  const text = nodesText(nodes);
  expect(text).toHaveLength(nodes.length);
  expect(text).toMatch(/^[#-[\]-~]+$/u);
  expect(nodesOf(text)).toEqual(nodes);
  expect(nodesText(Uint8Array.from([3, 7, leaf, 21]))).toBe("&*|^");
});
