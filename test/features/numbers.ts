/** Arithmetic as it is asked for, number formats, and the bits that they are made of. */
import {
  bf16,
  f16,
  f32,
  f64,
  f8e8m0fnu,
  flip,
  i32,
  kernel,
  tensor,
  tf32,
  u16,
  u32,
  u4,
  u64,
  u8,
} from "tilewright";
import { fromNumbers } from "../../src/formats/hostarray.ts";
import { exact, exactFormat, roundExact } from "../support/exact-rounding.ts";
import type { Exact, Mode } from "../support/exact-rounding.ts";
import type { Feature, FeatureCase } from "./feature.ts";

const everyTarget = ["sm_80", "sm_90a", "sm_120a"] as const;

/** Operands whose results need rounding, cancel, or are beyond the numbers or below the normal ones. */
const left = [1, -1, 0.1, -7, 3e38, -3e38, 2 ** -100, 5, 1 + 2 ** -23, 2 ** -130];
const right = [3, 3, 0.2, 11, 3e38, 3e38, 2 ** -40, -5, 1 + 2 ** -22, 2 ** -2];
const count = left.length;

function fraction(numerator: bigint, denominator: bigint): Exact {
  const sign = denominator < 0n ? -1n : 1n;
  return { numerator: sign * numerator, denominator: sign * denominator };
}

function sum(a: Exact, b: Exact): Exact {
  return fraction(
    a.numerator * b.denominator + b.numerator * a.denominator,
    a.denominator * b.denominator,
  );
}

function product(a: Exact, b: Exact): Exact {
  return fraction(a.numerator * b.numerator, a.denominator * b.denominator);
}

/** What the outputs of the kernel below are, exactly. */
const results: { readonly [output: string]: (a: Exact, b: Exact) => Exact } = {
  sum,
  difference: (a, b) => sum(a, fraction(-b.numerator, b.denominator)),
  product,
  quotient: (a, b) => fraction(a.numerator * b.denominator, a.denominator * b.numerator),
  fused: (a, b) => sum(product(a, b), exact(0.375)),
  inverse: (a) => fraction(a.denominator, a.numerator),
  root: (a) => ({ ...a, numerator: a.numerator < 0n ? -a.numerator : a.numerator, root: true }),
};

interface Manner {
  readonly rounding?: Mode;
  readonly flushToZero?: boolean;
}

function expected(name: "f32" | "f64", { rounding = "nearest", flushToZero = false }: Manner) {
  const format = exactFormat(name);
  const read = (value = 0): Exact => {
    const stored = name === "f32" ? Math.fround(value) : value;
    return exact(flushToZero && Math.abs(stored) < format.leastNormal ? 0 : stored);
  };
  return Object.fromEntries(
    Object.entries(results).map(([output, compute]) => [
      output,
      left.map((a, index) => {
        const result = compute(read(a), read(right[index]));
        if (result.denominator === 0n) return Infinity;
        if (result.numerator === 0n) return rounding === "down" && output !== "root" ? -0 : 0;
        return roundExact(result, format, rounding, flushToZero);
      }),
    ]),
  );
}

function mannered(name: "f32" | "f64", manner: Manner): FeatureCase {
  const dtype = name === "f32" ? f32 : f64;
  const array = tensor(dtype, [count]);
  const text = Object.values(manner).join("_");
  return {
    name: `${name}, ${JSON.stringify(manner)}`,
    kernel: () =>
      kernel(
        {
          name: `arithmetic_${name}_${text}`,
          inputs: { a: array, b: array },
          outputs: {
            sum: array,
            difference: array,
            product: array,
            quotient: array,
            fused: array,
            inverse: array,
            root: array,
          },
        },
        ({ a, b, ...out }) => {
          const [x, y] = [a.load(), b.load()];
          out.sum.store(x.add(y, manner));
          out.difference.store(x.sub(y, manner));
          out.product.store(x.mul(y, manner));
          out.quotient.store(x.div(y, manner));
          out.fused.store(x.fma(y, 0.375, manner));
          out.inverse.store(x.reciprocal(manner));
          out.root.store(x.abs().sqrt(manner));
        },
      ),
    inputs: { a: fromNumbers(dtype, [count], left), b: fromNumbers(dtype, [count], right) },
    expected: expected(name, manner),
    targets: everyTarget,
  };
}

