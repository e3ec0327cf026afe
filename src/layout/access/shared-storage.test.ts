/** Numbers of elements by their digits: parts of which it is said that they add up do so, whichever of their values are chosen. */
import { expect, test } from "vitest";
import { Random } from "../../support/random.ts";
import { linearStep, moveValues, partsAddUp, storedNumber } from "./shared-storage.ts";
import type { StoredDigit } from "./shared-storage.ts";

/** Digits of radix 2 to 5, stored in any order. */
function randomDigits(random: Random): readonly StoredDigit[] {
  const radices = Array.from({ length: 1 + random.below(2) }, () => 2 + random.below(4));
  let number = 1;
  const numbers = radices.map((radix) => (number *= radix) / radix);
  const top = { radix: Infinity, number, stored: random.pick([1, 2, 40]) };
  return [
    ...radices.map((radix, at) => ({
      radix,
      number: numbers[at] ?? 1,
      stored: random.pick([1, 3, 8, 100]),
    })),
    top,
  ];
}

/** Every sum of a value of each part, with the sum of what is stored for each alone. */
function sums(
  digits: readonly StoredDigit[],
  parts: readonly (readonly number[])[],
): readonly (readonly [number: number, stored: number])[] {
  return parts.reduce<readonly (readonly [number, number])[]>(
    (all, values) =>
      all.flatMap(([number, stored]) =>
        values.map((value) => [number + value, stored + storedNumber(digits, value)] as const),
      ),
    [[0, 0]],
  );
}

test("parts that are said to add up do, and small ones are said to", () => {
  let [said, denied] = [0, 0];
  for (let seed = 0; seed < 600; seed += 1) {
    const random = new Random(seed);
    const digits = randomDigits(random);
    const parts = Array.from({ length: 2 + random.below(2) }, () =>
      Array.from({ length: 1 + random.below(3) }, () => random.below(12)),
    );
    const addsUp = sums(digits, parts).every(
      ([number, stored]) => storedNumber(digits, number) === stored,
    );
    if (partsAddUp(digits, parts)) {
      expect(addsUp, `seed ${seed}`).toBe(true);
      said += 1;
    } else denied += 1;
  }
  expect(said).toBeGreaterThan(30);
  expect(denied).toBeGreaterThan(30);
});

test("a move of equal steps adds as many for each", () => {
  let found = 0;
  for (let seed = 0; seed < 600; seed += 1) {
    const random = new Random(seed);
    const digits = randomDigits(random);
    const move = {
      stride: 1 + random.below(6),
      divisor: random.pick([1, 2, 3]),
      count: 1 + random.below(6),
    };
    const step = linearStep(digits, move);
    if (step === undefined) continue;
    found += 1;
    moveValues(move).forEach((value, at) => {
      expect(storedNumber(digits, value), `seed ${seed}`).toBe(step * at * move.divisor);
    });
  }
  expect(found).toBeGreaterThan(30);
});
