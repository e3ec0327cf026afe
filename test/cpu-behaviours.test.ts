/**
 * What a CPU gets wrong by itself, a test each by number: bits of NaN, zeros with signs, subnormal numbers, tails, addresses, strides, threads,
 * limits and what hosts lack. Compiled kernels on the device, with relaxed SIMD where the engine has it and without; other tests of the same are named.
 */
import { afterAll, afterEach, describe, expect, test, vi } from "vitest";
import {
  assumeBetween,
  bf16,
  cdiv,
  dim,
  dot,
  f16,
  f32,
  f8e4m3fn,
  fromNumbers,
  i32,
  i8,
  iota,
  kernel,
  loop,
  slice,
  tensor,
  toNumbers,
  u32,
  u8,
} from "../src/index.ts";
import type { DType, HostArray, KernelDefinition, Tile } from "../src/index.ts";
import { matmul } from "../src/kernels/index.ts";
import { openCpu } from "../src/cpu/device/open.ts";
import { askAgain, engineFeatures, requireWebAssembly } from "../src/cpu/device/support.ts";
import { Device } from "../src/device/device.ts";
import { open } from "../src/runtime/open.ts";
import { Random } from "../src/support/random.ts";
import { cpuResults } from "./support/cpu-cases.ts";
import { bytesOf, counted, manyRows, threadedCpu } from "./support/cpu-device.ts";
import { hasRelaxedSimd } from "./support/vector-function.ts";

const [n, depth] = [dim("n"), dim("depth")];
const quiet = { onNotes: () => undefined };
const forms = hasRelaxedSimd ? [false, true] : [false];
const single = forms.map((relaxed) => {
  return new Device(openCpu({ threads: 1 }, { features: { ...engineFeatures(), relaxed } }), quiet);
});
const simulator = await open("simulator", quiet);
const devices: Device[] = [];

/** A device with threads of the source. */
function threaded(threads: number): Device {
  const device = threadedCpu(threads);
  devices.push(device);
  return device;
}

afterEach(() => {
  for (const device of devices.splice(0)) device.dispose();
  vi.unstubAllGlobals();
  askAgain();
});
afterAll(() => {
  for (const device of [...single, simulator]) device.dispose();
});

type Inputs = { readonly [name: string]: HostArray };

/** Runs a kernel in every form, which have to give what the simulator gives, bit for bit; gives `out`. */
async function agreed(definition: KernelDefinition, inputs: Inputs): Promise<HostArray> {
  const wanted = (await simulator.run(definition, inputs))["out"] as HostArray;
  for (const device of single) {
    const found = (await device.run(definition, inputs))["out"] as HostArray;
    // NaN for NaN: which bits arithmetic gives it, nobody promises.
    if (bytesOf(found) !== bytesOf(wanted))
      expect([...toNumbers(found)]).toEqual([...toNumbers(wanted)]);
  }
  return wanted;
}

/** Of every element, x and y of f32. */
function each(
  to: DType,
  f: (x: Tile<"f32">, y: Tile<"f32">) => Tile,
  lanes = 16,
): KernelDefinition {
  return kernel(
    {
      name: "each",
      grid: { i: cdiv(n, lanes) },
      inputs: { x: tensor(f32, [n]), y: tensor(f32, [n]) },
      outputs: { out: tensor(to, [n]) },
    },
    ({ i, x, y, out }) => {
      const here = slice(i.mul(lanes), lanes);
      out.at(here).store(f(x.at(here).load(), y.at(here).load()) as never);
    },
  );
}

function singles(...values: readonly number[]): HostArray<"f32"> {
  return fromNumbers(f32, [values.length], values);
}

/** The bits of results of x and y, those of NaN as one. */
async function bitsOf(
  f: (x: Tile<"f32">, y: Tile<"f32">) => Tile<"f32">,
  x: readonly number[],
  y: readonly number[] = x,
): Promise<readonly number[]> {
  const { data } = await agreed(each(f32, f), { x: singles(...x), y: singles(...y) });
  const bits = new Uint32Array(data.buffer, data.byteOffset, x.length);
  return [...bits].map((word) => ((word & 0x7fffffff) > 0x7f800000 ? nan : word));
}

const [nan, least] = [0x7fc00000, 2 ** -149];
const special = [0, -0, 1, -1, NaN, Infinity, -Infinity, least, -least, 2 ** -126, 3.4e38, 0.5];
const pairs = special.flatMap((a) => special.map((b) => [a, b] as const));
const [lefts, rights] = [pairs.map(([a]) => a), pairs.map(([, b]) => b)];

