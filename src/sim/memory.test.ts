import { describe, expect, test } from "vitest";
import { runKernel, schedules } from "../../test/simulation.ts";
import { dtypes, f32, f64, i16, i32, i4, i64, u32, u8 } from "../formats/dtype.ts";
import type { DType, Elements } from "../formats/dtype.ts";
import { fromNumbers, hostArray } from "../formats/hostarray.ts";
import { tensor, cdiv, dim, full, kernel, slice, smem, zeros } from "../lang/index.ts";
import { Random } from "../support/random.ts";
import { gather, Memory, scatter } from "./memory.ts";
import { isFullyValid, product, reshapeView, sliceView, transposeView, wholeView } from "./view.ts";
import type { View } from "./view.ts";

/** A memory whose bytes are 0, 1, 2 … */
function countingMemory(bytes: number): Memory {
  const description = { name: "memory", space: "gmem", location: undefined, site: -1 } as const;
  return new Memory(
    description,
    Uint8Array.from({ length: bytes }, (_, i) => i & 255),
  );
}

/** What a view should read, element by element: a chain of steps applied to index functions. */
interface Model {
  readonly sizes: readonly number[];
  /** The element at an index, or undefined where it is out of bounds. */
  at(index: readonly number[]): number | undefined;
}

function indexOf(flat: number, sizes: readonly number[]): number[] {
  const index = sizes.map(() => 0);
  let rest = flat;
  for (let axis = sizes.length - 1; axis >= 0; axis--) {
    index[axis] = rest % (sizes[axis] ?? 1);
    rest = Math.floor(rest / (sizes[axis] ?? 1));
  }
  return index;
}

function elementOf(index: readonly number[], sizes: readonly number[]): number {
  return index.reduce((flat, position, axis) => flat * (sizes[axis] ?? 1) + position, 0);
}

function wholeModel(sizes: readonly number[]): Model {
  return { sizes, at: (index) => elementOf(index, sizes) };
}

type Step = (view: View, model: Model, random: Random) => readonly [View, Model];

const steps: readonly Step[] = [
  (view, model, random) => {
    const starts = model.sizes.map((size) => random.below(size + 2) - 1);
    const sizes = model.sizes.map((size) => 1 + random.below(size + 1));
    const dropped = sizes.map((size, axis) => {
      const start = starts[axis] ?? 0;
      // An index into what overhangs is a fault, which is reported and not read.
      const inside = start >= (view.lower[axis] ?? 0) && start < (view.upper[axis] ?? 0);
      return size === 1 && inside && random.below(2) === 0;
    });
    const kept = sizes.filter((_, axis) => dropped[axis] !== true);
    const at = (index: readonly number[]): number | undefined => {
      let next = 0;
      const source = sizes.map(
        (_, axis) => (starts[axis] ?? 0) + (dropped[axis] === true ? 0 : (index[next++] ?? 0)),
      );
      const inside = source.every(
        (position, axis) => position >= 0 && position < (model.sizes[axis] ?? 0),
      );
      return inside ? model.at(source) : undefined;
    };
    return [sliceView(view, starts, sizes, dropped), { sizes: kept, at }];
  },
  (view, model, random) => {
    const permutation = model.sizes.map((_, axis) => axis);
    for (let i = permutation.length - 1; i > 0; i--) {
      const j = random.below(i + 1);
      const [a = 0, b = 0] = [permutation[i], permutation[j]];
      permutation[i] = b;
      permutation[j] = a;
    }
    const sizes = permutation.map((axis) => model.sizes[axis] ?? 1);
    const at = (index: readonly number[]): number | undefined => {
      const source = model.sizes.map(() => 0);
      permutation.forEach((axis, position) => (source[axis] = index[position] ?? 0));
      return model.at(source);
    };
    return [transposeView(view, permutation), { sizes, at }];
  },
  (view, model, random) => {
    let rest = product(model.sizes);
    const sizes: number[] = [];
    while (rest > 1) {
      const divisors = Array.from({ length: rest }, (_, i) => i + 1).filter((d) => rest % d === 0);
      const size = random.pick(divisors);
      sizes.push(size);
      rest /= size;
    }
    if (random.below(3) === 0) sizes.push(1);
    const at = (index: readonly number[]): number | undefined =>
      model.at(indexOf(elementOf(index, sizes), model.sizes));
    return [reshapeView(view, sizes), { sizes, at }];
  },
];

