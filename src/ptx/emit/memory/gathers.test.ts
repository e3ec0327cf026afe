/**
 * Elements picked by index tiles and masks on the emulator: an index that is not there stops the kernel, whatever
 * its width, and rows are moved as widely as they lie.
 */
import { afterAll, describe, expect, test } from "vitest";
import { compileAhead, fromNumbers, open, toNumbers } from "tilewright";
import type { HostArray, KernelDefinition } from "tilewright";
import { f32, i32, i64 } from "../../../formats/dtype.ts";
import { tensor, dim, iota, kernel, slice, smem } from "../../../lang/index.ts";
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
      inputs: { x: tensor(f32, [n]), ids: tensor(width, [3]) },
      outputs: { out: tensor(f32, [3]) },
      inouts: { y: tensor(f32, [n]) },
      scratch: { buffer: smem(f32, [8]) },
    },
    ({ x, ids, out, y, buffer }) => {
      const own = ids.load();
      const options = isMasked ? { where: own.ge(0).and(own.lt(8)) } : {};
      const values = iota(f32, [3], { axis: 0 }).add(10);
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

  test.each([
    ["first", 4, dim("m")],
    ["second", dim("m"), 4],
  ])("along the %s of two axes that one tile gather along", async (_, rows, columns) => {
    const diagonal = kernel(
      {
        name: "diagonal",
        inputs: { x: tensor(f32, [rows, columns]), ids: tensor(i32, [2]) },
        outputs: { out: tensor(f32, [2]) },
      },
      ({ x, ids, out }) => {
        const own = ids.load();
        out.store(x.at(own, own).load());
      },
    );
    const table = fromNumbers(f32, rows === 4 ? [4, 8] : [8, 4], [...Array(32).keys()]);
    const picked = (ids: readonly number[]) =>
      device.run(diagonal, { x: table, ids: fromNumbers(i32, [2], ids) });
    expect(numbers((await picked([3, 0])).out)).toEqual([rows === 4 ? 27 : 15, 0]);
    await expect(picked([3, 4])).rejects.toMatchObject({ code: "TW8016" });
  });

  test("of 64 bits is not cut off", async () => {
    for (const bad of [2 ** 32 + 3, -(2 ** 32), 2 ** 52, -1, 8]) {
      expect(await outcome("load", i64, [7, 0, bad]), `${bad}`).toBe("TW8016");
      expect(await outcome("load", i64, [7, 0, bad], true)).toEqual([8, 1, -1, ...untouched]);
    }
    expect(await outcome("store", i64, [7, 0, 1])).toEqual([0, 0, 0, 11, 12, 0, 0, 0, 0, 0, 10]);
  });

  test("stops the kernel wherever it stands among those of a lane", async () => {
    const count = 512;
    const k = kernel(
      {
        name: "many",
        inputs: { x: tensor(f32, [n]), ids: tensor(i32, [count]) },
        outputs: { out: tensor(f32, [count]) },
      },
      ({ x, ids, out }) => {
        out.store(x.at(ids.load()).load());
      },
    );
    const good = Array.from({ length: count }, (_, index) => index % 8);
    const run = async (ids: readonly number[]): Promise<unknown> =>
      device.run(k, { x, ids: fromNumbers(i32, [count], ids) }).then(
        ({ out }) => numbers(out),
        (error: unknown) => (error as { readonly code?: string }).code,
      );
    expect(await run(good)).toEqual(good.map((index) => index + 1));
    // A lane holds four of them.
    for (const place of [0, 1, 2, 3, 130, 257, 511])
      expect(await run(good.with(place, 8)), `${place}`).toBe("TW8016");
  });

  test("stops the kernel whichever of several axes it is for", async () => {
    const k = kernel(
      {
        name: "both",
        inputs: { x: tensor(f32, [n, 4]), rows: tensor(i32, [3]), columns: tensor(i32, [3]) },
        outputs: { out: tensor(f32, [3]) },
      },
      ({ x, rows, columns, out }) => {
        out.store(x.at(rows.load(), columns.load()).load());
      },
    );
    const square = fromNumbers(f32, [2, 4], [1, 2, 3, 4, 5, 6, 7, 8]);
    const run = async (rows: readonly number[], columns: readonly number[]): Promise<unknown> =>
      device
        .run(k, {
          x: square,
          rows: fromNumbers(i32, [3], rows),
          columns: fromNumbers(i32, [3], columns),
        })
        .then(
          ({ out }) => numbers(out),
          (error: unknown) => (error as { readonly code?: string }).code,
        );
    expect(await run([1, 0, 1], [3, 2, 0])).toEqual([8, 3, 5]);
    expect(await run([2, 0, 1], [3, 2, 0])).toBe("TW8016");
    expect(await run([1, 0, 1], [3, 4, 0])).toBe("TW8016");
  });

  test("is not asked for what lanes hold beside the tile", async () => {
    // Three rows that begin at a number only the launch knows; a fourth, which lanes hold as padding, is not there.
    const k = kernel(
      {
        name: "padded",
        inputs: { x: tensor(f32, [n]), first: tensor(i32, [1]) },
        outputs: { out: tensor(f32, [3]) },
      },
      ({ x, first, out }) => {
        const rows = iota(i32, [3], { axis: 0 }).add(first.at(0).loadScalar());
        out.store(x.at(rows).load());
      },
    );
    const first = fromNumbers(i32, [1], [5]);
    expect(numbers((await device.run(k, { x, first })).out)).toEqual([6, 7, 8]);
  });

  test("may be one of a window that overhangs its array, where it loads as the fill value", async () => {
    const k = kernel(
      {
        name: "behind",
        inputs: { x: tensor(f32, [n]), ids: tensor(i32, [4]) },
        outputs: { out: tensor(f32, [4]) },
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
      inputs: { table: tensor(f32, [64, columns]), ids: tensor(i32, [16]) },
      outputs: { out: tensor(f32, [16, columns]) },
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

  test("move no more at once than rows are aligned to, where a statement gives lanes whole runs", () => {
    const loads = (columns: number): string => {
      const definition = kernel(
        {
          name: "stated",
          inputs: { table: tensor(f32, [64, columns]), ids: tensor(i32, [16]) },
          outputs: { out: tensor(f32, [16, 128]) },
        },
        ({ table, ids, out }) => {
          const rows = table.at(ids.load(), slice(0, 128)).load();
          out.store(rows.layoutCast("(W0 W1 | R0 R1 L0 L1 L2 L3 L4)"));
        },
      );
      return (
        compileAhead(definition)
          .ptx.match(/ld\.global\.nc\S*/g)
          ?.at(-1) ?? ""
      );
    };
    expect(loads(132)).toBe("ld.global.nc.v4.b32");
    expect(loads(130)).toBe("ld.global.nc.v2.b32");
    expect(loads(129)).toBe("ld.global.nc.b32");
  });

  test("leave out the test of an index that is surely there", () => {
    const tests = (text: string): number => text.match(/setp\.ge\.u32/g)?.length ?? 0;
    expect(tests(rowsText((ids) => ids, 128))).toBeGreaterThan(0);
    expect(tests(rowsText((ids) => ids.and(63), 128))).toBe(0);
    expect(tests(rowsText((ids) => ids.and(127), 128))).toBeGreaterThan(0);
    expect(tests(rowsText((ids) => ids.minimum(63), 128))).toBeGreaterThan(0);
  });
});

test("neighbours of a row that a mask treats differently are moved one by one", async () => {
  const k = kernel(
    {
      name: "chequered",
      inputs: { table: tensor(f32, [4, 32]), ids: tensor(i32, [8]) },
      inouts: { out: tensor(f32, [8, 32]) },
    },
    ({ table, ids, out }) => {
      const own = ids.load();
      const where = iota(i32, [8, 32], { axis: 1 })
        .add(iota(i32, [8, 32], { axis: 0 }))
        .rem(2)
        .eq(0);
      const rows = table.at(own).load({ where, fill: -1 });
      out.at(iota(i32, [8], { axis: 0 }).xor(own.and(0))).store(rows.add(100), { where });
    },
  );
  const cells = Array.from({ length: 4 * 32 }, (_, index) => index);
  const ids = [3, 0, 2, 2, 1, 3, 0, 1];
  const { out } = await device.run(k, {
    table: fromNumbers(f32, [4, 32], cells),
    ids: fromNumbers(i32, [8], ids),
    out: fromNumbers(f32, [8, 32], new Array<number>(256).fill(7)),
  });
  const expected = ids.flatMap((id, row) =>
    Array.from({ length: 32 }, (_, column) =>
      (row + column) % 2 === 0 ? id * 32 + column + 100 : 7,
    ),
  );
  expect(numbers(out)).toEqual(expected);
});

describe("axes of 2^31 elements and more", () => {
  const long = 2 ** 31 + 4096;
  const textOf = (definition: KernelDefinition): string => compileAhead(definition).ptx;

  test("indices of 64 bits reach their addresses whole", () => {
    const at = (extent: number): string =>
      textOf(
        kernel({ name: "far", inouts: { x: tensor(f32, [extent]) } }, ({ x }) => {
          const last = iota(i64, [128], { axis: 0 }).add(BigInt(extent - 128));
          x.at(last).store(1);
        }),
      );
    expect(at(long)).toContain("mad.lo.s64");
    expect(at(long)).not.toContain("cvt.u32.u64");
    // Where all indices have 32 bits, products of 32 bits do.
    expect(at(4096)).not.toContain("mad.lo.s64");
  });

  test("sizes that only the launch knows are taken to be that long", () => {
    const far = kernel({ name: "far", inouts: { x: tensor(f32, [n.mul(8)]) } }, ({ x }) => {
      x.at(iota(i64, [128], { axis: 0 })).store(1);
    });
    expect(textOf(far)).not.toContain("cvt.u32.u64");
  });

  test("behind a view that does not lie evenly they are refused", () => {
    const odd = kernel({ name: "odd", inouts: { x: tensor(f32, [3, long]) } }, ({ x }) => {
      const part = x.at(slice(0, 2), slice(0, long - 1)).reshape([2 * (long - 1)]);
      part.at(iota(i64, [128], { axis: 0 })).store(1);
    });
    expect(() => textOf(odd)).toThrow(/TW7004: an axis of \d+ elements is reached through a view/);
  });
});
