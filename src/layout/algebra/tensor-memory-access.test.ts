/** The maps of loads and stores, beside tables of who holds each cell, written cell by cell. */
import { describe, expect, test } from "vitest";
import { tmemAccessShapes, tmemCell, tmemRegisters } from "./tensor-memory-access.ts";
import type { TmemAccessShape } from "./tensor-memory-access.ts";

/** For a cell of the first repetition: the thread that holds it, and in which register. */
const holders: {
  readonly [S in TmemAccessShape]: {
    readonly rows: number;
    readonly columns: number;
    readonly holder: (row: number, column: number) => readonly [thread: number, register: number];
  };
} = {
  "32x32b": { rows: 32, columns: 1, holder: (row) => [row, 0] },
  "16x64b": {
    rows: 16,
    columns: 2,
    holder: (row, column) => [row < 8 ? 4 * row + 2 * column : 4 * (row - 8) + 2 * column + 1, 0],
  },
  "16x128b": {
    rows: 16,
    columns: 4,
    holder: (row, column) => (row < 8 ? [4 * row + column, 0] : [4 * (row - 8) + column, 1]),
  },
  // As accumulators of mma.sync lie.
  "16x256b": {
    rows: 16,
    columns: 8,
    holder: (row, column) => {
      const thread = 4 * (row % 8) + Math.floor(column / 2);
      return [thread, (row < 8 ? 0 : 2) + (column % 2)];
    },
  },
  "16x32bx2": { rows: 16, columns: 2, holder: (row, column) => [16 * column + row, 0] },
};

describe.each(tmemAccessShapes)("%s", (shape) => {
  const { rows, columns, holder } = holders[shape];
  const perRepeat = tmemRegisters(shape, 1) ?? 0;

  test.each([1, 2, 4])("repeated %i times, each beside the one before", (repeat) => {
    const step = shape === "16x32bx2" ? 1 : columns;
    const offset = 8;
    for (let row = 0; row < rows; row++)
      for (let column = 0; column < columns; column++)
        for (let again = 0; again < repeat; again++) {
          const [thread, register] = holder(row, column);
          const beside = shape === "16x32bx2" ? offset * column : column;
          expect(tmemCell(shape, thread, again * perRepeat + register, false, offset)).toEqual({
            row,
            column: beside + again * step,
          });
        }
  });

  test("packed, a register has two columns beside each other", () => {
    for (let thread = 0; thread < 32; thread++)
      for (let register = 0; register < 2 * perRepeat; register++) {
        const plain = tmemCell(shape, thread, register);
        const packed = tmemCell(shape, thread, register, true);
        expect(packed).toEqual({ row: plain.row, column: 2 * plain.column });
      }
  });
});

test("the offset of the second part stays in columns of 32 bits", () => {
  expect(tmemCell("16x32bx2", 17, 3, true, 20)).toEqual({ row: 1, column: 26 });
});

test("registers of each shape, up to 128", () => {
  const table = tmemAccessShapes.map((shape) =>
    [1, 2, 4, 8, 16, 32, 64, 128].map((repeat) => tmemRegisters(shape, repeat) ?? "–").join(" "),
  );
  expect(table).toEqual([
    "1 2 4 8 16 32 64 128",
    "1 2 4 8 16 32 64 128",
    "2 4 8 16 32 64 128 –",
    "4 8 16 32 64 128 – –",
    "1 2 4 8 16 32 64 128",
  ]);
  expect([0, 3, 256, NaN].map((repeat) => tmemRegisters("32x32b", repeat))).toEqual([
    undefined,
    undefined,
    undefined,
    undefined,
  ]);
});
