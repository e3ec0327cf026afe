/** Best elements, and indices in what is in order, against JavaScript's own. */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { codeOf } from "../../../test/support/library-checks.ts";
import { assemblyProblems } from "../../../test/support/clean-assembly.ts";
import { hasPtxas } from "../../../test/ptxas.ts";
import { inOrder, oddNumbers } from "../../../test/support/orders.ts";
import { scheduleSeeds, takesAll } from "../../../test/support/sample.ts";
import type { Device } from "../../device/device.ts";
import {
  bf16,
  bool,
  f32,
  f4e2m1fn,
  f64,
  f8e4m3fn,
  f8e5m2,
  f8e8m0fnu,
  i16,
  i32,
  i4,
  tf32,
  u4,
  u8,
} from "../../formats/dtype.ts";
import { fromNumbers, toNumbers } from "../../formats/hostarray.ts";
import type { HostArray } from "../../formats/hostarray.ts";
import { tensor, dim } from "../../lang/index.ts";
import { open } from "../../runtime/open.ts";
import { Random } from "../../support/random.ts";
import { searchSorted } from "./search-sorted.ts";
import { topK } from "./top-k.ts";

const [m, n] = [dim("m"), dim("n")];

/** The k best of each row, against all of the row in order. */
function expectBest(
  x: HostArray,
  k: number,
  least: boolean,
  { values, indices }: { readonly values: HostArray; readonly indices: HostArray },
  label: string,
): void {
  const [rows, columns] = [x.shape.length > 1 ? (x.shape[0] ?? 0) : 1, x.shape.at(-1) ?? 0];
  const numbers = [...toNumbers(x)];
  const expected = Array.from({ length: rows }, (_, row) =>
    inOrder(numbers.slice(row * columns, (row + 1) * columns), !least).slice(0, k),
  );
  expect([...toNumbers(indices)], label).toEqual(expected.flat());
  expect([...toNumbers(values)], label).toEqual(
    expected.flatMap((own, row) => own.map((place) => numbers[row * columns + place])),
  );
}

test("rows of any length, on the emulator", async () => {
  const device = await open("emulator");
  const random = new Random(23);
  const kinds = [
    [f32, 8, false],
    [bf16, 3, true],
    [i16, 20, false],
    [f64, 1, true],
    [f8e4m3fn, 9, false],
    [f8e5m2, 5, true],
    [bool, 7, false],
    [i4, 3, false],
    [u4, 6, true],
    [f4e2m1fn, 5, false],
  ] as const;
  for (const [dtype, k, least] of kinds) {
    const op = topK({ x: dtype as typeof f32, k, largest: !least });
    // A row of one piece, one of two where formats of this width were not yet, and one of three.
    const lengths = [k + random.below(60)];
    if (takesAll || [f32, i16, f64, f8e4m3fn, i4].some(({ name }) => name === dtype.name))
      lengths.push(1025 + random.below(500));
    if (takesAll || dtype === f32) lengths.push(2049 + random.below(500));
    for (const [turn, columns] of lengths.entries()) {
      const x = oddNumbers(dtype, [1 + random.below(2), columns], random);
      const label = `seed 23, turn ${turn}: ${k} of ${dtype.name} ${x.shape.join("×")}`;
      expectBest(x, k, least, await device.run(op, { x } as never), label);
    }
  }
  device.dispose();
});

test("rows of several pieces, under many schedules", async () => {
  const random = new Random(29);
  const op = topK({ x: tensor(f32, [n]), k: 5 });
  for (const seed of scheduleSeeds) {
    const device = await open("simulator", { schedule: "random", seed });
    const x = oddNumbers(f32, [4097 + random.below(400)], random);
    expectBest(x, 5, false, await device.run(op, { x }), `seed ${seed}`);
    device.dispose();
  }
});

