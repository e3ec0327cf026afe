/** Elements counted by bins, against counts one by one. */
import { describe, expect, test } from "vitest";
import { scheduleSeeds } from "../../../test/support/sample.ts";
import { codeOf, randomNumbers } from "../../../test/support/library-checks.ts";
import { bf16, bool, f32, f64, f8e5m2, i32, i4, i64, i8, u8 } from "../../formats/dtype.ts";
import { fromNumbers, toNumbers } from "../../formats/hostarray.ts";
import { tensor, dim } from "../../lang/index.ts";
import { open } from "../../runtime/open.ts";
import { Random } from "../../support/random.ts";
import { bincount, histogram } from "./histogram.ts";

const [m, n] = [dim("m"), dim("n")];

describe.each(["simulator", "emulator"] as const)("on the %s", (kind) => {
  test("numbers by their bins, in arrays of many sizes", async () => {
    const device = await open(kind);
    const random = new Random(17);
    const op = histogram({ x: f32, bins: 10, low: -2, high: 3 });
    const sizes = Array.from({ length: kind === "emulator" ? 20 : 4 }, () => random.below(2500));
    for (const size of [0, 1, ...sizes]) {
      const odd = [NaN, Infinity, -Infinity, -2, 3];
      const x = Array.from({ length: size }, (_, index) =>
        index < 5 ? (odd[index] ?? 0) : Math.fround(random.normal() * 2),
      );
      const expected = Array.from({ length: 10 }, () => 0);
      for (const value of x)
        if (value >= -2 && value <= 3) {
          const bin = Math.min(9, Math.floor((value + 2) * 2));
          expected[bin] = (expected[bin] ?? 0) + 1;
        }
      const { out } = await device.run(op, { x: fromNumbers(f32, [size], x) });
      expect([...toNumbers(out)], `size ${size}`).toEqual(expected);
    }
    device.dispose();
  });

  test("whole numbers of several formats, in few bins and in many", async () => {
    const device = await open(kind);
    const values = [3, 0, 7, 3, 3, 100, 5, -1, -100, 7];
    const few = bincount({ x: tensor(i8, [m, n]), length: 8 });
    const { out } = await device.run(few, { x: fromNumbers(i8, [2, 5], values) });
    expect([...toNumbers(out)]).toEqual([1, 0, 0, 3, 0, 1, 0, 2]);
    const many = bincount({ x: i64, length: 10_000 });
    const wide = [9999, 10_000, 2 ** 40, 0, -(2 ** 40), 9999];
    const { out: counts } = await device.run(many, { x: fromNumbers(i64, [6], wide) });
    const found = [...toNumbers(counts)];
    expect([found[0], found[9999], found.reduce((sum, each) => sum + each, 0)]).toEqual([1, 2, 3]);
    device.dispose();
  });
});

/** Which of the bins between edges a value is in; −1 for none. */
function binOf(value: number, edges: readonly number[]): number {
  const last = edges.length - 2;
  if (value === edges[last + 1]) return last;
  return edges.findIndex((edge, at) => value >= edge && value < (edges[at + 1] ?? -Infinity));
}

const uneven = [-2, -1.5, 0, 0.25, 1, 4];

