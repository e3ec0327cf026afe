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
 * Tiles of many rows come group by group, those that read the same columns of a matrix side by side: they run at the same time, and on processors that ask the cache
 * together. Tiles of small groups (s) wait for memory, and others (L) for tensor cores, so where all are dealt in few rounds the small ones are spread
 * among the others, but for the last round, where its tiles are divided along k (`lang/pipeline/stream-k.ts`): sums of few rows are handed on sooner.
 *
 *   blocks   L L s L L s L L s        L L s L L s L L s        s s s s s s
 */
import {
  tensor,
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
import type { TensorSpec, KernelDefinition, Ref, Scalar, Tile, Tree } from "../../lang/index.ts";
import { dtypes } from "../../formats/dtype.ts";
import type { DType } from "../../formats/dtype.ts";
import type { PlannedLaunch } from "../../device/operation.ts";
import { threadRows } from "../matmul/configuration.ts";
import { notBefore } from "../matmul/scheduler/tile-scheduler.ts";
import type { DealtRows } from "../matmul/scheduler/tile-scheduler.ts";
import type { Dealing } from "../matmul/plan.ts";
import { alignedDimension } from "../support/sizes.ts";

type Integer = Scalar<"i32">;

/** Tiles that are looked at together, and groups at most. */
const [tilesTogether, mostTogether] = [32, 64];
/** Blocks that make the tables, and what they clear at once. */
const [blocks, clearedRows, clearedColumns] = [64, 8, 512];
/** Rows of tiles that are taken together, one below the other: few enough for what they read to stay in the cache. */
const panel = 8;

/** Tiles up to which small ones may be spread among others: products of their numbers, and two of these numbers side by side, are numbers, too. */
export const mostSpread = 2 ** 15;

const tableNames = ["tops", "columns", "ends", "groups", "count"] as const;
export type Tables = { readonly [N in (typeof tableNames)[number]]: Ref<"i32"> };

export interface Spread {
  /** How many blocks there are. */
  readonly workers: number;
  /** Rows that a small group has at most. */
  readonly small: number;
  /** Whether two parts of a tile are halves of its columns. */
  readonly halves: boolean;
}

/** Sizes of the whole, rows of a tile, and how many tiles lie side by side. */
export interface RaggedSizes {
  readonly m: number;
  readonly n: number;
  readonly g: number;
  readonly unit: number;
  readonly across: number;
  /** Whether tiles come group by group. */
  readonly byGroup: boolean;
  /** Where tiles of small groups are spread among others. */
  readonly spread?: Spread | undefined;
  /** How many blocks take tiles of the last rounds from a counter; undefined where all tiles are dealt. */
  readonly takers?: number | undefined;
}

/** Tiles, however rows are dealt to groups: every group may have one that is cut. */
export function mostTiles({ m, g, unit, across }: RaggedSizes): number {
  return (Math.ceil(m / unit) + g) * across;
}

export function tableSpecs(): { readonly [N in keyof Tables]: TensorSpec<"i32"> } {
  const list = tensor(dtypes.i32, [dim("most")]);
  return { tops: list, columns: list, ends: list, groups: list, count: tensor(dtypes.i32, [1]) };
}

/** Where blocks take tiles of the last rounds: a counter, and how many rounds come before. */
const counterName = "next";

/** Whatever the first launch writes for the second one. */
function namesOf({ takers }: RaggedSizes): readonly string[] {
  return takers === undefined ? tableNames : [...tableNames, counterName];
}

/** What a plan calls memory for them: a name that no array of the user's can have. */
function dealtName(name: string): string {
  return `dealt ${name}`;
}

/** What kernels are given for them. */
function tableArguments(sizes: RaggedSizes): Dealing["tables"] {
  return Object.fromEntries(namesOf(sizes).map((name) => [name, { argument: dealtName(name) }]));
}

export function dealingOf(sizes: RaggedSizes, out: DType): Dealing {
  const most = mostTiles(sizes);
  const sizeOf = (name: string) => (name === "count" ? 1 : name === counterName ? 2 : most);
  return {
    rows: dealtRows(sizes.takers === undefined ? undefined : counterName),
    scratch: Object.fromEntries(
      namesOf(sizes).map((name) => [dealtName(name), { dtype: dtypes.i32, shape: [sizeOf(name)] }]),
    ),
    tables: tableArguments(sizes),
    dimensions: { most },
    launch: () => dealingLaunch(sizes, out),
  };
}

export function dealingLaunch(sizes: RaggedSizes, out: DType): PlannedLaunch {
  const { m, n, g } = sizes;
  return {
    kernel: dealingKernel(sizes, out),
    arguments: {
      groupSizes: { argument: "groupSizes" },
      ...tableArguments(sizes),
      out: { argument: "out" },
    },
    dimensions: { m, n, g, most: mostTiles(sizes) },
  };
}

/** Tiles as the tables say, and the counter from which some are taken. */
function dealtRows(counter: string | undefined): DealtRows {
  return {
    ...{ inputs: tableSpecs(), counter },
    order: ({ rows, columns }, swapAB, refs) => {
      const tables = refs as unknown as Tables;
      // The kernel before writes the tables, and every thread asks how many tiles they tell of.
      waitForPreviousKernel();
      return {
        tiles: tables.count.at(0).loadScalar(),
        place: (tile) => {
          const { group, top, column, end } = tileRows(tables, tile);
          return swapAB
            ? { batch: group, top: notBefore(column.mul(rows)), left: notBefore(top), end }
            : { batch: group, top: notBefore(top), left: notBefore(column.mul(columns)), end };
        },
      };
    },
  };
}

/** No tile begins behind it. What is added to it is more than it as facts see it, so that TMA may store whole tiles. */
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
      inputs: { groupSizes: tensor(dtypes.i32, [g]) },
      // Which rows are cleared, and which tiles there are, follows from the sizes of the groups.
      inouts: {
        ...tableSpecs(),
        ...(sizes.takers !== undefined && { [counterName]: tensor(dtypes.i32, [2]) }),
        out: tensor(out, [m, n]),
      },
    },
    (argument) => {
      const { block, groupSizes, out: result, ...tables } = argument;
      waitForPreviousKernel();
      launchNextKernel();
      const zero = constant(dtypes.i32, 0);
      const overGroups = groupLoop(sizes, groupSizes);
      const packed = overGroups(zero, (own, before) => before.add(packedTiles(own, sizes).sum()));
      const { large, small } = unpacked(packed, sizes);
      const tiles = large.add(small).mul(across).minimum(dim("most"));
      when(block.eq(0), () => {
        tables.count.at(0).store(tiles);
        if (sizes.takers !== undefined) {
          const { [counterName]: next } = argument as unknown as { readonly next: Ref<"i32"> };
          next.at(0).store(0);
          next.at(1).store(dealtRounds(overGroups, sizes, tiles, sizes.takers));
        }
      });
      const lists = tiles.add(tilesTogether - 1).div(tilesTogether);
      loop({ from: block, to: lists, step: blocks }, (list) => {
        const from = list.mul(tilesTogether);
        writeTables(tables, overGroups, sizes, { from, large, small });
      });
      const height = zero.add(m);
      // A block that seldom has a list.
      when(block.eq(blocks - 1), () => {
        requireRows(overGroups, height);
      });
      const rows = overGroups(zero, (own, before) => before.add(own.sum()));
      // Sizes that stop the kernel may have a sum that comes around to less than no rows.
      clearRows(result, rows.maximum(0), block, height, zero.add(n));
    },
  ) as unknown as KernelDefinition;
}