describe("numbers", () => {
  test("1: arithmetic without a result gives NaN, which sorts make the one of the format", async () => {
    expect(await bitsOf((x, y) => x.mul(y), [0, Infinity], [Infinity, -0])).toEqual([nan, nan]);
    expect(await bitsOf((x, y) => x.div(y), [0, Infinity], [0, -Infinity])).toEqual([nan, nan]);
    expect(await bitsOf((x, y) => x.sub(y), [Infinity], [Infinity])).toEqual([nan]);
    expect(await bitsOf((x) => x.sqrt(), [-1])).toEqual([nan]);
    const sorted = kernel(
      { name: "sorted", inputs: { x: tensor(u32, [4]) }, outputs: { out: tensor(u32, [4]) } },
      ({ x, out }) => out.store(x.load().bitcast(f32).sort({ axis: 0 }).bitcast(u32)),
    );
    const patterns = fromNumbers(u32, [4], [0xffc00000, 0x7f812345, 0, 0xffffffff]);
    expect([...toNumbers(await agreed(sorted, { x: patterns }))]).toEqual([0, nan, nan, nan]);
    for (const fn of ["add", "sub", "mul", "div"] as const)
      await bitsOf((x, y) => x[fn](y), lefts, rights);
  });

  test("2: copies keep the bits of NaN", async () => {
    const patterns = [0x7f800001, 0xff812345, 0x7fc01234, 0xffffffff, 0x80000001];
    const copy = kernel(
      { name: "copies", inputs: { x: tensor(f32, [5]) }, outputs: { out: tensor(f32, [5]) } },
      ({ x, out }) => out.store(x.load()),
    );
    const x = fromNumbers(f32, [5], [0, 0, 0, 0, 0]);
    new Uint32Array(x.data.buffer, x.data.byteOffset, 5).set(patterns);
    const out = await agreed(copy, { x });
    expect([...new Uint32Array(out.data.buffer, out.data.byteOffset, 5)]).toEqual(patterns);
    const sums = each(f32, (value) => value.add(1));
    expect([...toNumbers(await agreed(sums, { x, y: x }))].slice(0, 4)).toEqual(Array(4).fill(NaN));
  });

  test("3: zeros with signs in extremes, sums, sorts and ties", async () => {
    const minus = 0x80000000;
    expect(await bitsOf((x, y) => x.maximum(y), [0, -0, -0], [-0, 0, -0])).toEqual([0, 0, minus]);
    expect(await bitsOf((x, y) => x.minimum(y), [0, -0, 0], [-0, 0, 0])).toEqual([minus, minus, 0]);
    expect(await bitsOf((x) => x.maximum(0), [-0, -1, 2])).toEqual([0, 0, 0x40000000]);
    const rows = (f: (x: Tile<"f32">) => Tile, to: DType, length: number): KernelDefinition =>
      kernel(
        { name: "row", inputs: { x: tensor(f32, [8]) }, outputs: { out: tensor(to, [length]) } },
        ({ x, out }) => out.store(f(x.load()) as never),
      );
    const x = singles(-0, 0, -1, 0, -0, 3, 3, -2);
    await agreed(
      rows((value) => value.sort({ axis: 0 }).bitcast(u32), u32, 8),
      { x },
    );
    const first = rows((value) => value.argmax({ axis: 0, keepDims: true }), i32, 1);
    expect([...toNumbers(await agreed(first, { x }))]).toEqual([5]);
    await agreed(
      rows((value) => value.mul(-0).sum({ axis: 0, keepDims: true }).bitcast(u32), u32, 1),
      { x },
    );
  });

  test("4: NaN in extremes, orders and running extremes", async () => {
    const x = singles(1, NaN, 3, -Infinity, NaN, 2, 0, -1);
    const forms: readonly [string, DType, number, (x: Tile<"f32">) => Tile][] = [
      ["max", f32, 1, (value) => value.max({ axis: 0, keepDims: true })],
      ["argmax", i32, 1, (value) => value.argmax({ axis: 0, keepDims: true })],
      ["argmin", i32, 1, (value) => value.argmin({ axis: 0, keepDims: true })],
      ["sort", f32, 8, (value) => value.sort({ axis: 0 })],
      ["cummax", f32, 8, (value) => value.cummax({ axis: 0 })],
      ["cummin", f32, 8, (value) => value.cummin({ axis: 0 })],
    ];
    for (const [name, to, length, f] of forms)
      await agreed(
        kernel(
          { name, inputs: { x: tensor(f32, [8]) }, outputs: { out: tensor(to, [length]) } },
          ({ x: source, out }) => out.store(f(source.load()) as never),
        ),
        { x },
      );
    await bitsOf((a, b) => a.maximum(b), lefts, rights);
    await bitsOf((a, b) => a.minimum(b), lefts, rights);
  });

  test("5: subnormal numbers come in and go out", async () => {
    const tiny = [least, -least, 3 * least, 2 ** -127, 2 ** -126];
    expect(await bitsOf((x) => x.mul(2), [least, -least])).toEqual([2, 0x80000002]);
    expect(await bitsOf((x) => x.mul(0.5), [2 ** -126])).toEqual([0x00400000]);
    await bitsOf((x, y) => x.add(y), tiny, [...tiny].reverse());
    await agreed(
      each(f16, (x) => x.cast(f16)),
      { x: singles(2 ** -24, 2 ** -25, 3 * 2 ** -25, 6e-8), y: singles(0, 0, 0, 0) },
    );
    for (const device of single) {
      const { out } = await device.run(
        each(f32, (x) => x.exp()),
        { x: singles(-100, -103), y: singles(0, 0) },
      );
      const [a = 0, b = 0] = toNumbers(out as HostArray);
      expect(Math.abs(a - Math.exp(-100))).toBeLessThanOrEqual(2 ** -149);
      expect(Math.abs(b - Math.exp(-103))).toBeLessThanOrEqual(2 ** -149);
    }
  });

  test("6: sums of products lie within their bound, fused or not; integers are equal", async () => {
    const [m, k] = [8, 67];
    const random = new Random(6);
    const numbers = (count: number): readonly number[] =>
      Array.from({ length: count }, () => Math.fround(random.uniform() - 0.5));
    const [a, b] = [numbers(m * k), numbers(m * k)];
    const product = kernel(
      {
        name: "product",
        inputs: { a: tensor(f32, [m, k]), b: tensor(f32, [k, m]) },
        outputs: { out: tensor(f32, [m, m]) },
      },
      ({ a: left, b: right, out }) =>
        out.store(dot(left.load(), right.load(), { precision: "ieee" })),
    );
    for (const device of single) {
      const inputs = { a: fromNumbers(f32, [m, k], a), b: fromNumbers(f32, [k, m], b) };
      const found = toNumbers((await device.run(product, inputs)).out);
      for (let i = 0; i < m; i++)
        for (let j = 0; j < m; j++) {
          let [sum, size] = [0, 0];
          for (let step = 0; step < k; step++) {
            const term = (a[i * k + step] ?? 0) * (b[step * m + j] ?? 0);
            [sum, size] = [sum + term, size + Math.abs(term)];
          }
          expect(Math.abs((found[i * m + j] ?? NaN) - sum)).toBeLessThanOrEqual(
            2 * k * 2 ** -24 * size,
          );
        }
    }
    const integers = kernel(
      {
        name: "integers",
        inputs: { a: tensor(i8, [16, 32]), b: tensor(i8, [32, 16]) },
        outputs: { out: tensor(i32, [16, 16]) },
      },
      ({ a: left, b: right, out }) => out.store(dot(left.load(), right.load())),
    );
    const bytes = (seed: number) =>
      Array.from({ length: 512 }, (_, i) => ((i * 37 + seed) % 256) - 128);
    await agreed(integers, {
      a: fromNumbers(i8, [16, 32], bytes(1)),
      b: fromNumbers(i8, [32, 16], bytes(5)),
    });
  });

  test("7: extremes do not depend on the order of operands", async () => {
    for (const fn of ["maximum", "minimum", "fmax", "fmin"] as const) {
      const forwards = await bitsOf((x, y) => x[fn](y), lefts, rights);
      expect(await bitsOf((x, y) => y[fn](x), lefts, rights)).toEqual(forwards);
    }
  });

  test("8: exp at its ends", async () => {
    const ends = [-104, -103.97, -87.34, -87.33, 88.72, 88.73, 89, Infinity, -Infinity, -0];
    const y = ends.map(() => 0);
    for (const device of single) {
      const run = await device.run(
        each(f32, (x) => x.exp()),
        { x: singles(...ends), y: singles(...y) },
      );
      const found = toNumbers(run["out"] as HostArray);
      ends.forEach((x, i) => {
        const exact = Math.exp(Math.fround(x));
        const [value = NaN, wanted] = [found[i], Math.fround(exact)];
        if (!Number.isFinite(wanted) || wanted === 0) expect(value, `exp(${x})`).toBe(wanted);
        else {
          const ulp = Math.max(2 ** (Math.floor(Math.log2(exact)) - 23), 2 ** -149);
          expect(Math.abs(value - exact), `exp(${x})`).toBeLessThanOrEqual(ulp);
        }
      });
    }
  });

  test("9: floats become integers within their range", async () => {
    const values = [NaN, Infinity, -Infinity, 2 ** 31, -(2 ** 31), 2 ** 32, -1, 0.9, -0.9, 1e9];
    const inputs = { x: singles(...values), y: singles(...values) };
    for (const to of [i32, u32, i8, u8])
      await agreed(
        each(to, (x) => x.cast(to)),
        inputs,
      );
    const whole = await agreed(
      each(i32, (x) => x.cast(i32)),
      inputs,
    );
    expect([...toNumbers(whole)].slice(1, 5)).toEqual([
      2 ** 31 - 1,
      -(2 ** 31),
      2 ** 31 - 1,
      -(2 ** 31),
    ]);
  });

  test("10: roundings to bf16, f16 and FP8: ties, overflows, subnormal numbers", async () => {
    const values = [1 + 2 ** -8, 1 + 3 * 2 ** -8, 1 + 2 ** -11, 1 + 3 * 2 ** -11, 65519, 65520];
    const more = [448, 464, 465, 480, 2 ** -9, 2 ** -10, 1.5 * 2 ** -10, 3.39e38, 3.4e38, NaN, -0];
    const x = singles(...values, ...more);
    for (const to of [bf16, f16, f8e4m3fn])
      await agreed(
        each(to, (value) => value.cast(to)),
        { x, y: x },
      );
  });

  test("11: integers wrap, and divide at their ends", async () => {
    const values = [0, 1, -1, 7, -7, 2 ** 31 - 1, -(2 ** 31), 12345678];
    const others = [1, -1, 2, -3, 31, 32, 33, 5];
    const ints = [values, others].map((list) => fromNumbers(i32, [8], list));
    const forms: readonly ((x: Tile<"i32">, y: Tile<"i32">) => Tile<"i32">)[] = [
      (x, y) => x.div(y),
      (x, y) => x.rem(y),
      (x, y) => x.mul(y),
      (x, y) => x.mulHigh(y),
      (x) => x.neg(),
      (x, y) => x.shl(y.and(31)),
      (x, y) => x.shr(y.and(31)),
    ];
    for (const f of forms)
      await agreed(
        kernel(
          {
            name: "integers",
            inputs: { x: tensor(i32, [8]), y: tensor(i32, [8]) },
            outputs: { out: tensor(i32, [8]) },
          },
          ({ x, y, out }) => out.store(f(x.load(), y.load())),
        ),
        { x: ints[0] as HostArray, y: ints[1] as HostArray },
      );
  });
});

