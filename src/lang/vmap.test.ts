import { afterAll, describe, expect, test } from "vitest";
import {
  all,
  tensor,
  barrier,
  cdiv,
  commitShared,
  copyAsync,
  dim,
  f32,
  fromNumbers,
  gmem,
  i32,
  kernel,
  open,
  scalar,
  semaphore,
  slice,
  smem,
  toNumbers,
  vmap,
} from "tilewright";
import type { HostArray } from "tilewright";
import { testMistakes } from "../../test/language.ts";
import type { Mistake } from "../../test/language.ts";

const devices = [await open("simulator"), await open("emulator")];
afterAll(() => {
  for (const device of devices) device.dispose();
});
const backends = devices.map((device) => [device.name, device] as const);

const [n, m] = [dim("n"), dim("m")];

/** Rows scaled and shifted: blocks along the rows overhang, `shift` is a vector, `alpha` a number. */
const affine = kernel(
  {
    name: "affine",
    grid: { i: cdiv(n, 4) },
    inputs: { x: tensor(f32, [n, m]), shift: tensor(f32, [m]), alpha: scalar(f32) },
    outputs: { out: tensor(f32, [n, m]) },
    inouts: { count: tensor(i32, [1]) },
  },
  ({ i, x, shift, alpha, out, count }) => {
    const here = [slice(i.mul(4), 4), slice(0, 8)] as const;
    const values = x.at(...here).load();
    out.at(...here).store(values.mul(alpha).add(shift.at(slice(0, 8)).load()));
    count.at(0).atomicAdd(1);
  },
);

const [rows, columns, items] = [6, 5, 3];
const numbers = (shape: readonly number[], seed: number): HostArray<"f32"> => {
  const count = shape.reduce((product, extent) => product * extent, 1);
  return fromNumbers(
    f32,
    shape,
    Array.from({ length: count }, (_, index) => ((index * 7 + seed) % 23) - 11),
  );
};

/** The item of a batch, and the batch of items, along an axis. */
function item(batch: HostArray, axis: number, index: number): readonly number[] {
  const { shape } = batch;
  const inner = shape.slice(axis + 1).reduce((product, extent) => product * extent, 1);
  const extent = shape[axis] ?? 1;
  return [...toNumbers(batch)].filter((_, at) => Math.floor(at / inner) % extent === index);
}

