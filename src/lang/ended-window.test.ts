import { afterAll, describe, expect, test } from "vitest";
import { open } from "tilewright";
import { f32, i32 } from "../formats/dtype.ts";
import { fromNumbers, toNumbers } from "../formats/hostarray.ts";
import { array, dim, kernel, slice } from "./index.ts";

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
    inputs: { x: array(f32, [n, 3]), starts: array(i32, [m]), ends: array(i32, [m]) },
    outputs: { loaded: array(f32, [m, size, 3]) },
    inouts: { stored: array(f32, [m, rows, 3]) },
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
});