const double = each(f32, (x) => x.mul(2));
const sizes = [0, 1, 3, 4, 5, 15, 16, 17, 31, 32, 33, 1023];
describe("memory", () => {
  test.each(sizes)("12, 13: %s elements, and nothing is written beside them", async (count) => {
    const x = counted(count);
    const wanted = [...toNumbers(x)].map((value) => 2 * value);
    for (const device of single)
      expect([...toNumbers((await device.run(double, { x, y: x }))["out"] as HostArray)]).toEqual(
        wanted,
      );
    // Throws where a word around an array has changed.
    if (count > 0)
      expect([...toNumbers(cpuResults(double, { x, y: x })["out"] as HostArray)]).toEqual(wanted);
  });

  test("14: the last element of the last array: what vectors read behind it is memory", async () => {
    const backend = openCpu({ threads: 1 });
    const device = new Device(backend, quiet);
    devices.push(device);
    const held: { dispose(): void }[] = [];
    // As long as there is room without growing, each array is the last one for a while.
    for (let count = 1; count < 40; count += 3) {
      const array = backend.allocate(f32, [count]);
      expect(array.address + 4 * count + 64).toBeLessThanOrEqual(device.memory.reserved);
      const x = counted(count);
      const { out } = await device.run(double, { x, y: x });
      expect(toNumbers(out as HostArray).at(-1)).toBe(2 * (count - 0.5));
      held.push({ dispose: () => backend.release(array) });
    }
    for (const each of held) each.dispose();
  });

  test("15: above 2 GiB", async () => {
    const device = new Device(openCpu({ threads: 1 }), quiet);
    devices.push(device);
    const below = device.allocate(f32, [550_000_000]);
    const x = counted(1000);
    const { out } = await device.run(double, { x, y: x });
    expect(device.memory.reserved).toBeGreaterThan(2 ** 31);
    expect([...toNumbers(out as HostArray)]).toEqual([...toNumbers(x)].map((value) => 2 * value));
    // A window whose offset in bytes passes 2^31 itself.
    const far = kernel(
      { name: "far", inouts: { x: tensor(f32, [n]) }, outputs: { out: tensor(f32, [16]) } },
      ({ x: array, out: to }) => {
        const last = array.at(slice(549_999_984, 16));
        last.store(iota(f32, [16], { axis: 0 }));
        to.store(last.load().add(1));
      },
    );
    const end = device.allocate(f32, [16]);
    device.launch(far, { x: below, out: end });
    expect([...toNumbers(await device.download(end))]).toEqual(
      Array.from({ length: 16 }, (_, i) => i + 1),
    );
    end.dispose();
    below.dispose();
  });

  test("16: transposed windows, rows that are repeated, starts that are not aligned", async () => {
    const strided = kernel(
      {
        name: "strided",
        inputs: { x: tensor(f32, [9, 11]) },
        outputs: { out: tensor(f32, [3, 10, 8]) },
      },
      ({ x, out }) => {
        const part = x.at(slice(1, 8), slice(1, 10));
        out.at(0).store(part.transpose().load());
        out.at(1).store(part.load().transpose().mul(1));
        const row = x.at(3, slice(2, 8)).load();
        out.at(2).store(row.expand({ axis: 0 }).broadcastTo([10, 8]));
      },
    );
    const x = fromNumbers(
      f32,
      [9, 11],
      Array.from({ length: 99 }, (_, i) => i),
    );
    await agreed(strided, { x });
  });

  test("17: in place, and over windows that overlap", async () => {
    const shift = kernel({ name: "shift", inouts: { out: tensor(f32, [33]) } }, ({ out }) => {
      const moved = out.at(slice(0, 32)).load();
      out.at(slice(1, 32)).store(moved);
      out.store(out.load().add(1));
    });
    for (const device of single) {
      const array = await device.upload(counted(33));
      device.launch(shift, { out: array });
      const found = toNumbers(await device.download(array));
      expect([...found]).toEqual(
        Array.from({ length: 33 }, (_, i) => (i === 0 ? 0.5 : i - 0.5) + 1),
      );
      array.dispose();
    }
  });

  test.each([0, 1, 7, 33])("18: products of depth %s", async (k) => {
    const [a, b] = [counted(3 * k), counted(5 * k)].map((each) => [...toNumbers(each)]);
    const product = matmul({
      a: tensor(f32, [3, depth]),
      b: tensor(f32, [depth, 5]),
      precision: "ieee",
    });
    for (const device of single) {
      const { out } = await device.run(product, {
        a: fromNumbers(f32, [3, k], a ?? []),
        b: fromNumbers(f32, [k, 5], b ?? []),
      });
      const found = toNumbers(out);
      for (let i = 0; i < 3; i++)
        for (let j = 0; j < 5; j++) {
          let sum = 0;
          for (let step = 0; step < k; step++)
            sum += (a?.[i * k + step] ?? NaN) * (b?.[step * 5 + j] ?? NaN);
          expect(found[i * 5 + j]).toBeCloseTo(sum, 1);
        }
    }
  });
});

