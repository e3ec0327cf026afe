/**
 * Rows of groups dealt to tiles. Only the device knows how many rows each group has, so a launch of its own makes tables from
 * the sizes: which rows a tile has, and whose they are. A tile belongs to one group, and the last one of a group may be cut:
 *
 *   sizes 5 0 2 (9 rows in all), tiles of 4      tile     0   1   2
 *                                                group    0   0   2
 *                                                top      0   4   5          rows 7 and 8 belong to nobody, and become 0
 *                                                end      5   5   7
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
import { notBefore, planeOrder } from "../matmul/order.ts";
import type { DealtRows } from "../matmul/order.ts";
import type { Dealing } from "../matmul/plan.ts";
import { alignedDimension } from "../support/sizes.ts";

type Integer = Scalar<"i32">;

/** Tiles and groups that are looked at together. */
const [tilesTogether, groupsTogether] = [32, 64];
/** Blocks that make the tables, and what they clear at once. */
const [blocks, clearedRows, clearedColumns] = [64, 8, 512];

const tableNames = ["tops", "ends", "groups", "count"] as const;
export type Tables = { readonly [N in (typeof tableNames)[number]]: Ref<"i32"> };

/** Sizes of the whole, and rows of a tile. */
export interface RaggedSizes {
  readonly m: number;
  readonly n: number;
  readonly g: number;
  readonly unit: number;
}

/** Tiles of rows, however rows are dealt to groups: every group may have one that is cut. */
export function mostTiles({ m, g, unit }: RaggedSizes): number {
  return Math.ceil(m / unit) + g;
}

export function tableSpecs(): { readonly [N in keyof Tables]: ArraySpec<"i32"> } {
  const list = array(dtypes.i32, [dim("most")]);
  return { tops: list, ends: list, groups: list, count: array(dtypes.i32, [1]) };
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

/** Tiles in the order of a dense product, but for what the tables say of their rows. */
const dealtRows: DealtRows = {
  inputs: tableSpecs(),
  order: ({ height, width, rows, columns }, turned, refs) => {
    const tables = refs as unknown as Tables;
    const zero = constant(dtypes.i32, 0);
    // The kernel before writes the tables, and every thread asks how many tiles they tell of.
    waitForPreviousKernel();
    const across = zero.add(turned ? cdiv(height, rows) : cdiv(width, columns));
    const { tiles, place } = planeOrder(tables.count.at(0).loadScalar(), across);
    return {
      tiles,
      place: (tile) => {
        const { i, j } = place(tile);
        const { group, top, end } = tileRows(tables, i);
        return turned
          ? { batch: group, top: notBefore(j.mul(rows)), left: notBefore(top), end }
          : { batch: group, top: notBefore(top), left: notBefore(j.mul(columns)), end };
      },
    };
  },
};

/** No tile begins behind it. What is added to it is more than it as facts see it, so that the copy engine may store whole tiles. */
const lastTop = 2 ** 31 - 2 ** 12;

/** What the tables say of a tile. */
export function tileRows(
  { tops, ends, groups }: Tables,
  tile: Integer,
): { readonly group: Integer; readonly top: Integer; readonly end: Integer } {
  return {
    group: groups.at(tile).loadScalar(),
    top: tops.at(tile).loadScalar().minimum(lastTop),
    end: ends.at(tile).loadScalar(),
  };
}

function dealingKernel(sizes: RaggedSizes, out: DType): KernelDefinition {
  const [m, g] = [dim("m"), dim("g")];
  const n = alignedDimension("n", sizes.n);
  const { unit } = sizes;
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
      const all = loop({ to: chunks, carry: { rows: none, tiles: zero } }, (chunk, before) => {
        const own = groupsOf(groupSizes, chunk);
        return {
          // Sizes that are none may have a sum beyond i32, which would come around to one that fits.
          rows: before.rows.add(own.cast(dtypes.i64).sum()),
          tiles: before.tiles.add(
            own
              .add(unit - 1)
              .div(unit)
              .sum(),
          ),
        };
      });
      const tiles = all.tiles.minimum(dim("most"));
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
        writeTables(tables, groupSizes, chunks, list.mul(tilesTogether), unit);
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

/** What the tables say of some tiles, each found among all groups. */
function writeTables(
  { tops, ends, groups }: Tables,
  groupSizes: Ref<"i32">,
  chunks: LaunchSize,
  from: Integer,
  unit: number,
): void {
  const none = zeros(dtypes.i32, [tilesTogether, 1]);
  const zero = constant(dtypes.i32, 0);
  const tile = iota(dtypes.i32, [tilesTogether, 1], 0).add(from);
  const start = { group: none, top: none, end: none, rows: zero, tiles: zero };
  const found = loop({ to: chunks, carry: start }, (chunk, before) => {
    const own = groupsOf(groupSizes, chunk);
    const count = own.add(unit - 1).div(unit);
    const lastTile = count.cumsum(1).add(before.tiles);
    const lastRow = own.cumsum(1).add(before.rows);
    const isPast = lastTile.le(tile);
    const firstTile = lastTile.sub(count);
    const isHere = firstTile.le(tile).and(isPast.not()).cast(dtypes.i32);
    const top = tile.sub(firstTile).mul(unit).add(lastRow.sub(own));
    const added = (values: Tile<"i32">): Tile<"i32"> => values.sum(1, { keep: true });
    return {
      group: before.group.add(added(isPast.cast(dtypes.i32))),
      top: before.top.add(added(isHere.mul(top))),
      end: before.end.add(added(isHere.mul(lastRow))),
      rows: before.rows.add(own.sum()),
      tiles: before.tiles.add(count.sum()),
    };
  });
  const here = slice(from, tilesTogether);
  tops.at(here).store(found.top.reshape([tilesTogether]));
  ends.at(here).store(found.end.reshape([tilesTogether]));
  groups.at(here).store(found.group.reshape([tilesTogether]));
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
