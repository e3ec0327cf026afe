/** Views with strides: what kernels, copies and downloads make of transposed arrays and of parts of rows. */
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { openFake, settle } from "../../test/support/fake-driver/harness.ts";
import { tensor, cdiv, dim, kernel, slice } from "../lang/index.ts";
import { f32, i4, i64 } from "../formats/dtype.ts";
import { fromNested, fromNumbers, toNested } from "../formats/hostarray.ts";
import { open } from "../runtime/open.ts";
import { TilewrightError } from "../support/diagnostics.ts";
import { Random } from "../support/random.ts";
import type { DeviceArray } from "./device-array.ts";
import type { Device } from "./device.ts";

async function failureOf(work: () => unknown): Promise<TilewrightError> {
  try {
    await work();
  } catch (error) {
    if (error instanceof TilewrightError) return error;
    throw error;
  }
  throw new Error("nothing was thrown");
}

const counting = fromNumbers(
  f32,
  [3, 4],
  Array.from({ length: 12 }, (_, index) => index),
);

describe.each(["simulator", "emulator", "gpu"] as const)("on the %s", (name) => {
  let device: Device;
  beforeEach(async () => {
    device = name === "gpu" ? openFake().device : await open(name);
  });
  afterEach(async () => {
    expect(device.leaks).toEqual([]);
    device.dispose();
    await settle();
  });

  const nested = async (view: DeviceArray): Promise<unknown> =>
    toNested(await device.download(view));

  test("transposed arrays and parts of rows are read as they lie", async () => {
    const x = await device.upload(counting);
    const turned = x.transpose();
    expect(turned.shape).toEqual([4, 3]);
    expect(turned.strides).toEqual([1, 4]);
    expect([x.contiguous, turned.contiguous]).toEqual([true, false]);
    expect(await nested(turned)).toEqual([
      [0, 4, 8],
      [1, 5, 9],
      [2, 6, 10],
      [3, 7, 11],
    ]);
    const columns = x.slice(1, 3, { axis: 1 });
    expect(await nested(columns)).toEqual([
      [1, 2],
      [5, 6],
      [9, 10],
    ]);
    expect(await nested(columns.transpose().slice(1))).toEqual([[2, 6, 10]]);
    expect(await nested(turned.transpose().reshape([12]))).toEqual(Array.from(counting.data));
    expect(await device.element(turned, 3, 1)).toBe(7);
    expect(await device.element(columns, 2, 0)).toBe(9);
    x.dispose();
  });

  test("what is written to one leaves the elements between as they are", async () => {
    const x = await device.upload(counting);
    await device.fill(x.slice(1, 2, { axis: 1 }), -1);
    await device.write(
      x.transpose().slice(2, 4),
      fromNested(f32, [
        [20, 21, 22],
        [30, 31, 32],
      ]),
    );
    expect(await nested(x)).toEqual([
      [0, -1, 20, 30],
      [4, -1, 21, 31],
      [8, -1, 22, 32],
    ]);
    const turned = await device.zeros(f32, [4, 3]);
    await device.copy(x.transpose(), turned);
    expect(await nested(turned.slice(1, 3))).toEqual([
      [-1, -1, -1],
      [20, 21, 22],
    ]);
    await device.copy(turned, x.transpose());
    await device.copy(x.slice(0, 2, { axis: 1 }), x.slice(2, 4, { axis: 1 }));
    expect(await nested(x.slice(0, 1))).toEqual([[0, -1, 0, -1]]);
    x.dispose();
    turned.dispose();
  });

  test("elements of 4 bits and of 64 bits are moved one by one", async () => {
    const nibbles = await device.upload(
      fromNested(i4, [
        [1, 2, 3],
        [-4, -5, -6],
        [7, 0, 1],
      ]),
    );
    expect(await nested(nibbles.transpose())).toEqual([
      [1, -4, 7],
      [2, -5, 0],
      [3, -6, 1],
    ]);
    await device.fill(nibbles.transpose().slice(0, 1), -8);
    expect(await nested(nibbles)).toEqual([
      [-8, 2, 3],
      [-8, -5, -6],
      [-8, 0, 1],
    ]);
    expect((await failureOf(() => nibbles.slice(1, 2, { axis: 1 }))).code).toBe("TW4025");
    const wide = await device.upload(
      fromNested(i64, [
        [1n, 2n ** 60n],
        [3n, 4n],
      ]),
    );
    expect(await nested(wide.transpose())).toEqual([
      [1n, 3n],
      [2n ** 60n, 4n],
    ]);
    nibbles.dispose();
    wide.dispose();
  });

  test("random views agree with the same made of lists", async () => {
    const seed = 20261115;
    const random = new Random(seed);
    const x = await device.upload(
      fromNumbers(
        f32,
        [4, 3, 5],
        Array.from({ length: 60 }, (_, index) => index),
      ),
    );
    for (let round = 0; round < 40; round += 1) {
      let view: DeviceArray = x;
      let places = (at: readonly number[]): readonly number[] => at;
      for (let step = 0; step < 3; step += 1) {
        const before = places;
        if (random.below(2) === 0) {
          const axes =
            [
              [0, 1, 2],
              [2, 0, 1],
              [1, 2, 0],
              [2, 1, 0],
              [0, 2, 1],
            ][random.below(5)] ?? [];
          view = view.transpose(axes);
          places = (at) => before(axes.map((_, axis) => at[axes.indexOf(axis)] ?? 0));
        } else {
          const axis = random.below(3);
          const extent = view.shape[axis] ?? 1;
          const start = random.below(extent);
          view = view.slice(start, start + 1 + random.below(extent - start), { axis });
          places = (at) => before(at.map((index, each) => (each === axis ? index + start : index)));
        }
      }
      const at = view.shape.map((extent) => random.below(extent));
      const [plane = 0, row = 0, column = 0] = places(at);
      const what = `seed ${seed}, round ${round}`;
      expect(await device.element(view, ...at), what).toBe(15 * plane + 5 * row + column);
      const list = toNested(await device.download(view)) as readonly (readonly number[][])[];
      expect(list[at[0] ?? 0]?.[at[1] ?? 0]?.[at[2] ?? 0], what).toBe(
        15 * plane + 5 * row + column,
      );
    }
    x.dispose();
  });

  test("mistakes say what the array has", async () => {
    const x = await device.upload(counting);
    for (const work of [
      () => x.slice(0, 5, { axis: 1 }),
      () => x.slice(0, 1, { axis: 2 }),
      () => x.transpose([0, 0]),
      () => x.transpose([0]),
      () => x.transpose().reshape([12]),
      () => device.element(x.transpose(), 0, 3),
    ])
      expect((await failureOf(work)).code).toBe("TW4025");
    x.dispose();
  });
});