/** Rows whose results take a while: a softmax, over and over. */
const rows = kernel(
  {
    name: "rows",
    grid: { i: n },
    inputs: { x: tensor(f32, [n, 64]) },
    outputs: { out: tensor(f32, [n, 64]) },
  },
  ({ i, x, out }) => {
    const row = loop({ to: 40, carry: x.at(i).load() }, (_, value) => {
      const powers = value.sub(value.max()).exp();
      return powers.div(powers.sum());
    });
    out.at(i).store(row);
  },
);
describe("threads, limits and hosts", () => {
  test("19, 21: any number of threads gives the same bits, while memory grows", async () => {
    const x = manyRows(2000);
    const found: string[] = [];
    for (const threads of [1, 2, 3]) {
      const device = threaded(threads);
      const kept = await device.upload(manyRows(3));
      await device.run(rows, { x });
      const large = device.allocate(f32, [4_000_000]);
      found.push(bytesOf((await device.run(rows, { x }))["out"] as HostArray));
      expect(bytesOf(await device.download(kept))).toBe(bytesOf(manyRows(3)));
      for (const each of [kept, large]) each.dispose();
    }
    expect(found[1] === found[0] && found[2] === found[0]).toBe(true);
  });

  test("20: updates of many blocks are all there", async () => {
    const count = kernel(
      {
        name: "count",
        grid: { i: 4000 },
        inouts: { whole: tensor(i32, [3]), sums: tensor(f32, [3]) },
      },
      ({ i, whole, sums }) => {
        whole.at(i.rem(3)).atomicAdd(i);
        sums.at(i.rem(3)).atomicAdd(1);
      },
    );
    const device = threaded(2);
    const whole = await device.zeros(i32, [3]);
    const sums = await device.zeros(f32, [3]);
    for (let round = 0; round < 3; round++) device.launch(count, { whole, sums });
    const wanted = [0, 1, 2].map((rest) =>
      Array.from({ length: 4000 }, (_, i) => i).filter((i) => i % 3 === rest),
    );
    expect([...toNumbers(await device.download(whole))]).toEqual(
      wanted.map((list) => 3 * list.reduce((sum, value) => sum + value)),
    );
    expect([...toNumbers(await device.download(sums))]).toEqual(
      wanted.map((list) => 3 * list.length),
    );
    for (const each of [whole, sums]) each.dispose();
  });

  test.each([1, 2])("22: with %s threads a long grid ends with its time", async (threads) => {
    const device = threaded(threads);
    const x = manyRows(20_000);
    const array = await device.upload(x);
    const begin = performance.now();
    await expect(device.run(rows, { x: array }, { timeLimit: 30 })).rejects.toMatchObject({
      code: "TW3022",
    });
    expect(performance.now() - begin).toBeLessThan(20_000);
    const few = manyRows(2);
    expect(bytesOf((await device.run(rows, { x: few }))["out"] as HostArray)).toBe(
      bytesOf((await single[0]?.run(rows, { x: few }))?.["out"] as HostArray),
    );
    array.dispose();
  });

  test("23: what the engine stops is told, and the device goes on", async () => {
    // The promise does not hold: nobody looks.
    const wild = kernel(
      {
        name: "wild",
        grid: { i: 3000 },
        inputs: { x: tensor(f32, [n]), at: tensor(i32, [1]) },
        outputs: { out: tensor(f32, [3000]) },
      },
      ({ i, x, at, out }) => {
        const place = assumeBetween(at.at(0).loadScalar(), 0, 0);
        out.at(i).store(x.at(place.add(0)).loadScalar());
      },
    );
    const device = threaded(2);
    const x = counted(16);
    const at = fromNumbers(i32, [1], [2 ** 29 - 1]);
    const run = device.run(wild, { x, at }).then(
      () => "reads what lies there",
      (error: unknown) => error,
    );
    // The compiler may have used the promise itself: 0 is the only place.
    const found = await run;
    if (found !== "reads what lies there") expect(found).toMatchObject({ code: "TW4702" });
    expect(bytesOf((await device.run(double, { x, y: x }))["out"] as HostArray)).toBe(
      bytesOf((await single[0]?.run(double, { x, y: x }))?.["out"] as HostArray),
    );
  });

  test("24: hosts without shared memory, vectors or WebAssembly", async () => {
    vi.stubGlobal("crossOriginIsolated", false);
    const device = threaded(2);
    const x = manyRows(500);
    await device.run(rows, { x });
    vi.unstubAllGlobals();
    const isOld = { ...WebAssembly, Module: WebAssembly.Module, validate: () => false };
    vi.stubGlobal("WebAssembly", isOld);
    askAgain();
    expect(requireWebAssembly).toThrow(expect.objectContaining({ code: "TW4703" }));
    vi.stubGlobal("WebAssembly", undefined);
    askAgain();
    expect(requireWebAssembly).toThrow(expect.objectContaining({ code: "TW4703" }));
  });

  test("25: the first call and the hundredth give the same bits", async () => {
    const x = manyRows(50);
    for (const device of single) {
      const first = bytesOf((await device.run(rows, { x }))["out"] as HostArray);
      for (let round = 1; round < 100; round++) await device.run(rows, { x });
      expect(bytesOf((await device.run(rows, { x }))["out"] as HostArray)).toBe(first);
    }
  });
});
