/** Functions of numbers: those that inverse others, those of NumPy's and C's names, and roundings of integers. */
import { bool, f16, f32, f64, i32, i8, kernel, tensor, u16 } from "tilewright";
import type { DType, Tile } from "tilewright";
import { fromNumbers } from "../../src/formats/hostarray.ts";
import type { Feature, FeatureCase } from "./feature.ts";

const everyTarget = ["sm_80", "sm_90a"] as const;
const page = "arithmetic.md#functions-of-numpy-and-c";
const count = 8;

type FloatName = "f64" | "f32" | "f16";
const floats: { readonly [N in FloatName]: DType<N> } = { f64, f32, f16 };

/** A number of the format: by the host's own rounding. */
const rounders: { readonly [N in FloatName]: (value: number) => number } = {
  f64: Number,
  f32: Math.fround,
  f16(value) {
    const place = 2 ** Math.max(Math.floor(Math.log2(Math.abs(value))) - 10, -24);
    const [below, rest] = [Math.floor(value / place), value / place - Math.floor(value / place)];
    const up = rest > 0.5 || (rest === 0.5 && below % 2 !== 0);
    return Number.isFinite(value) && value !== 0 ? (below + Number(up)) * place : value;
  },
};

/** 1 in the last place of a number from 1 to 2. */
const units: { readonly [N in FloatName]: number } = {
  f64: 2 ** -52,
  f32: 2 ** -23,
  f16: 2 ** -10,
};

interface Function {
  readonly apply: (tile: Tile<FloatName>) => Tile<FloatName>;
  readonly of: (value: number) => number;
}

/** Functions of one number on numbers of a format, within a few units in the last place. */
function ofOne(
  name: FloatName,
  functions: { readonly [output: string]: Function },
  numbers: readonly number[],
): FeatureCase {
  const array = tensor(floats[name] as DType<FloatName>, [count]);
  const given = numbers.map(rounders[name]);
  const expected = Object.fromEntries(
    Object.entries(functions).map(([output, { of }]) => [output, given.map(of)]),
  );
  const most = Math.max(1, ...Object.values(expected).flat().filter(Number.isFinite).map(Math.abs));
  return {
    name: `${Object.keys(functions).join(", ")} of ${name}`,
    kernel: () =>
      kernel(
        {
          name: `functions_of_${name}`,
          inputs: { x: array },
          outputs: Object.fromEntries(Object.keys(functions).map((output) => [output, array])),
        },
        ({ x, ...outputs }) => {
          const tile = x.load();
          for (const [output, { apply }] of Object.entries(functions)) {
            const target = outputs[output];
            if (target === undefined) throw new Error(output);
            target.store(apply(tile));
          }
        },
      ),
    inputs: { x: fromNumbers(floats[name], [count], given) },
    expected,
    // Bounds are 5 units at most (docs/arithmetic.md); the host's own error is far less.
    within: 6 * units[name] * 2 ** Math.ceil(Math.log2(most)),
    targets: everyTarget,
  };
}

const inverses = {
  asin: { apply: (x: Tile<FloatName>) => x.asin(), of: Math.asin },
  acos: { apply: (x: Tile<FloatName>) => x.acos(), of: Math.acos },
  atan: { apply: (x: Tile<FloatName>) => x.atan(), of: Math.atan },
  atanh: { apply: (x: Tile<FloatName>) => x.atanh(), of: Math.atanh },
};
const hyperbolic = {
  sinh: { apply: (x: Tile<FloatName>) => x.sinh(), of: Math.sinh },
  cosh: { apply: (x: Tile<FloatName>) => x.cosh(), of: Math.cosh },
  asinh: { apply: (x: Tile<FloatName>) => x.asinh(), of: Math.asinh },
  acosh: { apply: (x: Tile<FloatName>) => x.acosh(), of: Math.acosh },
};
const roots = { cbrt: { apply: (x: Tile<FloatName>) => x.cbrt(), of: Math.cbrt } };
const errors = { erfInv: { apply: (x: Tile<FloatName>) => x.erfInv(), of: inverseError } };

