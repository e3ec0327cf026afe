/** Parts of tiles at places known as the kernel runs, tiles without axes, and shapes that follow from the others. */
import {
  all,
  block,
  bool,
  extract,
  f16,
  f32,
  f8e4m3fn,
  full,
  i32,
  i8,
  insert,
  kernel,
  loop,
  slice,
  tensor,
  u64,
  warps,
  when,
  zeros,
} from "tilewright";
import { fromNumbers } from "tilewright";
import type { DType } from "tilewright";
import type { Feature, FeatureCase } from "./feature.ts";

const [rows, columns] = [16, 24];
const numbers = Array.from({ length: rows * columns }, (_, at) => (at * 7) % 61);
const at = (row: number, column: number): number => numbers[row * columns + column] ?? NaN;
const grid = <T>(height: number, width: number, each: (row: number, column: number) => T) =>
  Array.from({ length: height * width }, (_, place) =>
    each(Math.floor(place / width), place % width),
  );

function extractCase(dtype: DType<"f32" | "f16" | "i8" | "f8e4m3fn">, p: number): FeatureCase {
  const small = numbers.map((value) => value % 8);
  const wanted = (row: number, column: number): number => at(row, column) % 8;
  return {
    name: `blocks, slices and elements of ${dtype.name} at ${p}`,
    kernel: () =>
      kernel(
        {
          name: "parts",
          inputs: { x: tensor(dtype, [rows, columns]), p: tensor(i32, [1]) },
          outputs: {
            blocks: tensor(dtype, [4, columns]),
            slices: tensor(dtype, [3, 5]),
            row: tensor(dtype, [columns]),
            element: tensor(dtype, [1]),
          },
        },
        ({ x, p: given, blocks, slices, row, element }) => {
          const place = given.at(0).loadScalar();
          const tile = x.load();
          blocks.store(extract(tile, [block(place, 4)]));
          slices.store(extract(tile, [slice(place.add(2), 3), slice(place.mul(3), 5)]));
          row.store(extract(tile.transpose(), [all, place]));
          element.at(0).store(extract(tile, [place, place.add(1)]).item());
        },
      ),
    inputs: { x: fromNumbers(dtype, [rows, columns], small), p: fromNumbers(i32, [1], [p]) },
    expected: {
      blocks: grid(4, columns, (row, column) => wanted(p * 4 + row, column)),
      slices: grid(3, 5, (row, column) => wanted(p + 2 + row, p * 3 + column)),
      row: grid(1, columns, (_, column) => wanted(p, column)),
      element: [wanted(p, p + 1)],
    },
  };
}

const threads: FeatureCase = {
  name: "by several program threads, in a loop",
  kernel: () =>
    kernel(
      {
        name: "inserting",
        threads: ["left", "right"],
        inputs: { x: tensor(i32, [rows, columns]) },
        outputs: { out: tensor(i32, [2, rows, columns]) },
      },
      ({ x, out, left, right }) => {
        const filled = loop({ to: 3, carry: x.load() }, (k, tile) => {
          const part = extract(tile, [slice(k.mul(4), 2), slice(k, 8)]);
          const there = insert(
            tile,
            [slice(k.mul(4).add(2), 2), slice(k.add(8), 8)],
            part.add(100),
          );
          return insert(there, [k, k.add(3)], extract(there, [0, k]).add(1000));
        });
        left(() => out.at(0).store(filled));
        right(() => out.at(1).store(insert(filled, [15], -1)));
      },
    ),
  inputs: { x: fromNumbers(i32, [rows, columns], numbers) },
  expected: (() => {
    const tile = [...numbers];
    const get = (row: number, column: number): number => tile[row * columns + column] ?? NaN;
    for (let k = 0; k < 3; k += 1) {
      const part = grid(2, 8, (row, column) => get(k * 4 + row, k + column) + 100);
      for (const [place, value] of part.entries())
        tile[(k * 4 + 2 + Math.floor(place / 8)) * columns + k + 8 + (place % 8)] = value;
      tile[k * columns + k + 3] = get(0, k) + 1000;
    }
    return {
      out: [...tile, ...tile.map((value, place) => (place >= 15 * columns ? -1 : value))],
    };
  })(),
};

