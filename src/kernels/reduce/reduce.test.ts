/** Reductions and scans against sums in float64 of small whole numbers, which every order gives alike. */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { codeOf, randomNumbers, wholeNumbers } from "../../../test/support/library-checks.ts";
import { dealtTo } from "../../../test/support/sample.ts";
import type { Device } from "../../device/device.ts";
import { bf16, bool, f32, f64, f8e4m3fn, i32, i64, i8, u8 } from "../../formats/dtype.ts";
import { fromNumbers, toNumbers } from "../../formats/hostarray.ts";
import { printKernel } from "../../ir/printer.ts";
import { tensor, dim } from "../../lang/index.ts";
import { open } from "../../runtime/open.ts";
import { Random } from "../../support/random.ts";
import { scan } from "../scan/scan.ts";
import { argReduce } from "./arg-reduce.ts";
import { reduce } from "./reduce.ts";

const dims = ["d0", "d1", "d2", "d3"].map((name) => dim(name));

/** For every element of a shape its place among the kept ones, and along the reduced axes. */
function places(shape: readonly number[], axes: readonly number[]) {
  const count = shape.reduce((product, extent) => product * extent, 1);
  const kept = shape.filter((_, axis) => !axes.includes(axis));
  return {
    kept: kept.reduce((product, extent) => product * extent, 1),
    of: Array.from({ length: count }, (_, index) => {
      let rest = index;
      const at = shape.map(() => 0);
      for (let axis = shape.length - 1; axis >= 0; axis -= 1) {
        at[axis] = rest % (shape[axis] ?? 1);
        rest = Math.floor(rest / (shape[axis] ?? 1));
      }
      return at.reduce(
        (place, own, axis) => (axes.includes(axis) ? place : place * (shape[axis] ?? 1) + own),
        0,
      );
    }),
  };
}

function summed(values: readonly number[], shape: readonly number[], axes: readonly number[]) {
  const { kept, of } = places(shape, axes);
  const sums = Array.from({ length: kept }, () => 0);
  for (const [index, place] of of.entries())
    sums[place] = (sums[place] ?? 0) + (values[index] ?? NaN);
  return sums;
}

