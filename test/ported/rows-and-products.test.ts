/** The kernels on simulator and emulator, against float64; bounds follow from how many roundings each element has. */
import { afterAll, describe, expect, test } from "vitest";
import { bf16, f16, f32, fromNumbers, i4, open, toNumbers } from "tilewright";
import type { DType, HostArray, KernelDefinition } from "tilewright";
import { Random } from "../../src/support/random.ts";
import {
  add,
  attention,
  chainedSums,
  depthwise,
  dropout,
  group,
  groupedOrder,
  headSize,
  int4Product,
  layerNorm,
  layerNormGradient,
  runningSums,
  softmax,
  sumOfParts,
} from "./rows-and-products.ts";

const devices = await Promise.all([open("simulator"), open("emulator")]);
afterAll(() => {
  for (const device of devices) device.dispose();
});

const random = new Random(12);
/** The distance of two neighbouring f32 numbers, f16 and bf16, beside 1. */
const [unit, halfUnit] = [2 ** -24, 2 ** -11];

interface Bounded {
  readonly value: number;
  /** How far a result may lie from the value. */
  readonly bound: number;
}

const list = <T>(count: number, make: (index: number) => T): readonly T[] =>
  Array.from({ length: count }, (_, index) => make(index));
const sum = (terms: readonly number[]): number => terms.reduce((total, term) => total + term, 0);
const size = (terms: readonly number[]): number => sum(terms.map(Math.abs));

function normal(dtype: DType<"f32" | "f16" | "bf16">, shape: readonly number[]): HostArray {
  const count = shape.reduce((product, extent) => product * extent, 1);
  return fromNumbers(
    dtype,
    shape,
    list(count, () => random.normal()),
  );
}

/** Numbers of an array, by their index in row-major order. */
function reader(array: HostArray): (index: number) => number {
  const numbers = toNumbers(array);
  return (index) => Number(numbers[index]);
}

async function expectWithin(
  definition: KernelDefinition,
  inputs: { readonly [name: string]: HostArray | number },
  expected: { readonly [name: string]: readonly Bounded[] },
  dimensions: { readonly [name: string]: number } = {},
): Promise<void> {
  for (const device of devices) {
    const results: { readonly [name: string]: HostArray } = await device.run(definition, inputs, {
      dimensions,
    });
    for (const [name, wanted] of Object.entries(expected)) {
      const found = results[name];
      if (found === undefined) throw new Error(`there is no ${name}`);
      const numbers = toNumbers(found);
      expect(numbers.length).toBe(wanted.length);
      wanted.forEach(({ value, bound }, index) => {
        const distance = Math.abs(Number(numbers[index]) - value);
        if (!(distance <= bound))
          expect.fail(
            `${name}[${index}] on the ${device.name}: ${numbers[index]}, not ${value} ± ${bound}`,
          );
      });
    }
  }
}

test("add", async () => {
  const [x, y] = [normal(f32, [1030]), normal(f32, [1030])];
  const [ofX, ofY] = [reader(x), reader(y)];
  const out = list(1030, (i) => ({ value: Math.fround(ofX(i) + ofY(i)), bound: 0 }));
  await expectWithin(add, { x, y }, { out });
});

test("softmax of rows of any length", async () => {
  const [rows, columns] = [3, 203];
  const x = normal(f32, [rows, columns]);
  const at = reader(x);
  const out = list(rows, (row) => {
    const values = list(columns, (column) => at(row * columns + column));
    const greatest = Math.max(...values);
    const powers = values.map((value) => Math.exp(value - greatest));
    const total = sum(powers);
    // The difference, its power, 8 levels of sums, and the quotient; powers magnify what the difference lacks.
    return powers.map((power, column) => ({
      value: power / total,
      bound: (power / total) * unit * (20 + 4 * Math.abs(greatest - (values[column] ?? 0))),
    }));
  }).flat();
  await expectWithin(softmax, { x }, { out });
});

test("a product in groups of rows", async () => {
  const [m, n, k] = [322, 66, 34];
  const [a, b] = [normal(f16, [m, k]), normal(f16, [k, n])];
  const [ofA, ofB] = [reader(a), reader(b)];
  const c = list(m * n, (index) => {
    const [row, column] = [Math.floor(index / n), index % n];
    const terms = list(k, (each) => ofA(row * k + each) * ofB(each * n + column));
    const value = sum(terms);
    const scale = value >= 0 ? 1 : 0.01;
    const error = size(terms) * unit * 2 * k;
    // A sum beside zero may come out on its other side, where it is not scaled.
    const bound = (Math.abs(value) <= error ? 2 : scale) * error;
    return { value: value * scale, bound: bound + Math.abs(value * scale) * halfUnit + 2 ** -25 };
  });
  await expectWithin(groupedOrder, { a, b }, { c });
});

