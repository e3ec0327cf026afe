/**
 * Rows of groups dealt to tiles. Only the device knows how many rows each group has, so a launch of its own makes tables from
 * the sizes: which rows and columns a tile has, and whose they are. A tile belongs to one group, and the last one of a group may be cut:
 *
 *   sizes 5 0 2 (9 rows in all), tiles of 4,     tile     0   1   2   3   4   5
 *   two side by side                             group    0   0   0   0   2   2
 *                                                top      0   4   0   4   5   5
 *                                                column   0   0   1   1   0   1          rows 7 and 8 belong to nobody, and become 0
 *                                                end      5   5   5   5   7   7
 *
 * Tiles come group by group, those that read the same columns of a matrix side by side: they run at the same time, and on processors that ask the cache
 * together. Tiles of small groups (s) wait for memory, and others (L) for tensor cores, so where all are dealt in few rounds the small ones are spread
 * among the others, but for the last round, which is divided among blocks (`lang/pipeline/segments.ts`): sums of few rows are handed on sooner.
 *
 *   blocks   L L s L L s L L s        L L s L L s L L s        s s s s s s
 */
import {
  array,
  assert,
  cdiv,
  constant,
  dim,
  iota,
  kernel,
  launchNextKernel,
  loop,
  slice,
  waitForPreviousKernel,
  when,
  zeros,
} from "../../lang/index.ts";
import type {
  ArraySpec,
  KernelDefinition,
  LaunchSize,
  Ref,
  Scalar,
  Tile,
} from "../../lang/index.ts";
import { dtypes } from "../../formats/dtype.ts";
import type { DType } from "../../formats/dtype.ts";
import type { PlannedLaunch } from "../../device/operation.ts";
import { notBefore } from "../matmul/order.ts";
import type { DealtRows } from "../matmul/order.ts";
import type { Dealing } from "../matmul/plan.ts";
import { alignedDimension } from "../support/sizes.ts";

type Integer = Scalar<"i32">;

/** Tiles and groups that are looked at together. */
const [tilesTogether, groupsTogether] = [32, 64];
/** Blocks that make the tables, and what they clear at once. */
const [blocks, clearedRows, clearedColumns] = [64, 8, 512];
/** Rows of tiles of a group that are taken together, one below the other: few enough for what they read to stay in the cache. */
const panel = 8;

/** Tiles up to which small ones may be spread among others: products of their numbers are numbers, too. */
export const mostSpread = 2 ** 15;

const tableNames = ["tops", "columns", "ends", "groups", "count"] as const;
export type Tables = { readonly [N in (typeof tableNames)[number]]: Ref<"i32"> };

/** Sizes of the whole, rows of a tile, and how many tiles lie side by side. */
export interface RaggedSizes {
  readonly m: number;
  readonly n: number;
  readonly g: number;
  readonly unit: number;
  readonly across: number;
  /** Where tiles of small groups are spread among others: how many blocks there are, and rows that a small group has at most. */
  readonly spread?: { readonly workers: number; readonly small: number } | undefined;
}

/** Tiles, however rows are dealt to groups: every group may have one that is cut. */
export function mostTiles({ m, g, unit, across }: RaggedSizes): number {
  return (Math.ceil(m / unit) + g) * across;
}

export function tableSpecs(): { readonly [N in keyof Tables]: ArraySpec<"i32"> } {
  const list = array(dtypes.i32, [dim("most")]);
  return { tops: list, columns: list, ends: list, groups: list, count: array(dtypes.i32, [1]) };
}

export function dealingOf(sizes: RaggedSizes, out: DType): Dealing {
  const most = mostTiles(sizes);
  const tables = Object.fromEntries(
    tableNames.map((name) => [name, { dtype: dtypes.i32, shape: [name === "count" ? 1 : most] }]),
  );
  return {
    rows: dealtRows,
    scratch: tables,
    dimensions: { most },
    launch: () => dealingLaunch(sizes, out),
  };
}

export function dealingLaunch(sizes: RaggedSizes, out: DType): PlannedLaunch {
  const { m, n, g } = sizes;
  const names = ["groupSizes", ...tableNames, "out"];
  return {
    kernel: dealingKernel(sizes, out),
    arguments: Object.fromEntries(names.map((name) => [name, { argument: name }])),
    dimensions: { m, n, g, most: mostTiles(sizes) },
  };
}