describe("views", () => {
  test("chains of slices, transposes and reshapes read what index arithmetic says", () => {
    for (let seed = 0; seed < 400; seed++) {
      const random = new Random(seed);
      const shape = Array.from({ length: 1 + random.below(3) }, () => 1 + random.below(5));
      const memory = countingMemory(product(shape) * 4);
      memory.words(u32).set(Uint32Array.from({ length: product(shape) }, (_, i) => i));
      let view = wholeView(memory, u32, shape);
      let model = wholeModel(shape);
      for (let i = random.below(5); i > 0; i--)
        [view, model] = random.pick(steps)(view, model, random);
      const elements = new Uint32Array(product(model.sizes));
      gather(view, elements, 999);
      const expected = Array.from(
        elements,
        (_, flat) => model.at(indexOf(flat, model.sizes)) ?? 999,
      );
      expect([...elements], `seed ${seed}`).toEqual(expected);
      expect(view.sizes, `seed ${seed}`).toEqual(model.sizes);
      expect(isFullyValid(view), `seed ${seed}`).toBe(!expected.includes(999));
    }
  });

  test("a reshape of an even view stays a plain one", () => {
    const view = wholeView(countingMemory(96), u8, [4, 6, 4]);
    expect(reshapeView(view, [8, 12]).elements).toBeUndefined();
    expect(reshapeView(transposeView(view, [1, 2, 0]), [24, 4]).elements).toBeUndefined();
    expect(reshapeView(transposeView(view, [2, 1, 0]), [24, 4]).elements).toBeDefined();
  });
});

describe("moving data", () => {
  const formats: readonly DType[] = Object.values(dtypes);

  test.each(formats.map((dtype) => [dtype.name, dtype] as const))(
    "every bit of %s survives a load and a store, in rows and across them",
    (_, dtype) => {
      const count = 24;
      const memory = countingMemory((count * dtype.bits) / 8);
      const random = new Random(7);
      for (let i = 0; i < memory.bytes.length; i++) memory.bytes[i] = random.bits() & 255;
      const copy = countingMemory(memory.bytes.length);
      for (const permutation of [
        [0, 1],
        [1, 0],
      ]) {
        const from = transposeView(wholeView(memory, dtype, [4, 6]), permutation);
        const into = transposeView(wholeView(copy, dtype, [4, 6]), permutation);
        copy.bytes.fill(0);
        const elements = elementsFor(dtype, count);
        gather(from, elements, dtype.name === "i64" || dtype.name === "u64" ? 0n : 0);
        scatter(into, elements);
        expect([...copy.bytes]).toEqual([...memory.bytes]);
      }
    },
  );
});

function elementsFor(dtype: DType, count: number): Elements {
  const bytes = Math.max(1, dtype.bits / 8) * count;
  const { data } = hostArray(dtypes.u8, [bytes], new Uint8Array(bytes));
  if (dtype.name === "i64") return new BigInt64Array(data.buffer);
  if (dtype.name === "u64") return new BigUint64Array(data.buffer);
  if (dtype === f64) return new Float64Array(data.buffer);
  if (dtype.bits === 32) return new Float32Array(data.buffer);
  if (dtype.bits === 16) return new Uint16Array(data.buffer);
  return dtype === i4 ? new Int8Array(data.buffer) : data;
}