/** The first word of Philox-4x32-10 of (counter, 0, 0, 0), by its definition. */
function philox(counter: number, seed: number): number {
  const low = 0xffffffffn;
  let words: readonly [bigint, bigint, bigint, bigint] = [BigInt(counter), 0n, 0n, 0n];
  let keys: readonly [bigint, bigint] = [BigInt(seed), 0n];
  for (let round = 0; round < 10; round += 1) {
    const [first, second] = [words[0] * 0xd2511f53n, words[2] * 0xcd9e8d57n];
    const [left, right] = [words[1], words[3]];
    words = [
      (second >> 32n) ^ left ^ keys[0],
      second & low,
      (first >> 32n) ^ right ^ keys[1],
      first & low,
    ];
    keys = [(keys[0] + 0x9e3779b9n) & low, (keys[1] + 0xbb67ae85n) & low];
  }
  return Number(words[0]);
}

test("dropout", async () => {
  expect(philox(0, 0)).toBe(0x6627e8d5); // the generator's published answer
  const [count, seed, dropped] = [1100, 0xdeadbeef, Math.fround(0.3)];
  const x = normal(f32, [count]);
  const at = reader(x);
  const kept = Math.fround(1 - dropped);
  const out = list(count, (i) => {
    const keeps = Math.floor(philox(i, seed) / 2 ** 9) * 2 ** -23 >= dropped;
    return { value: keeps ? Math.fround(at(i) / kept) : 0, bound: 0 };
  });
  expect(out.some(({ value }) => value === 0)).toBe(true);
  await expectWithin(dropout, { x, seed, dropped }, { out });
});

describe("layer norm", () => {
  const [rows, columns, parts, epsilon] = [19, 203, 3, 1e-5];
  const [x, dy] = [normal(f32, [rows, columns]), normal(f32, [rows, columns])];
  const [weight, bias] = [normal(f32, [columns]), normal(f32, [columns])];
  const [ofX, ofDy, ofWeight, ofBias] = [x, dy, weight, bias].map(reader) as [
    (index: number) => number,
    (index: number) => number,
    (index: number) => number,
    (index: number) => number,
  ];
  /** Roundings on the way of an element: 10 levels of a sum, and some operations beside. */
  const roundings = 40;
  const facts = list(rows, (row) => {
    const values = list(columns, (column) => ofX(row * columns + column));
    const mean = sum(values) / columns;
    const apart = values.map((value) => value - mean);
    const variance = sum(apart.map((each) => each ** 2)) / columns;
    return { values, mean, inverse: 1 / Math.sqrt(variance + epsilon) };
  });
  const near = (value: number, scale: number): Bounded => ({
    value,
    bound: scale * unit * roundings,
  });

  test("forward", async () => {
    const y = facts.flatMap(({ values, mean, inverse }) =>
      values.map((value, column) => {
        const scaled = (value - mean) * inverse * ofWeight(column);
        const terms = (Math.abs(value) + size(values) / columns) * inverse;
        const scale = terms * Math.abs(ofWeight(column)) + Math.abs(ofBias(column));
        return near(scaled + ofBias(column), scale);
      }),
    );
    const means = facts.map(({ values, mean }) => near(mean, size(values) / columns));
    const inverses = facts.map(({ inverse }) => near(inverse, inverse));
    await expectWithin(layerNorm, { x, weight, bias, epsilon }, { y, means, inverses });
  });

  test("backward", async () => {
    const means = fromNumbers(
      f32,
      [rows],
      facts.map(({ mean }) => mean),
    );
    const inverses = fromNumbers(
      f32,
      [rows],
      facts.map(({ inverse }) => inverse),
    );
    const [ofMeans, ofInverses] = [reader(means), reader(inverses)];
    const gradients = list(rows, (row) => {
      const inverse = ofInverses(row);
      const given = list(columns, (column) => ofDy(row * columns + column));
      const normals = (facts[row]?.values ?? []).map((value) => (value - ofMeans(row)) * inverse);
      const weighted = given.map((each, column) => each * ofWeight(column));
      const products = weighted.map((each, column) => each * (normals[column] ?? 0));
      const [along, shift] = [sum(products) / columns, sum(weighted) / columns];
      const scales = [size(products) / columns, size(weighted) / columns];
      const dx = weighted.map((each, column) => {
        const own = Math.abs(normals[column] ?? 0);
        const value = (each - (normals[column] ?? 0) * along - shift) * inverse;
        const scale = Math.abs(each) + (own + 1) * (scales[0] ?? 0) + (scales[1] ?? 0);
        return near(value, scale * inverse);
      });
      return { given, normals, dx };
    });
    const partial = (of: (row: number, column: number) => number) =>
      list(parts, (part) =>
        list(columns, (column) => {
          const terms = list(rows, (row) => row)
            .filter((row) => row % parts === part)
            .map((row) => of(row, column));
          // A mean that is near the value leaves a difference whose roundings are those of the larger numbers.
          return near(sum(terms), size(terms) + terms.length);
        }),
      ).flat();
    const weights = partial(
      (row, column) =>
        (gradients[row]?.given[column] ?? 0) * (gradients[row]?.normals[column] ?? 0),
    );
    const biases = partial((row, column) => gradients[row]?.given[column] ?? 0);
    await expectWithin(
      layerNormGradient,
      { x, weight, dy, means, inverses },
      { dx: gradients.flatMap(({ dx }) => dx), weights, biases },
      { parts },
    );
    const given = fromNumbers(
      f32,
      [parts, columns],
      biases.map(({ value }) => value),
    );
    const ofGiven = reader(given);
    const out = list(columns, (column) => {
      const terms = list(parts, (part) => ofGiven(part * columns + column));
      return near(sum(terms), size(terms));
    });
    await expectWithin(sumOfParts, { x: given }, { out });
  });
});

