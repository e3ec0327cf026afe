/** The special functions against values from tables of 20 digits and against their own identities. */
import { describe, expect, test } from "vitest";
import { Random } from "../../../support/random.ts";
import {
  complementaryErrorFunction,
  errorFunction,
  inverseErrorFunction,
} from "../../../formats/arithmetic/special.ts";
import * as complex from "./complex.ts";
import { nextAfter, reducePrecision, totalOrder } from "./convert.ts";
import * as special from "./special.ts";

const near = (relative: number) => (actual: number, expected: number) => {
  expect(Math.abs(actual - expected)).toBeLessThanOrEqual(relative * Math.abs(expected));
};

describe("functions of real numbers", () => {
  test.each([
    [complementaryErrorFunction, 0.5, 0.4795001221869534623],
    [complementaryErrorFunction, 2, 0.0046777349810472658],
    [complementaryErrorFunction, 10, 2.088487583762544757e-45],
    [special.lgamma, 0.5, 0.57236494292470008707],
    [special.lgamma, 10.25, 13.368023671476049],
    [special.lgamma, -1 + 2 ** -31, 21.48756259755518],
    [special.lgamma, -(2 ** -30), 20.794415417335934],
    [special.lgamma, 1 + 2 ** -40, -5.249745890076018e-13],
    [special.lgamma, 2 - 2 ** -40, -3.845201127643794e-13],
    [special.lgamma, -1.5, 0.86004701537648101451],
    [special.digamma, 1, -0.57721566490153286061],
    [special.digamma, -0.5, 0.036489973978576520559],
    [special.digamma, -1e-40, 1e40],
    [special.digamma, -3 - 2 ** -40, 1099511627777.2561],
    [special.digamma, 20.5, 2.9958363947076466],
    [special.besselI1e, 1, 0.20791041534970844887],
    [special.besselI1e, -50, -0.055993123892895401],
    [inverseErrorFunction, 0.5, 0.47693627620446987338],
    [inverseErrorFunction, 1 - 2 ** -51, 5.74587239219118],
    [inverseErrorFunction, -0.999, -2.3267537655135246],
  ] as const)("%o of %d", (f, x, expected) => {
    near(1e-14)(f(x), expected);
  });

  test("erf undoes erf_inv", () => {
    const random = new Random(3);
    for (let i = 0; i < 200; i++) {
      const y = 2 * random.uniform() - 1;
      expect(Math.abs(errorFunction(inverseErrorFunction(y)) - y)).toBeLessThan(4e-16);
    }
  });

  test("zeta and polygamma", () => {
    near(1e-15)(special.zeta(2, 1), Math.PI ** 2 / 6);
    near(1e-15)(special.zeta(4, 1), Math.PI ** 4 / 90);
    near(1e-14)(special.polygamma(1, 1), Math.PI ** 2 / 6);
    near(1e-14)(special.polygamma(2, 1), -2.4041138063191885708);
    expect(special.zeta(1, 3)).toBe(Infinity);
    expect(special.zeta(0.5, 3)).toBeNaN();
  });

  test("poles and limits", () => {
    expect(special.lgamma(0)).toBe(Infinity);
    expect(special.lgamma(-3)).toBe(Infinity);
    expect(special.digamma(-2)).toBeNaN();
    expect(special.digamma(-0)).toBe(-Infinity);
    expect(inverseErrorFunction(1)).toBe(Infinity);
    expect(inverseErrorFunction(1.5)).toBeNaN();
    expect(complementaryErrorFunction(-Infinity)).toBe(2);
    expect(special.roundAwayFromZero(-2.5)).toBe(-3);
    expect(special.roundAwayFromZero(0.49999999999999994)).toBe(0);
  });
});

/** Inverse functions, each with a part of the plane on which it undoes the other. */
const inverses = [
  [complex.exponential, complex.log, 3],
  [complex.sine, complex.arcSine, 1.5],
  [complex.hyperbolicSine, complex.hyperbolicArcSine, 1.5],
  [complex.hyperbolicTangent, complex.hyperbolicArcTangent, 0.75],
  [complex.tangent, complex.arcTangent, 0.75],
] as const;