/** Looks at the sizes of all groups, some at a time. */
type GroupLoop = <R extends Tree>(
  start: R,
  look: (own: Tile<"i32">, before: R, first: Integer) => R,
) => R;

/** Where groups are few, their sizes are read once. */
function groupLoop({ g }: RaggedSizes, groupSizes: Ref<"i32">): GroupLoop {
  const zero = constant(dtypes.i32, 0);
  if (g > mostTogether)
    return (start, look) =>
      loop({ to: cdiv(dim("g"), mostTogether), carry: start }, (chunk, before) => {
        const first = chunk.mul(mostTogether);
        return look(groupsOf(groupSizes, first, mostTogether), before, first);
      });
  // Fewer are added up sooner.
  const together = [8, 16, 32].find((some) => some >= g) ?? mostTogether;
  const own = groupsOf(groupSizes, zero, together);
  return (start, look) => look(own, start, zero);
}

/** Sizes of some groups, [1, groups]; 0 beyond the last one. */
function groupsOf(groupSizes: Ref<"i32">, first: Integer, together: number): Tile<"i32"> {
  return groupSizes.at(slice(first, together)).load().maximum(0).reshape([1, together]);
}

/**
 * Rounds of tiles that are dealt: all whole ones, or half of them where there are half as many tiles of few rows as blocks, or more. 32768 rows of 64 groups of sizes
 * by 1/g, 2048 × 2048, in 17 rounds, took 404 µs with 8 and with 1 of them dealt, 405 with 12 and 14, 409 with all 17, and 416 where the tiles behind these were dealt, too.
 */
function dealtRounds(
  overGroups: GroupLoop,
  { unit, across }: RaggedSizes,
  tiles: Integer,
  takers: number,
): Integer {
  const few = overGroups(constant(dtypes.i32, 0), (own, before) => {
    const last = own.sub(own.div(unit).mul(unit));
    return before.add(last.gt(0).and(last.le(threadRows)).cast(dtypes.i32).sum());
  });
  const isUneven = few.mul(2 * across).ge(takers);
  const rounds = tiles.div(takers);
  return isUneven.select(rounds.div(2), rounds).maximum(1);
}

function requireRows(overGroups: GroupLoop, m: Integer): void {
  const none = constant(dtypes.i64, 0);
  // Sizes that are none may have a sum beyond i32, which would come around to one that fits.
  const rows = overGroups(none, (own, before) => before.add(own.cast(dtypes.i64).sum()));
  assert(
    rows.le(m.cast(dtypes.i64)),
    "the groups of a ragged product have no more rows than there are",
  );
}