const bits: FeatureCase = {
  name: "bools, and integers of 64 bits",
  kernel: () =>
    kernel(
      {
        name: "bits",
        inputs: { x: tensor(u64, [8]), p: tensor(i32, [1]) },
        outputs: { out: tensor(u64, [8]), found: tensor(bool, [4]) },
      },
      ({ x, p, out, found }) => {
        const place = p.at(0).loadScalar();
        const tile = x.load();
        out.store(insert(tile, [slice(place, 3)], full(u64, [3], 2n ** 40n)));
        found.store(extract(tile.gt(4n), [slice(place, 4)]));
      },
    ),
  inputs: {
    x: fromNumbers(u64, [8], [1, 9, 3, 2 ** 60, 4, 6, 2, 8]),
    p: fromNumbers(i32, [1], [2]),
  },
  expected: {
    out: [1n, 9n, 2n ** 40n, 2n ** 40n, 2n ** 40n, 6n, 2n, 8n],
    found: [0, 1, 0, 1],
  },
};

const noAxes: FeatureCase = {
  name: "loaded, computed, carried, stored and broadcast",
  kernel: () =>
    kernel(
      {
        name: "no_axes",
        inputs: { x: tensor(f32, [rows, columns]), p: tensor(i32, [1]) },
        outputs: {
          all: tensor(f32, [8]),
          wide: tensor(f32, [2, 3]),
          one: tensor(f16, [1, 1]),
          counts: tensor(i32, [4]),
        },
        scratch: {},
      },
      ({ x, p, all: out, wide, one, counts }) => {
        const index = p.at(0).load();
        const element = x.at(index, 3).load();
        const column = x.at(slice(0, rows), 0).load();
        const sum = column.sum({ axis: 0 });
        const greatest = x
          .at(slice(0, rows), all)
          .load()
          .max({ axis: [0, 1] });
        const carried = loop({ to: 3, carry: element }, (k, before) => before.add(k.cast(f32)));
        const chosen = when(
          index.item().gt(0),
          () => sum.reshape([]),
          () => zeros(f32, []),
        );
        const results = [
          element,
          sum,
          greatest,
          carried.transpose().slice([], []),
          chosen,
          full(f32, [], 2).mul(element).sub(1),
          column.slice([2], [1]).reshape([]).neg(),
          element.gt(5).select(sum, greatest),
        ];
        for (const [place, result] of results.entries()) out.at(place).store(result);
        wide.store(element.broadcastTo([2, 3]).add(sum));
        one.store(sum.cast(f16).reshape([1, 1]));
        counts.at(0).store(column.argmax({ axis: 0 }));
        counts.at(1).store(element.argmax());
        counts.at(2).store(
          element
            .cast(i32)
            .sum()
            .add(element.expand({ axis: 0 }).cast(i32).sum()),
        );
        counts.at(3).store(element.reduce((a, b) => a.add(b), 0).cast(i32));
      },
    ),
  inputs: { x: fromNumbers(f32, [rows, columns], numbers), p: fromNumbers(i32, [1], [4]) },
  expected: (() => {
    const element = at(4, 3);
    const sum = Array.from({ length: rows }, (_, row) => at(row, 0)).reduce((a, b) => a + b, 0);
    const column = Array.from({ length: rows }, (_, row) => at(row, 0));
    const greatest = Math.max(...numbers);
    return {
      all: [
        element,
        sum,
        greatest,
        element + 3,
        sum,
        2 * element - 1,
        -at(2, 0),
        element > 5 ? sum : greatest,
      ],
      wide: grid(2, 3, () => element + sum),
      one: [sum],
      counts: [column.indexOf(Math.max(...column)), 0, 2 * element, element],
    };
  })(),
};

const arrays = {
  inputs: { x: tensor(f32, [rows, columns]) },
  outputs: { out: tensor(f32, [rows]) },
};

