/**
 * Functions of vectors against the same references and bounds as those of a GPU, with relaxed multiply-adds where the engine has
 * them and without. `TILEWRIGHT_CASES=all npx vitest run src/cpu/math` takes one in 4,096 numbers of f32, and
 * `TILEWRIGHT_EVERY=exp` with it every number of a function.
 */
import { describe, expect, test } from "vitest";
import {
  doubleCases,
  doubleOperands,
  specialDoubles,
} from "../../../test/support/double-functions.ts";
import { functionReferences } from "../../../test/support/function-references.ts";
import * as reference from "../../../test/support/precise.ts";
import { takesAll } from "../../../test/support/sample.ts";
import {
  singleError,
  singleOperands,
  singlePairs,
  specialSingles,
} from "../../../test/support/single-functions.ts";
import { compileVectors, hasRelaxedSimd } from "../../../test/support/vector-function.ts";
import { power } from "../../formats/arithmetic/special.ts";
import { mathBounds } from "../../ptx/math/bounds.ts";
import type { BinaryMath, UnaryMath } from "../../ptx/math/index.ts";
import { Random } from "../../support/random.ts";
import { namesOf } from "../../support/records.ts";
import { canonicalNan, vectorMath } from "./index.ts";

const names = namesOf(functionReferences);
const binaryNames = ["pow", "atan2", "rem"] as const satisfies readonly BinaryMath[];
const binaryReferences: { readonly [F in BinaryMath]: (left: number, right: number) => number } = {
  pow: power,
  atan2: Math.atan2,
  rem: (left, right) => left % right,
};
/** Both meanings of relaxed multiply-adds: that of this engine, and rounding twice, which is the plain form. */
const forms = hasRelaxedSimd ? [false, true] : [false];
const consecutive = takesAll ? 2 ** 12 : 2 ** 19;

function checkSingle(fn: UnaryMath, inputs: Float32Array<ArrayBuffer>, relaxed: boolean): void {
  const run = compileVectors((code, x) => vectorMath.f32.unary[fn](code, x), { relaxed });
  const results = new Float32Array(run(inputs));
  const exact = functionReferences[fn];
  const { ulp } = mathBounds.f32[fn];
  inputs.forEach((x, index) => {
    const got = results[index] ?? 0;
    const error = singleError(got, exact(x));
    if (error > ulp) expect.fail(`${fn}(${x}) is ${got}, off by ${error} ulp; relaxed ${relaxed}`);
  });
}

describe.each(forms)("vectors of f32, relaxed %s", (relaxed) => {
  test.each(names)("%s", (fn) => {
    checkSingle(fn, Float32Array.from(singleOperands(new Random(4711), consecutive)), relaxed);
  });

  test.each(binaryNames)("%s", (fn) => {
    const run = compileVectors((code, x, y) => vectorMath.f32.binary[fn](code, x, y), {
      relaxed,
      operands: 2,
    });
    const crossed = specialSingles.flatMap((x) => specialSingles.map((y) => [x, y] as const));
    const pairs = [...crossed, ...singlePairs(new Random(4712), takesAll ? 2 ** 15 : 2 ** 10)];
    const left = Float32Array.from(pairs, ([x]) => x);
    const right = Float32Array.from(pairs, ([, y]) => y);
    const results = new Float32Array(run(left, right));
    const { ulp } = mathBounds.f32[fn];
    pairs.forEach(([x, y], index) => {
      const got = results[index] ?? 0;
      const exact = binaryReferences[fn](x, y);
      const error =
        ulp === 0 ? Number(!Object.is(got, Math.fround(exact))) : singleError(got, exact);
      if (error > ulp) expect.fail(`${fn}(${x}, ${y}) is ${got}, not ${exact}; seed 4712`);
    });
  });
});