describe.each(backends)("batches on the %s", (_, device) => {
  test.each([
    { x: 0, out: 0, shift: undefined, alpha: undefined, count: undefined },
    { x: 1, out: 2, shift: 1, alpha: 0, count: 1 },
    { x: -1, out: -3, shift: 0, alpha: -1, count: undefined },
    { x: undefined, out: 1, shift: -2, alpha: 0, count: 0 },
  ])("items along any axis are what a loop over them gives: %j", async (axes) => {
    const shape = (own: readonly number[], axis: number | undefined): readonly number[] =>
      axis === undefined ? own : own.toSpliced(axis < 0 ? axis + own.length + 1 : axis, 0, items);
    const position = (rank: number, axis: number | undefined): number =>
      axis === undefined ? -1 : axis < 0 ? axis + rank + 1 : axis;
    const x = numbers(shape([rows, columns], axes.x), 1);
    const shift = numbers(shape([columns], axes.shift), 2);
    const alpha = axes.alpha === undefined ? 3 : fromNumbers(f32, [items], [2, -1, 0.5]);
    const count = fromNumbers(
      i32,
      shape([1], axes.count),
      new Array(axes.count === undefined ? 1 : items).fill(10),
    );
    const given = Object.fromEntries(Object.entries(axes).filter(([, axis]) => axis !== undefined));
    const batched = vmap(affine, given);
    const found = await device.run(batched, { x, shift, alpha, count } as never);
    for (let index = 0; index < items; index++) {
      const part = (batch: HostArray, rank: number, axis: number | undefined) =>
        axis === undefined ? [...toNumbers(batch)] : item(batch, position(rank, axis), index);
      const one = await device.run(affine, {
        x: fromNumbers(f32, [rows, columns], part(x, 2, axes.x)),
        shift: fromNumbers(f32, [columns], part(shift, 1, axes.shift)),
        alpha: typeof alpha === "number" ? alpha : (toNumbers(alpha)[index] ?? NaN),
        count: fromNumbers(i32, [1], [10]),
      });
      expect(part(found.out, 2, axes.out)).toEqual([...toNumbers(one.out)]);
      // What is shared is updated by every item.
      const counted = axes.count === undefined ? 10 + 2 * items : 12;
      expect(part(found.count, 1, axes.count)[0]).toBe(counted);
    }
  });

  test("scratch of the grid and counters are there once for each item", async () => {
    const blocks = 3;
    /** Each block leaves a number behind and sums what all blocks of its item left. */
    const total = kernel(
      {
        name: "total",
        grid: { i: blocks },
        inputs: { x: tensor(f32, [blocks]) },
        outputs: { out: tensor(f32, [blocks]) },
        scratch: { left: gmem(f32, [blocks]), done: semaphore([2]), plain: semaphore() },
      },
      ({ i, x, out, left, done, plain }) => {
        left.at(i).store(x.at(i).loadScalar().mul(2));
        done.at(1).signal();
        plain.signal();
        done.at(1).wait(blocks);
        plain.wait(blocks);
        out.at(i).store(left.load().sum());
      },
    );
    const x = fromNumbers(f32, [items, blocks], [1, 2, 3, 10, 20, 30, 100, 200, 300]);
    const { out } = await device.run(vmap(total, { x: 0 }), { x });
    expect([...toNumbers(out)]).toEqual([12, 12, 12, 120, 120, 120, 1200, 1200, 1200]);
  });

  test("copies, clusters and threads stay as they are", async () => {
    const copied = kernel(
      {
        name: "copied",
        grid: { i: 2 },
        cluster: { i: 2 },
        threads: ["load", "compute"],
        inputs: { x: tensor(f32, [2, 64]) },
        outputs: { out: tensor(f32, [2, 64]) },
        scratch: { buffer: smem(f32, [64]), full: barrier() },
      },
      ({ i, x, out, buffer, full, load, compute }) => {
        load(() => {
          commitShared();
          copyAsync(x.at(i), buffer, { barrier: full });
        });
        compute(() => {
          full.wait();
          out.at(i).store(buffer.load().add(1));
        });
      },
    );
    const x = numbers([2, items, 64], 5);
    const { out } = await device.run(vmap(copied, { x: 1, out: 1 }), { x });
    expect([...toNumbers(out)]).toEqual([...toNumbers(x)].map((value) => value + 1));
  });

  test("a batch of batches, with sizes that are numbers", async () => {
    const inner = vmap(affine, { x: 0, alpha: 0 }, { gridAxis: "inner", size: 2 });
    const outer = vmap(inner, { x: 1, shift: 0, out: 3 }, { gridAxis: "outer", size: items });
    expect(outer.kernel.grid.map(({ name }) => name)).toEqual(["outer", "inner", "i"]);
    const x = numbers([2, items, rows, columns], 3);
    const shift = numbers([items, columns], 4);
    const alpha = fromNumbers(f32, [2], [2, -3]);
    const count = fromNumbers(i32, [1], [0]);
    const { out, count: counted } = await device.run(outer, { x, shift, alpha, count });
    expect(out.shape).toEqual([2, rows, columns, items]);
    expect([...toNumbers(counted)]).toEqual([2 * items * 2]);
    const [values, shifts, found] = [toNumbers(x), toNumbers(shift), toNumbers(out)];
    for (let a = 0; a < 2; a++)
      for (let b = 0; b < items; b++)
        for (let row = 0; row < rows; row++)
          for (let column = 0; column < columns; column++) {
            const value = values[((a * items + b) * rows + row) * columns + column] ?? NaN;
            const expected = value * (a === 0 ? 2 : -3) + (shifts[b * columns + column] ?? NaN);
            expect(found[((a * rows + row) * columns + column) * items + b]).toBe(expected);
          }
  });

  test("an array that lies by strides has one more, given with the launch", async () => {
    const strided = kernel(
      {
        name: "strided",
        inputs: { x: tensor(f32, [4], { strides: [2] }) },
        outputs: { out: tensor(f32, [4]) },
      },
      ({ x, out }) => {
        out.store(x.load());
      },
    );
    const x = numbers([items * 10], 0);
    const dimensions = { batch: items, batch_stride_of_x: 10 };
    const { out } = await device.run(vmap(strided, { x: 0 }), { x }, { dimensions });
    const values = toNumbers(x);
    const expected = Array.from(
      { length: items * 4 },
      (_, at) => values[Math.floor(at / 4) * 10 + (at % 4) * 2],
    );
    expect([...toNumbers(out)]).toEqual(expected);
  });
});