const [n, m, pitch] = [dim("n"), dim("m"), dim("pitch")];

/** Takes its input as it lies, rows or columns first. */
const strided = (strides: readonly [typeof n | number, typeof n | number]) =>
  kernel(
    {
      name: "strided",
      grid: { i: n, j: cdiv(m, 4) },
      inputs: { x: tensor(f32, [n, m], { strides }) },
      outputs: { out: tensor(f32, [n, m]) },
    },
    ({ i, j, x, out }) => {
      const here = slice(j.mul(4), 4);
      out.at(i, here).store(x.at(i, here).load());
    },
  );

const plain = kernel(
  {
    name: "plain",
    grid: { i: n },
    inputs: { x: tensor(f32, [n, 4]) },
    outputs: { out: tensor(f32, [n, 4]) },
  },
  ({ i, x, out }) => out.at(i).store(x.at(i).load()),
);

describe.each(["simulator", "emulator"] as const)("kernels on the %s", (name) => {
  let device: Device;
  beforeEach(async () => {
    device = await open(name);
  });
  afterEach(() => {
    device.dispose();
  });

  test("take views whose strides they declare, and sizes from them", async () => {
    const x = await device.upload(counting);
    const columns = strided([1, pitch]);
    const { out } = await device.run(columns, { x: x.transpose() });
    expect(toNested(out)).toEqual([
      [0, 4, 8],
      [1, 5, 9],
      [2, 6, 10],
      [3, 7, 11],
    ]);
    const rows = await device.run(strided([pitch, 1]), { x: x.slice(0, 2, { axis: 1 }) });
    expect(toNested(rows.out)).toEqual([
      [0, 1],
      [4, 5],
      [8, 9],
    ]);
    // Along an axis of one element any stride will do, and names get a value all the same.
    const single = await device.run(columns, { x: x.slice(0, 1).transpose() });
    expect(toNested(single.out)).toEqual([[0], [1], [2], [3]]);
    x.dispose();
  });

  test("refuse views that lie otherwise", async () => {
    const x = await device.upload(fromNumbers(f32, [4, 4], new Float32Array(16)));
    const error = await failureOf(() => device.run(plain, { x: x.transpose() }));
    expect(error).toMatchObject({
      code: "TW4029",
      expected: "strides of [4, 1]",
      found: "strides of [1, 4]",
    });
    expect(error.remedy).toContain("{ strides: [1, 4] }");
    const rows = await failureOf(() => device.run(strided([4, 1]), { x: x.transpose() }));
    expect(rows.code).toBe("TW4029");
    const { out } = await device.run(plain, { x: x.transpose().transpose() });
    expect(out.shape).toEqual([4, 4]);
    x.dispose();
  });

  test("outputs may be views too, and may not overlap their inputs", async () => {
    const both = kernel(
      {
        name: "both",
        grid: { i: n },
        inputs: { x: tensor(f32, [n, 4]) },
        outputs: { out: tensor(f32, [n, 4], { strides: [1, n] }) },
      },
      ({ i, x, out }) => out.at(i).store(x.at(i).load().add(1)),
    );
    const [x, y] = [await device.upload(counting), await device.zeros(f32, [4, 3])];
    device.launch(both, { x, out: y.transpose() });
    await device.synchronize();
    expect(toNested(await device.download(y))).toEqual([
      [1, 5, 9],
      [2, 6, 10],
      [3, 7, 11],
      [4, 8, 12],
    ]);
    expect(
      (await failureOf(() => device.launch(both, { x, out: x.reshape([4, 3]).transpose() }))).code,
    ).toBe("TW4014");
    x.dispose();
    y.dispose();
  });
});

