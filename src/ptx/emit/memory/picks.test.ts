/**
 * Elements picked by index tiles and masks on the emulator: an index that is not there is never followed, whatever
 * its width, and rows are moved as widely as they lie.
 */
import { afterAll, describe, expect, test } from "vitest";
import { compileAhead, fromNumbers, open, toNumbers } from "tilewright";
import type { HostArray, KernelDefinition } from "tilewright";
import { f32, i32, i64 } from "../../../formats/dtype.ts";
import { array, dim, iota, kernel, slice, smem } from "../../../lang/index.ts";
import type { Tile } from "../../../lang/index.ts";

const device = await open("emulator");
afterAll(() => {
  device.dispose();
});

const n = dim("n");
const x = fromNumbers(f32, [8], [1, 2, 3, 4, 5, 6, 7, 8]);
const outside = [-1, 8, -8, 2 ** 31 - 1, -(2 ** 31), 9];

/** Loads and stores by indices of which some are not there. */
function picking(width: typeof i32 | typeof i64, isShared: boolean): KernelDefinition {
  return kernel(
    {
      name: "picking",
      inputs: { x: array(f32, [n]), ids: array(width, [8]) },
      outputs: { out: array(f32, [8]), kept: array(f32, [8]) },
      inouts: { y: array(f32, [n]) },
      scratch: { before: smem(f32, [8]), buffer: smem(f32, [8]), after: smem(f32, [8]) },
    },
    ({ x, ids, out, kept, y, before, buffer, after }) => {
      for (const each of [before, buffer, after]) each.store(0);
      const own = ids.load();
      if (isShared) buffer.store(x.at(slice(0, 8)).load());
      out.store((isShared ? buffer : x).at(own).load({ fill: -1 }));
      y.at(own).store(iota(f32, [8], 0).add(10));
      buffer.at(own).store(iota(f32, [8], 0).add(10));
      buffer.at(own).atomicAdd(iota(f32, [8], 0));
      kept.store(before.load().add(after.load()).add(buffer.load()));
    },
  );
}

const numbers = (array: HostArray | undefined): readonly number[] =>
  array === undefined ? [] : [...toNumbers(array)];

describe("indices that are not there", () => {
  for (const isShared of [false, true])
    test(`are out of bounds in ${isShared ? "shared" : "global"} memory`, async () => {
      const ids = fromNumbers(i32, [8], [3, ...outside, 0]);
      const y = fromNumbers(f32, [8], new Array<number>(8).fill(0));
      const results = await device.run(picking(i32, isShared), { x, ids, y });
      expect(numbers(results.out)).toEqual([4, -1, -1, -1, -1, -1, -1, 1]);
      expect(numbers(results.y)).toEqual([17, 0, 0, 10, 0, 0, 0, 0]);
      const held = isShared ? [0, 2, 3, 0, 5, 6, 7, 8] : new Array<number>(8).fill(0);
      expect(numbers(results.kept)).toEqual(held.with(0, 24).with(3, 10));
    });

  test("of 64 bits are not cut off", async () => {
    const far = [2 ** 32 + 3, -(2 ** 32), 2 ** 40, -1, 8, 2 ** 52];
    const ids = fromNumbers(i64, [8], [3, ...far, 0]);
    const y = fromNumbers(f32, [8], new Array<number>(8).fill(0));
    const results = await device.run(picking(i64, false), { x, ids, y });
    expect(numbers(results.out)).toEqual([4, -1, -1, -1, -1, -1, -1, 1]);
    expect(numbers(results.y)).toEqual([17, 0, 0, 10, 0, 0, 0, 0]);
  });

  test("of a window that lies behind its array's end", async () => {
    const k = kernel(
      {
        name: "behind",
        inputs: { x: array(f32, [n]), ids: array(i32, [4]) },
        outputs: { out: array(f32, [4]) },
      },
      ({ x, ids, out }) => {
        out.store(x.at(slice(6, 16)).at(ids.load()).load({ fill: -1 }));
      },
    );
    const ids = fromNumbers(i32, [4], [0, 1, 2, 15]);
    expect(numbers((await device.run(k, { x, ids })).out)).toEqual([7, 8, -1, -1]);
  });
});

/** The PTX of a kernel that loads rows of a table by what `index` makes of a tile. */
function rowsText(index: (ids: Tile<"i32">) => Tile<"i32">, columns: number): string {
  const definition = kernel(
    {
      name: "rows",
      inputs: { table: array(f32, [64, columns]), ids: array(i32, [16]) },
      outputs: { out: array(f32, [16, columns]) },
    },
    ({ table, ids, out }) => {
      out.store(table.at(index(ids.load())).load());
    },
  );
  return compileAhead(definition).ptx;
}

describe("the instructions", () => {
  test("move 16 bytes of a row at once where rows begin at multiples of them", () => {
    const wide = rowsText((ids) => ids, 128);
    expect(wide).toMatch(/@%p\d+ ld\.global\.nc\.v4\.b32/);
    expect(rowsText((ids) => ids, 130)).toMatch(/ld\.global\.nc\.v2\.b32/);
    expect(rowsText((ids) => ids, 129)).not.toMatch(/ld\.global\.nc\.v/);
  });

  test("leave out the test of an index that is surely there", () => {
    const tests = (text: string): number => text.match(/setp\.lt\.u32/g)?.length ?? 0;
    expect(tests(rowsText((ids) => ids, 128))).toBeGreaterThan(0);
    expect(tests(rowsText((ids) => ids.and(63), 128))).toBe(0);
    expect(tests(rowsText((ids) => ids.and(127), 128))).toBeGreaterThan(0);
    expect(tests(rowsText((ids) => ids.minimum(63), 128))).toBeGreaterThan(0);
  });
});