/** Halves: products of f16 below 2^-14 are zeros. */
const flushedHalves: FeatureCase = {
  name: "f16, flushed",
  kernel: () => {
    const array = tensor(f16, [8]);
    return kernel(
      { name: "flushed_halves", inputs: { x: array }, outputs: { product: array, sum: array } },
      ({ x, product: scaled, sum: doubled }) => {
        const tile = x.load();
        scaled.store(tile.mul(0.25, { flushToZero: true }));
        doubled.store(tile.fma(1, tile, { flushToZero: true }));
      },
    );
  },
  inputs: {
    x: fromNumbers(f16, [8], [1, -1, 2 ** -12, 2 ** -13, -(2 ** -13), 2 ** -15, -(2 ** -24), 0]),
  },
  expected: {
    product: [0.25, -0.25, 2 ** -14, 0, -0, 0, -0, 0],
    // The last addend is a zero of the product's sign, or +0.
    sum: [2, -2, 2 ** -11, 2 ** -12, -(2 ** -12), 0, -0, 0],
  },
  targets: everyTarget,
};

const fractions = [1 + 2 ** -12, -(1 + 2 ** -12), 2.5, -2.5, 3.5, 1e-3, -0.75, 70000];

/** Conversions whose hardware, or a short sequence, rounds otherwise. */
const conversions: FeatureCase = {
  name: "conversions",
  kernel: () =>
    kernel(
      {
        name: "rounded_casts",
        inputs: { x: tensor(f32, [8]) },
        outputs: {
          half: tensor(f16, [8]),
          brain: tensor(bf16, [8]),
          tensorFloat: tensor(tf32, [8]),
          down: tensor(i32, [8]),
          nearest: tensor(i32, [8]),
        },
      },
      ({ x, half, brain, tensorFloat, down, nearest }) => {
        const tile = x.load();
        half.store(tile.cast(f16, { rounding: "zero" }));
        brain.store(tile.cast(bf16, { rounding: "zero" }));
        tensorFloat.store(tile.cast(tf32, { rounding: "zero" }));
        down.store(tile.cast(i32, { rounding: "down" }));
        nearest.store(tile.cast(i32, { rounding: "nearest" }));
      },
    ),
  inputs: { x: fromNumbers(f32, [8], fractions) },
  expected: {
    half: fractions.map((value) => Math.min(truncated(value, 11, -24), 65504)),
    brain: fractions.map((value) => truncated(value, 8, -133)),
    tensorFloat: fractions.map((value) => truncated(value, 11, -136)),
    down: fractions.map(Math.floor),
    nearest: [1, -1, 2, -2, 4, 0, -1, 70000],
  },
  targets: everyTarget,
};

/** The first `bits` bits of a number of f32, none of them below 2^`least`. */
function truncated(value: number, bits: number, least: number): number {
  const single = Math.fround(value);
  const place = Math.max(Math.floor(Math.log2(Math.abs(single))) - bits + 1, least);
  return Math.trunc(single / 2 ** place) * 2 ** place;
}

const angles = [-2.5, -1, -0.1, 0.25, 0.9, 1.5, 2, 3];

/** Errors that docs/arithmetic.md has for these functions and operands, added up. */
const fastBound = 2 ** -11;

const fastKernel: FeatureCase = {
  name: "of a kernel",
  kernel: () => {
    const array = tensor(f32, [8]);
    const wide = tensor(f64, [8]);
    return kernel(
      {
        name: "fast_functions",
        approximate: true,
        inputs: { x: array, w: wide },
        outputs: { exp: array, sin: array, tanh: array, quotient: array, tan: array, wide },
      },
      ({ x, w, exp, sin, tanh, quotient, tan, ...out }) => {
        const tile = x.load();
        exp.store(tile.exp());
        sin.store(tile.sin());
        tanh.store(tile.tanh());
        quotient.store(tile.div(3).add(tile.reciprocal()));
        tan.store(tile.tan());
        out.wide.store(w.load().exp());
      },
    );
  },
  inputs: { x: fromNumbers(f32, [8], angles), w: fromNumbers(f64, [8], angles) },
  expected: {
    exp: angles.map(Math.exp),
    sin: angles.map(Math.sin),
    tanh: angles.map(Math.tanh),
    quotient: angles.map((x) => x / 3 + 1 / x),
    tan: angles.map((x) => Math.tan(Math.fround(x))),
    wide: angles.map(Math.exp),
  },
  within: fastBound,
  targets: everyTarget,
};

