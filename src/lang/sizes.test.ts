import { afterAll, describe, expect, test } from "vitest";
import { open } from "tilewright";
import { testMistakes } from "../../test/language.ts";
import type { Mistake } from "../../test/language.ts";
import { f32, i32 } from "../formats/dtype.ts";
import { fromNumbers, toNumbers } from "../formats/hostarray.ts";
import { parseModule } from "../ir/parser/parser.ts";
import { printKernel } from "../ir/printer.ts";
import { tensor, cdiv, constant, dim, kernel, loop, slice, zeros } from "./index.ts";

const devices = await Promise.all([open("simulator"), open("emulator")]);
afterAll(() => {
  for (const device of devices) device.dispose();
});

const [n, m] = [dim("n"), dim("m")];
const counting = (count: number) => Array.from({ length: count }, (_, index) => index);

/** Tiles of a matrix under one grid axis, its halo of one, and a length that is a quotient. */
const tiled = kernel(
  {
    name: "tiled",
    grid: { tile: cdiv(n, 4).mul(cdiv(m, 4)) },
    inputs: { x: tensor(f32, [n.add(2), m.add(2)]) },
    outputs: { out: tensor(f32, [n, m]), halves: tensor(i32, [n.div(2)]) },
  },
  ({ tile, x, out, halves }) => {
    const [row, column] = [tile.div(cdiv(m, 4)).mul(4), tile.rem(cdiv(m, 4)).mul(4)];
    const at = (down: number, right: number) =>
      x.at(slice(row.add(down), 4), slice(column.add(right), 4)).load();
    out
      .at(slice(row, 4), slice(column, 4))
      .store(at(0, 1).add(at(2, 1)).add(at(1, 0)).add(at(1, 2)));
    halves.at(slice(tile.mul(4), 4)).store(constant(i32, n.sub(m).mul(3)));
  },
);

describe("arithmetic of sizes", () => {
  test.each(devices)("in shapes, grids and values", async (device) => {
    const [rows, columns] = [7, 10];
    const x = fromNumbers(f32, [rows + 2, columns + 2], counting((rows + 2) * (columns + 2)));
    const { out, halves } = await device.run(tiled, { x });
    const at = (row: number, column: number): number => row * (columns + 2) + column;
    const expected = counting(rows * columns).map((index) => {
      const [row, column] = [Math.floor(index / columns), index % columns];
      return (
        at(row, column + 1) +
        at(row + 2, column + 1) +
        at(row + 1, column) +
        at(row + 1, column + 2)
      );
    });
    expect([...toNumbers(out)]).toEqual(expected);
    expect([...toNumbers(halves)]).toEqual([-9, -9, -9]);
  });

  test.each(devices)("a promised divisor makes a reshape legal", async (device) => {
    const k = dim("k", { multipleOf: 8 });
    const summed = kernel(
      {
        name: "summed",
        inputs: { x: tensor(f32, [k]) },
        outputs: { out: tensor(f32, [8]) },
      },
      ({ x, out }) => {
        const groups = x.reshape([k.div(8), 8]);
        out.store(
          loop({ to: k.div(8), carry: zeros(f32, [8]) }, (row, sum) =>
            sum.add(groups.at(row).load()),
          ),
        );
      },
    );
    const { out } = await device.run(summed, { x: fromNumbers(f32, [24], counting(24)) });
    expect([...toNumbers(out)]).toEqual([24, 27, 30, 33, 36, 39, 42, 45]);
  });

  test("what is below 0 as an extent is refused at launch", async () => {
    const k = kernel(
      {
        name: "shorter",
        inputs: { x: tensor(f32, [n]) },
        outputs: { out: tensor(f32, [n.sub(4)]) },
      },
      ({ x, out }) => {
        out.at(slice(0, 8)).store(x.at(slice(4, 8)).load());
      },
    );
    const run = (count: number) =>
      devices[0].run(k, { x: fromNumbers(f32, [count], counting(count)) });
    expect([...toNumbers((await run(6)).out)]).toEqual([4, 5]);
    await expect(run(3)).rejects.toThrow("TW4033");
  });

  test("is part of the text, which parses back", () => {
    const text = printKernel(tiled.kernel);
    expect(text).toContain("ref<gmem, f32, [n + 2, m + 2]>");
    expect(text).toContain("floordiv(n, 2)");
    expect(text).toContain("size {of = 3*n - 3*m}");
    expect(parseModule(text).kernels.map((each) => printKernel(each))).toEqual([text]);
  });
});

const mistakes: readonly Mistake[] = [
  {
    name: "operator on a size",
    code: "TW1001",
    make: () => `${n as unknown as string}`, // <- here
    message: "the size n was used as a JavaScript value",
    remedy: "write n.add(1)",
  },
  {
    name: "fraction added to a size",
    code: "TW1027",
    make: () => n.add(0.5), // <- here
    message: "add of a size takes a whole number or another size",
    found: "0.5",
  },
  {
    name: "size divided by nothing",
    code: "TW1027",
    make: () => n.div(0), // <- here
    message: "a size is divided by a positive whole number",
  },
  {
    name: "difference that is the same at every launch",
    code: "TW1027",
    make: () => n.add(3).sub(n), // <- here
    message: "this size is 3 at every launch",
    remedy: "write 3",
  },
];

testMistakes("sizes", mistakes);