describe.each(forms)("vectors of f64, relaxed %s", (relaxed) => {
  test.each(names)("%s", (fn) => {
    const { exact, special } = doubleCases[fn];
    const run = compileVectors((code, x) => vectorMath.f64.unary[fn](code, x), { relaxed });
    const inputs = Float64Array.from(
      doubleOperands(doubleCases[fn], new Random(815), takesAll ? 500 : 8),
    );
    const results = new Float64Array(run(inputs));
    inputs.forEach((x, index) => {
      const got = results[index] ?? 0;
      const error = reference.unitsBetween(got, exact(reference.precise(x), x));
      if (error > mathBounds.f64[fn].ulp)
        expect.fail(`${fn}(${x}) is ${got}, off by ${error} ulp; relaxed ${relaxed}, seed 815`);
    });
    const specialResults = new Float64Array(run(Float64Array.from(specialDoubles)));
    specialDoubles.forEach((x, index) => {
      const expected = special(x);
      const known = !Number.isFinite(expected) || Math.abs(expected) < 2 ** -1000;
      if (known) expect(specialResults[index], `${fn}(${x})`).toBe(expected);
    });
  });

  test.each(binaryNames)("%s", (fn) => {
    const run = compileVectors((code, x, y) => vectorMath.f64.binary[fn](code, x, y), {
      relaxed,
      operands: 2,
    });
    const random = new Random(816);
    const numbers = [...specialDoubles, -0.5, 2.5, 3, -3, 2 ** 53 - 1, 2 ** 53, 1e300, -1e300];
    const crossed = numbers.flatMap((x) => numbers.map((y) => [x, y] as const));
    const usual = Array.from({ length: takesAll ? 1000 : 40 }, () => {
      const base = 2 ** ((random.uniform() - 0.5) * 60);
      return [base, (random.uniform() * 2096 - 1074) / Math.log2(base)] as const;
    });
    const pairs = [...crossed, ...usual];
    const left = Float64Array.from(pairs, ([x]) => x);
    const right = Float64Array.from(pairs, ([, y]) => y);
    const results = new Float64Array(run(left, right));
    pairs.forEach(([x, y], index) => {
      const got = results[index] ?? 0;
      const near = binaryReferences[fn](x, y);
      const isExact = fn === "rem" || !Number.isFinite(near) || near === 0;
      if (isExact) return expect(got, `${fn}(${x}, ${y})`).toBe(near);
      if (index < crossed.length) return expect(got / near).toBeCloseTo(1, 14);
      const [a, b] = [reference.precise(x), reference.precise(y)];
      const exact = fn === "pow" ? reference.powerOf(a, b) : reference.angle(a, b);
      const error = reference.unitsBetween(got, exact);
      if (error > mathBounds.f64[fn].ulp)
        expect.fail(`${fn}(${x}, ${y}) is ${got}, off by ${error} ulp; seed 816`);
    });
  });
});

test("NaN becomes the one of its format where bits show, whatever made it", () => {
  const made = Float32Array.of(NaN, Infinity, 0, -1, 2);
  const bits = new Uint32Array(made.buffer);
  bits[0] = 0xff812345;
  const run = compileVectors(
    (code, x) => canonicalNan(code, 32, vectorMath.f32.unary.sin(code, x)),
    { relaxed: false },
  );
  const results = new Uint32Array(run(made));
  expect([...results.subarray(0, 2)]).toEqual([0x7fc00000, 0x7fc00000]);
  expect(results[2]).toBe(0);
});

test("the first call, in baseline code, and a late one, in optimised code, give equal bits", () => {
  const inputs = Float32Array.from(singleOperands(new Random(4713), 2 ** 22));
  for (const relaxed of forms)
    for (const fn of ["exp", "log", "tanh", "sin"] as const) {
      const run = compileVectors((code, x) => vectorMath.f32.unary[fn](code, x), { relaxed });
      const first = new Uint32Array(run(inputs));
      for (let call = 0; call < 50; call++) run(inputs);
      expect(new Uint32Array(run(inputs)), fn).toEqual(first);
    }
});

test.runIf(process.env["TILEWRIGHT_EVERY"] !== undefined)("every number of f32", () => {
  const fn = names.find((name) => name === process.env["TILEWRIGHT_EVERY"]);
  if (fn === undefined) return expect.fail("TILEWRIGHT_EVERY names no function");
  const piece = 2 ** 22;
  const inputs = new Float32Array(piece);
  const words = new Uint32Array(inputs.buffer);
  for (let start = 0; start < 2 ** 32; start += piece) {
    for (let index = 0; index < piece; index++) words[index] = start + index;
    for (const relaxed of forms) checkSingle(fn, inputs, relaxed);
  }
});