/** Where the kernel's choice does not reach: these are exact. */
const fastExcept: FeatureCase = {
  name: "but for calls that say otherwise",
  kernel: () => {
    const array = tensor(f32, [8]);
    return kernel(
      {
        name: "fast_but_for",
        approximate: true,
        inputs: { x: array },
        outputs: { root: array, up: array, rest: array },
      },
      ({ x, root, up, rest }) => {
        const tile = x.load();
        root.store(tile.abs().sqrt({ approximate: false }));
        up.store(tile.div(3, { rounding: "up" }));
        rest.store(tile.floorDivide(0.75));
      },
    );
  },
  inputs: { x: fromNumbers(f32, [8], angles) },
  expected: {
    root: angles.map((x) => Math.fround(Math.sqrt(Math.abs(Math.fround(x))))),
    up: angles.map((x) => {
      const { numerator, denominator } = exact(Math.fround(x));
      return roundExact(fraction(numerator, 3n * denominator), exactFormat("f32"), "up");
    }),
    rest: angles.map((x) => Math.floor(x / 0.75)),
  },
  targets: everyTarget,
};

const words = Array.from({ length: 32 }, (_, index) => Math.imul(index + 1, 0x9e3779b1) >>> 0);

/** The bits of words in memory, as numbers of so many bits. */
function bitsOf(bits: 4 | 8 | 16): readonly number[] {
  return words.flatMap((word) =>
    Array.from({ length: 32 / bits }, (_, part) => (word >>> (part * bits)) & (2 ** bits - 1)),
  );
}

const pairs = words.map((word, index) => (BigInt(words[index + 1] ?? 0) << 32n) | BigInt(word));

const widths: readonly FeatureCase[] = [
  {
    name: "words as bytes, halves and nibbles, and bytes turned around",
    kernel: () =>
      kernel(
        {
          name: "unpacked_words",
          inputs: { x: tensor(u32, [4, 8]) },
          outputs: {
            nibbles: tensor(u4, [4, 64]),
            bytes: tensor(u8, [4, 32]),
            halves: tensor(u16, [4, 16]),
            swapped: tensor(u32, [4, 8]),
          },
        },
        ({ x, nibbles, bytes, halves: pieces, swapped }) => {
          const tile = x.load();
          nibbles.store(tile.bitcast(u4));
          bytes.store(tile.bitcast(u8));
          pieces.store(tile.bitcast(u16));
          const apart = tile.bitcast(u8).reshape([4, 8, 4]);
          swapped.store(flip(apart, { axis: 2 }).reshape([4, 32]).bitcast(u32));
        },
      ),
    inputs: { x: fromNumbers(u32, [4, 8], words) },
    expected: {
      nibbles: bitsOf(4),
      bytes: bitsOf(8),
      halves: bitsOf(16),
      swapped: words.map((word) =>
        [0, 8, 16, 24].reduce((sum, shift) => sum * 256 + ((word >>> shift) & 255), 0),
      ),
    },
    targets: everyTarget,
  },
  {
    name: "words of 64 bits, through a transpose",
    kernel: () =>
      kernel(
        {
          name: "packed_columns",
          inputs: { x: tensor(u32, [2, 16]) },
          outputs: { y: tensor(u64, [16, 1]) },
        },
        ({ x, y }) => {
          y.store(x.load().transpose().bitcast(u64));
        },
      ),
    inputs: {
      x: fromNumbers(
        u32,
        [2, 16],
        [0, 1].flatMap((half) => words.filter((_, at) => at % 2 === half)),
      ),
    },
    expected: { y: pairs.filter((_, index) => index % 2 === 0) },
    targets: everyTarget,
  },
];

const exponents = [-127, -100, -3, 0, 1, 64, 127, NaN];
const others = [-1, -100, 5, 0, 1, 64, -127, 3];

/** 2^`exponent` as the format has it. */
function power(exponent: number): number {
  return exponent > 127 ? NaN : 2 ** Math.max(exponent, -127);
}

function powers(of: (a: number, b: number) => number): readonly number[] {
  return exponents.map((a, index) => power(of(a, others[index] ?? 0)));
}

