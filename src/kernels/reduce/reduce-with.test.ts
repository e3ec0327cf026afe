/** Reductions by functions of one's own, against float64 and loops. */
import { describe, expect, test } from "vitest";
import { scheduleSeeds, takesAll } from "../../../test/support/sample.ts";
import { codeOf, expectClose, randomNumbers } from "../../../test/support/library-checks.ts";
import { bf16, f32, i32 } from "../../formats/dtype.ts";
import { fromNumbers, toNumbers } from "../../formats/hostarray.ts";
import { tensor, dim, full } from "../../lang/index.ts";
import { open } from "../../runtime/open.ts";
import { Random } from "../../support/random.ts";
import { reduceWith } from "./reduce-with.ts";

const [b, m, n] = [dim("b"), dim("m"), dim("n")];

/** Arrays that the emulator is given of each kind. */
const turns = takesAll ? 7 : 3;

/** An odd number from 1 more than `half` to 1 less than twice as much: all of them share a kernel. */
function oddAbove(half: number, random: Random): number {
  return half + 1 + 2 * random.below(half / 2);
}

/** log Σ exp x along rows. */
const logSumExp = reduceWith({
  inputs: { x: tensor(bf16, [m, n]) },
  axis: [1],
  load: ({ x }) => ({ most: x.cast(f32), sum: full(f32, x.shape, 1) }),
  combine: (left, right) => {
    const most = left.most.maximum(right.most);
    // Where nothing has been met, −∞ less itself would be no number.
    const share = ({ most: own, sum }: typeof left) =>
      own.eq(-Infinity).select(full(f32, [1, 1], 0), own.sub(most).exp().mul(sum));
    return { most, sum: share(left).add(share(right)) };
  },
  identity: { most: -Infinity, sum: 0 },
  finish: ({ most, sum }) => ({ out: most.add(sum.log()) }),
});

/** Mean and variance over the first and the last axis. */
const moments = reduceWith({
  inputs: { x: tensor(f32, [b, m, n]) },
  axis: [0, 2],
  load: ({ x }) => ({ count: full(f32, x.shape, 1), mean: x, squares: full(f32, x.shape, 0) }),
  combine: (left, right) => {
    const count = left.count.add(right.count);
    const share = right.count.div(count.maximum(1));
    const apart = right.mean.sub(left.mean);
    return {
      count,
      mean: left.mean.add(apart.mul(share)),
      squares: left.squares.add(right.squares).add(apart.mul(apart).mul(left.count).mul(share)),
    };
  },
  identity: { count: 0, mean: 0, squares: 0 },
  finish: ({ count, mean, squares }) => ({ mean, variance: squares.div(count) }),
});

/** The least of a row, the first of equal ones, and what belongs to it. */
const nearest = reduceWith({
  inputs: { x: tensor(i32, [m, n]), label: tensor(f32, [m, n]) },
  axis: [-1],
  keepDims: true,
  load: ({ x, label, index }) => ({ x, label, index }),
  combine: (left, right) => {
    const isNew = right.x.lt(left.x).or(right.x.eq(left.x).and(right.index.lt(left.index)));
    return {
      x: isNew.select(right.x, left.x),
      label: isNew.select(right.label, left.label),
      index: isNew.select(right.index, left.index),
    };
  },
  identity: { x: 2 ** 31 - 1, label: 0, index: 2 ** 31 - 1 },
  finish: ({ x, label, index }) => ({ least: x, labelOfLeast: label, index }),
});

