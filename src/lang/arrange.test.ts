import { expect, test } from "vitest";
import { testMistakes, trace } from "../../test/language.ts";
import type { Mistake } from "../../test/language.ts";
import { runKernel } from "../../test/simulation.ts";
import { f32, i32 } from "../formats/dtype.ts";
import { fromNumbers, toNumbers } from "../formats/hostarray.ts";
import type { HostArray } from "../formats/hostarray.ts";
import { walkOps } from "../ir/traverse.ts";
import { tensor, elementRun, flip, histogram, iota, kernel, randomKey } from "./index.ts";
import { roll, takeAlong, topK } from "./index.ts";
import type { Tile } from "./index.ts";

const [rows, columns] = [3, 5];
const numbers = [4, 1, 4, 9, 0, 2, 2, 7, 7, 1, 5, 3, 8, 6, 8];
const x = fromNumbers(f32, [rows, columns], numbers);
const at = (row: number, column: number): number => numbers[row * columns + column] ?? NaN;
const each = (value: (row: number, column: number) => number): readonly number[] =>
  numbers.map((_, index) => value(Math.floor(index / columns), index % columns));
const list = (array: HostArray | undefined): readonly number[] =>
  array === undefined ? [] : [...toNumbers(array)];

test("elements are where flip, roll and takeAlong put them", async () => {
  const shape = [rows, columns];
  const names = ["down", "right", "rolled", "back", "taken"] as const;
  const outputs = Object.fromEntries(names.map((name) => [name, tensor(f32, shape)]));
  const k = kernel({ name: "places", inputs: { x: tensor(f32, shape) }, outputs }, (refs) => {
    const tile = refs.x.load();
    const places = iota(i32, shape, { axis: 1 })
      .mul(iota(i32, shape, { axis: 0 }).add(1))
      .rem(columns);
    refs["down"]?.store(flip(tile, { axis: 0 }));
    refs["right"]?.store(flip(tile, { axis: -1 }));
    refs["rolled"]?.store(roll(tile, 2, { axis: 1 }));
    refs["back"]?.store(roll(tile, -4, { axis: 0 }));
    refs["taken"]?.store(takeAlong(tile, places, { axis: 1 }));
  });
  const { results, findings } = await runKernel(k, { x });
  expect(findings).toEqual([]);
  expect(list(results["down"])).toEqual(each((row, column) => at(rows - 1 - row, column)));
  expect(list(results["right"])).toEqual(each((row, column) => at(row, columns - 1 - column)));
  expect(list(results["rolled"])).toEqual(each((row, column) => at(row, (column + 3) % columns)));
  expect(list(results["back"])).toEqual(each((row, column) => at((row + 4) % rows, column)));
  expect(list(results["taken"])).toEqual(
    each((row, column) => at(row, (column * (row + 1)) % columns)),
  );
});

test("topK takes the greatest, of equal ones the first; histogram counts", async () => {
  const k = kernel(
    {
      name: "picks",
      inputs: { x: tensor(f32, [rows, columns]) },
      outputs: {
        values: tensor(f32, [rows, 3]),
        places: tensor(i32, [rows, 3]),
        least: tensor(i32, [1, columns]),
        counts: tensor(i32, [10]),
      },
    },
    ({ x, values, places, least, counts }) => {
      const tile = x.load();
      const [found, where] = topK(tile, 3, { axis: 1 });
      values.store(found);
      places.store(where);
      least.store(topK(tile, 1, { axis: 0, largest: false })[1]);
      counts.store(histogram(tile.cast(i32), 10));
    },
  );
  const { results } = await runKernel(k, { x });
  expect(list(results["values"])).toEqual([9, 4, 4, 7, 7, 2, 8, 8, 6]);
  expect(list(results["places"])).toEqual([3, 0, 2, 2, 3, 0, 2, 4, 3]);
  expect(list(results["least"])).toEqual([1, 0, 0, 2, 0]);
  const counts = Array.from({ length: 10 }, (_, bin) => numbers.filter((n) => n === bin).length);
  expect(list(results["counts"])).toEqual(counts);
});

test("reductions over several axes", async () => {
  const k = kernel(
    {
      name: "axes",
      inputs: { x: tensor(f32, [2, 3, 4]) },
      outputs: { middle: tensor(f32, [3]), kept: tensor(f32, [1, 3, 1]) },
    },
    ({ x, middle, kept }) => {
      middle.store(x.load().sum({ axis: [0, -1] }));
      kept.store(x.load().max({ axis: [2, 0], keepDims: true }));
    },
  );
  const counting = Array.from({ length: 24 }, (_, index) => index);
  const { results } = await runKernel(k, { x: fromNumbers(f32, [2, 3, 4], counting) });
  const group = (row: number): readonly number[] =>
    counting.filter((index) => Math.floor(index / 4) % 3 === row);
  const sums = [0, 1, 2].map((row) => group(row).reduce((sum, value) => sum + value, 0));
  expect(list(results["middle"])).toEqual(sums);
  expect(list(results["kept"])).toEqual([0, 1, 2].map((row) => Math.max(...group(row))));
});

