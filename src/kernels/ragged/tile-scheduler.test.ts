/**
 * Every tile of every group is in the tables exactly once, tiles of a group one below the other, and those of small groups lie where they should: among
 * others in whole rounds, and in the last round.
 */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Device } from "../../device/device.ts";
import { bf16, i32 } from "../../formats/dtype.ts";
import { fromNumbers, toNumbers } from "../../formats/hostarray.ts";
import type { HostArray } from "../../formats/hostarray.ts";
import { open } from "../../runtime/open.ts";
import { dealingLaunch, mostTiles } from "./tile-scheduler.ts";
import type { RaggedSizes } from "./tile-scheduler.ts";

let device: Device;
beforeAll(async () => {
  device = await open("simulator");
});
afterAll(() => {
  device.dispose();
});

const [unit, small, n] = [128, 64, 8];

const lists = ["tops", "columns", "ends", "groups"] as const;

/** What is in the tables, and in a result that had ones, after groups with so many rows were dealt. */
async function launched(
  sizes: RaggedSizes,
  groups: readonly number[],
  further: { readonly next?: HostArray } = {},
) {
  const { m, n: width, g } = sizes;
  const integers = (size: number) => fromNumbers(i32, [size], new Float64Array(size));
  const { kernel, dimensions = {} } = dealingLaunch(sizes, bf16);
  return (await device.run(
    kernel as never,
    {
      groupSizes: fromNumbers(i32, [g], groups),
      ...Object.fromEntries(lists.map((name) => [name, integers(mostTiles(sizes))])),
      ...{ count: integers(1), ...further },
      out: fromNumbers(bf16, [m, width], new Float64Array(m * width).fill(1)),
    } as never,
    { dimensions },
  )) as unknown as { readonly [N in (typeof lists)[number] | "count" | "next" | "out"]: HostArray };
}

interface How {
  readonly workers?: number;
  readonly byGroup?: boolean;
  readonly halves?: boolean;
}

/** What the tables say of the tiles of groups with so many rows. */
async function dealt(
  groups: readonly number[],
  across: number,
  { workers, byGroup = true, halves = false }: How = {},
) {
  const m = groups.reduce((sum, rows) => sum + Math.max(0, rows), 0);
  const spread = workers === undefined ? undefined : { workers, small, halves };
  const tables = await launched({ m, n, g: groups.length, unit, across, byGroup, spread }, groups);
  const [tiles = 0] = toNumbers(tables.count);
  const [tops = [], columns = [], ends = [], owners = []] = lists.map((name) =>
    Array.from(toNumbers(tables[name])),
  );
  return Array.from({ length: tiles }, (_, tile) => ({
    top: tops[tile] ?? NaN,
    column: columns[tile] ?? NaN,
    end: ends[tile] ?? NaN,
    group: owners[tile] ?? NaN,
  }));
}

type Dealt = Awaited<ReturnType<typeof dealt>>[number];

/** The tiles that groups with so many rows have, in any order. */
function wanted(groups: readonly number[], across: number): readonly Dealt[] {
  let start = 0;
  return groups.flatMap((rows, group) => {
    const [first, end] = [start, start + rows];
    start = end;
    return Array.from({ length: Math.ceil(rows / unit) * across }, (_, tile) => ({
      top: first + Math.floor(tile / across) * unit,
      column: tile % across,
      end,
      group,
    }));
  });
}

const key = ({ top, column, end, group }: Dealt): string => [group, top, column, end].join();

describe.each([
  ["alike", [200, 200, 200]],
  ["large and small", [1024, 3, 0, 130, 60, 700, 64, 65]],
  ["small alone", [1, 64, 0, 30]],
  ["one more than some are added up at once", [1, 2, 3, 4, 5, 6, 7, 8, 9]],
  [
    "more than are looked at together",
    Array.from({ length: 70 }, (_, group) => (group * 37) % 150),
  ],
])("groups that are %s", (_, groups) => {
  test.each([
    {},
    { byGroup: false },
    { workers: 5 },
    { workers: 40 },
    { workers: 5, halves: true },
  ])("%o: every tile once", async (how) => {
    const found = await dealt(groups, 3, how);
    expect(found.map(key).sort()).toEqual(wanted(groups, 3).map(key).sort());
  });
});

