/** What stands where nothing is loaded, and access that is promised to be in bounds. */
import { all, dim, f16, f32, full, i32, i4, i64, iota, kernel, open, slice } from "tilewright";
import { tensor } from "tilewright";
import type { DType, KernelDefinition } from "tilewright";
import { fromNumbers } from "../../src/formats/hostarray.ts";
import type { Feature, FeatureCase } from "./feature.ts";

const [height, width] = [16, 32];
const fills = Array.from({ length: height * width }, (_, index) => ((index * 7) % 8) - 3);

/** A window that overhangs on three sides, by rows and transposed, and one under a mask. */
function filled<D extends "f32" | "f16" | "i4">(dtype: DType<D>): KernelDefinition {
  const tile = tensor(dtype, [height, width]);
  return kernel(
    {
      name: "filled",
      inputs: { x: tensor(dtype, [dim("rows"), dim("columns")]), fill: tile },
      outputs: { shifted: tile, transposed: tile, masked: tile },
    },
    ({ x, fill: given, shifted, transposed, masked }) => {
      const fill = given.load();
      shifted.store(x.at(slice(3, height), slice(-2, width)).load({ fill }));
      const window = x.at(slice(0, height), slice(0, width));
      transposed.store(window.transpose().load({ fill: fill.transpose() }).transpose());
      masked.store(window.load({ fill, where: fill.cast(f32).gt(1) }));
    },
  );
}

function filledCase<D extends "f32" | "f16" | "i4">(dtype: DType<D>, columns: number): FeatureCase {
  const rows = 12;
  const given = Array.from({ length: rows * columns }, (_, index) => index % 5);
  const at = (row: number, column: number, index: number): number => {
    const isInside = row < rows && column >= 0 && column < columns;
    return (isInside ? given[row * columns + column] : fills[index]) ?? NaN;
  };
  const each = (of: (row: number, column: number, index: number) => number): readonly number[] =>
    fills.map((_, index) => of(Math.floor(index / width), index % width, index));
  return {
    name: `${dtype.name}, ${columns} columns`,
    kernel: () => filled(dtype),
    inputs: {
      x: fromNumbers(dtype, [rows, columns], given),
      fill: fromNumbers(dtype, [height, width], fills),
    },
    expected: {
      shifted: each((row, column, index) => at(row + 3, column - 2, index)),
      transposed: each(at),
      masked: each((row, column, index) =>
        (fills[index] ?? 0) > 1 ? at(row, column, index) : (fills[index] ?? NaN),
      ),
    },
  };
}

const [planes, entries, deep, picks] = [3, 10, 8, 16];
const ids = Array.from({ length: picks }, (_, index) => index - 3);
const columns = Array.from({ length: picks }, (_, index) => ((index * 3) % 11) - 1);
const table = Array.from({ length: planes * entries * deep }, (_, index) => index);

/** Rows and elements by indices of which some are outside, and updates by them. */
function picked(dtype: DType<"i32"> | DType<"i64">): KernelDefinition {
  return kernel(
    {
      name: "picked",
      inputs: {
        x: tensor(f32, [planes, dim("entries"), deep]),
        ids: tensor(dtype as DType<"i32">, [picks]),
        columns: tensor(dtype as DType<"i32">, [picks]),
      },
      inouts: { y: tensor(f32, [dim("entries"), deep]) },
      outputs: { rows: tensor(f32, [planes, picks, deep]), single: tensor(f32, [planes, picks]) },
    },
    ({ x, ids: from, columns: along, y, rows, single }) => {
      const [id, column] = [from.load(), along.load()];
      rows.store(x.at(all, id).load({ outOfBounds: "pad", fill: -1 }));
      const where = id.ne(2);
      single.store(x.at(all, id, column).load({ outOfBounds: "pad", fill: 7, where }));
      y.at(id).store(full(f32, [picks, deep], x.at(0, 0, 1).loadScalar()), {
        outOfBounds: "drop",
        where: id.ne(3).reshape([picks, 1]),
      });
      const hundred = full(f32, [picks, deep], x.at(1, 2, slice(4, 1)).load());
      y.at(id).atomicAdd(hundred, { outOfBounds: "drop" });
    },
  );
}

const isEntry = (id: number): boolean => id >= 0 && id < entries;

