/** Functions of f64, against integers of 1400 bits; special cases against JavaScript's. */
import { describe, expect, test } from "vitest";
import { compileSequence } from "../../../test/support/evaluate-ptx.ts";
import * as reference from "../../../test/support/precise.ts";
import {
  complementaryErrorFunction,
  errorFunction,
  exponential2,
  inverseErrorFunction,
  logistic,
  power,
} from "../../formats/arithmetic/special.ts";
import { Random } from "../../support/random.ts";
import { mathBounds, mathFunctions } from "./index.ts";
import type { BinaryMath, UnaryMath } from "./index.ts";

interface Case {
  readonly exact: (x: bigint, value: number) => bigint;
  readonly special: (x: number) => number;
  /** Ranges to take operands from. */
  readonly ranges: readonly (readonly [number, number])[];
  /** Whether operands near 0 and huge ones are of interest. */
  readonly tiny?: boolean;
  readonly huge?: boolean;
}

const cases: { readonly [F in UnaryMath]: Case } = {
  rsqrt: { exact: reference.inverseRoot, special: (x) => 1 / Math.sqrt(x), ranges: [[0.1, 10]] },
  exp: {
    exact: reference.exponential,
    special: Math.exp,
    ranges: [
      [-745, 709],
      [-2, 2],
    ],
    tiny: true,
  },
  exp2: {
    exact: reference.exp2Of,
    special: exponential2,
    ranges: [
      [-1074, 1023],
      [-2, 2],
    ],
    tiny: true,
  },
  expm1: {
    exact: reference.exponentialMinusOne,
    special: Math.expm1,
    ranges: [
      [-40, 700],
      [-1, 1],
    ],
    tiny: true,
  },
  log: {
    exact: reference.logarithm,
    special: Math.log,
    ranges: [
      [0.5, 2],
      [1e-300, 1e-290],
      [0, 1e9],
    ],
  },
  log2: {
    exact: reference.log2Of,
    special: Math.log2,
    ranges: [
      [0.5, 2],
      [1e-310, 1e-308],
      [0, 1e9],
    ],
  },
  log1p: {
    exact: reference.logarithmOfOnePlus,
    special: Math.log1p,
    ranges: [
      [-0.999, 2],
      [0, 1e9],
    ],
    tiny: true,
  },
  sin: {
    exact: (x) => reference.sine(x),
    special: Math.sin,
    ranges: [[-10, 10]],
    tiny: true,
    huge: true,
  },
  cos: { exact: reference.cosine, special: Math.cos, ranges: [[-10, 10]], tiny: true, huge: true },
  tan: { exact: reference.tangent, special: Math.tan, ranges: [[-10, 10]], tiny: true, huge: true },
  atan: {
    exact: (x) => reference.angle(x, reference.precise(1)),
    special: Math.atan,
    ranges: [
      [-10, 10],
      [-1, 1],
    ],
    tiny: true,
    huge: true,
  },
  asin: {
    exact: reference.arcSine,
    special: Math.asin,
    ranges: [
      [-1, 1],
      [0.99, 1],
    ],
    tiny: true,
  },
  acos: {
    exact: reference.arcCosine,
    special: Math.acos,
    ranges: [
      [-1, 1],
      [0.99, 1],
    ],
    tiny: true,
  },
  tanh: {
    exact: reference.hyperbolicTangent,
    special: Math.tanh,
    ranges: [
      [-20, 20],
      [-1, 1],
    ],
    tiny: true,
  },
  sinh: {
    exact: reference.hyperbolicSine,
    special: Math.sinh,
    ranges: [
      [-700, 700],
      [-2, 2],
      [0.9, 1.1],
    ],
    tiny: true,
  },
  cosh: {
    exact: reference.hyperbolicCosine,
    special: Math.cosh,
    ranges: [
      [-700, 700],
      [-2, 2],
    ],
    tiny: true,
  },
  asinh: {
    exact: reference.hyperbolicArcSine,
    special: Math.asinh,
    ranges: [
      [-10, 10],
      [2e8, 3e8],
      [-1, 1],
    ],
    tiny: true,
  },
  acosh: {
    exact: reference.hyperbolicArcCosine,
    special: Math.acosh,
    ranges: [
      [1, 2],
      [1, 1.0001],
      [2e8, 3e8],
      [1, 1000],
    ],
  },
  atanh: {
    exact: reference.hyperbolicArcTangent,
    special: Math.atanh,
    ranges: [
      [-1, 1],
      [0.99, 1],
    ],
    tiny: true,
  },
  cbrt: {
    exact: reference.cubeRoot,
    special: Math.cbrt,
    ranges: [
      [-10, 10],
      [1e-310, 1e-308],
    ],
    tiny: true,
    huge: true,
  },
  erf_inv: {
    exact: (y, value) => reference.inverseErrorIntegral(y, inverseErrorFunction(value)),
    special: inverseErrorFunction,
    ranges: [
      [-1, 1],
      [0.8, 0.9],
      [0.99999, 1],
    ],
    tiny: true,
  },
  erfc: {
    exact: reference.complementaryErrorIntegral,
    special: complementaryErrorFunction,
    ranges: [
      [-6, 6],
      [0, 1],
      [6, 27],
      [26, 27.3],
    ],
    tiny: true,
  },
  erf: {
    exact: reference.errorIntegral,
    special: errorFunction,
    ranges: [
      [-6, 6],
      [-1, 1],
    ],
    tiny: true,
  },
  logistic: {
    exact: reference.logisticCurve,
    special: logistic,
    ranges: [
      [-740, 40],
      [-5, 5],
    ],
    tiny: true,
  },
};