test("causal attention", async () => {
  const [heads, n, scale] = [1, 80, 1 / 8];
  const shape = [heads, n, headSize];
  const [q, keys, values] = [normal(f16, shape), normal(f16, shape), normal(f16, shape)];
  const [ofQ, ofKeys, ofValues] = [reader(q), reader(keys), reader(values)];
  const made = list(heads * n, (row) => {
    const first = Math.floor(row / n) * n;
    const scores = list((row % n) + 1, (column) =>
      sum(
        list(
          headSize,
          (each) => ofQ(row * headSize + each) * ofKeys((first + column) * headSize + each),
        ),
      ),
    ).map((score) => score * scale);
    const greatest = Math.max(...scores);
    const powers = scores.map((score) => Math.exp(score - greatest));
    const total = sum(powers);
    const logarithm = { value: greatest + Math.log(total), bound: 1e-5 };
    const out = list(headSize, (column) => {
      const terms = powers.map(
        (power, index) => (power / total) * ofValues((first + index) * headSize + column),
      );
      // Weights are rounded to f16; the rest is f32. Those below its normal numbers lose a fixed amount.
      return { value: sum(terms), bound: size(terms) * (halfUnit + 2 ** -18) + 2 ** -18 };
    });
    return { logarithm, out };
  });
  const out = made.flatMap((row) => row.out);
  const logarithms = made.map(({ logarithm }) => logarithm);
  await expectWithin(attention, { q, keys, values, scale }, { out, logarithms });
});

test("weights of 4 bits", async () => {
  const [m, pairs, deep] = [33, 66, 64];
  const x = normal(bf16, [m, deep]);
  const weights = fromNumbers(
    i4,
    [deep, pairs],
    list(deep * pairs, () => random.below(16) - 8),
  );
  const scales = normal(bf16, [deep / group, pairs]);
  const [ofX, ofWeights, ofScales] = [reader(x), reader(weights), reader(scales)];
  const out = list(m * pairs, (index) => {
    const [row, column] = [Math.floor(index / pairs), index % pairs];
    const terms = list(
      deep,
      (each) =>
        ofX(row * deep + each) *
        ofWeights(each * pairs + column) *
        ofScales(Math.floor(each / group) * pairs + column),
    );
    return { value: sum(terms), bound: size(terms) * unit * 2 * (group + 4) };
  });
  await expectWithin(int4Product, { x, weights, scales }, { out });
});

test("running sums, along rows and from block to block", async () => {
  const [rows, n] = [2, 1203];
  const x = normal(f32, [rows, n]);
  const at = reader(x);
  const out = list(rows, (row) => {
    let [value, scale] = [0, 0];
    return list(n, (column) => {
      value += at(row * n + column);
      scale += Math.abs(at(row * n + column));
      return { value, bound: scale * unit * 16 };
    });
  });
  await expectWithin(runningSums, { x }, { out: out.flat() });
  const first = fromNumbers(f32, [n], list(n, at));
  await expectWithin(chainedSums, { x: first }, { out: out[0] ?? [] });
});

test("a filter of neighbours in each channel", async () => {
  const [channels, height, width] = [1, 17, 33];
  const [x, filters] = [normal(f32, [channels, height, width]), normal(f32, [channels, 3, 3])];
  const [ofX, ofFilters] = [reader(x), reader(filters)];
  const out = list(channels * height * width, (index) => {
    const [column, row] = [index % width, Math.floor(index / width) % height];
    const channel = Math.floor(index / width / height);
    const terms = list(9, (place) => {
      const [y, z] = [row + Math.floor(place / 3) - 1, column + (place % 3) - 1];
      const inside = y >= 0 && y < height && z >= 0 && z < width;
      if (!inside) return 0;
      return ofX((channel * height + y) * width + z) * ofFilters(channel * 9 + place);
    });
    return { value: sum(terms), bound: size(terms) * unit * 10 };
  });
  await expectWithin(depthwise, { x, filters }, { out });
});