const fractions = [-1, -0.9, -0.25, 0, 0.1, 0.5, 0.99, 2];
const inside = [-0.8, -0.9, -0.25, 0, 0.1, 0.5, 0.75, 2];
const wide = [-2.5, -1, -0.125, 0, 0.5, 1, 1.5, 3];

/** The series of the error function, which is short for what it is asked here. */
function errorFunction(y: number): number {
  let [term, sum] = [y, 0];
  for (let n = 0; n < 60; n += 1) {
    sum += term / (2 * n + 1);
    term *= -(y * y) / (n + 1);
  }
  return (2 / Math.sqrt(Math.PI)) * sum;
}

/** By Newton's method. */
function inverseError(x: number): number {
  if (Math.abs(x) >= 1) return Math.abs(x) === 1 ? x * Infinity : NaN;
  let y = 0;
  for (let step = 0; step < 60; step += 1)
    y -= ((errorFunction(y) - x) * Math.sqrt(Math.PI) * Math.exp(y * y)) / 2;
  return y;
}

const special = [NaN, 1, NaN, -0, 3, -Infinity, -2, 0];
const beside = [1, NaN, NaN, 0, -3, 5, -2, -0];

function extremes(name: FloatName): FeatureCase {
  const dtype = floats[name] as DType<FloatName>;
  const array = tensor(dtype, [count]);
  return {
    name: `of ${name}`,
    kernel: () =>
      kernel(
        {
          name: `extremes_of_${name}`,
          inputs: { x: array, y: array },
          outputs: { least: array, most: array, passed: array },
        },
        ({ x, y, least, most, passed }) => {
          const [left, right] = [x.load(), y.load()];
          least.store(left.fmin(right));
          most.store(left.fmax(right));
          passed.store(left.minimum(right));
        },
      ),
    inputs: { x: fromNumbers(dtype, [count], special), y: fromNumbers(dtype, [count], beside) },
    expected: {
      least: [1, 1, NaN, -0, -3, -Infinity, -2, -0],
      most: [1, 1, NaN, 0, 3, 5, -2, 0],
      passed: [NaN, NaN, NaN, -0, -3, -Infinity, -2, -0],
    },
    targets: everyTarget,
  };
}

/** The neighbours of numbers, by their bits. */
const neighbours: FeatureCase = {
  name: "of f32 and f64",
  kernel: () =>
    kernel(
      {
        name: "neighbours",
        inputs: { x: tensor(f32, [count]), y: tensor(f32, [count]) },
        outputs: { near: tensor(f32, [count]), wide: tensor(f64, [count]) },
      },
      ({ x, y, near, wide: doubles }) => {
        near.store(x.load().nextAfter(y.load()));
        doubles.store(x.load().cast(f64).nextAfter(y.load().cast(f64)));
      },
    ),
  inputs: {
    x: fromNumbers(f32, [count], [1, 1, 0, 0, -2, 3, NaN, 1]),
    y: fromNumbers(f32, [count], [2, 0, 1, -1, 0, 3, 1, NaN]),
  },
  expected: {
    near: [...[1 + 2 ** -23, 1 - 2 ** -24, 2 ** -149, -(2 ** -149), -2 + 2 ** -23, 3, NaN], NaN],
    wide: [...[1 + 2 ** -52, 1 - 2 ** -53, 2 ** -1074, -(2 ** -1074), -2 + 2 ** -52, 3, NaN], NaN],
  },
  targets: everyTarget,
};

const dividends = [7, -7, 7, -7, 0, -8, 100, -100];
const divisors = [3, 3, -3, -3, 5, 4, -7, 7];