describe.each(["simulator", "emulator"] as const)("on the %s", (kind) => {
  let device: Device;
  beforeAll(async () => {
    device = await open(kind);
  });
  afterAll(() => {
    device.dispose();
  });

  test("over any axes of any shapes", async () => {
    const seed = 5;
    const random = new Random(seed);
    const rounds = kind === "simulator" ? 16 : 2;
    for (let round = 0; round < rounds; round += 1) {
      const rank = 1 + random.below(4);
      const shape = Array.from({ length: rank }, () => 1 + random.below(round % 2 === 0 ? 9 : 60));
      const some = shape.map((_, axis) => axis).filter(() => random.below(2) === 0);
      const axes = some.length === 0 ? [random.below(rank)] : some;
      const x = wholeNumbers(f32, shape, round);
      const op = reduce({ x: tensor(f32, dims.slice(0, rank)), axis: axes });
      const { out } = await device.run(op, { x: x.array });
      const text = `seed ${seed}, round ${round}, [${shape.join(", ")}] over ${axes.join(", ")}`;
      expect([...toNumbers(out)], text).toEqual(summed(x.values, shape, axes));
      expect(out.shape, text).toEqual(shape.filter((_, axis) => !axes.includes(axis)));
    }
  });

  test("long ones in parts, which are merged by a second launch", async () => {
    const count = 35000;
    const x = wholeNumbers(bf16, [count], 1);
    const op = reduce({ x: bf16, out: f32 });
    expect(op.plan({ n: count }).launches.length).toBe(2);
    const { out } = await device.run(op, { x: x.array });
    expect([...toNumbers(out)]).toEqual(summed(x.values, [count], [0]));
    const tall = wholeNumbers(f32, [1500, 20], 2);
    const columns = reduce({
      x: tensor(f32, [dims[0] ?? 1, dims[1] ?? 1]),
      axis: [0],
      combine: "max",
    });
    const found = await device.run(columns, { x: tall.array });
    const expected = Array.from({ length: 20 }, (_, column) =>
      Math.max(...tall.values.filter((__, index) => index % 20 === column)),
    );
    expect([...toNumbers(found.out)]).toEqual(expected);
  });

  test("by other functions, in other formats, of what a function makes", async () => {
    const shape = [3, 50] as const;
    const spec = [dims[0] ?? 1, dims[1] ?? 1];
    const bytes = wholeNumbers(i8, shape, 1);
    const total = await device.run(reduce({ x: tensor(i8, spec), axis: [-1], out: i32 }), {
      x: bytes.array,
    });
    expect([...toNumbers(total.out)]).toEqual(summed(bytes.values, shape, [1]));
    const least = await device.run(reduce({ x: tensor(i8, spec), combine: "min" }), {
      x: bytes.array,
    });
    expect([...toNumbers(least.out)]).toEqual([-3]);
    expect(least.out.dtype).toBe(i8);
    const unsigned = wholeNumbers(u8, shape, 1);
    const bits = await device.run(reduce({ x: tensor(u8, spec), axis: [1], combine: "or" }), {
      x: unsigned.array,
    });
    expect([...toNumbers(bits.out)]).toEqual([3, 3, 3]);
    const truths = fromNumbers(bool, [4], [1, 1, 1, 0]);
    const all = await device.run(reduce({ x: bool, combine: "and" }), { x: truths });
    expect([...toNumbers(all.out)]).toEqual([0]);
    const wide = wholeNumbers(i64, [9], 3);
    const product = await device.run(reduce({ x: i64, combine: "prod" }), { x: wide.array });
    expect([...toNumbers(product.out)].map((value) => value + 0)).toEqual([
      wide.values.reduce((one, other) => one * other, 1) + 0,
    ]);
    const [x, y] = [wholeNumbers(f32, shape, 1), wholeNumbers(f32, [50], 2)];
    const dots = reduce({
      x: tensor(f32, spec),
      inputs: { y: tensor(f32, spec.slice(1)) },
      load: ({ x: left, y: right }) => left.mul(right),
      epilogue: (sum) => sum.mul(2),
      axis: [1],
      keepDims: true,
    });
    const found = await device.run(dots, { x: x.array, y: y.array });
    const products = x.values.map((value, index) => 2 * value * (y.values[index % 50] ?? NaN));
    expect([...toNumbers(found.out)]).toEqual(summed(products, shape, [1]));
    expect(found.out.shape).toEqual([3, 1]);
  });

  test("no elements along several axes at once", async () => {
    const op = reduce({ x: tensor(f32, dims.slice(0, 3)), axis: [0, 2], combine: "max" });
    const { out } = await device.run(op, { x: fromNumbers(f32, [0, 5, 0], []) });
    expect([...toNumbers(out)]).toEqual(Array(5).fill(-Infinity));
    const all = reduce({ x: tensor(f32, dims.slice(0, 3)), axis: [0, 1, 2] });
    const { out: sum } = await device.run(all, { x: fromNumbers(f32, [2, 0, 0], []) });
    expect([...toNumbers(sum)]).toEqual([0]);
  });

  test("the first least and greatest elements, NaN before all", async () => {
    const shape = kind === "simulator" ? [40, 70] : [5, 140];
    const [rows = 0, columns = 0] = shape;
    const x = wholeNumbers(f32, shape, 4);
    for (const axis of [0, 1]) {
      const op = argReduce({ x: tensor(f32, dims.slice(0, 2)), axis, find: "max" });
      const { value, index } = await device.run(op, { x: x.array });
      const along = axis === 0 ? rows : columns;
      const at = (place: number, own: number): number =>
        (axis === 0 ? x.values[own * columns + place] : x.values[place * columns + own]) ?? NaN;
      const found = toNumbers(index);
      for (const [place, best] of toNumbers(value).entries()) {
        const all = Array.from({ length: along }, (_, own) => at(place, own));
        expect(best).toBe(Math.max(...all));
        expect(found[place]).toBe(all.indexOf(best));
      }
    }
    // Long rows of few numbers: threads keep runs of them, and of equal ones the first counts.
    for (const [dtype, length, find] of [
      [bf16, 4500, "max"],
      [i8, 4097, "min"],
      [f32, 1303, "min"],
    ] as const) {
      const row = wholeNumbers(dtype as typeof f32, [2, length], 3);
      const op = argReduce({ x: tensor(dtype as typeof f32, dims.slice(0, 2)), find });
      const { value, index } = await device.run(op, { x: row.array });
      const best = find === "min" ? Math.min : Math.max;
      const all = [row.values.slice(0, length), row.values.slice(length)];
      expect([...toNumbers(value)], dtype.name).toEqual(all.map((own) => best(...own)));
      expect([...toNumbers(index)], dtype.name).toEqual(
        all.map((own) => own.indexOf(best(...own))),
      );
    }
    const late = wholeNumbers(bf16, [9000], 2);
    late.array.data[8191] = 0x7fc0;
    late.array.data[8999] = 0x7fc0;
    const none = await device.run(argReduce({ x: bf16, find: "max" }), { x: late.array });
    expect([...toNumbers(none.index)]).toEqual([8191]);
    const strange = fromNumbers(f32, [6], [3, NaN, -5, NaN, 9, -5]);
    const first = await device.run(argReduce({ x: f32, find: "min" }), { x: strange });
    expect(toNumbers(first.index)[0]).toBe(1);
    expect(toNumbers(first.value)[0]).toBeNaN();
    const low = fromNumbers(f32, [3], [-Infinity, -Infinity, -Infinity]);
    const lowest = await device.run(argReduce({ x: f32, find: "max" }), { x: low });
    expect([...toNumbers(lowest.index)]).toEqual([0]);
    const long = wholeNumbers(i32, [9000], 1);
    long.array.data.fill(5);
    const same = await device.run(argReduce({ x: i32, find: "min" }), { x: long.array });
    expect([...toNumbers(same.index)]).toEqual([0]);
    const empty = fromNumbers(f32, [2, 0], []);
    const least = await device.run(argReduce({ x: tensor(f32, dims.slice(0, 2)), find: "min" }), {
      x: empty,
    });
    expect([...toNumbers(least.value)]).toEqual([Infinity, Infinity]);
    expect([...toNumbers(least.index)]).toEqual([0, 0]);
  });

  test("running sums of rows, columns and long arrays", async () => {
    const rows = wholeNumbers(f32, [5, 300], 1);
    const spec = dims.slice(0, 2);
    for (const [axis, reverse] of [
      [1, false],
      [1, true],
      [0, false],
    ] as const) {
      const { out } = await device.run(scan({ x: tensor(f32, spec), axis, reverse }), {
        x: rows.array,
      });
      const [count, step, length] = axis === 1 ? [5, 1, 300] : [300, 300, 5];
      const expected = new Array<number>(5 * 300);
      for (let row = 0; row < count; row += 1) {
        let sum = 0;
        for (let index = 0; index < length; index += 1) {
          const place =
            (axis === 1 ? row * 300 : row) + (reverse ? length - 1 - index : index) * step;
          sum += rows.values[place] ?? NaN;
          expected[place] = sum;
        }
      }
      expect([...toNumbers(out)]).toEqual(expected);
    }
    // Three blocks share a row of 8 pieces, the last of which overhangs: three waves, the last one uneven.
    const long = wholeNumbers(i32, [2, 4000], 3);
    for (const reverse of dealtTo(kind, [false, true])) {
      const configuration = { rows: 1, columns: 512, workers: 3 };
      const op = scan({ x: tensor(i32, spec), reverse, configuration });
      const { out } = await device.run(op, { x: long.array });
      const expected = [0, 1].flatMap((row) => {
        let sum = 0;
        const own = long.values.slice(row * 4000, (row + 1) * 4000);
        const sums = (reverse ? own.toReversed() : own).map((value) => (sum += value));
        return reverse ? sums.toReversed() : sums;
      });
      expect([...toNumbers(out)]).toEqual(expected);
    }
    const highs = randomNumbers(bf16, [200], 2, 5);
    const { out } = await device.run(scan({ x: bf16, combine: "max" }), { x: highs.array });
    let high = -Infinity;
    expect([...toNumbers(out)]).toEqual(
      highs.values.map((value) => (high = Math.max(high, value))),
    );
  });
});

