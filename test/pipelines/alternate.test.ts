/** Tiles that are dealt back and forth: every tile once, to the block whose turn it is. */
import { describe, test } from "vitest";
import { tensor, fromNumbers, i32, kernel, tiles } from "tilewright";
import { requireClean, requireEmulated } from "./run.ts";

/** Which block each of the tiles goes to. */
const blockOf = (tile: number, blocks: number, count: number): number => {
  const round = Math.floor(tile / blocks);
  const isWhole = (round + 1) * blocks <= count;
  const place = tile % blocks;
  return round % 2 === 1 && isWhole ? blocks - 1 - place : place;
};

describe.each([
  [7, 3],
  [6, 3],
  [5, 3],
  [2, 3],
  [5, 1],
])("%i tiles for %i blocks", (count, blocks) => {
  const dealt = (grid: { [axis: string]: number }) =>
    kernel(
      { name: "dealt", grid: { worker: blocks }, inouts: { y: tensor(i32, [count]) } },
      ({ worker, y }) => {
        tiles(grid, { alternate: true }).each(({ i, j }) => {
          if (i === undefined) throw new Error("an axis is missing");
          y.at(j === undefined ? i : j).atomicAdd(worker.add(1));
        });
      },
    );
  const expected = {
    inputs: { y: fromNumbers(i32, [count], new Float64Array(count)) },
    results: { y: Array.from({ length: count }, (_, tile) => blockOf(tile, blocks, count) + 1) },
  };

  test.each([
    ["one axis", { i: count }],
    ["two axes", { i: 1, j: count }],
  ])("along %s", async (_, grid) => {
    await requireClean(dealt(grid), expected, 2);
    await requireEmulated(dealt(grid), expected);
  });
});
