/** Searches: along an axis, of all elements, and with the axis kept; and shapes of which one extent is inferred. */
import { expect, test } from "vitest";
import { testMistakes, trace } from "../../test/language.ts";
import { f32, i32 } from "../formats/dtype.ts";
import { fromNumbers, toNumbers } from "../formats/hostarray.ts";
import { open } from "../runtime/open.ts";
import { kernel, tensor } from "./index.ts";

const numbers = [3, 1, 7, 0, 2, 7, -5, 4, 6, 7, -5, 1];

test.each(["simulator", "emulator"] as const)(
  "indices of all elements are in row-major order on the %s",
  async (backend) => {
    const search = kernel(
      {
        name: "search",
        inputs: { x: tensor(f32, [2, 2, 3]) },
        outputs: {
          greatest: tensor(i32, [1]),
          least: tensor(i32, [1]),
          kept: tensor(i32, [2, 1, 3]),
          only: tensor(i32, [1]),
        },
      },
      ({ x, greatest, least, kept, only }) => {
        const tile = x.load();
        greatest.at(0).store(tile.argmax());
        least.at(0).store(tile.argmin());
        kept.store(tile.argmax({ axis: 1, keepDims: true }));
        only.store(tile.reshape([-1]).argmax({ axis: 0, keepDims: true }));
      },
    );
    const device = await open(backend);
    try {
      const x = fromNumbers(f32, [2, 2, 3], numbers);
      const { greatest, least, kept, only } = await device.run(search, { x });
      expect([...toNumbers(greatest)]).toEqual([2]);
      expect([...toNumbers(least)]).toEqual([6]);
      expect([...toNumbers(kept)]).toEqual([0, 1, 0, 1, 0, 0]);
      expect([...toNumbers(only)]).toEqual([2]);
    } finally {
      device.dispose();
    }
  },
);

test("reshape infers one extent", () => {
  const shapes: (readonly number[])[] = [];
  trace(({ matrix }) => {
    for (const shape of [[-1], [16, -1], [2, -1, 64], [-1, 512]])
      shapes.push(matrix.reshape(shape).shape);
  });
  expect(shapes).toEqual([[512], [16, 32], [2, 4, 64], [1, 512]]);
});

testMistakes("of searches", [
  {
    name: "an axis that does not exist",
    code: "TW2020",
    make: () => trace(({ matrix }) => matrix.argmax({ axis: 2, keepDims: true })), // <- here
    message: "no axis 2",
  },
]);