test("what is read of arrays that no cache holds is dropped first, but what repeats along an axis", () => {
  const x = tensor(bf16, [dims[0] ?? 1, dims[1] ?? 1]);
  const bias = tensor(f32, [dims[1] ?? 1]);
  const sums = reduce({
    x,
    inputs: { bias },
    load: ({ x: own, bias: more }) => own.cast(f32).add(more),
    axis: [1],
  });
  const [small, large] = [
    { d0: 64, d1: 8192 },
    { d0: 16_384, d1: 8192 },
  ];
  expect(sums.plan(small).configuration).not.toHaveProperty("evict");
  expect(sums.plan(large).configuration).toMatchObject({ evict: "first" });
  const [text = ""] = sums.kernels(large).map(({ kernel }) => printKernel(kernel));
  const loads = text.split("\n").filter((line) => /= load\b/u.test(line));
  expect(loads.map((line) => line.includes("first"))).toEqual([true, false]);
});

test("nothing is the identity", async () => {
  const device = await open("simulator");
  const x = fromNumbers(f64, [0], []);
  expect([...toNumbers((await device.run(reduce({ x: f64 }), { x })).out)]).toEqual([0]);
  const least = await device.run(reduce({ x: f64, combine: "min" }), { x });
  expect([...toNumbers(least.out)]).toEqual([Infinity]);
  expect((await device.run(scan({ x: f64 }), { x })).out.shape).toEqual([0]);
  // One of several reduced axes is empty, and does not lie beside the others.
  const spec = tensor(f64, [dim("a"), dim("b"), dim("c")]);
  const cube = fromNumbers(f64, [2, 3, 0], []);
  for (const axes of [[1, 2], [0, 2], [0, 1, 2], [2]]) {
    const { out } = await device.run(reduce({ x: spec, axis: axes }), { x: cube });
    const kept = (axes.includes(0) ? 1 : 2) * (axes.includes(1) ? 1 : 3);
    expect([...toNumbers(out)], `axes ${axes.join()}`).toEqual(new Array(kept).fill(0));
  }
  device.dispose();
});