test("tiles that read the same columns of a matrix follow each other", async () => {
  const found = await dealt([300, 20, 260], 2);
  expect(found.map(({ group, top, column }) => [group, top, column])).toEqual([
    ...[
      [0, 0, 0],
      [0, 128, 0],
      [0, 256, 0],
    ],
    ...[
      [0, 0, 1],
      [0, 128, 1],
      [0, 256, 1],
    ],
    ...[
      [1, 300, 0],
      [1, 300, 1],
    ],
    ...[
      [2, 320, 0],
      [2, 448, 0],
      [2, 576, 0],
    ],
    ...[
      [2, 320, 1],
      [2, 448, 1],
      [2, 576, 1],
    ],
  ]);
});

test("groups with less than no rows have none", async () => {
  const found = await dealt([20, -5, 20], 1);
  expect(found.map(key)).toEqual(["0,0,0,20", "2,20,0,40"]);
});

test("every other panel of eight rows of tiles comes from the right", async () => {
  const found = await dealt([10 * unit], 2);
  expect(found.map(({ column }) => column)).toEqual(
    [0, 1, 1, 0].flatMap((column, part) => Array<number>(part < 2 ? 8 : 2).fill(column)),
  );
});

test("or those of several groups do, by rows of tiles", async () => {
  const found = await dealt([130, 20], 2, { byGroup: false });
  expect(found.map(({ group, top, column }) => [group, top, column])).toEqual([
    ...[
      [0, 0, 0],
      [0, 128, 0],
      [1, 130, 0],
    ],
    ...[
      [0, 0, 1],
      [0, 128, 1],
      [1, 130, 1],
    ],
  ]);
});

test("tiles of small groups are spread over whole rounds, and the last round has them alone", async () => {
  // 24 tiles of large groups and 12 of small ones: two rounds of 16 blocks, and four tiles more.
  const groups = [10, 20, 512, 256, 30];
  const found = await dealt(groups, 4, { workers: 16 });
  const isSmall = found.map(({ group }) => (groups[group] ?? 0) <= small);
  const count = (from: number, to: number) => isSmall.slice(from, to).filter(Boolean).length;
  expect(found).toHaveLength(36);
  expect([count(0, 8), count(8, 16), count(16, 24), count(24, 32), count(32, 36)]).toEqual([
    2, 2, 2, 2, 4,
  ]);
});

test("where tiles of the last round are halved, small groups are spread over all rounds", async () => {
  // 24 tiles of large groups and 12 of small ones: a round of 24 blocks, and twelve tiles more.
  const groups = [10, 20, 512, 256, 30];
  const found = await dealt(groups, 4, { workers: 24, halves: true });
  const isSmall = found.map(({ group }) => (groups[group] ?? 0) <= small);
  const counts = [0, 1, 2].map(
    (part) => isSmall.slice(12 * part, 12 * (part + 1)).filter(Boolean).length,
  );
  expect(counts).toEqual([4, 4, 4]);
});

test("rows behind the last group become 0, all of them, and no others", async () => {
  // More rows than all blocks clear at once, and more columns.
  const [m, width, own] = [560, 520, 5];
  const { out } = await launched({ m, n: width, g: 1, unit, across: 1, byGroup: true }, [own]);
  const found = toNumbers(out);
  const rowsOf = (value: number) =>
    Array.from({ length: m }, (_, row) => found.slice(row * width, (row + 1) * width)).filter(
      (row) => row.every((each) => each === value),
    ).length;
  expect([rowsOf(1), rowsOf(0)]).toEqual([own, m - own]);
});

describe("of tiles that blocks take from a counter", () => {
  const rounds = async (groups: readonly number[], takers: number) => {
    const m = groups.reduce((sum, rows) => sum + rows, 0);
    const sizes = { m, n, g: groups.length, unit, across: 2, byGroup: true, takers };
    const { next } = await launched(sizes, groups, { next: fromNumbers(i32, [2], [7, 7]) });
    const [counter, found] = toNumbers(next);
    // Whatever was there, it is 0 for the next kernel.
    expect(counter).toBe(0);
    return found;
  };

  test("all whole rounds are dealt where tiles are alike", async () => {
    // 18 tiles of four blocks.
    expect(await rounds([unit, 7 * unit, 100], 4)).toBe(4);
  });

  test("half of them where several tiles have few rows", async () => {
    expect(await rounds([unit, 7 * unit, 60], 4)).toBe(2);
    // Two such tiles are less than half of five.
    expect(await rounds([unit, 7 * unit, 60], 5)).toBe(3);
    expect(await rounds([unit, 7 * unit + 1, 64, 1], 5)).toBe(2);
  });

  test("every block has a tile of its own, however few there are", async () => {
    expect(await rounds([5], 4)).toBe(1);
    expect(await rounds([0], 4)).toBe(1);
  });
});