test("bins between edges, with weights, under many schedules and on the emulator", async () => {
  const random = new Random(83);
  const spec = { x: f32, edges: tensor(f32, [uneven.length]) };
  const counts = histogram(spec);
  const sums = histogram({ ...spec, weights: bf16 });
  const edges = fromNumbers(f32, [uneven.length], uneven);
  const emulator = await open("emulator");
  for (let turn = 0; turn < 2 * scheduleSeeds.length; turn += 1) {
    const isEmulated = turn >= scheduleSeeds.length;
    const device = isEmulated
      ? emulator
      : await open("simulator", { schedule: "random", seed: turn });
    const size = 1 + random.below(600);
    const odd = [NaN, Infinity, -Infinity, -2, 4, 0];
    const values = Array.from({ length: size }, (_, at) =>
      at < 6 ? (odd[at] ?? 0) : Math.fround(random.normal() * 2),
    );
    const weights = randomNumbers(bf16, [size], turn, 2);
    const x = fromNumbers(f32, [size], values);
    const expected = uneven.slice(1).map(() => ({ count: 0, sum: 0, size: 0 }));
    for (const [at, value] of values.entries()) {
      const bin = expected[binOf(value, uneven)];
      if (bin === undefined) continue;
      bin.count += 1;
      bin.sum += weights.values[at] ?? 0;
      bin.size += Math.abs(weights.values[at] ?? 0);
    }
    const label = `seed 83, turn ${turn}`;
    const { out } = await device.run(counts, { x, edges });
    expect([...toNumbers(out)], label).toEqual(expected.map(({ count }) => count));
    const weighed = await device.run(sums, { x, edges, weights: weights.array });
    const again = await device.run(sums, { x, edges, weights: weights.array });
    expect(again.out.data, label).toEqual(weighed.out.data);
    for (const [at, found] of toNumbers(weighed.out).entries()) {
      const { sum = 0, size: most = 0, count = 0 } = expected[at] ?? {};
      expect(Math.abs(found - sum), label).toBeLessThanOrEqual(most * (count + 1) * 2 ** -24);
    }
    if (!isEmulated) device.dispose();
  }
  emulator.dispose();
});

test("edges of bins that are all as wide decide, and many bins of weights are sorted", async () => {
  const device = await open("simulator");
  // In f32 a tenth is no number: what divides wrongly is put right by the edges.
  const edges = Array.from({ length: 11 }, (_, at) =>
    Math.fround(Math.fround(at * Math.fround(0.1))),
  );
  const { out } = await device.run(histogram({ x: f32, bins: 10, low: 0, high: 1 }), {
    x: fromNumbers(f32, [10], edges.slice(0, 10)),
  });
  expect([...toNumbers(out)]).toEqual(Array.from({ length: 10 }, () => 1));
  const many = bincount({ x: i32, length: 5000, weights: bf16 });
  expect(many.plan({ n: 5 }).configuration.adds).toBe("sorted");
  const sums = await device.run(many, {
    x: [4999, 7, 4999, -1, 5000],
    weights: fromNumbers(bf16, [5], [0.5, 2, 0.25, 9, 9]),
  });
  const found = [...toNumbers(sums.out)];
  expect([found[7], found[4999], found.reduce((a, b) => a + b, 0)]).toEqual([2, 0.75, 2.75]);
  device.dispose();
});

/** Counts and edges as NumPy finds them. */
function spreadOf(values: readonly number[], bins: number) {
  let [low, high] = values.length === 0 ? [0, 1] : [Math.min(...values), Math.max(...values)];
  if (low === high) [low, high] = [low - 0.5, high + 0.5];
  const edges = Array.from({ length: bins + 1 }, (_, at) =>
    at === bins ? high : low + at * ((high - low) / bins),
  );
  const counts = edges.slice(1).map(() => 0);
  for (const value of values) {
    const bin = binOf(value, edges);
    counts[bin] = (counts[bin] ?? 0) + 1;
  }
  return { edges, counts };
}

test.each(["simulator", "emulator"] as const)(
  "bins from the least element to the greatest, and of integers, on the %s",
  async (kind) => {
    const device = await open(kind);
    const random = new Random(19);
    for (const dtype of [i8, i32, i64, f64]) {
      const op = histogram({ x: dtype as typeof i32, bins: 7 });
      for (const size of [0, 1, 5, 700]) {
        const spread = 2 ** random.below(dtype === i8 ? 8 : 40);
        const drawn = Array.from({ length: size }, () =>
          Math.floor((random.uniform() - 0.5) * Math.min(spread, dtype === i32 ? 2 ** 31 : spread)),
        );
        const x = fromNumbers(dtype, [size], drawn);
        const { out, edges } = await device.run(op, { x } as never);
        const expected = spreadOf(drawn, 7);
        const label = `seed 19: ${dtype.name} ${size} within ${spread}`;
        expect([...toNumbers(edges)], label).toEqual(expected.edges);
        expect([...toNumbers(out)], label).toEqual(expected.counts);
      }
    }
    // Eighths and their edges are numbers of f32.
    const values = [1, 1.125, 2, 3, 0.5, 2.5, 1];
    const { out, edges } = await device.run(histogram({ x: bf16, bins: 5, weights: f32 }), {
      x: fromNumbers(bf16, [7], values),
      weights: [1, 2, 4, 8, 16, 32, 64],
    });
    expect([...toNumbers(edges)]).toEqual([0.5, 1, 1.5, 2, 2.5, 3]);
    expect([...toNumbers(out)]).toEqual([16, 67, 0, 4, 40]);
    // A range that is given, of integers: 3 is in the bin that it begins, and 9 in none.
    const given = await device.run(histogram({ x: i32, bins: 2, low: 0, high: 6 }), {
      x: [0, 2, 3, 6, 9, -1],
    });
    expect([...toNumbers(given.out)]).toEqual([2, 2]);
    device.dispose();
  },
);