const pipelinedScan = (columns: number, pipeline: { stages: number; lookahead: number }) =>
  scan({ x: f32, configuration: { rows: 1, columns, workers: 4, pipeline } }).kernels({
    n: 1 << 20,
  });

test("mistakes are reported", () => {
  const refused: readonly (readonly [string, () => unknown])[] = [
    ["TW9901", () => reduce({ x: f8e4m3fn })],
    ["TW9901", () => reduce({ x: f32, combine: "xor" })],
    ["TW9901", () => argReduce({ x: bool, find: "min" })],
    ["TW9901", () => scan({ x: bool })],
    ["TW9902", () => reduce({ x: f32, axis: [1] })],
    ["TW9902", () => reduce({ x: f32, inputs: 3 as never })],
    ["TW9904", () => reduce({ x: f32, combine: "mean" as never })],
    ["TW9904", () => argReduce({ x: f32, find: "most" as never })],
    ["TW9904", () => scan({ x: f32, combine: "and" as never })],
    ["TW9905", () => reduce({ x: f32, load: ({ x }) => x.cumsum({ axis: 0 }) })],
    ["TW9905", () => reduce({ x: f32, axis: [0], epilogue: (sum) => sum.cumsum({ axis: 0 }) })],
    ["TW9905", () => reduce({ x: f32, epilogue: () => 3 as never })],
    ["TW1033", () => reduce({ x: f32, axes: [0] } as never)],
    [
      "TW9904",
      () => scan({ x: f32, configuration: { rows: 1, columns: 512, workers: 999 } }).plan({ n: 9 }),
    ],
    [
      "TW9904",
      () => scan({ x: f32, configuration: { rows: 4, columns: 512, workers: 1 } }).plan({ n: 9 }),
    ],
    ["TW9904", () => pipelinedScan(16_384, { stages: 3, lookahead: 1 })],
    ["TW9904", () => pipelinedScan(8192, { stages: 8, lookahead: 1 })],
    ["TW1033", () => scan({ x: f32, axes: [0] } as never)],
    ["TW1033", () => argReduce({ x: f32, find: "min", axes: [0] } as never)],
  ];
  for (const [code, make] of refused) expect(codeOf(make), String(make)).toBe(code);
});