test("topK takes NaN for the greatest, and −0 for less than 0", async () => {
  const given = [3, NaN, -0, 0, 3, -Infinity, NaN, 7, Infinity];
  const count = given.length;
  const outputs = { down: tensor(i32, [count]), up: tensor(i32, [count]) };
  const k = kernel({ name: "order", inputs: { x: tensor(f32, [count]) }, outputs }, (refs) => {
    refs.down.store(topK(refs.x.load(), count, { axis: 0 })[1]);
    refs.up.store(topK(refs.x.load(), count, { axis: 0, largest: false })[1]);
  });
  const { results } = await runKernel(k, { x: fromNumbers(f32, [count], given) });
  expect(list(results["down"])).toEqual([1, 6, 8, 7, 0, 4, 3, 2, 5]);
  expect(list(results["up"])).toEqual([5, 2, 3, 0, 4, 7, 8, 1, 6]);
});

test("what is outside is reported by the name of the function", async () => {
  const k = kernel({ name: "outside", outputs: { counts: tensor(i32, [4]) } }, ({ counts }) => {
    counts.store(histogram(iota(i32, [5], { axis: 0 }), 4));
  });
  const { findings } = await runKernel(k, {});
  expect(findings.length).toBe(1);
  expect(findings[0]?.message).toContain("index 4 on axis 0 of histogram_bins, which has 4");
});

test("what functions of several ops record is on the user's line, however deep they call each other", () => {
  const add = (a: Tile<"f32">, b: Tile<"f32">): Tile<"f32"> => a.add(b);
  const { kernel: traced } = kernel(
    { name: "lines", inputs: { x: tensor(f32, [8, 8]) }, outputs: { out: tensor(f32, [8, 8]) } },
    ({ x, out }) => {
      const tile = x.load();
      const places = tile.cast(i32);
      const taken = takeAlong(flip(tile, { axis: 0 }), places, { axis: 0 }).add(
        histogram(places, 8).cast(f32),
      );
      const odd = tile.slice([0, 0], [7, 5]);
      const all = odd.reduce(add, 0).add(odd.reduce(add, 0, { axis: 0 }).sum());
      const run = randomKey(3, { generator: "rbg" })
        .split(2)[1]
        ?.normal(elementRun(0, [64]));
      out.store(taken.add(odd.scan(add, 0, { axis: 1 }).max().add(all)).add(run?.sum() ?? 0));
    },
  );
  const files = new Set<string | undefined>();
  walkOps(traced.body, ({ location }) => files.add(location.position?.file));
  expect([...files].map((file) => file?.split("/").at(-1))).toEqual(["arrange.test.ts"]);
});

const mistakes: readonly Mistake[] = [
  {
    name: "axis that is not there",
    code: "TW1008",
    make: () => trace(({ x }) => flip(x.load(), { axis: 2 })), // <- here
    message: "the axis of flip must be an axis from -2 to 1",
    found: "2",
  },
  {
    name: "more elements than there are",
    code: "TW1008",
    make: () => trace(({ x }) => topK(x.load(), 65, { axis: 1 })), // <- here
    message: "the count of topK must be a number from 1 to 64",
  },
  {
    name: "traced number of places",
    code: "TW1008",
    make: () => trace(({ x, i }) => roll(x.load(), i as unknown as number, { axis: 0 })), // <- here
    message: "the places of roll must be a whole number",
    found: "i32",
  },
  {
    name: "window in place of a tile",
    code: "TW1008",
    make: () => trace(({ x }) => flip(x as never, { axis: 0 })), // <- here
    message: "what flip takes must be a tile",
  },
  {
    name: "indices of fewer axes",
    code: "TW1008",
    make: () => trace(({ x }) => takeAlong(x.load(), iota(i32, [8], { axis: 0 }), { axis: 0 })), // <- here
    message: "the indices of takeAlong must be a tile of 2 axes",
  },
  {
    name: "no bins",
    code: "TW1008",
    make: () => trace(() => histogram(iota(i32, [8], { axis: 0 }), 0)), // <- here
    message: "the bins of histogram must be a positive whole number",
  },
  {
    name: "floats to be counted",
    code: "TW1008",
    make: () => trace(({ x }) => histogram(x.load() as never, 4)), // <- here
    message: "the values of histogram must be a tile of i32 or i64",
    found: "f32",
  },
  {
    name: "floats for positions",
    code: "TW1008",
    make: () => trace(({ x }) => takeAlong(x.load(), x.load() as never, { axis: 0 })), // <- here
    message: "the indices of takeAlong must be a tile of i32 or i64",
  },
  {
    name: "axes that are no numbers",
    code: "TW1008",
    make: () => trace(({ x }) => x.load().sum({ axis: ["0"] as never })), // <- here
    message: "the axis of sum must be a number, or a list of numbers",
  },
  {
    name: "an axis twice",
    code: "TW1008",
    make: () => trace(({ x }) => x.load().sum({ axis: [0, -2] })), // <- here
    message: "the axes of sum must be one or more different axes",
  },
];

testMistakes("arrangements", mistakes);