describe("bins that are narrower than f32 tells apart", () => {
  test.each([
    ["far from 0", { bins: 4096, low: 2 ** 20, high: 2 ** 20 + 8 }, 1 / 8],
    ["many of them", { bins: 2 ** 22 + 1, low: 0, high: 3 }, 3 / 2 ** 23],
  ])("%s", async (_, { bins, low, high }, step) => {
    const random = new Random(7);
    const places = Array.from({ length: 200 }, () => random.below((high - low) / step + 1));
    const values = places.map((place) => Math.fround(low + place * step));
    const device = await open("simulator");
    const op = histogram({ x: tensor(f32, [200]), bins, low, high });
    const { out } = await device.run(op, { x: fromNumbers(f32, [200], values) });
    const expected = new Map<number, number>();
    for (const value of values) {
      // Exact: values and edges are multiples of small powers of two, times the number of bins.
      const bin = Math.min(Math.floor(((value - low) * bins) / (high - low)), bins - 1);
      expected.set(bin, (expected.get(bin) ?? 0) + 1);
    }
    const counts = toNumbers(out);
    expect([...expected.keys()].map((bin) => counts[bin])).toEqual([...expected.values()]);
    expect(counts.reduce((sum, count) => sum + count, 0)).toBe(values.length);
    device.dispose();
  });
});

test("elements without end have no range", async () => {
  for (const value of [NaN, Infinity]) {
    const device = await open("simulator");
    const x = fromNumbers(f32, [3], [1, value, 2]);
    const found = await device.run(histogram({ x: f32, bins: 2 }), { x }).catch(String);
    expect(found).toMatch(/finite/);
    device.dispose();
  }
});

test("mistakes are reported", () => {
  const refused: readonly (readonly [string, () => unknown])[] = [
    ["TW9901", () => histogram({ x: bool as never, bins: 3, low: 0, high: 1 })],
    ["TW9901", () => histogram({ x: i4, bins: 3 })],
    ["TW9901", () => histogram({ x: f8e5m2, bins: 3 })],
    ["TW9904", () => histogram({ x: i32, bins: 3, low: 0 } as never)],
    ["TW9904", () => histogram({ x: i32, bins: 0 })],
    ["TW9901", () => bincount({ x: bf16 as never, length: 3 })],
    ["TW9902", () => bincount({ x: tensor(u8, [m, n], { strides: [1, m] }), length: 3 })],
    ["TW9904", () => histogram({ x: f32, bins: 0, low: 0, high: 1 })],
    ["TW9904", () => histogram({ x: f32, bins: 3, low: 1, high: 1 })],
    ["TW9904", () => histogram({ x: f64, bins: 2 ** 20, low: 2 ** 40, high: 2 ** 40 + 1 })],
    ["TW9904", () => bincount({ x: u8, length: 1.5 })],
    ["TW9901", () => bincount({ x: u8, length: 3, weights: i32 as never })],
    ["TW9902", () => bincount({ x: tensor(u8, [m]), length: 3, weights: tensor(f32, [n]) })],
    ["TW9902", () => histogram({ x: f32, edges: tensor(f32, [1]) })],
    ["TW9902", () => histogram({ x: f32, edges: tensor(f32, [3, 3]) })],
    ["TW9904", () => histogram({ x: f32, edges: f32, bins: 3 } as never)],
    ["TW1033", () => bincount({ x: u8, bins: 3 } as never)],
    ["TW1033", () => histogram({ x: f32, count: 3 } as never)],
  ];
  for (const [code, make] of refused) expect(codeOf(make), String(make)).toBe(code);
});