describe.each(["simulator", "emulator"] as const)("on the %s", (kind) => {
  test("logsumexp of rows", async () => {
    const device = await open(kind);
    const random = new Random(51);
    for (let turn = 0; turn < (kind === "emulator" ? turns : 2); turn += 1) {
      const shape = [oddAbove(4, random), oddAbove(32, random)] as const;
      const x = randomNumbers(bf16, shape, turn, 20);
      const { out } = await device.run(logSumExp, { x: x.array });
      const expected = Array.from({ length: shape[0] }, (_, row) => {
        const own = x.values.slice(row * shape[1], (row + 1) * shape[1]);
        const most = Math.max(...own);
        return most + Math.log(own.reduce((sum, value) => sum + Math.exp(value - most), 0));
      });
      expectClose(out, expected, { relative: 16, absolute: 1e-5 });
    }
    device.dispose();
  });

  test("mean and variance over axes that do not lie together", async () => {
    const device = await open(kind);
    const random = new Random(53);
    for (let turn = 0; turn < (kind === "emulator" ? turns : 2); turn += 1) {
      const blocks = oddAbove(2, random);
      const [rows, columns] = [oddAbove(2, random), oddAbove(16, random)];
      const x = randomNumbers(f32, [blocks, rows, columns], turn, 1, 30);
      const { mean, variance } = await device.run(moments, { x: x.array });
      const own = Array.from({ length: rows }, (_, row) =>
        x.values.filter((_value, at) => Math.floor(at / columns) % rows === row),
      );
      const means = own.map((list) => list.reduce((sum, value) => sum + value, 0) / list.length);
      expectClose(mean, means, { relative: 8 });
      const variances = own.map(
        (list, row) =>
          list.reduce((sum, value) => sum + (value - (means[row] ?? 0)) ** 2, 0) / list.length,
      );
      expectClose(variance, variances, { relative: 64, absolute: 1e-5 });
    }
    device.dispose();
  });

  test("the least of each row with what belongs to it", async () => {
    const device = await open(kind);
    const random = new Random(57);
    for (let turn = 0; turn < (kind === "emulator" ? turns : 2); turn += 1) {
      const [rows, columns] = [oddAbove(4, random), oddAbove(64, random)];
      const values = Array.from({ length: rows * columns }, () => random.below(50) - 25);
      const found = await device.run(nearest, {
        x: fromNumbers(i32, [rows, columns], values),
        label: fromNumbers(
          f32,
          [rows, columns],
          values.map((_, at) => at),
        ),
      });
      const places = Array.from({ length: rows }, (_, row) => {
        const own = values.slice(row * columns, (row + 1) * columns);
        return own.indexOf(Math.min(...own));
      });
      expect(found.index.shape).toEqual([rows, 1]);
      expect([...toNumbers(found.index)]).toEqual(places);
      const flat = places.map((place, row) => row * columns + place);
      expect([...toNumbers(found.labelOfLeast)]).toEqual(flat);
      expect([...toNumbers(found.least)]).toEqual(flat.map((at) => values[at]));
    }
    device.dispose();
  });
});

test("few long rows are split, under many schedules", async () => {
  const least = reduceWith({
    inputs: { x: i32 },
    load: ({ x, index }) => ({ x, index }),
    combine: (left, right) => {
      const isNew = right.x.lt(left.x).or(right.x.eq(left.x).and(right.index.lt(left.index)));
      return { x: isNew.select(right.x, left.x), index: isNew.select(right.index, left.index) };
    },
    identity: { x: 2 ** 31 - 1, index: 2 ** 31 - 1 },
    finish: ({ x, index }) => ({ least: x, index }),
  });
  const random = new Random(59);
  const count = 20_000;
  expect(least.plan({ n: count }).launches).toHaveLength(2);
  const values = Array.from({ length: count }, () => random.below(1000));
  const x = fromNumbers(i32, [count], values);
  for (const seed of scheduleSeeds) {
    const device = await open("simulator", { schedule: "random", seed });
    const found = await device.run(least, { x });
    const expected = values.reduce((best, value) => Math.min(best, value));
    expect([...toNumbers(found.least)], `schedule ${seed}`).toEqual([expected]);
    expect([...toNumbers(found.index)], `schedule ${seed}`).toEqual([values.indexOf(expected)]);
    device.dispose();
  }
});

test("mistakes are reported", () => {
  const good = {
    inputs: { x: f32 },
    load: ({ x }: { readonly x: never }) => ({ sum: x }),
    combine: (left: never) => left,
    identity: { sum: 0 },
  };
  const given =
    (other: object): (() => unknown) =>
    () =>
      reduceWith({ ...good, ...other } as never);
  const refused: readonly (readonly [string, () => unknown])[] = [
    ["TW9902", given({ inputs: undefined })],
    ["TW9905", given({ load: undefined })],
    ["TW9905", given({ combine: undefined })],
    ["TW9902", given({ inputs: {} })],
    ["TW9902", given({ inputs: { index: f32 } })],
    ["TW9902", given({ axis: [1] })],
    ["TW9904", given({ identity: { other: 0 } })],
    ["TW9905", given({ load: () => 3 })],
    ["TW9905", given({ combine: () => ({}) })],
    ["TW9905", given({ combine: ({ sum }: { sum: unknown }) => ({ sum, more: sum }) })],
    ["TW9905", given({ finish: ({ sum }: { sum: unknown }) => ({ x: sum }) })],
    ["TW1033", given({ state: 3 })],
  ];
  for (const [code, make] of refused) expect(codeOf(make), String(make)).toBe(code);
});
