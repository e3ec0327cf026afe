import { afterAll, describe, expect, test } from "vitest";
import { open } from "tilewright";
import { f32, i32 } from "../formats/dtype.ts";
import { fromNumbers, toNumbers } from "../formats/hostarray.ts";
import { tensor, dim, kernel, slice } from "./index.ts";

const [rows, size, count] = [11, 4, 40];
const [n, m] = [dim("n"), dim("m")];
const extremes = [-(2 ** 31), 2 ** 31 - 1, -1, 0, 5, rows, rows + 3, -7];
const pairs = [
  ...extremes.flatMap((start) => extremes.map((end) => [start, end] as const)),
  ...Array.from({ length: count }, (_, index) => [index % 9, (index * 5) % 13] as const),
];

/** Copies rows `start` … `start + 3` that lie before `end`, each block its own, to a copy of its own. */
const ragged = kernel(
  {
    name: "ragged",
    grid: { i: m },
    inputs: { x: tensor(f32, [n, 3]), starts: tensor(i32, [m]), ends: tensor(i32, [m]) },
    outputs: { loaded: tensor(f32, [m, size, 3]) },
    inouts: { stored: tensor(f32, [m, rows, 3]) },
  },
  ({ i, x, starts, ends, loaded, stored }) => {
    const start = starts.at(i).loadScalar();
    const here = slice(start, size, { end: ends.at(i).loadScalar() });
    loaded.at(i).store(x.at(here).load({ fill: -1 }));
    stored.at(i).at(here).store(1);
  },
);

const devices = await Promise.all([open("simulator"), open("emulator")]);
afterAll(() => {
  for (const device of devices) device.dispose();
});

describe("slices that end before their axis does", () => {
  test.each(devices)("load and store what lies before the end and no more", async (device) => {
    const blocks = pairs.length;
    const x = fromNumbers(
      f32,
      [rows, 3],
      Array.from({ length: rows * 3 }, (_, index) => index),
    );
    const { loaded, stored } = await device.run(ragged, {
      x,
      starts: fromNumbers(
        i32,
        [blocks],
        pairs.map(([start]) => start),
      ),
      ends: fromNumbers(
        i32,
        [blocks],
        pairs.map(([, end]) => end),
      ),
      stored: fromNumbers(f32, [blocks, rows, 3], new Array<number>(blocks * rows * 3).fill(0)),
    });
    const isInside = (row: number, end: number): boolean => row >= 0 && row < rows && row < end;
    const expected = pairs.flatMap(([start, end]) =>
      Array.from({ length: size * 3 }, (_, index) => {
        const row = start + Math.floor(index / 3);
        return isInside(row, end) ? row * 3 + (index % 3) : -1;
      }),
    );
    const written = pairs.flatMap(([start, end]) =>
      Array.from({ length: rows * 3 }, (_, index) => {
        const row = Math.floor(index / 3);
        return Number(row >= start && row < start + size && isInside(row, end));
      }),
    );
    expect([...toNumbers(loaded)]).toEqual(expected);
    expect([...toNumbers(stored)]).toEqual(written);
  });

  test.each(devices)("along the axis that has an end, and not along others", async (device) => {
    const cut = kernel(
      {
        name: "cut",
        inputs: { x: tensor(f32, [n, 6]), ends: tensor(i32, [2]) },
        outputs: {
          lower: tensor(f32, [4, 6]),
          left: tensor(f32, [4, 6]),
          corner: tensor(f32, [4, 6]),
        },
      },
      ({ x, ends, lower, left, corner }) => {
        const [row, column] = [ends.at(0).loadScalar(), ends.at(1).loadScalar()];
        lower.store(x.at(slice(0, 4, { end: row })).load({ fill: -1 }));
        left.store(x.at(slice(0, 4), slice(0, 6, { end: column })).load({ fill: -1 }));
        const both = x.at(slice(0, 4, { end: row }), slice(0, 6, { end: column }));
        corner.store(both.load({ fill: -1 }));
      },
    );
    const x = fromNumbers(
      f32,
      [4, 6],
      Array.from({ length: 24 }, (_, index) => index),
    );
    for (const [row, column] of [
      [1, 2],
      [2, 1],
      [0, 5],
      [3, 0],
      [4, 6],
    ] as const) {
      const found = await device.run(cut, { x, ends: fromNumbers(i32, [2], [row, column]) });
      const cells = (rows: number, columns: number): readonly number[] =>
        Array.from({ length: 24 }, (_, index) =>
          Math.floor(index / 6) < rows && index % 6 < columns ? index : -1,
        );
      expect([...toNumbers(found.lower)]).toEqual(cells(row, 6));
      expect([...toNumbers(found.left)]).toEqual(cells(4, column));
      expect([...toNumbers(found.corner)]).toEqual(cells(row, column));
    }
  });
});