function pickedCase(dtype: DType<"i32"> | DType<"i64">): FeatureCase {
  const index = (list: readonly number[], at: number): number => list[at % picks] ?? NaN;
  return {
    name: `by tiles of ${dtype.name}`,
    kernel: () => picked(dtype),
    inputs: {
      x: fromNumbers(f32, [planes, entries, deep], table),
      ids: fromNumbers(dtype, [picks], ids),
      columns: fromNumbers(dtype, [picks], columns),
      y: fromNumbers(f32, [entries, deep], new Float64Array(entries * deep)),
    },
    expected: {
      rows: Array.from({ length: planes * picks * deep }, (_, at) => {
        const [plane, id] = [Math.floor(at / (picks * deep)), index(ids, Math.floor(at / deep))];
        return isEntry(id) ? (plane * entries + id) * deep + (at % deep) : -1;
      }),
      single: Array.from({ length: planes * picks }, (_, at) => {
        const [id, column] = [index(ids, at), index(columns, at)];
        const isThere = id !== 2 && isEntry(id) && column >= 0 && column < deep;
        return isThere ? (Math.floor(at / picks) * entries + id) * deep + column : 7;
      }),
      y: Array.from({ length: entries * deep }, (_, at) => {
        const added = (1 * entries + 2) * deep + 4;
        return added + (Math.floor(at / deep) === 3 ? 0 : 1);
      }),
    },
  };
}

const promisedTable = Array.from({ length: entries * deep }, (_, index) => index % 31);
const start = (at: number) => fromNumbers(i32, [1], [at]);

/** Four rows from some row on, as a window, the first half of each under a mask, and backwards by index; and a store of the first. */
function promised(promise: { readonly inBounds: boolean }) {
  const tile = tensor(f32, [4, deep]);
  return kernel(
    {
      name: "promised",
      inputs: { x: tensor(f32, [dim("rows"), deep]), start: tensor(i32, [1]) },
      outputs: { window: tile, half: tile, picked: tile },
    },
    ({ x, start: from, window, half, picked: backwards }) => {
      const first = from.at(0).loadScalar(promise);
      const rows = x.at(slice(first, 4), all);
      window.at(slice(first.sub(first), 4), all).store(rows.load(promise), promise);
      const where = iota(i32, [1, deep], { axis: 1 }).lt(deep / 2);
      half.store(rows.load({ ...promise, where }));
      const ids = iota(i32, [4], { axis: 0 }).mul(-1).add(first).add(3);
      backwards.store(x.at(ids).load(promise));
    },
  );
}

const fourRows = (of: (row: number, column: number) => number): readonly number[] =>
  Array.from({ length: 4 * deep }, (_, at) => of(Math.floor(at / deep), at % deep));
const inTable = (row: number, column: number): number => promisedTable[row * deep + column] ?? NaN;
const promisedResults = {
  window: fourRows((row, column) => inTable(4 + row, column)),
  half: fourRows((row, column) => (column < deep / 2 ? inTable(4 + row, column) : 0)),
  picked: fourRows((row, column) => inTable(7 - row, column)),
};

const wrong = (item: unknown): never => item as never;

export const memoryFeatures: readonly Feature[] = [
  {
    name: "Fill by a tile, and tiles of a traced value",
    written: ["fill: usual.load()", "full(f32, [count, width], bonus.load())"],
    page: "language.md#gathers-that-pad",
    cases: () => [filledCase(f32, 24), filledCase(f16, 5), filledCase(i4, 20)],
    refused: [
      {
        code: "TW2044",
        by: () =>
          kernel({ name: "short", inputs: { x: tensor(f32, [64]) } }, ({ x }) => {
            x.at(slice(32, 64)).load({ fill: full(f32, [32], 1) });
          }),
      },
      {
        code: "TW2003",
        by: () =>
          kernel({ name: "other", inputs: { x: tensor(f32, [64]) } }, ({ x }) => {
            full(i32, [8], wrong(x.at(0).loadScalar()));
          }),
      },
    ],
  },
  {
    name: "Gathers that pad, and scatters that drop",
    written: ['outOfBounds: "pad"', 'outOfBounds: "drop"'],
    page: "language.md#gathers-that-pad",
    cases: () => [pickedCase(i32), pickedCase(i64)],
    refused: [
      {
        code: "TW1008",
        by: () =>
          kernel({ name: "window", inputs: { x: tensor(f32, [64]) } }, ({ x }) => {
            x.at(slice(32, 64)).load({ outOfBounds: "pad" });
          }),
      },
    ],
  },
  {
    name: "Access that is promised to be in bounds",
    written: ["loadScalar({ inBounds: true })", "load({ where: inside, inBounds: true })"],
    page: "language.md#access-in-bounds",
    cases: () => [
      {
        name: "windows, masks and indices",
        kernel: () => promised({ inBounds: true }),
        inputs: { x: fromNumbers(f32, [entries, deep], promisedTable), start: start(4) },
        expected: promisedResults,
      },
    ],
    refused: (["simulator", "emulator"] as const).map((name) => ({
      code: "TW3026",
      by: async () => {
        const device = await open(name);
        try {
          await device.run(promised({ inBounds: true }), {
            x: fromNumbers(f32, [entries, deep], promisedTable),
            start: start(7),
          });
        } finally {
          device.dispose();
        }
      },
    })),
  },
];
