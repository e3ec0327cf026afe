/** Random numbers beside those of JAX 0.11 for the same key, `jax.random.PRNGKey(42)`. */
import { expect, test } from "vitest";
import { random } from "./index.ts";

const key = random.key(42);

test("uniform numbers, integers and permutations are JAX's", async () => {
  expect(await random.uniform(key, [5], { low: -1 }).values()).toEqual([
    -0.022580862045288086, 0.35959434509277344, 0.2325429916381836, 0.12203216552734375,
    -0.09871077537536621,
  ]);
  expect(await random.randint(key, [5], -3, 9).values()).toEqual([-3, 3, 0, -2, 2]);
  expect(await random.permutation(key, 7).values()).toEqual([4, 2, 5, 3, 6, 0, 1]);
});

test("normal numbers are within 8 units in the last place of JAX's", async () => {
  const jax = [
    -0.02830461598932743, 0.4671318531036377, 0.2957029640674591, 0.15354591608047485,
    -0.12403281778097153,
  ];
  const found = (await random.normal(key, [5]).values()) as readonly number[];
  for (const [i, value] of jax.entries()) {
    const unit = 2 ** (Math.floor(Math.log2(Math.abs(value))) - 23);
    expect(Math.abs((found[i] ?? NaN) - value)).toBeLessThanOrEqual(8 * unit);
  }
});

test("normal numbers far from 0 are rounded as JAX rounds them: x² first, then what is left of 1", async () => {
  const lowest = -(1 - 2 ** -24);
  const drawn = (await random
    .uniform(key, [20_000], { low: lowest })
    .values()) as readonly number[];
  const found = (await random.normal(key, [20_000]).values()) as readonly number[];
  const far = drawn.flatMap((x, index) => (Math.abs(x) > 0.9995 ? [{ x, index }] : []));
  expect(far.length).toBeGreaterThan(3);
  for (const { x, index } of far) {
    const at = Math.sqrt(-Math.log1p(-Math.fround(x * x))) - 3;
    // Giles' polynomial for the tails, in float64.
    const sum = [
      -0.000200214257, 0.000100950558, 0.00134934322, -0.00367342844, 0.00573950773, -0.0076224613,
      0.00943887047, 1.00167406, 2.83297682,
    ].reduce((higher, coefficient) => higher * at + coefficient);
    const exact = sum * x * Math.SQRT2;
    const unit = 2 ** (Math.floor(Math.log2(Math.abs(exact))) - 23);
    expect(Math.abs((found[index] ?? NaN) - exact)).toBeLessThanOrEqual(8 * unit);
  }
});
