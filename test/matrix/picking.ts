/**
 * Accesses that pick elements: by tiles of indices of both widths on every axis, in both memories, with every
 * format, and by masks; loads, stores and atomic updates, rows with tails and windows that overhang.
 */
import { bf16, bool, f32, f64, i32, i4, i64, u8 } from "../../src/formats/dtype.ts";
import type { DType } from "../../src/formats/dtype.ts";
import { fromNumbers } from "../../src/formats/hostarray.ts";
import type { HostArray } from "../../src/formats/hostarray.ts";
import { all, tensor, cdiv, dim, full, iota, kernel, slice, smem } from "../../src/lang/index.ts";
import type { Ref } from "../../src/lang/index.ts";
import { Random } from "../../src/support/random.ts";
import { exactCase } from "./case.ts";
import type { MatrixCase } from "./case.ts";
import { anyNumbers, ordinaryNumbers } from "./inputs.ts";

/** Indices below `extent`; each at most once where they must be distinct. */
function indices(
  dtype: typeof i32 | typeof i64,
  count: number,
  extent: number,
  seed: number,
  distinct = false,
): HostArray {
  const random = new Random(seed);
  const pool = Array.from({ length: extent }, (_, index) => index);
  const drawn = Array.from({ length: count }, () => {
    const position = random.below(pool.length);
    return distinct ? (pool.splice(position, 1)[0] ?? 0) : (pool[position] ?? 0);
  });
  return fromNumbers(dtype, [count], drawn);
}

const n = dim("n");

/** A format of each width, since accesses move bits. */
const formats: readonly DType[] = [f64, f32, bf16, u8, i4, bool];

/** Rows of a table by a tile of row numbers, and the way back. */
function rows(dtype: DType, columns: number, seed: number): MatrixCase {
  const [table, ids, out] = [
    anyNumbers(dtype, [50, columns], seed),
    indices(i32, 37, 50, seed, true),
    anyNumbers(dtype, [50, columns], seed + 1),
  ];
  return exactCase(`rows of ${columns} ${dtype.name}`, { table, ids, out }, () =>
    kernel(
      {
        name: "rows",
        grid: { i: cdiv(n, 16) },
        inputs: { table: tensor(dtype, [50, columns]), ids: tensor(i32, [n]) },
        outputs: { taken: tensor(dtype, [n, columns]) },
        inouts: { out: tensor(dtype, [50, columns]) },
      },
      ({ i, table, ids, taken, out }) => {
        const here = slice(i.mul(16), 16);
        const own = ids.at(here).load({ fill: -1 });
        const where = own.ge(0).expand({ axis: 1 });
        const tile = table.at(own).load({ where });
        taken.at(here).store(tile);
        out.at(own).store(tile, { where });
      },
    ),
  );
}

/** Elements by a row and a column each, joined from tiles of different shapes, in i32 and i64. */
function elements(width: typeof i32 | typeof i64): MatrixCase {
  const inputs = {
    table: anyNumbers(f32, [9, 70], 3),
    rows: indices(width, 6, 9, 4),
    columns: indices(width, 20, 70, 5),
  };
  return exactCase(`elements by ${width.name}`, inputs, () =>
    kernel(
      {
        name: "elements",
        inputs: {
          table: tensor(f32, [9, n]),
          rows: tensor(width, [6]),
          columns: tensor(width, [20]),
        },
        outputs: { out: tensor(f32, [6, 20]) },
      },
      ({ table, rows, columns, out }) => {
        out.store(table.at(rows.load().expand({ axis: 1 }), columns.load()).load());
      },
    ),
  );
}

/** Along the middle of three axes, of a window that is transposed, reshaped, overhangs or lies in shared memory. */
const windows: readonly (readonly [string, (x: Ref<"f32">, buffer: Ref<"f32">) => Ref<"f32">])[] = [
  ["whole", (x) => x],
  ["transposed", (x) => x.transpose([2, 1, 0])],
  ["overhanging", (x) => x.at(slice(2, 4), slice(4, 12), slice(-3, 8))],
  ["reshaped", (x) => x.at(slice(1, 3), slice(0, 10)).reshape([3, 16, 5])],
  ["shared", (_, buffer) => buffer],
  ["transposed shared", (_, buffer) => buffer.transpose([2, 1, 0])],
];

