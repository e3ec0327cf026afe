/** Functions of f64 with their references, integers of 1400 bits, and operands at which forms of them change. */
import {
  complementaryErrorFunction,
  errorFunction,
  exponential2,
  inverseErrorFunction,
  logistic,
} from "../../src/formats/arithmetic/special.ts";
import type { UnaryMath } from "../../src/ptx/math/index.ts";
import type { Random } from "../../src/support/random.ts";
import * as reference from "./precise.ts";

interface DoubleCase {
  readonly exact: (x: bigint, value: number) => bigint;
  readonly special: (x: number) => number;
  /** Ranges to take operands from. */
  readonly ranges: readonly (readonly [number, number])[];
  /** Whether operands near 0 and huge ones are of interest. */
  readonly tiny?: boolean;
  readonly huge?: boolean;
}

export const doubleCases: { readonly [F in UnaryMath]: DoubleCase } = {
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

export const specialDoubles = [0, 1, 2 ** -1074, 2 ** 1000, Infinity, NaN].flatMap((value) => [
  value,
  -value,
]);

/** So many of each range, and of tiny and huge ones where they are of interest. */
export function doubleOperands(
  { ranges, tiny = false, huge = false }: DoubleCase,
  random: Random,
  perRange: number,
): number[] {
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