const scaleArithmetic: FeatureCase = {
  name: "products, quotients, roots and extremes of scales",
  kernel: () => {
    const array = tensor(f8e8m0fnu, [8]);
    return kernel(
      {
        name: "scales",
        inputs: { a: array, b: array },
        outputs: {
          product: array,
          quotient: array,
          root: array,
          least: array,
          greater: array,
          chosen: array,
          wide: tensor(f32, [8]),
        },
      },
      ({ a, b, ...out }) => {
        const [x, y] = [a.load(), b.load()];
        out.product.store(x.mul(y));
        out.quotient.store(x.div(y));
        out.root.store(x.sqrt());
        out.least.store(x.minimum(y));
        out.greater.store(x.fmax(y));
        out.chosen.store(x.isNan().or(x.lt(y)).select(y, x));
        out.wide.store(x.mul(2).cast(f32));
      },
    );
  },
  inputs: {
    a: fromNumbers(f8e8m0fnu, [8], exponents.map(power)),
    b: fromNumbers(f8e8m0fnu, [8], others.map(power)),
  },
  expected: {
    product: powers((a, b) => a + b),
    quotient: powers((a, b) => a - b),
    root: powers((a) => Math.floor(a / 2)),
    least: powers(Math.min),
    greater: powers((a, b) => (Number.isNaN(a) ? b : Math.max(a, b))),
    chosen: powers((a, b) => (Number.isNaN(a) ? b : Math.max(a, b))),
    wide: powers((a) => a + 1),
  },
  targets: everyTarget,
};

const halves = { inputs: { x: tensor(f16, [8]) }, outputs: { y: tensor(f16, [8]) } };

export const numberFeatures: readonly Feature[] = [
  {
    name: "Rounding of arithmetic, subnormal numbers as zeros",
    written: ['{ rounding: "down" }', "{ flushToZero: true }"],
    page: "arithmetic.md#rounding-and-subnormal-numbers",
    cases: () => [
      ...(["zero", "down", "up"] as const).flatMap((rounding) => [
        mannered("f32", { rounding }),
        mannered("f32", { rounding, flushToZero: true }),
        mannered("f64", { rounding }),
      ]),
      mannered("f32", { flushToZero: true }),
      flushedHalves,
      conversions,
    ],
    refused: [
      {
        code: "TW2018",
        by: () =>
          kernel({ name: "half_up", ...halves }, ({ x, y }) => {
            y.store(x.load().add(1, { rounding: "up" }));
          }),
      },
      {
        code: "TW2104",
        by: () =>
          kernel({ name: "half_away", ...halves }, ({ x, y }) => {
            y.store(x.load().cast(f32).cast(f16, { rounding: "away" }));
          }),
      },
    ],
  },
  {
    name: "Approximations of a call, and of a whole kernel",
    written: ["approximate: true", "{ approximate: false }"],
    page: "arithmetic.md#approximations",
    cases: () => [fastKernel, fastExcept],
    refused: [
      {
        code: "TW2015",
        by: () =>
          kernel({ name: "fast_doubles", ...halves }, ({ x, y }) => {
            y.store(x.load().cast(f64).exp({ approximate: true }).cast(f16));
          }),
      },
    ],
  },
  {
    name: "Bitcasts to other widths: pack and unpack",
    written: [".bitcast(u32)", ".bitcast(f4e2m1fn)"],
    page: "language.md#bits-as-other-formats",
    cases: () => widths,
    refused: [
      {
        code: "TW2012",
        by: () =>
          kernel({ name: "five_halves", inputs: { x: tensor(f16, [5]) } }, ({ x }) => {
            x.load().bitcast(f32);
          }),
      },
      {
        code: "TW2013",
        by: () =>
          kernel({ name: "bits_of_bools", ...halves }, ({ x }) => {
            x.load().gt(0).bitcast(u32);
          }),
      },
    ],
  },
  {
    name: "Arithmetic of F8E8M0FNU by exponents",
    written: ["x.mul(y)", "x.div(y)", "x.maximum(y)"],
    page: "arithmetic.md#powers-of-two",
    cases: () => [scaleArithmetic],
    refused: [
      {
        code: "TW2005",
        by: () =>
          kernel({ name: "sums_of_scales", inputs: { x: tensor(f8e8m0fnu, [8]) } }, ({ x }) => {
            x.load().add(2);
          }),
      },
    ],
  },
];