function middle(name: string, view: (x: Ref<"f32">, buffer: Ref<"f32">) => Ref<"f32">): MatrixCase {
  const inputs = {
    x: anyNumbers(f32, [5, 12, 8], 7),
    ids: indices(i32, 24, 8, 8),
    out: anyNumbers(f32, [8, 24, 8], 9),
  };
  return exactCase(`indices along a window that is ${name}`, inputs, () =>
    kernel(
      {
        name: "middle",
        inputs: { x: tensor(f32, [5, 12, 8]), ids: tensor(i32, [24]) },
        inouts: { out: tensor(f32, [8, 24, 8]) },
        scratch: { buffer: smem(f32, [5, 12, 8]) },
      },
      ({ x, ids, out, buffer }) => {
        buffer.store(x.load());
        const found = view(x, buffer).at(all, ids.load()).load({ fill: 5 });
        const [first = 0, , last = 0] = found.shape;
        out.at(slice(0, first), all, slice(0, last)).store(found);
      },
    ),
  );
}

/** Stores by index into shared memory, with a mask. */
function scattered(dtype: DType): MatrixCase {
  const inputs = { x: anyNumbers(dtype, [24], 9), ids: indices(i32, 24, 40, 10, true) };
  return exactCase(`scattered ${dtype.name} in shared memory`, inputs, () =>
    kernel(
      {
        name: "scattered",
        inputs: { x: tensor(dtype, [24]), ids: tensor(i32, [24]) },
        outputs: { out: tensor(dtype, [40]) },
        scratch: { buffer: smem(dtype, [40]) },
      },
      ({ x, ids, out, buffer }) => {
        const own = ids.load();
        buffer.store((dtype === bool ? false : 0) as never);
        buffer.at(own).store(x.load() as never, { where: own.rem(3).ne(0) });
        out.store(buffer.load() as never);
      },
    ),
  );
}

/** Atomic updates of elements that indices pick more than once, whose old values nobody wants. */
function counted(space: "global" | "shared"): MatrixCase {
  const inputs = { ids: indices(i32, 300, 10, 11), weights: ordinaryNumbers(i32, [300], 12) };
  const bins = fromNumbers(i32, [10], new Array<number>(10).fill(0));
  return exactCase(`atomic add by index in ${space} memory`, { ...inputs, bins }, () =>
    kernel(
      {
        name: "counted",
        grid: { i: cdiv(n, 64) },
        inputs: { ids: tensor(i32, [n]), weights: tensor(i32, [n]) },
        inouts: { bins: tensor(i32, [10]) },
        scratch: { own: smem(i32, [10]) },
      },
      ({ i, ids, weights, bins, own }) => {
        const here = slice(i.mul(64), 64);
        const where = iota(i32, [64], { axis: 0 }).add(i.mul(64)).lt(n);
        const [at, weight] = [ids.at(here).load(), weights.at(here).load()];
        if (space === "global") bins.at(at).atomicAdd(weight, { where });
        else {
          own.store(0);
          own.at(at).atomicAdd(weight, { where });
          bins.atomicAdd(own.load());
        }
      },
    ),
  );
}

/** Rows that several indices add to, whose old values nobody wants: neighbours are added together. */
function addedRows(dtype: typeof f32 | typeof bf16): MatrixCase {
  const inputs = {
    x: fromNumbers(
      dtype,
      [48, 64],
      Array.from({ length: 48 * 64 }, (_, index) => index % 7),
    ),
    ids: indices(i32, 48, 12, 13),
    sums: fromNumbers(dtype, [12, 64], new Array<number>(12 * 64).fill(1)),
  };
  return exactCase(`rows of ${dtype.name} added by index`, inputs, () =>
    kernel(
      {
        name: "added_rows",
        grid: { i: 3 },
        inputs: { x: tensor(dtype, [48, 64]), ids: tensor(i32, [48]) },
        inouts: { sums: tensor(dtype, [12, 64]) },
      },
      ({ i, x, ids, sums }) => {
        const here = slice(i.mul(16), 16);
        sums.at(ids.at(here).load()).atomicAdd(x.at(here).load() as never);
      },
    ),
  );
}