/** Tiles as the tables say. */
const dealtRows: DealtRows = {
  inputs: tableSpecs(),
  order: ({ rows, columns }, turned, refs) => {
    const tables = refs as unknown as Tables;
    // The kernel before writes the tables, and every thread asks how many tiles they tell of.
    waitForPreviousKernel();
    return {
      tiles: tables.count.at(0).loadScalar(),
      place: (tile) => {
        const { group, top, column, end } = tileRows(tables, tile);
        return turned
          ? { batch: group, top: notBefore(column.mul(rows)), left: notBefore(top), end }
          : { batch: group, top: notBefore(top), left: notBefore(column.mul(columns)), end };
      },
    };
  },
};

/** No tile begins behind it. What is added to it is more than it as facts see it, so that the copy engine may store whole tiles. */
const lastTop = 2 ** 31 - 2 ** 12;

/** What the tables say of a tile. */
export function tileRows(
  { tops, columns, ends, groups }: Tables,
  tile: Integer,
): { readonly [N in "group" | "top" | "column" | "end"]: Integer } {
  return {
    group: groups.at(tile).loadScalar(),
    top: tops.at(tile).loadScalar().minimum(lastTop),
    column: columns.at(tile).loadScalar(),
    end: ends.at(tile).loadScalar(),
  };
}

function dealingKernel(sizes: RaggedSizes, out: DType): KernelDefinition {
  const [m, g] = [dim("m"), dim("g")];
  const n = alignedDimension("n", sizes.n);
  const { across } = sizes;
  return kernel(
    {
      name: "ragged_tiles",
      grid: { block: blocks },
      inputs: { groupSizes: array(dtypes.i32, [g]) },
      // Which rows are cleared, and which tiles there are, follows from the sizes of the groups.
      inouts: { ...tableSpecs(), out: array(out, [m, n]) },
    },
    ({ block, groupSizes, out: result, ...tables }) => {
      waitForPreviousKernel();
      launchNextKernel();
      const zero = constant(dtypes.i32, 0);
      const none = constant(dtypes.i64, 0);
      const chunks = cdiv(g, groupsTogether);
      const start = { rows: none, large: zero, small: zero };
      const all = loop({ to: chunks, carry: start }, (chunk, before) => {
        const own = groupsOf(groupSizes, chunk);
        const { large, small } = tilesOf(own, sizes);
        return {
          // Sizes that are none may have a sum beyond i32, which would come around to one that fits.
          rows: before.rows.add(own.cast(dtypes.i64).sum()),
          large: before.large.add(large.sum()),
          small: small === undefined ? before.small : before.small.add(small.sum()),
        };
      });
      const tiles = all.large.add(all.small).mul(across).minimum(dim("most"));
      when(block.eq(0), () => {
        const rows = zero.add(m).cast(dtypes.i64);
        assert(
          all.rows.le(rows),
          "the groups of a ragged product have no more rows than there are",
        );
        tables.count.at(0).store(tiles);
      });
      const lists = tiles.add(tilesTogether - 1).div(tilesTogether);
      loop({ from: block, to: lists, step: blocks }, (list) => {
        const from = list.mul(tilesTogether);
        writeTables(tables, groupSizes, sizes, { chunks, from, large: all.large, small: all.small });
      });
      clearRows(result as Ref, all.rows.cast(dtypes.i32), block, zero.add(m), zero.add(n));
    },
  ) as unknown as KernelDefinition;
}

/** Sizes of some groups, [1, groups]; 0 beyond the last one. */
function groupsOf(groupSizes: Ref<"i32">, chunk: Integer): Tile<"i32"> {
  const here = slice(chunk.mul(groupsTogether), groupsTogether);
  return groupSizes.at(here).load().maximum(0).reshape([1, groupsTogether]);
}

/** Rows of tiles of groups with so many rows: of those that are not small, and of those that are. */
function tilesOf(
  own: Tile<"i32">,
  { unit, spread }: RaggedSizes,
): { readonly large: Tile<"i32">; readonly small: Tile<"i32"> | undefined } {
  const count = own.add(unit - 1).div(unit);
  if (spread === undefined) return { large: count, small: undefined };
  const large = count.mul(own.gt(spread.small).cast(dtypes.i32));
  return { large, small: count.sub(large) };
}

/** Which tiles a list is of, and among how many rows of tiles. */
interface Listed {
  /** Parts in which all groups are looked at. */
  readonly chunks: LaunchSize;
  readonly from: Integer;
  readonly large: Integer;
  readonly small: Integer;
}