describe.each(["simulator", "emulator"] as const)("on the %s", (kind) => {
  let device: Device;
  beforeAll(async () => {
    device = await open(kind);
  });
  afterAll(() => {
    device.dispose();
  });

  test("rows whose best are all in one lane, all equal, or in order", async () => {
    const k = 9;
    const rows = {
      // Neighbours of a lane: the first four of every 128 in the first stretch of 1,500.
      lane: Array.from({ length: 1500 }, (_, at) => (at % 128 < 4 ? 1000 + at : at)),
      equal: Array.from({ length: 1500 }, () => 7),
      rising: Array.from({ length: 1500 }, (_, at) => at),
      falling: Array.from({ length: 1500 }, (_, at) => -at),
      // What is beyond the end is no better than the worst of numbers.
      worst: Array.from({ length: 1500 }, (_, at) => (at === 1400 ? 0 : -Infinity)),
    };
    const x = fromNumbers(f32, [5, 1500], Object.values(rows).flat());
    const op = topK({ x: f32, k });
    expectBest(x, k, false, await device.run(op, { x }), "odd rows");
  });

  test("whole arrays, other axes and strides, and what belongs to the best", async () => {
    const random = new Random(3);
    const whole = oddNumbers(i32, [3000], random);
    const flat = topK({ x: tensor(i32, [n]), k: 4 });
    expectBest(whole, 4, false, await device.run(flat, { x: whole }), "a whole array");

    const x = fromNumbers(i32, [2, 3, 2], [5, 1, 9, 2, 2, 7, 3, 3, 0, 8, 4, 6]);
    const weights = fromNumbers(
      f32,
      [2, 3, 2],
      Array.from({ length: 12 }, (_, at) => at / 4),
    );
    const middle = topK({
      x: tensor(i32, [2, n, 2]),
      k: 2,
      axis: 1,
      payloads: { weights: tensor(f32, [2, n, 2]) },
    });
    const found = await device.run(middle, { x, weights });
    expect([...toNumbers(found.values)]).toEqual([9, 7, 5, 2, 4, 8, 3, 6]);
    expect([...toNumbers(found.indices)]).toEqual([1, 2, 0, 1, 2, 1, 0, 2]);
    expect([...toNumbers(found.topWeights)]).toEqual([0.5, 1.25, 0, 0.75, 2.5, 2.25, 1.5, 2.75]);
    // Columns of memory are rows of the array.
    const turned = topK({ x: tensor(i32, [2, n], { strides: [1, 2] }), k: 1, largest: false });
    const { values } = await device.run(turned, {
      x: fromNumbers(i32, [2, 3], [4, 9, 2, 8, 6, 7]),
    });
    expect([...toNumbers(values)]).toEqual([2, 7]);
  });

  test("numbers of 4 bits along any axis, with what belongs to them", async () => {
    const values = [5, 1, -8, 2, 2, 7, 3, 3, 0, -1, 4, 6];
    const x = fromNumbers(i4, [2, 3, 2], values);
    const weights = fromNumbers(i32, [2, 3, 2], [...values.keys()]);
    const op = topK({
      ...{ x: tensor(i4, [2, n, 2]), k: 1, axis: 1, largest: false },
      payloads: { weights: tensor(i32, [2, n, 2]) },
    });
    const found = await device.run(op, { x, weights });
    expect([...toNumbers(found.values)]).toEqual([-8, 1, 0, -1]);
    expect([...toNumbers(found.indices)]).toEqual([1, 0, 1, 1]);
    expect([...toNumbers(found.topWeights)]).toEqual([2, 1, 8, 9]);
  });

  test("indices in what is in order", async () => {
    const sorted = [-3, -1, -1, 0, 2, 2, 2, 9];
    const queries = [-9, -3, -1, 1, 2, 9, 10];
    for (const side of ["left", "right"] as const) {
      const { out } = await device.run(searchSorted({ sorted: i32, side }), {
        sorted: fromNumbers(i32, [sorted.length], sorted),
        queries: fromNumbers(i32, [queries.length], queries),
      });
      const isBefore = (value: number, query: number): boolean =>
        side === "left" ? value < query : value <= query;
      expect([...toNumbers(out)]).toEqual(
        queries.map((query) => sorted.filter((value) => isBefore(value, query)).length),
      );
    }
    // NaN stands behind all numbers, as sort leaves it; zeros of both signs are equal.
    const withNaN = fromNumbers(f32, [7], [-Infinity, -0, 0, 2, Infinity, NaN, NaN]);
    const asked = fromNumbers(f32, [6], [NaN, -Infinity, Infinity, 0, -0, 3]);
    for (const [side, expected] of [
      ["left", [5, 0, 4, 1, 1, 4]],
      ["right", [7, 1, 5, 3, 3, 4]],
    ] as const) {
      const given = { sorted: withNaN, queries: asked };
      const { out } = await device.run(searchSorted({ sorted: f32, side }), given);
      expect([...toNumbers(out)]).toEqual(expected);
    }
    const nothing = await device.run(searchSorted({ sorted: f32 }), {
      sorted: fromNumbers(f32, [0], []),
      queries: fromNumbers(f32, [2], [1, 2]),
    });
    expect([...toNumbers(nothing.out)]).toEqual([0, 0]);
  });
});

