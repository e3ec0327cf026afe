import { expect, test } from "vitest";
import { Random } from "../support/random.ts";
import { leastRounds, median, medianInterval, quantile, spread } from "./statistics.ts";

test("medians and quantiles lie between samples", () => {
  expect(median([3, 1, 2])).toBe(2);
  expect(median([4, 1, 2, 3])).toBe(2.5);
  expect(quantile([10, 20, 30], 0.25)).toBe(15);
  expect(spread([10, 20, 30, 40, 50])).toBeCloseTo(20 / 30);
  expect(spread([7, 7, 7])).toBe(0);
});

test("the interval of a median leaves out as many samples as the binomial distribution allows", () => {
  const samples = (count: number) => Array.from({ length: count }, (_, index) => index + 1);
  // P(X <= k - 1) of a binomial variable with n and 1/2 is at most 0.025 for these ranks k.
  expect(medianInterval(samples(leastRounds))).toEqual({ low: 1, high: 6 });
  expect(medianInterval(samples(9))).toEqual({ low: 2, high: 8 });
  expect(medianInterval(samples(20))).toEqual({ low: 6, high: 15 });
  expect(medianInterval(samples(100))).toEqual({ low: 40, high: 61 });
});

test("the interval holds the true median at least 95 times of 100", () => {
  const seed = 7;
  const random = new Random(seed);
  const trials = 2000;
  let held = 0;
  for (let trial = 0; trial < trials; trial += 1) {
    // Skewed samples with median 1/4.
    const samples = Array.from({ length: 15 }, () => random.uniform() ** 2);
    const { low, high } = medianInterval(samples);
    held += Number(low <= 0.25 && high >= 0.25);
  }
  expect(held / trials, `seed ${seed}`).toBeGreaterThan(0.94);
});