const perRange = 120;
const special = [0, 1, 2 ** -1074, 2 ** 1000, Infinity, NaN].flatMap((value) => [value, -value]);

function operands({ ranges, tiny = false, huge = false }: Case, random: Random): number[] {
  const within = ranges.flatMap(([low, high]) =>
    Array.from({ length: perRange }, () => low + (high - low) * random.uniform()),
  );
  const signed = (value: number): number => (random.bits() & 1 ? -value : value);
  const scaled = (least: number, most: number): number[] =>
    Array.from({ length: perRange }, () =>
      signed((1 + random.uniform()) * 2 ** (least + (most - least) * random.uniform())),
    );
  return [...within, ...(tiny ? scaled(-100, -1) : []), ...(huge ? scaled(10, 1022) : [])];
}

describe("functions of f64", () => {
  test.each(Object.keys(cases) as readonly UnaryMath[])("%s", (fn) => {
    const seed = 815;
    const evaluate = compileSequence(64, mathFunctions.f64.unary[fn], { operands: 1 });
    const { ulp } = mathBounds.f64[fn];
    for (const x of operands(cases[fn], new Random(seed))) {
      const error = reference.unitsBetween(evaluate(x), cases[fn].exact(reference.precise(x), x));
      if (error > ulp)
        expect.fail(`${fn}(${x}) is ${evaluate(x)}, off by ${error} ulp; seed ${seed}`);
    }
  });

  test.each(Object.keys(cases) as readonly UnaryMath[])("%s of special numbers", (fn) => {
    const evaluate = compileSequence(64, mathFunctions.f64.unary[fn], { operands: 1 });
    for (const x of special) {
      const expected = cases[fn].special(x);
      const known =
        Number.isNaN(expected) || !Number.isFinite(expected) || Math.abs(expected) < 2 ** -1000;
      if (known) expect(evaluate(x), `${fn}(${x})`).toBe(expected);
    }
  });
});

const binarySpecial: { readonly [F in BinaryMath]: (left: number, right: number) => number } = {
  pow: power,
  atan2: Math.atan2,
  rem: (left, right) => left % right,
};
const doubles = new Float64Array(1);
const doubleWords = new Uint32Array(doubles.buffer);

describe("functions of two f64", () => {
  test.each(Object.keys(binarySpecial) as readonly BinaryMath[])("%s of special numbers", (fn) => {
    const evaluate = compileSequence(64, mathFunctions.f64.binary[fn], { operands: 2 });
    const numbers = [
      ...special,
      -0.5,
      0.5,
      2.5,
      -2.5,
      3,
      -3,
      2 ** 53 - 1,
      1 - 2 ** 53,
      2 ** 53,
      1e300,
      -1e300,
    ];
    for (const left of numbers)
      for (const right of numbers) {
        const expected = binarySpecial[fn](left, right);
        const exact =
          fn === "rem" || !Number.isFinite(expected) || expected === 0 || Math.abs(expected) === 1;
        const got = evaluate(left, right);
        if (exact) expect(got, `${fn}(${left}, ${right})`).toBe(expected);
        else expect(got / expected, `${fn}(${left}, ${right})`).toBeCloseTo(1, 14);
      }
  });

  test("pow", () => {
    const seed = 816;
    const random = new Random(seed);
    const evaluate = compileSequence(64, mathFunctions.f64.binary.pow, { operands: 2 });
    for (let turn = 0; turn < 400; turn++) {
      const spread = turn % 2 === 0 ? 60 : 2 ** -(random.uniform() * 40);
      const base = 2 ** ((random.uniform() - 0.5) * spread);
      const exponent = (random.uniform() * 2096 - 1074) / Math.log2(base);
      if (base === 1) continue;
      const exact = reference.powerOf(reference.precise(base), reference.precise(exponent));
      const error = reference.unitsBetween(evaluate(base, exponent), exact);
      if (error > mathBounds.f64.pow.ulp)
        expect.fail(`pow(${base}, ${exponent}) is off by ${error} ulp; seed ${seed}`);
    }
  });

  test("atan2", () => {
    const seed = 817;
    const random = new Random(seed);
    const evaluate = compileSequence(64, mathFunctions.f64.binary.atan2, { operands: 2 });
    for (let turn = 0; turn < 400; turn++) {
      const [y, x] = [0, 1].map(() => random.normal() * 2 ** (40 * random.normal())) as [
        number,
        number,
      ];
      const exact = reference.angle(reference.precise(y), reference.precise(x));
      const error = reference.unitsBetween(evaluate(y, x), exact);
      if (error > mathBounds.f64.atan2.ulp)
        expect.fail(`atan2(${y}, ${x}) is off by ${error} ulp; seed ${seed}`);
    }
  });

  test("rem", () => {
    const seed = 818;
    const random = new Random(seed);
    const evaluate = compileSequence(64, mathFunctions.f64.binary.rem, { operands: 2 });
    const any = (): number => {
      doubleWords[0] = random.bits();
      doubleWords[1] = random.bits();
      return doubles[0] as number;
    };
    for (let turn = 0; turn < 1000; turn++) {
      const [left, right] =
        turn % 2 === 0 ? [any(), any()] : [random.normal() * 1e6, random.normal()];
      expect(evaluate(left, right), `${left} % ${right}; seed ${seed}`).toBe(left % right);
    }
  });
});
