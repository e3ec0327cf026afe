/** Random numbers beside those of JAX 0.11 for the same key, `jax.random.PRNGKey(42)`. */
import { describe, expect, test } from "vitest";
import { codeOf } from "../../test/support/library-checks.ts";
import { threefry } from "../../test/support/threefry.ts";
import { array, jit, random, useDevice } from "./index.ts";

const key = random.key(42);

test("uniform numbers, integers and permutations are JAX's", async () => {
  expect(await random.uniform(key, [5], { low: -1 }).values()).toEqual([
    -0.022580862045288086, 0.35959434509277344, 0.2325429916381836, 0.12203216552734375,
    -0.09871077537536621,
  ]);
  expect(await random.randint(key, [5], -3, 9).values()).toEqual([-3, 3, 0, -2, 2]);
  expect(await random.permutation(key, 7).values()).toEqual([4, 2, 5, 3, 6, 0, 1]);
});

/** A function of a key, whose data is known when it is called, or is a parameter of a recorded function. */
test.each(["threefry", "rbg"] as const)(
  "what follows from a key of %s at hand is what a recorded function draws by it",
  async (generator) => {
    const own = random.key(2 ** 40 + 7, { generator });
    const draw = (from: typeof own) => [
      ...random.split(from, 3),
      random.foldIn(from, 2 ** 32 - 1),
      random.bits(from, [33, 3]),
      random.bits(from, []),
    ];
    await useDevice("evaluator");
    const read = (arrays: readonly { values(): Promise<unknown> }[]) =>
      Promise.all(arrays.map((each) => each.values()));
    expect(await read(draw(own))).toEqual(await read(jit(draw)(own)));
    await useDevice();
  },
);

test("numbers of a small shape begin those of a large one", async () => {
  const large = (await random.bits(key, [5000]).values()) as readonly number[];
  expect(await random.bits(key, [4096]).values()).toEqual(large.slice(0, 4096));
  const [a, b] = threefry([0, 42], [0, 4097]);
  expect(large[4097]).toBe((a ^ b) >>> 0);
});

test("integers are drawn from all of i32, and from no more", async () => {
  const all = (await random
    .randint(key, [1000], -(2 ** 31), 2 ** 31)
    .values()) as readonly number[];
  // As many in each quarter but for chance.
  for (const quarter of [-2, -1, 0, 1]) {
    const own = all.filter((each) => Math.floor(each / 2 ** 30) === quarter);
    expect(Math.abs(own.length - 250)).toBeLessThan(75);
  }
  const upper = (await random.randint(key, [200], 0, 2 ** 31).values()) as readonly number[];
  expect(Math.min(...upper)).toBeGreaterThanOrEqual(0);
  // Results are of i32, to which 2^31 and more would be negative.
  expect(() => random.randint(key, [1], 0, 2 ** 31 + 1)).toThrow("TW4023");
  expect(() => random.randint(key, [1], 2 ** 31, 2 ** 31 + 1)).toThrow("TW4023");
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

describe("keys of rbg", () => {
  const own = random.key(42, { generator: "rbg" });

  test("and what is drawn by them are JAX's, of jax.random.key(42, impl='rbg')", async () => {
    expect(await own.values()).toEqual([0, 42, 0, 42]);
    const keys = await Promise.all(random.split(own, 3).map((each) => each.values()));
    expect(keys).toEqual([
      [1832780943, 270669613, 1832780943, 270669613],
      [64467757, 2916123636, 64467757, 2916123636],
      [2465931498, 255383827, 2465931498, 255383827],
    ]);
    expect(await random.foldIn(own, 77).values()).toEqual([
      ...[3343870397, 3703666311, 3343870397, 3703666311],
    ]);
    expect(await random.foldIn(array([1, 2, 3, 4], "u32"), 9).values()).toEqual([
      ...[...threefry([1, 2], [0, 9]), ...threefry([3, 4], [0, 9])],
    ]);
    expect(await random.bits(own, [2, 5]).values()).toEqual([
      [2620864722, 2991908441, 282133475, 2589630650, 1779689962],
      [1069940430, 2483751720, 1070514652, 4121615002, 3518068776],
    ]);
    expect(await random.uniform(own, [6]).values()).toEqual([
      ...[0.6102175712585449, 0.6966079473495483, 0.06568920612335205],
      ...[0.6029453277587891, 0.4143662452697754, 0.24911487102508545],
    ]);
    expect(await random.permutation(own, 12).values()).toEqual([
      ...[2, 1, 3, 6, 10, 4, 11, 9, 8, 5, 0, 7],
    ]);
    expect(await random.randint(own, [10], -5, 5).values()).toEqual([
      ...[-4, -5, 0, -4, 4, -3, 3, -2, 3, 4],
    ]);
    const truths = (await random.bernoulli(own, 0.3, [16]).values()) as readonly boolean[];
    expect(truths.flatMap((each, index) => (each ? [index] : []))).toEqual([2, 5, 7, 11]);
  });

  test("make normal numbers by Box and Muller's transform of their bits", async () => {
    for (const count of [9, 0]) {
      const bits = (await random.bits(own, [count]).values()) as readonly number[];
      const words = count === 0 ? [] : [...bits, 0, 0, 0];
      const found = (await random.normal(own, [count]).values()) as readonly number[];
      expect(found).toHaveLength(count);
      const radius = (word = NaN): number => Math.sqrt(-2 * Math.log((word + 0.5) / 2 ** 32));
      const angle = (word = NaN): number => (Math.PI * (word | 0)) / 2 ** 31;
      // The last one's angle is a word that no element has.
      for (const [index, value] of found.entries()) {
        const first = index - (index % 2);
        if (first + 1 >= count) continue;
        const turned = index % 2 === 0 ? Math.cos : Math.sin;
        const exact = radius(words[first]) * turned(angle(words[first + 1]));
        expect(Math.abs(value - exact)).toBeLessThan(2e-6);
      }
    }
  });

  test("are told from others by their words", () => {
    expect(codeOf(() => random.bits(array([1, 2, 3], "u32"), [2]))).toBe("TW4023");
    expect(codeOf(() => random.bits(array([1, 2, 3, 4], "i32") as never, [2]))).toBe("TW4023");
    expect(codeOf(() => random.key(1, { generator: "philox" as never }))).toBe("TW4023");
    expect(codeOf(() => random.key(1, { impl: "rbg" } as never))).toBe("TW4023");
  });
});