/** The extremes of floats that many lanes update at once, so that exchanges fail and are tried again. */
function extremes(fn: "min" | "max", dtype: typeof f32 | typeof f64 | typeof bf16): MatrixCase {
  const inputs = {
    ids: indices(i32, 300, 5, 16),
    x: anyNumbers(dtype, [300], 17),
    high: anyNumbers(dtype, [5], 18),
  };
  return exactCase(`atomic ${fn} of ${dtype.name} by index`, inputs, () =>
    kernel(
      {
        name: "extremes",
        inputs: { ids: tensor(i32, [300]), x: tensor(dtype, [300]) },
        inouts: { high: tensor(dtype, [5]) },
        outputs: { own: tensor(dtype, [5]) },
        scratch: { buffer: smem(dtype, [5]) },
      },
      ({ ids, x, high, own, buffer }) => {
        buffer.store(high.load() as never);
        high.at(ids.load()).atomic(fn, x.load() as never);
        buffer.at(ids.load()).atomic(fn, x.load() as never);
        own.store(buffer.load() as never);
      },
    ),
  );
}

/** Exchanges and compare-exchanges of distinct elements, with their old values and a mask. */
function exchanged(): MatrixCase {
  const inputs = {
    ids: indices(i32, 32, 64, 14, true),
    state: ordinaryNumbers(i32, [64], 15),
  };
  return exactCase("exchange by index", inputs, () =>
    kernel(
      {
        name: "exchanged",
        inputs: { ids: tensor(i32, [32]) },
        inouts: { state: tensor(i32, [64]) },
        outputs: { old: tensor(i32, [32]), older: tensor(i32, [32]) },
      },
      ({ ids, state, old, older }) => {
        const own = ids.load();
        const where = own.rem(2).eq(0);
        const before = state.at(own).atomic("exchange", own, { where });
        old.store(before);
        older.store(state.at(own).compareExchange(own, before.add(1)));
      },
    ),
  );
}

/** Blocks of rows of ragged groups, whose ends are numbers in memory: loads, stores and updates stop there. */
function ragged(dtype: typeof f32 | typeof bf16 | typeof i32): MatrixCase {
  const inputs = {
    x: ordinaryNumbers(dtype, [50, 24], 19),
    offsets: fromNumbers(i32, [7], [0, 0, 5, 6, 30, 49, 50]),
    out: ordinaryNumbers(dtype, [50, 24], 20),
    sums: fromNumbers(dtype, [50, 24], new Array<number>(50 * 24).fill(1)),
  };
  return exactCase(`windows that end early in ${dtype.name}`, inputs, () =>
    kernel(
      {
        name: "ragged",
        grid: { group: 6, part: 3 },
        inputs: { x: tensor(dtype, [n, 24]), offsets: tensor(i32, [7]) },
        inouts: { out: tensor(dtype, [n, 24]), sums: tensor(dtype, [n, 24]) },
        outputs: { seen: tensor(dtype, [6, 3, 16, 20]) },
      },
      ({ group, part, x, offsets, out, sums, seen }) => {
        const start = offsets.at(group).loadScalar().add(part.mul(16));
        const here = slice(start, 16, { end: offsets.at(group.add(1)).loadScalar() });
        const rows = x.at(here).load({ fill: 3 });
        out.at(here).store(rows as never);
        const ones = full(dtype, [16, 16], 1 as never);
        sums.at(here, slice(4, 16, { end: part.add(6) })).atomicAdd(ones as never);
        seen.at(group, part).store(x.at(here, slice(-2, 20, { end: 9 })).load({ fill: 5 }));
      },
    ),
  );
}