test("types follow: a scalar with an axis is an array, the rest is as it was", async () => {
  const batched = vmap(affine, { x: 0, alpha: 0 });
  expect(batched.inputs.alpha.shape.length).toBe(1);
  expect(batched.inputs.shift.shape).toEqual(affine.inputs.shift.shape);
  expect(batched.outputs.out.shape.length).toBe(3);
  const [device] = devices;
  // @ts-expect-error a number for each item is an array
  await expect(device?.run(batched, { x: [], shift: [], alpha: 1, count: [0] })).rejects.toThrow();
});

test("the body works on windows of its item", () => {
  const whole = kernel(
    { name: "whole", inputs: { x: tensor(f32, [4]) }, outputs: { out: tensor(f32, [4]) } },
    ({ x, out }) => {
      out.at(all).store(x.load());
    },
  );
  expect(String(vmap(whole, { x: 1 }))).toMatchInlineSnapshot(`
    "kernel @whole_batched dimensions [batch] grid [batch = batch] threads [main] (
      input %0 "x": ref<gmem, f32, [4, batch]>,
      output %1 "out": ref<gmem, f32, [batch, 4]>
    ) {
      %2 = block_index {axis = "batch"} : i32
      %3 = constant {value = 0, dtype = i32, shape = []} : i32
      %4 = slice_ref %0 offsets(%3, %2) {sizes = [4, 1], dropped = [1]} : ref<gmem, f32, [4]>
      %5 = constant {value = 0, dtype = i32, shape = []} : i32
      %6 = slice_ref %1 offsets(%2, %5) {sizes = [1, 4], dropped = [0]} : ref<gmem, f32, [4]>
      %7 = constant {value = 0, dtype = i32, shape = []} : i32
      %8 = slice_ref %6 offsets(%7) {sizes = [4], dropped = []} : ref<gmem, f32, [4]>
      %9 = load %4 : tile<f32, [4]>
      store %8, %9
      yield
    }"
  `);
});

const mistakes: readonly Mistake[] = [
  {
    name: "an argument that is not there",
    code: "TW1039",
    make: () => vmap(affine, { y: 0 } as never), // <- here
    message: "kernel affine has no argument y",
    expected: "x, shift, alpha, out, count",
    found: "y",
  },
  {
    name: "an axis past the end",
    code: "TW1039",
    make: () => vmap(affine, { x: 3 }), // <- here
    message: "x cannot have the axis of a batch at 3",
    expected: "a whole number from -3 to 2",
    found: "3",
  },
  {
    name: "a scalar has one place for it",
    code: "TW1039",
    make: () => vmap(affine, { alpha: 1 }), // <- here
    expected: "a whole number from -1 to 0",
    found: "1",
  },
  {
    name: "nothing has an axis",
    code: "TW1039",
    make: () => {
      const counting = kernel({ name: "counting", inouts: { c: tensor(i32, [1]) } }, ({ c }) => {
        c.at(0).atomicAdd(1);
      });
      return vmap(counting, {}); // <- here
    },
    message: "vmap of counting gives no argument an axis",
  },
  {
    name: "a name that is taken",
    code: "TW1021",
    make: () => vmap(affine, { x: 0 }, { gridAxis: "i" }), // <- here
    message: "i names both a grid axis and the axis of vmap",
  },
  {
    name: "a dimension that is something else",
    code: "TW1021",
    make: () => vmap(affine, { x: 0 }, { gridAxis: "n" }), // <- here
    message: "n names both a dimension and the axis of vmap",
  },
  {
    name: "no kernel",
    code: "TW1008",
    make: () => vmap(3 as never, {}), // <- here
  },
  {
    name: "an unknown option",
    code: "TW1033",
    make: () => vmap(affine, { x: 0 }, { name: "b" } as never), // <- here
  },
  {
    name: "a size that is none",
    code: "TW1008",
    make: () => vmap(affine, { x: 0 }, { size: 0 }), // <- here
  },
];
testMistakes("mistakes of vmap", mistakes);