describe("loads and stores", () => {
  test("tails are filled and clipped without the user's doing", async () => {
    const n = dim("n");
    const k = kernel(
      {
        name: "tail",
        grid: { i: cdiv(n, 8) },
        inputs: { x: tensor(f32, [n]) },
        outputs: { out: tensor(f32, [n]), sums: tensor(f32, [cdiv(n, 8)]) },
      },
      ({ i, x, out, sums }) => {
        const here = slice(i.mul(8), 8);
        const tile = x.at(here).load({ fill: 100 });
        out.at(here).store(tile.mul(2));
        sums.at(i).store(tile.sum());
      },
    );
    const values = Array.from({ length: 13 }, (_, i) => i);
    const run = await runKernel(
      k,
      { x: fromNumbers(f32, [13], values) },
      { dimensions: { n: 13 } },
    );
    expect(run.findings).toEqual([]);
    expect(run.numbers("out")).toEqual(values.map((value) => 2 * value));
    expect(run.numbers("sums")).toEqual([28, 8 + 9 + 10 + 11 + 12 + 300]);
  });

  test("strided arguments, transposed and reshaped windows", async () => {
    const k = kernel(
      {
        name: "windows",
        inputs: { x: tensor(i32, [3, 2], { strides: [1, 3] }) },
        outputs: { out: tensor(i32, [2, 3]) },
        scratch: { buffer: smem(i32, [6]) },
      },
      ({ x, out, buffer }) => {
        buffer.reshape([3, 2]).store(x.load());
        out.store(buffer.reshape([3, 2]).transpose().load());
      },
    );
    const run = await runKernel(k, { x: fromNumbers(i32, [6], [0, 1, 2, 10, 11, 12]) });
    expect(run.findings).toEqual([]);
    expect(run.numbers("out")).toEqual([0, 1, 2, 10, 11, 12]);
  });

  test("atomics give old values, combine across blocks and are no races", async () => {
    const k = kernel(
      {
        name: "atomics",
        grid: { i: 8 },
        inouts: { sum: tensor(i32, [2]), top: tensor(i32, [1]) },
        outputs: { order: tensor(i32, [8]) },
      },
      ({ i, sum, top, order }) => {
        sum.atomicAdd(full(i32, [2], 1).mul(i));
        top.at(0).atomic("max", i.mul(3));
        order.at(i).store(top.at(0).compareExchange(-1, i));
      },
    );
    for (const schedule of schedules) {
      const run = await runKernel(
        k,
        { sum: fromNumbers(i32, [2], [1, 2]), top: fromNumbers(i32, [1], [0]) },
        schedule,
      );
      expect(run.findings).toEqual([]);
      expect(run.numbers("sum")).toEqual([29, 30]);
      expect(run.numbers("top")).toEqual([21]);
    }
  });

  test("compare and exchange stores only where the element is as expected", async () => {
    const k = kernel(
      { name: "exchange", inouts: { x: tensor(i16, [4]) }, outputs: { old: tensor(i16, [4]) } },
      ({ x, old }) => {
        old.store(x.compareExchange(full(i16, [4], 2), full(i16, [4], 9)));
      },
    );
    const run = await runKernel(k, { x: fromNumbers(i16, [4], [1, 2, 3, 2]) });
    expect(run.numbers("x")).toEqual([1, 9, 3, 9]);
    expect(run.numbers("old")).toEqual([1, 2, 3, 2]);
  });

  test("a scalar is stored to a whole window, and an exchange swaps", async () => {
    const k = kernel(
      { name: "swap", inouts: { x: tensor(i64, [3]) }, outputs: { old: tensor(i64, []) } },
      ({ x, old }) => {
        x.at(slice(0, 2)).store(5n);
        old.store(x.at(2).atomic("exchange", 8n));
      },
    );
    const run = await runKernel(k, { x: fromNumbers(i64, [3], [1n, 2n, 3n]) });
    expect(run.numbers("x")).toEqual([5, 5, 8]);
    expect(run.numbers("old")).toEqual([3]);
  });

  test("4-bit elements share bytes, which loads take whole and stores do not", async () => {
    const k = kernel(
      { name: "halves", threads: ["a", "b"], outputs: { out: tensor(i4, [2]) } },
      ({ a, b, out }) => {
        a(() => {
          out.at(slice(0, 1)).store(zeros(i4, [1]));
        });
        b(() => {
          out.at(slice(1, 1)).store(zeros(i4, [1]));
        });
      },
    );
    const run = await runKernel(k);
    expect(run.findings).toEqual([]);
    const loading = kernel(
      { name: "loading", threads: ["a", "b"], inouts: { x: tensor(i4, [4]) } },
      ({ a, b, x }) => {
        a(() => {
          x.at(slice(0, 1)).store(zeros(i4, [1]));
        });
        b(() => {
          x.at(slice(2, 1)).store(x.at(slice(1, 1)).load());
        });
      },
    );
    const four = { dtype: i4, shape: [4], data: new Uint8Array(2) } as const;
    const raced = await runKernel(loading, { x: four });
    expect(raced.findings.map(({ code }) => code)).toEqual(["TW3001"]);
    const apart = kernel(
      { name: "apart", threads: ["a", "b"], inouts: { x: tensor(i4, [4]) } },
      ({ a, b, x }) => {
        a(() => {
          x.at(slice(0, 1)).store(zeros(i4, [1]));
        });
        b(() => {
          x.at(slice(1, 1)).store(x.at(slice(2, 1)).load());
        });
      },
    );
    expect((await runKernel(apart, { x: four })).findings).toEqual([]);
  });
});