describe("copies between devices", () => {
  test("take their turn on both sides, whichever these are", async () => {
    const devices = [await open("simulator"), await open("emulator"), openFake().device];
    const double = kernel(
      { name: "scaled", inputs: { x: tensor(f32, [4]) }, outputs: { out: tensor(f32, [4]) } },
      ({ x, out }) => out.store(x.load().mul(2)),
    );
    for (const from of devices)
      for (const to of devices) {
        const source = await from.upload(fromNumbers(f32, [4], [1, 2, 3, 4]));
        const target = await to.zeros(f32, [4]);
        const copied = to.copy(source, target);
        // What is called after the copy comes after it, though nobody has waited.
        const overwritten = from.fill(source, 9);
        const read = to.download(target);
        expect(Array.from((await read).data)).toEqual([1, 2, 3, 4]);
        await Promise.all([copied, overwritten]);
        source.dispose();
        target.dispose();
      }
    const [simulator, emulator] = devices;
    if (simulator === undefined || emulator === undefined) throw new Error("no devices");
    const source = await emulator.upload(fromNumbers(f32, [4], [1, 2, 3, 4]));
    const [here, out] = [simulator.allocate(f32, [4]), simulator.allocate(f32, [4])];
    void simulator.copy(source, here);
    simulator.launch(double, { x: here, out });
    expect(Array.from((await simulator.download(out)).data)).toEqual([2, 4, 6, 8]);
    expect((await failureOf(() => emulator.copy(source, here))).code).toBe("TW4011");
    for (const each of [source, here, out]) each.dispose();
    for (const device of devices) device.dispose();
    await settle();
  });
});
