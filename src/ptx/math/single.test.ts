/**
 * Functions of f32, on numbers of every exponent and sign. The reference is f64, whose own error is far below
 * what is measured; results that are NaN, infinite or zero have to be so with their sign.
 */
import { describe, expect, test } from "vitest";
import { compileSequence } from "../../../test/support/evaluate-ptx.ts";
import { takesAll } from "../../../test/support/sample.ts";
import { functionReferences } from "../../../test/support/function-references.ts";
import { errorFunction, power } from "../../formats/arithmetic/special.ts";
import { Random } from "../../support/random.ts";
import { mathBounds, mathFunctions } from "./index.ts";
import type { BinaryMath, UnaryMath } from "./index.ts";

const floats = new Float32Array(1);
const words = new Uint32Array(floats.buffer);

function fromBits(bits: number): number {
  words[0] = bits;
  return floats[0] as number;
}

/** The unit in the last place of f32 at a number. */
function unitAt(value: number): number {
  const exponent = Math.floor(Math.log2(Math.abs(value)));
  return 2 ** Math.max(exponent - 23, -149);
}

/** How far `got` is from `exact`, in units; infinite where one of them is special and the other is not. */
function errorOf(got: number, exact: number): number {
  const rounded = Math.fround(exact);
  if (Object.is(got, rounded)) return Number.isFinite(exact) && exact !== 0 ? 0.5 : 0;
  if (Number.isNaN(rounded) || Number.isNaN(got) || rounded === 0 || got === 0) {
    const lost = Math.abs(got - rounded) <= 2 ** -149 && Math.sign(got) * Math.sign(exact) >= 0;
    return lost && exact !== 0 ? 1 : Infinity;
  }
  if (!Number.isFinite(rounded) || !Number.isFinite(got)) {
    const greatest = fromBits(0x7f7fffff);
    const edge = Math.min(Math.abs(got), Math.abs(rounded)) === greatest;
    return edge && got > 0 === exact > 0 ? 1 : Infinity;
  }
  return Math.abs(got - exact) / unitAt(exact);
}

const special = [
  0,
  1,
  2,
  3,
  0.5,
  1.5,
  2.5,
  10,
  100,
  127,
  128,
  149,
  150,
  87.3,
  88.7,
  88.8,
  103.9,
  104,
  1e-10,
  1e10,
  2 ** 16,
  2 ** 16 + 1,
  2 ** 24,
  2 ** 24 - 1,
  2 ** 24 + 2,
  2 ** 23 + 1,
  2 ** 22 - 0.5,
  2 ** -126,
  2 ** -149,
  2 ** 127,
  Math.PI,
  Math.PI / 2,
  Math.PI / 4,
  Infinity,
  NaN,
].flatMap((value) => [value, -value].map(Math.fround));
const neighbours = [
  1,
  0.55,
  0.85,
  0.92,
  2 / 3,
  4 / 3,
  4,
  9.25,
  89.4159,
  2 ** 13,
  2 ** -126,
].flatMap((value) => {
  floats[0] = value;
  const bits = words[0] as number;
  return [bits - 1, bits, bits + 1].flatMap((each) => [fromBits(each), -fromBits(each)]);
});

const consecutive = takesAll ? 2 ** 17 : 2 ** 19;

/** One number of each so many consecutive ones, and those where forms change. */
function sample(random: Random): Float64Array {
  const patterns = Array.from({ length: 2 ** 32 / consecutive }, (_, index) =>
    fromBits(index * consecutive + random.below(consecutive)),
  );
  return Float64Array.from([...special, ...neighbours, ...patterns]);
}

const unaryNames = Object.keys(functionReferences) as readonly UnaryMath[];

describe("functions of f32", () => {
  test.each(unaryNames)("%s", (fn) => {
    const seed = 4711;
    const values = sample(new Random(seed));
    const { ulp } = mathBounds.f32[fn];
    // The approximations inside differ from GPU to GPU.
    for (const nudge of [0, 1, -1]) {
      const evaluate = compileSequence(32, mathFunctions.f32.unary[fn], { operands: 1, nudge });
      const step = nudge === 0 ? 1 : takesAll ? 16 : 4;
      for (let index = 0; index < values.length; index += step) {
        const x = values[index] as number;
        const error = errorOf(evaluate(x), functionReferences[fn](x));
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

/** Operands of a pair: any bits, ordinary numbers, and exponents whose power is within the format. */
function pairs(random: Random): (readonly [number, number])[] {
  const bits = (): number => fromBits(random.bits() >>> 0);
  const ordinary = (): number => Math.fround((random.uniform() - 0.5) * 200);
  const ranged = (): readonly [number, number] => {
    const base = Math.fround(2 ** ((random.uniform() - 0.5) * 60));
    return [base, Math.fround(((random.uniform() - 0.5) * 290) / Math.log2(base))];
  };
  return Array.from(
    { length: takesAll ? 2 ** 13 : 2 ** 11 },
    (): readonly (readonly [number, number])[] => [
      [bits(), bits()],
      [ordinary(), ordinary()],
      [ordinary(), Math.trunc(ordinary() / 10)],
      ranged(),
    ],
  ).flat();
}

describe("functions of two f32", () => {
  test.each(Object.keys(binaryReferences) as readonly BinaryMath[])("%s", (fn) => {
    const seed = 4712;
    const evaluate = compileSequence(32, mathFunctions.f32.binary[fn], { operands: 2 });
    const { ulp } = mathBounds.f32[fn];
    const crossed = special.flatMap((left) => special.map((right) => [left, right] as const));
    for (const [left, right] of [...crossed, ...pairs(new Random(seed))]) {
      const exact = binaryReferences[fn](left, right);
      const error =
        ulp === 0
          ? Number(!Object.is(evaluate(left, right), exact))
          : errorOf(evaluate(left, right), exact);
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
    for (const x of sample(new Random(seed))) {
      const [got, exact] = [evaluate(x), errorFunction(x)];
      const near = Number.isNaN(exact) ? Number.isNaN(got) : Math.abs(got - exact) <= bound;
      if (!near) expect.fail(`erf(${x}) is ${got}, not ${exact}; seed ${seed}`);
    }
  }
});