function divisions(dtype: DType<"i32" | "f32" | "i8" | "f16">): FeatureCase {
  const array = tensor(dtype, [count]);
  const quotients = dividends.map((value, at) => Math.floor(value / (divisors[at] ?? 1)));
  const rests = dividends.map((value, at) => {
    const rest = value - (quotients[at] ?? 0) * (divisors[at] ?? 1);
    return rest;
  });
  return {
    name: `of ${dtype.name}`,
    kernel: () =>
      kernel(
        {
          name: `floor_divisions_${dtype.name}`,
          inputs: { x: array, y: array },
          outputs: { quotient: array, rest: array },
        },
        ({ x, y, quotient, rest }) => {
          quotient.store(x.load().floorDivide(y.load()));
          rest.store(x.load().remainder(y.load()));
        },
      ),
    inputs: {
      x: fromNumbers(dtype, [count], dividends),
      y: fromNumbers(dtype, [count], divisors),
    },
    expected: { quotient: quotients, rest: rests },
    targets: everyTarget,
  };
}

/** An integer is whole. */
const wholes: FeatureCase = {
  name: "of i32 and u16",
  kernel: () => {
    const signed = tensor(i32, [count]);
    const unsigned = tensor(u16, [count]);
    return kernel(
      {
        name: "whole_numbers",
        inputs: { x: signed, y: unsigned },
        outputs: { up: signed, down: signed, near: unsigned, cut: unsigned },
      },
      ({ x, y, up, down, near, cut }) => {
        up.store(x.load().ceil().add(1));
        down.store(x.load().floor());
        near.store(y.load().round());
        cut.store(y.load().trunc().add(1));
      },
    );
  },
  inputs: {
    x: fromNumbers(i32, [count], dividends),
    y: fromNumbers(u16, [count], dividends.map(Math.abs)),
  },
  expected: {
    up: dividends.map((value) => value + 1),
    down: dividends,
    near: dividends.map(Math.abs),
    cut: dividends.map((value) => Math.abs(value) + 1),
  },
  targets: everyTarget,
};

/** A function of a dtype that has it not. */
function refusedOf(dtype: DType<"i32" | "bool">, use: (tile: Tile) => unknown) {
  return {
    code: "TW2005",
    by: () =>
      kernel({ name: "without", inputs: { x: tensor(dtype, [count]) } }, ({ x }) => {
        use(x.load() as Tile);
      }),
  };
}

const names = ["f32", "f64", "f16"] as const;

export const functionFeatures: readonly Feature[] = [
  {
    name: "Minimum and maximum that pass by NaN",
    written: [".fmin(", ".fmax("],
    page,
    cases: () => names.map(extremes),
    refused: [refusedOf(i32, (tile) => tile.fmin(1))],
  },
  {
    name: "Inverse and hyperbolic functions",
    written: [".asin()", ".atanh()", ".sinh()", ".acosh()"],
    page,
    cases: () =>
      names.flatMap((name) => [ofOne(name, inverses, fractions), ofOne(name, hyperbolic, wide)]),
    refused: [refusedOf(i32, (tile) => tile.asinh())],
  },
  {
    name: "Cube roots",
    written: [".cbrt()"],
    page,
    cases: () => names.map((name) => ofOne(name, roots, [-27, -1, -1e-4, 0, 1e-3, 2, 8, 1000])),
    refused: [refusedOf(i32, (tile) => tile.cbrt())],
  },
  {
    name: "The inverse of the error function",
    written: [".erfInv()"],
    page,
    cases: () => names.map((name) => ofOne(name, errors, inside)),
    refused: [refusedOf(i32, (tile) => tile.erfInv())],
  },
  {
    name: "The next number of the format",
    written: [".nextAfter("],
    page,
    cases: () => [neighbours],
    refused: [refusedOf(i32, (tile) => tile.nextAfter(1))],
  },
  {
    name: "Quotients rounded down, and remainders of the divisor's sign",
    written: [".floorDivide(", ".remainder("],
    page,
    cases: () => [divisions(i32), divisions(i8), divisions(f32), divisions(f16)],
    refused: [refusedOf(bool, (tile) => tile.floorDivide(true as never))],
  },
  {
    name: "Whole numbers of integers",
    written: [".ceil()", ".floor()"],
    page,
    cases: () => [wholes],
    refused: [refusedOf(bool, (tile) => tile.ceil())],
  },
];