/** What the tables say of some tiles, each found among all groups. */
function writeTables(
  { tops, columns, ends, groups }: Tables,
  groupSizes: Ref<"i32">,
  sizes: RaggedSizes,
  { chunks, from, large, small }: Listed,
): void {
  const { unit, across, spread } = sizes;
  const none = zeros(dtypes.i32, [tilesTogether, 1]);
  const zero = constant(dtypes.i32, 0);
  const tile = iota(dtypes.i32, [tilesTogether, 1], 0).add(from);
  // Tiles of small groups are numbered behind all others.
  const number =
    spread === undefined ? tile : spreadTiles(tile, large.mul(across), small.mul(across), spread);
  const row = number.div(across);
  const start = {
    ...{ group: none, first: none, down: none, top: none, end: none },
    ...{ rows: zero, large: zero, small: large },
  };
  const found = loop({ to: chunks, carry: start }, (chunk, before) => {
    const own = groupsOf(groupSizes, chunk);
    const count = tilesOf(own, sizes);
    const lastRow = own.cumsum(1).add(before.rows);
    const beginning = (of: Tile<"i32">, begun: Integer): Tile<"i32"> =>
      of.cumsum(1).sub(of).add(begun);
    const firstLarge = beginning(count.large, before.large);
    // A group is small or not, and has tiles among those alone.
    const firstTile =
      count.small === undefined
        ? firstLarge
        : beginning(count.small, before.small)
            .sub(firstLarge)
            .mul(count.small.minimum(1))
            .add(firstLarge);
    const down = count.small === undefined ? count.large : count.large.add(count.small);
    const within = row.sub(firstTile);
    const isHere = within.ge(0).and(within.lt(down)).cast(dtypes.i32);
    const group = iota(dtypes.i32, [1, groupsTogether], 1).add(chunk.mul(groupsTogether));
    const added = (values: Tile<"i32">): Tile<"i32"> => isHere.mul(values).sum(1, { keep: true });
    return {
      group: before.group.add(added(group)),
      first: before.first.add(added(firstTile)),
      down: before.down.add(added(down)),
      top: before.top.add(added(lastRow.sub(own))),
      end: before.end.add(added(lastRow)),
      rows: before.rows.add(own.sum()),
      large: before.large.add(count.large.sum()),
      small: count.small === undefined ? before.small : before.small.add(count.small.sum()),
    };
  });
  // Tiles of a group one below the other, by panels, and every other panel from the right.
  const within = number.sub(found.first.mul(across));
  const of = within.div(across * panel);
  const size = found.down.sub(of.mul(panel)).minimum(panel).maximum(1);
  const inside = within.sub(of.mul(across * panel));
  const j = inside.div(size);
  const i = of.mul(panel).add(inside.sub(j.mul(size)));
  const column = of.and(1).eq(0).select(j, j.neg().add(across - 1));
  const here = slice(from, tilesTogether);
  const lists = [
    [tops, found.top.add(i.mul(unit))],
    [columns, column],
    [ends, found.end],
    [groups, found.group],
  ] as const;
  for (const [table, values] of lists) table.at(here).store(values.reshape([tilesTogether]));
}

/** The numbers of tiles where those of small groups, which are numbered behind all others, are spread among these. */
function spreadTiles(
  tile: Tile<"i32">,
  large: Integer,
  small: Integer,
  { workers }: NonNullable<RaggedSizes["spread"]>,
): Tile<"i32"> {
  const all = large.add(small);
  // Those of the last round, which are divided among blocks, are small ones: sums of few rows are handed on sooner.
  const last = all.sub(all.div(workers).mul(workers)).minimum(small);
  const spread = small.sub(last);
  const most = all.sub(last).maximum(1);
  const before = tile.mul(spread).div(most);
  const isSmall = tile.add(1).mul(spread).div(most).gt(before);
  const mixed = isSmall.select(before.add(large), tile.sub(before));
  return tile.ge(all.sub(last)).select(tile, mixed);
}

/** Rows behind the last group are 0. */
function clearRows(out: Ref, from: Integer, block: Integer, m: Integer, n: Integer): void {
  const first = from.add(block.mul(clearedRows));
  loop({ from: first, to: m, step: blocks * clearedRows }, (top) => {
    loop({ to: n, step: clearedColumns }, (left) => {
      out.at(slice(top, clearedRows), slice(left, clearedColumns)).store(0);
    });
  });
}