/** Extents that are sums, products and quotients of dimensions, and a reshape that a promised divisor allows. */
function arithmetic(): MatrixCase {
  const [rows, columns] = [dim("rows"), dim("columns", { multipleOf: 4 })];
  const inputs = { x: ordinaryNumbers(f32, [7, 12], 21), border: anyNumbers(f32, [9, 11], 22) };
  const tiles = cdiv(rows, 4).mul(cdiv(columns, 8));
  return exactCase("windows of arrays whose extents are sums of products", inputs, () =>
    kernel(
      {
        name: "arithmetic",
        grid: { tile: tiles },
        inputs: {
          x: tensor(f32, [rows, columns]),
          border: tensor(f32, [rows.add(2), columns.sub(1)]),
        },
        outputs: {
          numbers: tensor(i32, [tiles.mul(2).sub(1)]),
          quarters: tensor(f32, [rows, columns.div(4), 4]),
          inner: tensor(f32, [rows, columns]),
        },
      },
      ({ tile, x, border, numbers, quarters, inner }) => {
        const across = cdiv(columns, 8);
        const [row, column] = [tile.div(across).mul(4), tile.rem(across).mul(8)];
        numbers.at(slice(tile.mul(2), 2)).store(tile);
        const parts = x.reshape([rows, columns.div(4), 4]);
        const own = [slice(row, 4), slice(column.div(4), 2)] as const;
        quarters.at(...own).store(parts.at(...own).load());
        const around = border.at(slice(row.add(1), 4), slice(column.sub(1), 8)).load({ fill: 9 });
        inner.at(slice(row, 4), slice(column, 8)).store(around);
      },
    ),
  );
}

/** Masks of every shape that repeats to a window, on windows with tails in both memories. */
function masked(dtype: DType, shape: readonly number[], seed: number): MatrixCase {
  const inputs = {
    x: anyNumbers(dtype, [20, 40], seed),
    mask: fromNumbers(
      bool,
      shape,
      Array.from(
        { length: shape.reduce((product, extent) => product * extent, 1) },
        (_, index) => (index * 7 + seed) % 3 === 0,
      ),
    ),
    out: anyNumbers(dtype, [20, 40], seed + 1),
  };
  return exactCase(`mask of [${shape.join()}] over ${dtype.name}`, inputs, () =>
    kernel(
      {
        name: "masked",
        grid: { i: 2 },
        inputs: { x: tensor(dtype, [20, 40]), mask: tensor(bool, shape) },
        inouts: { out: tensor(dtype, [20, 40]) },
        scratch: { buffer: smem(dtype, [16, 48]) },
      },
      ({ i, x, mask, out, buffer }) => {
        const where = mask.load();
        const here = [slice(i.mul(16), 16), slice(0, 48)] as const;
        buffer.store(x.at(...here).load() as never);
        const tile = x.at(...here).load({ where });
        buffer.store(tile as never, { where });
        out.at(...here).store(buffer.load({ where }) as never, { where });
      },
    ),
  );
}

export function pickingCases(): readonly MatrixCase[] {
  return [
    ...formats.map((dtype, seed) => rows(dtype, 64, seed)),
    ...[1, 3, 20, 256].map((columns) => rows(f32, columns, columns)),
    rows(bf16, 33, 1),
    elements(i32),
    elements(i64),
    ...windows.map(([name, view]) => middle(name, view)),
    ...formats.map(scattered),
    counted("global"),
    counted("shared"),
    addedRows(f32),
    addedRows(bf16),
    exchanged(),
    ...[f32, bf16, i32].map(ragged),
    arithmetic(),
    ...[f32, f64, bf16].map((dtype) => extremes("max", dtype)),
    extremes("min", f32),
    ...[[16, 48], [16, 1], [48], [1]].map((shape) => masked(f32, shape, shape.length)),
    ...formats.map((dtype, seed) => masked(dtype, [16, 48], seed)),
  ];
}
