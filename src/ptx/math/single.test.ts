/**
 * Functions of f32, on numbers of every exponent and sign. The reference is f64, whose own error is far below
 * what is measured; results that are NaN, infinite or zero have to be so with their sign.
 */
import { describe, expect, test } from "vitest";
import { compileSequence } from "../../../test/support/evaluate-ptx.ts";
import { takesAll } from "../../../test/support/sample.ts";
import { functionReferences } from "../../../test/support/function-references.ts";
import {
  singleError,
  singleOperands,
  singlePairs,
  specialSingles,
} from "../../../test/support/single-functions.ts";
import { errorFunction, power } from "../../formats/arithmetic/special.ts";
import { Random } from "../../support/random.ts";
import { namesOf } from "../../support/records.ts";
import { mathBounds, mathFunctions } from "./index.ts";
import type { BinaryMath } from "./index.ts";

const consecutive = takesAll ? 2 ** 17 : 2 ** 19;

const unaryNames = namesOf(functionReferences);

describe("functions of f32", () => {
  test.each(unaryNames)("%s", (fn) => {
    const seed = 4711;
    const values = singleOperands(new Random(seed), consecutive);
    const { ulp } = mathBounds.f32[fn];
    // The approximations inside differ from GPU to GPU.
    for (const nudge of [0, 1, -1]) {
      const evaluate = compileSequence(32, mathFunctions.f32.unary[fn], { operands: 1, nudge });
      const step = nudge === 0 ? 1 : takesAll ? 16 : 4;
      for (let index = 0; index < values.length; index += step) {
        const x = values[index] as number;
        const error = singleError(evaluate(x), functionReferences[fn](x));
        if (error > ulp)
          expect.fail(`${fn}(${x}) is ${evaluate(x)}, off by ${error} ulp; seed ${seed}`);
      }
    }
  });

  test("near zero they keep the sign of zero", () => {
    for (const fn of [
      "expm1",
      "log1p",
      "sin",
      "tan",
      "atan",
      "tanh",
      "erf",
      "asin",
      "sinh",
      "asinh",
      "atanh",
      "cbrt",
      "erf_inv",
    ] as const) {
      const evaluate = compileSequence(32, mathFunctions.f32.unary[fn], { operands: 1 });
      expect([evaluate(0), evaluate(-0)], fn).toEqual([0, -0]);
    }
  });
});

const binaryReferences: { readonly [F in BinaryMath]: (left: number, right: number) => number } = {
  pow: power,
  atan2: Math.atan2,
  rem: (left, right) => left % right,
};

describe("functions of two f32", () => {
  test.each(namesOf(binaryReferences))("%s", (fn) => {
    const seed = 4712;
    const evaluate = compileSequence(32, mathFunctions.f32.binary[fn], { operands: 2 });
    const { ulp } = mathBounds.f32[fn];
    const crossed = specialSingles.flatMap((left) =>
      specialSingles.map((right) => [left, right] as const),
    );
    for (const [left, right] of [
      ...crossed,
      ...singlePairs(new Random(seed), takesAll ? 2 ** 13 : 2 ** 11),
    ]) {
      const exact = binaryReferences[fn](left, right);
      const error =
        ulp === 0
          ? Number(!Object.is(evaluate(left, right), exact))
          : singleError(evaluate(left, right), exact);
      if (error > ulp)
        expect.fail(
          `${fn}(${left}, ${right}) is ${evaluate(left, right)}, not ${exact}; seed ${seed}`,
        );
    }
  });
});

test("the error function of few instructions keeps its bound", () => {
  const seed = 4712;
  const { error: bound } = mathBounds.approximate.erf;
  for (const nudge of [0, 1, -1]) {
    const emit = mathFunctions.approximate.unary.erf;
    const evaluate = compileSequence(32, emit, { operands: 1, nudge });
    for (const x of singleOperands(new Random(seed), consecutive)) {
      const [got, exact] = [evaluate(x), errorFunction(x)];
      const near = Number.isNaN(exact) ? Number.isNaN(got) : Math.abs(got - exact) <= bound;
      if (!near) expect.fail(`erf(${x}) is ${got}, not ${exact}; seed ${seed}`);
    }
  }
});