describe("functions of complex numbers", () => {
  // The limit from inside says the signs: 1 / √z turns by minus half the angle, and logistic goes as e^z and 1 - e^-z.
  test.each([
    ["rsqrt", complex.reciprocalRoot, [Infinity, 1], [0, -0]],
    ["rsqrt", complex.reciprocalRoot, [Infinity, -1], [0, 0]],
    ["rsqrt", complex.reciprocalRoot, [-Infinity, 1], [0, -0]],
    ["rsqrt", complex.reciprocalRoot, [-Infinity, -1], [0, 0]],
    ["rsqrt", complex.reciprocalRoot, [4, 0], [0.5, -0]],
    ["rsqrt", complex.reciprocalRoot, [4, -0], [0.5, 0]],
    ["logistic", complex.logistic, [Infinity, 1], [1, 0]],
    ["logistic", complex.logistic, [Infinity, -1], [1, -0]],
    ["logistic", complex.logistic, [-Infinity, 1], [0, 0]],
    ["logistic", complex.logistic, [-Infinity, -1], [0, -0]],
    ["logistic", complex.logistic, [-Infinity, 2], [-0, 0]],
    ["logistic", complex.logistic, [0, 0], [0.5, 0]],
    ["logistic", complex.logistic, [0, -0], [0.5, -0]],
  ] as const)("%s of %o at infinities and on the real axis", (_, f, [re, im], [x, y]) => {
    const found = f({ re, im });
    expect([found.re, found.im]).toEqual([x, y]);
  });

  test.each(inverses)("%o and %o", (f, inverse, range) => {
    const random = new Random(9);
    for (let i = 0; i < 300; i++) {
      const z = {
        re: range * (2 * random.uniform() - 1),
        im: range * (2 * random.uniform() - 1),
      };
      const back = inverse(f(z));
      expect(Math.hypot(back.re - z.re, back.im - z.im)).toBeLessThan(1e-14);
    }
  });

  test("cosines undo their inverses", () => {
    const random = new Random(10);
    for (let i = 0; i < 300; i++) {
      const z = { re: random.normal(), im: random.normal() };
      for (const back of [
        complex.cosine(complex.arcCosine(z)),
        complex.hyperbolicCosine(complex.hyperbolicArcCosine(z)),
        complex.multiply(complex.squareRoot(z), complex.squareRoot(z)),
        complex.multiply(complex.divide(z, { re: 2, im: -3 }), { re: 2, im: -3 }),
      ])
        expect(Math.hypot(back.re - z.re, back.im - z.im)).toBeLessThan(2e-14);
    }
  });

  test("quotients of extreme numbers", () => {
    const tiny = { re: 1e-308, im: 1e-308 };
    expect(complex.divide(tiny, tiny)).toEqual({ re: 1, im: 0 });
    const huge = { re: 1e308, im: -1e308 };
    expect(complex.divide(huge, huge)).toEqual({ re: 1, im: 0 });
  });
});

describe("bits of floats", () => {
  test("one step towards another number", () => {
    expect(nextAfter("f32")(1, 2)).toBe(1 + 2 ** -23);
    expect(nextAfter("f32")(1, 0)).toBe(1 - 2 ** -24);
    expect(nextAfter("f64")(0, -1)).toBe(-Number.MIN_VALUE);
    expect(nextAfter("bf16")(-1, 0)).toBe(-1 + 2 ** -8);
    expect(nextAfter("f16")(65504, Infinity)).toBe(Infinity);
  });

  test("reduce_precision rounds to even, overflows and flushes", () => {
    const toHalf = reducePrecision("f32", 5, 10);
    expect(toHalf(1 + 2 ** -11)).toBe(1);
    expect(toHalf(1 + 3 * 2 ** -11)).toBe(1 + 2 ** -9);
    expect(toHalf(65520)).toBe(Infinity);
    expect(toHalf(2 ** -15)).toBe(0);
    expect(Object.is(toHalf(-(2 ** -15)), -0)).toBe(true);
  });

  test("reduce_precision rounds codes: subnormal numbers keep their unit, an even exponent wins without mantissa bits", () => {
    const toTf32 = reducePrecision("f32", 8, 10);
    expect(toTf32(3 * 2 ** -137)).toBe(2 ** -135);
    expect(toTf32(2 ** -140)).toBe(0);
    const toPower = reducePrecision("f32", 8, 0);
    expect([3, 6, -12, 1.5, 2.5].map(toPower)).toEqual([2, 8, -8, 2, 2]);
  });

  test("the total order", () => {
    const order = [-Infinity, -1, -0, 0, 1, Infinity, NaN];
    for (const [i, left] of order.entries())
      for (const [j, right] of order.entries())
        expect(Math.sign(totalOrder(left, right))).toBe(Math.sign(i - j));
  });
});
