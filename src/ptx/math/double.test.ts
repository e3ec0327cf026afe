/** Functions of f64, against integers of 1400 bits; special cases against JavaScript's. */
import { describe, expect, test } from "vitest";
import { compileSequence } from "../../../test/support/evaluate-ptx.ts";
import * as reference from "../../../test/support/precise.ts";
import {
  doubleCases,
  doubleOperands,
  specialDoubles,
} from "../../../test/support/double-functions.ts";
import { power } from "../../formats/arithmetic/special.ts";
import { Random } from "../../support/random.ts";
import { namesOf } from "../../support/records.ts";
import { mathBounds, mathFunctions } from "./index.ts";
import type { BinaryMath } from "./index.ts";

const perRange = 120;

describe("functions of f64", () => {
  test.each(namesOf(doubleCases))("%s", (fn) => {
    const seed = 815;
    const evaluate = compileSequence(64, mathFunctions.f64.unary[fn], { operands: 1 });
    const { ulp } = mathBounds.f64[fn];
    for (const x of doubleOperands(doubleCases[fn], new Random(seed), perRange)) {
      const error = reference.unitsBetween(
        evaluate(x),
        doubleCases[fn].exact(reference.precise(x), x),
      );
      if (error > ulp)
        expect.fail(`${fn}(${x}) is ${evaluate(x)}, off by ${error} ulp; seed ${seed}`);
    }
  });

  test.each(namesOf(doubleCases))("%s of special numbers", (fn) => {
    const evaluate = compileSequence(64, mathFunctions.f64.unary[fn], { operands: 1 });
    for (const x of specialDoubles) {
      const expected = doubleCases[fn].special(x);
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
  test.each(namesOf(binarySpecial))("%s of special numbers", (fn) => {
    const evaluate = compileSequence(64, mathFunctions.f64.binary[fn], { operands: 2 });
    const numbers = [
      ...specialDoubles,
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