export const partFeatures: readonly Feature[] = [
  {
    name: "`extract` and `insert` at places known as the kernel runs",
    written: ["extract(tile, [", "insert(tile, [", ".item()"],
    page: "language.md#parts-of-a-tile",
    cases: () => [
      extractCase(f32, 0),
      extractCase(f16, 3),
      extractCase(i8, 2),
      extractCase(f8e4m3fn, 1),
      threads,
      bits,
    ],
    refused: [
      {
        code: "TW1016",
        by: () =>
          kernel({ ...arrays, name: "outside" }, ({ x, out }) => {
            out.store(extract(x.load(), [slice(4, rows), 0]));
          }),
      },
      {
        code: "TW1008",
        by: () =>
          kernel({ ...arrays, name: "by_tile" }, ({ x, out }) => {
            const tile = x.load();
            // @ts-expect-error an index of each element is takeAlong's
            out.store(extract(tile, [zeros(i32, [rows]), 0]));
          }),
      },
      {
        code: "TW2209",
        by: () =>
          kernel({ ...arrays, name: "in_warps" }, ({ x, out }) => {
            const tile = x.load();
            warps((warp) => {
              out.at(warp).store(extract(tile, [warp, 0]));
            });
          }),
      },
    ],
  },
  {
    name: "JavaScript's own `if` and `while` are told from the kernel's",
    written: ["if (i.lt(3))", "while (sum.gt(0))", "if (options.causal)"],
    page: "language.md#what-javascript-cannot-catch",
    cases: () => [
      {
        name: "decided while tracing",
        kernel: () =>
          kernel({ ...arrays, name: "options" }, ({ x, out }) => {
            const options = { negated: true, times: 2 };
            let row = x.load().sum({ axis: 1 });
            for (let k = 1; k < options.times; k += 1) row = row.add(row);
            if (options.negated && !(options.times > 2)) row = row.neg();
            out.store(row);
          }),
        inputs: { x: fromNumbers(f32, [rows, columns], numbers) },
        expected: {
          out: Array.from(
            { length: rows },
            (_, row) =>
              -2 * grid(1, columns, (__, column) => at(row, column)).reduce((a, b) => a + b, 0),
          ),
        },
      },
    ],
    refused: [
      {
        code: "TW1045",
        by: () =>
          kernel({ ...arrays, name: "by_if" }, ({ x, out }) => {
            const first = x.at(0, 0).loadScalar();
            if (first) out.store(0);
          }),
      },
      {
        code: "TW1045",
        by: () =>
          kernel({ ...arrays, name: "by_while" }, ({ x, out }) => {
            const first = x.at(0, 0).loadScalar();
            while (first.gt(0)) out.store(0);
          }),
      },
      {
        code: "TW1001",
        by: () =>
          kernel({ ...arrays, name: "by_order" }, ({ x, out }) => {
            const first = x.at(0, 0).loadScalar();
            // @ts-expect-error JavaScript cannot compare it
            out.store(first < 3 ? 1 : 0);
          }),
      },
    ],
  },
  {
    name: "Tiles of rank 0",
    written: [".reshape([])", ".item()", "zeros(f32, [])"],
    page: "language.md#tiles-of-rank-0",
    cases: () => [noAxes],
    refused: [
      {
        code: "TW2002",
        by: () =>
          kernel({ ...arrays, name: "axis_of_none" }, ({ x, out }) => {
            out.store(x.at(0, 0).load().cumsum({ axis: 0 }));
          }),
      },
      {
        code: "TW2024",
        by: () =>
          kernel({ ...arrays, name: "many_as_one" }, ({ x, out }) => {
            out.store(x.load().reshape([]));
          }),
      },
    ],
  },
  {
    name: "`reshape` with an extent of −1",
    written: [".reshape([2, -1])"],
    page: "language.md#tiles-of-rank-0",
    cases: () => [
      {
        name: "at each end",
        kernel: () =>
          kernel(
            {
              name: "inferred",
              inputs: { x: tensor(f32, [rows, columns]) },
              outputs: { out: tensor(f32, [8, 48]), flat: tensor(f32, [rows * columns]) },
            },
            ({ x, out, flat }) => {
              const tile = x.load();
              out.store(tile.reshape([-1, 48]).mul(2));
              flat.store(tile.reshape([2, -1, 3]).reshape([-1]));
            },
          ),
        inputs: { x: fromNumbers(f32, [rows, columns], numbers) },
        expected: { out: numbers.map((value) => value * 2), flat: numbers },
      },
    ],
    refused: [
      {
        code: "TW1008",
        by: () =>
          kernel({ ...arrays, name: "does_not_divide" }, ({ x, out }) => {
            out.store(x.load().reshape([5, -1]).sum({ axis: 1 }));
          }),
      },
      {
        code: "TW1008",
        by: () =>
          kernel({ ...arrays, name: "two_unknown" }, ({ x, out }) => {
            out.store(
              x
                .load()
                .reshape([-1, -1, 2])
                .sum({ axis: [1, 2] }),
            );
          }),
      },
    ],
  },
];
