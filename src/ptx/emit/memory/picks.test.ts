/**
 * Elements picked by index tiles and masks on the emulator: an index that is not there stops the kernel, whatever
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
const zeros = fromNumbers(f32, [8], new Array<number>(8).fill(0));

type Way = "load" | "store" | "add" | "shared load" | "shared store";

/** Accesses by three indices, fewer than lanes hold, which a mask may leave out. */
function picking(way: Way, width: typeof i32 | typeof i64, isMasked: boolean): KernelDefinition {
  return kernel(
    {
      name: "picking",
      inputs: { x: array(f32, [n]), ids: array(width, [3]) },
      outputs: { out: array(f32, [3]) },
      inouts: { y: array(f32, [n]) },
      scratch: { buffer: smem(f32, [8]) },
    },
    ({ x, ids, out, y, buffer }) => {
      const own = ids.load();
      const options = isMasked ? { where: own.ge(0).and(own.lt(8)) } : {};
      const values = iota(f32, [3], 0).add(10);
      buffer.store(x.at(slice(0, 8)).load());
      if (way === "load") out.store(x.at(own).load({ ...options, fill: -1 }));
      else if (way === "shared load") out.store(buffer.at(own).load({ ...options, fill: -1 }));
      else {
        out.store(0);
        if (way === "store") y.at(own).store(values, options);
        else if (way === "add") y.at(own).atomicAdd(values, options);
        else buffer.at(own).store(values, options);
      }
      if (way === "shared store")
        y.at(slice(0, 8)).store(buffer.load().sub(x.at(slice(0, 8)).load()));
    },
  );
}

const numbers = (array: HostArray | undefined): readonly number[] =>
  array === undefined ? [] : [...toNumbers(array)];

/** The outputs, or the code of the report. */
async function outcome(
  way: Way,
  width: typeof i32 | typeof i64,
  given: readonly number[],
  isMasked = false,
) {
  const definition = picking(way, width, isMasked) as KernelDefinition;
  const ids = fromNumbers(width, [3], given);
  return device.run(definition, { x, ids, y: zeros }).then(
    (results) => [...numbers(results.out), ...numbers(results.y)],
    (error: unknown) => (error as { readonly code?: string }).code,
  );
}

const untouched = new Array<number>(8).fill(0);
const ways: readonly (readonly [Way, readonly number[]])[] = [
  ["load", [8, 1, -1, ...untouched]],
  ["shared load", [8, 1, -1, ...untouched]],
  ["store", [0, 0, 0, 11, 0, 0, 0, 0, 0, 0, 10]],
  ["add", [0, 0, 0, 11, 0, 0, 0, 0, 0, 0, 10]],
  ["shared store", [0, 0, 0, 10, 0, 0, 0, 0, 0, 0, 2]],
];

describe("an index that is not there", () => {
  test.each(ways)("%s stops the kernel, unless a mask leaves it out", async (way, expected) => {
    for (const bad of [-1, 8, 2 ** 31 - 1, -(2 ** 31)]) {
      expect(await outcome(way, i32, [7, 0, bad]), `${bad}`).toBe("TW8016");
      expect(await outcome(way, i32, [bad, 0, 7]), `${bad}`).toBe("TW8016");
      expect(await outcome(way, i32, [7, 0, bad], true), `${bad}`).toEqual(expected);
    }
  });

  test("of 64 bits is not cut off", async () => {
    for (const bad of [2 ** 32 + 3, -(2 ** 32), 2 ** 52, -1, 8]) {
      expect(await outcome("load", i64, [7, 0, bad]), `${bad}`).toBe("TW8016");
      expect(await outcome("load", i64, [7, 0, bad], true)).toEqual([8, 1, -1, ...untouched]);
    }
    expect(await outcome("store", i64, [7, 0, 1])).toEqual([0, 0, 0, 11, 12, 0, 0, 0, 0, 0, 10]);
  });

  test("may be one of a window that overhangs its array, where it loads as the fill value", async () => {
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
    expect(wide).toMatch(/ld\.global\.nc\.v4\.b32/);
    expect(rowsText((ids) => ids, 130)).toMatch(/ld\.global\.nc\.v2\.b32/);
    expect(rowsText((ids) => ids, 129)).not.toMatch(/ld\.global\.nc\.v/);
  });

  test("leave out the test of an index that is surely there", () => {
    const tests = (text: string): number => text.match(/setp\.ge\.u32/g)?.length ?? 0;
    expect(tests(rowsText((ids) => ids, 128))).toBeGreaterThan(0);
    expect(tests(rowsText((ids) => ids.and(63), 128))).toBe(0);
    expect(tests(rowsText((ids) => ids.and(127), 128))).toBeGreaterThan(0);
    expect(tests(rowsText((ids) => ids.minimum(63), 128))).toBeGreaterThan(0);
  });
});

describe("axes of 2^31 elements and more", () => {
  const long = 2 ** 31 + 4096;
  const textOf = (definition: KernelDefinition): string => compileAhead(definition).ptx;

  test("indices of 64 bits reach their addresses whole", () => {
    const at = (extent: number): string =>
      textOf(
        kernel({ name: "far", inouts: { x: array(f32, [extent]) } }, ({ x }) => {
          const last = iota(i64, [128], 0).add(BigInt(extent - 128));
          x.at(last).store(1);
        }),
      );
    expect(at(long)).toContain("mad.lo.s64");
    expect(at(long)).not.toContain("cvt.u32.u64");
    // Where all indices have 32 bits, products of 32 bits do.
    expect(at(4096)).not.toContain("mad.lo.s64");
  });

  test("sizes that only the launch knows are taken to be that long", () => {
    const far = kernel({ name: "far", inouts: { x: array(f32, [n.mul(8)]) } }, ({ x }) => {
      x.at(iota(i64, [128], 0)).store(1);
    });
    expect(textOf(far)).not.toContain("cvt.u32.u64");
  });

  test("behind a view that does not lie evenly they are refused", () => {
    const odd = kernel({ name: "odd", inouts: { x: array(f32, [3, long]) } }, ({ x }) => {
      const part = x.at(slice(0, 2), slice(0, long - 1)).reshape([2 * (long - 1)]);
      part.at(iota(i64, [128], 0)).store(1);
    });
    expect(() => textOf(odd)).toThrow(/TW7004: an axis of \d+ elements is reached through a view/);
  });
});