/** Rows of tiles of a group. */
function tilesDown(own: Tile<"i32">, { unit }: RaggedSizes): Tile<"i32"> {
  return own.add(unit - 1).div(unit);
}

/** Bits of a number that are rows of tiles of large groups, where those of small ones are the others: sums of both take as long as of one. */
const largeBits = 16;

function packedTiles(own: Tile<"i32">, sizes: RaggedSizes): Tile<"i32"> {
  const count = tilesDown(own, sizes);
  if (sizes.spread === undefined) return count;
  return own.le(sizes.spread.small).select(count.shl(largeBits), count);
}

type Halves<T> = { readonly [N in "large" | "small"]: T };

function unpacked(packed: Integer, { spread }: RaggedSizes): Halves<Integer> {
  if (spread === undefined) return { large: packed, small: constant(dtypes.i32, 0) };
  return { large: packed.and(2 ** largeBits - 1), small: packed.shr(largeBits) };
}

/** Which tiles a list is of, and among how many rows of tiles. */
interface Listed extends Halves<Integer> {
  readonly from: Integer;
}

/** What the tables say of some tiles, each found among all groups. */
function writeTables(
  { tops, columns, ends, groups }: Tables,
  overGroups: GroupLoop,
  sizes: RaggedSizes,
  { from, large, small }: Listed,
): void {
  const { unit, across, spread } = sizes;
  const none = zeros(dtypes.i32, [tilesTogether, 1]);
  const zero = constant(dtypes.i32, 0);
  const tile = iota(dtypes.i32, [tilesTogether, 1], { axis: 0 }).add(from);
  // Tiles of small groups are numbered behind all others.
  const number =
    spread === undefined ? tile : spreadTiles(tile, large.mul(across), small.mul(across), spread);
  const place = sizes.byGroup ? undefined : inPanels(number, large, across);
  const row = place?.i ?? number.div(across);
  const start = {
    ...{ group: none, first: none, top: none, end: none },
    ...{ rows: zero, tiles: spread === undefined ? zero : large.shl(largeBits) },
  };
  const found = overGroups(start, (own, before, firstGroup) => {
    const down = tilesDown(own, sizes);
    const packed = packedTiles(own, sizes);
    const lastRow = own.cumsum({ axis: 1 }).add(before.rows);
    const tilesTo = packed.cumsum({ axis: 1 }).add(before.tiles).sub(packed);
    const firstTile =
      spread === undefined
        ? tilesTo
        : own.le(spread.small).select(tilesTo.shr(largeBits), tilesTo.and(2 ** largeBits - 1));
    const within = row.sub(firstTile);
    const isHere = within.ge(0).and(within.lt(down));
    const group = iota(dtypes.i32, own.shape, { axis: 1 }).add(firstGroup);
    const added = (values: Tile<"i32">): Tile<"i32"> =>
      isHere.select(values, 0).sum({ axis: 1, keepDims: true });
    return {
      group: before.group.add(added(group)),
      first: before.first.add(added(firstTile)),
      top: before.top.add(added(lastRow.sub(own))),
      end: before.end.add(added(lastRow)),
      rows: before.rows.add(own.sum()),
      tiles: before.tiles.add(packed.sum()),
    };
  });
  const down = tilesDown(found.end.sub(found.top), sizes);
  const { i, j } =
    place === undefined
      ? inPanels(number.sub(found.first.mul(across)), down, across)
      : { i: row.sub(found.first), j: place.j };
  const here = slice(from, tilesTogether);
  const lists = [
    [tops, found.top.add(i.mul(unit))],
    [columns, j],
    [ends, found.end],
    [groups, found.group],
  ] as const;
  for (const [table, values] of lists) table.at(here).store(values.reshape([tilesTogether]));
}

/** Tiles one below the other, by panels of rows, and every other panel from the right. */
function inPanels(
  number: Tile<"i32">,
  down: Tile<"i32"> | Integer,
  across: number,
): { readonly [N in "i" | "j"]: Tile<"i32"> } {
  const of = number.div(across * panel);
  const size = of.mul(-panel).add(down).minimum(panel).maximum(1);
  const inside = number.sub(of.mul(across * panel));
  const j = inside.div(size);
  return {
    i: of.mul(panel).add(inside.sub(j.mul(size))),
    j: of
      .and(1)
      .eq(0)
      .select(j, j.neg().add(across - 1)),
  };
}

/** The numbers of tiles where those of small groups, which are numbered behind all others, are spread among these. */
function spreadTiles(
  tile: Tile<"i32">,
  large: Integer,
  small: Integer,
  { workers, halves }: Spread,
): Tile<"i32"> {
  const all = large.add(small);
  const left = all.sub(all.div(workers).mul(workers));
  // Where tiles of the last round are divided along k, they are small ones: sums of few rows are handed on sooner.
  const isHalved = halves ? left.mul(2).le(workers).and(left.mul(3).gt(workers)) : undefined;
  const behind = left.minimum(small);
  const last = isHalved?.select(0, behind) ?? behind;
  const spread = small.sub(last);
  const most = all.sub(last).maximum(1);
  const product = tile.mul(spread);
  const before = product.div(most);
  const isSmall = product.sub(before.mul(most)).add(spread).ge(most);
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
