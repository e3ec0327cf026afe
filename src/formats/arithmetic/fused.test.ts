import { describe, expect, test } from "vitest";
import {
  add,
  elementsOfNumbers,
  multiply,
  numbersOfElements,
  randomNumbers,
  rationalOf,
  roundNumber,
  roundRational,
  specialNumbers,
} from "../../../test/exact-reference.ts";
import type { ExactName } from "../../../test/exact-reference.ts";
import { Random } from "../../support/random.ts";
import { allocateElements, bf16, f16, f32, f64, i32, tf32 } from "../dtype.ts";
import type { DType } from "../dtype.ts";
import { fusedMultiplyAddElements } from "./fused.ts";

type Operands = readonly [number, number, number];

function reference(name: ExactName, [a, b, c]: Operands): number {
  // The host's two roundings do no harm where a factor or the product is special.
  if (![a, b].every(Number.isFinite) || a === 0 || b === 0) return a * b + c;
  if (!Number.isFinite(c)) return c;
  const exact = add(multiply(rationalOf(a), rationalOf(b)), rationalOf(c));
  return roundRational(name, exact);
}

function check(dtype: DType<ExactName>, operands: readonly Operands[], seed: number): void {
  const [a, b, c] = ([0, 1, 2] as const).map((place) =>
    elementsOfNumbers(
      dtype,
      operands.map((triple) => triple[place]),
    ),
  );
  if (a === undefined || b === undefined || c === undefined) throw new Error("three operands");
  const target = allocateElements(dtype, operands.length);
  fusedMultiplyAddElements(dtype, a, b, c, target);
  const wrong: string[] = [];
  for (const [i, found] of numbersOfElements(dtype, target).entries()) {
    const triple = operands[i] ?? [NaN, NaN, NaN];
    const expected = reference(dtype.name, triple);
    if (!Object.is(found, expected)) wrong.push(`${triple.join(", ")}: ${found}, not ${expected}`);
  }
  expect(wrong.slice(0, 5), `seed ${seed}`).toEqual([]);
}

describe.each([f64, f32, tf32, f16, bf16])("fused multiply-add in $name", (dtype) => {
  const seed = 41;
  const random = new Random(seed);

  test("special values", () => {
    const values = specialNumbers(dtype.name).filter((_, i) => i % 2 === 0);
    const operands = values.flatMap((a) =>
      values.flatMap((b) => values.map((c): Operands => [a, b, c])),
    );
    check(dtype, operands, seed);
  });

  test("random values", () => {
    const values = randomNumbers(dtype.name, 3000, random);
    const pick = () => values[random.below(values.length)] ?? 1;
    check(
      dtype,
      Array.from({ length: 3000 }, (): Operands => [pick(), pick(), pick()]),
      seed,
    );
  });

  test("sums that cancel or lie next to a tie", () => {
    const { name } = dtype;
    const operands: Operands[] = [];
    while (operands.length < 3000) {
      const a = roundNumber(name, 1 + random.uniform());
      const b = roundNumber(name, 1 + random.uniform());
      const product = roundNumber(name, a * b);
      const tiny = roundNumber(name, (random.uniform() - 0.5) * 2 ** -(random.below(14) + 1));
      operands.push([a, b, -product], [a, b, roundNumber(name, tiny * product)]);
      // A product just off half a unit of the addend.
      const unit = roundNumber(name, 2 ** -random.below(12));
      operands.push([a, unit, roundNumber(name, 2 ** random.below(12) * b)], [unit, tiny, a]);
    }
    check(dtype, operands, seed);
  });
});

test("exponents of f64 at both ends", () => {
  const ends = [
    2 ** -1074,
    2 ** -1022,
    1.5 * 2 ** -600,
    2 ** 600,
    1.25 * 2 ** 1000,
    1.75 * 2 ** 1023,
  ];
  const values = ends.flatMap((value) => [value, -value]);
  const operands = values.flatMap((a) =>
    values.flatMap((b) => [...values, 1, 0, -0].map((c): Operands => [a, b, c])),
  );
  check(f64, operands, 0);
});

test("integers have none", () => {
  const elements = new Int32Array(1);
  expect(() => fusedMultiplyAddElements(i32, elements, elements, elements, elements)).toThrow(
    /fma of i32/,
  );
});