test("more than pieces give are sorted", async () => {
  const device = await open("simulator");
  const x = oddNumbers(u8, [1, 1100], new Random(31));
  const op = topK({ x: u8, k: 600, largest: false });
  expect(op.plan({ m: 1, n: 1100 }).configuration).toEqual({ kernel: "sort" });
  expectBest(x, 600, true, await device.run(op, { x }), "600 of 1,100");
  device.dispose();
});

test("few long rows are cut into many pieces", () => {
  const plan = topK({ x: f32, k: 64 }).plan({ m: 64, n: 131_072 });
  expect(plan.configuration).toEqual({ kernel: "select", stages: [32, 1] });
  expect(plan.blocks()).toEqual([64 * 32, 64]);
  const whole = topK({ x: tensor(f32, [n]), k: 512 }).plan({ n: 2 ** 26 });
  expect(whole.configuration).toEqual({ kernel: "select", stages: [16_384, 2048, 256, 32, 4, 1] });
});

test.skipIf(!hasPtxas)("no registers are spilled", () => {
  expect(assemblyProblems(topK({ x: f32, k: 64 }).kernels({ m: 4, n: 20_000 }))).toEqual([]);
});

test("rows that are not there need no launch, in any format", () => {
  for (const x of [i4, f32]) expect(topK({ x, k: 2 }).plan({ m: 0, n: 8 }).launches).toEqual([]);
});

test("mistakes are reported", () => {
  const refused: readonly (readonly [string, () => unknown])[] = [
    ["TW9901", () => topK({ x: f8e8m0fnu, k: 2 })],
    ["TW9901", () => topK({ x: tf32, k: 2 })],
    ["TW9902", () => topK({ x: i4, k: 9 }).plan({ m: 2, n: 8 })],
    ["TW9902", () => topK({ x: f32, k: 2, axis: 2 })],
    ["TW9902", () => topK({ x: f32, k: 2, payloads: { y: tensor(f32, [n]) } })],
    ["TW9902", () => topK({ x: u8, k: 9 }).plan({ m: 2, n: 8 })],
    ["TW9902", () => searchSorted({ sorted: tensor(f32, [m, n]) })],
    ["TW9904", () => topK({ x: f32, k: 0 })],
    ["TW9904", () => topK({ x: f32, k: 1.5 })],
    ["TW9904", () => searchSorted({ sorted: f32, side: "middle" as never })],
    ["TW1033", () => topK({ x: f32, count: 3 } as never)],
    ["TW1033", () => searchSorted({ x: f32 } as never)],
  ];
  for (const [code, make] of refused) expect(codeOf(make), String(make)).toBe(code);
});
