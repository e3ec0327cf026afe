/** Random bits against Threefry in BigInt and its published answer, and distributions against float64. */
import { describe, expect, test } from "vitest";
import { codeOf } from "../../../test/support/library-checks.ts";
import { bf16, bool, f16, f32, f64, i32, u32 } from "../../formats/dtype.ts";
import { fromNumbers, toNumbers } from "../../formats/hostarray.ts";
import { tensor, dim } from "../../lang/index.ts";
import { open } from "../../runtime/open.ts";
import { dropout, random } from "./random.ts";

const [m, n] = [dim("m"), dim("n")];
const mask = 0xffffffffn;

/** Threefry-2x32 with 20 rounds, as published. */
function threefry(
  key: readonly [bigint, bigint],
  counter: readonly [bigint, bigint],
): readonly [bigint, bigint] {
  const keys = [key[0], key[1], key[0] ^ key[1] ^ 0x1bd11bdan];
  const turns = [13n, 15n, 26n, 6n, 17n, 29n, 16n, 24n];
  let [a, b] = [(counter[0] + key[0]) & mask, (counter[1] + key[1]) & mask];
  for (let round = 0; round < 20; round += 1) {
    a = (a + b) & mask;
    const turn = turns[round % 8] ?? 0n;
    b = (((b << turn) | (b >> (32n - turn))) & mask) ^ a;
    if (round % 4 !== 3) continue;
    const group = (round + 1) / 4;
    a = (a + (keys[group % 3] ?? 0n)) & mask;
    b = (b + (keys[(group + 1) % 3] ?? 0n) + BigInt(group)) & mask;
  }
  return [a, b];
}

test("the reference gives the published answer", () => {
  expect(threefry([0x13198a2en, 0x03707344n], [0x243f6a88n, 0x85a308d3n])).toEqual([
    0xc4923a9cn,
    0x483df7a0n,
  ]);
});

const words = [7, 0x9e3779b9] as const;
const key = fromNumbers(u32, [2], words);
const bitsOf = (index: number): number => {
  const [a, b] = threefry([BigInt(words[0]), BigInt(words[1])], [0n, BigInt(index)]);
  return Number(a ^ b);
};
const uniformOf = (index: number): number => (bitsOf(index) >>> 9) / 2 ** 23;

describe.each(["simulator", "emulator"] as const)("on the %s", (kind) => {
  test("bits, uniform numbers and draws", async () => {
    const device = await open(kind);
    const count = kind === "simulator" ? 2500 : 600;
    const dimensions = { n: count };
    const { out } = await device.run(random.bits(), { key }, { dimensions });
    expect([...toNumbers(out)]).toEqual(Array.from({ length: count }, (_, index) => bitsOf(index)));
    const few = { dimensions: { m: 3, n: 20 } };
    const unit = await device.run(random.uniform({ out: tensor(f32, [m, n]) }), { key }, few);
    expect([...toNumbers(unit.out)]).toEqual(
      Array.from({ length: 60 }, (_, index) => uniformOf(index)),
    );
    const wide = await device.run(
      random.uniform({ out: bf16, low: -2, high: 6 }),
      { key },
      { dimensions: { n: 9 } },
    );
    for (const [index, value] of toNumbers(wide.out).entries())
      expect(Math.abs(value - (uniformOf(index) * 8 - 2))).toBeLessThanOrEqual(2 ** -6);
    // Numbers of bf16 next to 1 would be rounded to it.
    const many = { dimensions: { n: 2500 } };
    const narrow = await device.run(random.uniform({ out: bf16 }), { key }, many);
    const greatest = Math.max(...Array.from({ length: 2500 }, (_, index) => uniformOf(index)));
    expect(greatest).toBeGreaterThan(1 - 2 ** -9);
    expect(Math.max(...toNumbers(narrow.out))).toBe(1 - 2 ** -8);
    const drawn = await device.run(
      random.bernoulli({ probability: 0.3 }),
      { key },
      { dimensions: { n: 300 } },
    );
    expect([...toNumbers(drawn.out)]).toEqual(
      Array.from({ length: 300 }, (_, index) => (uniformOf(index) < Math.fround(0.3) ? 1 : 0)),
    );
    device.dispose();
  });

  test("normal numbers are where erf is what was drawn", async () => {
    const device = await open(kind);
    const count = 400;
    const { out } = await device.run(
      random.normal({ out: f32 }),
      { key },
      { dimensions: { n: count } },
    );
    const numbers = [...toNumbers(out)];
    for (const [index, value] of numbers.entries()) {
      const wanted = uniformOf(index) * 2 - 1;
      expect(Math.abs(erf(value / Math.SQRT2) - wanted)).toBeLessThan(4e-7);
    }
    expect(Math.abs(numbers.reduce((sum, value) => sum + value, 0) / count)).toBeLessThan(0.15);
    device.dispose();
  });

  test("orders, as JAX's", async () => {
    const device = await open(kind);
    // jax.random.permutation(jax.random.PRNGKey(42), 7)
    const seed = fromNumbers(u32, [2], [0, 42]);
    const seven = await device.run(random.permutation(), { key: seed }, { dimensions: { n: 7 } });
    expect([...toNumbers(seven.out)]).toEqual([4, 2, 5, 3, 6, 0, 1]);
    if (kind === "simulator") {
      const count = 2000;
      const { out } = await device.run(random.permutation(), { key }, { dimensions: { n: count } });
      expect([...toNumbers(out)]).toEqual(shuffled(count, 2));
    }
    for (const count of [0, 1]) {
      const few = await device.run(random.permutation(), { key }, { dimensions: { n: count } });
      expect([...toNumbers(few.out)]).toEqual(count === 0 ? [] : [0]);
    }
    device.dispose();
  });

  test("places by their logits", async () => {
    const device = await open(kind);
    const [rows, columns] = [3, 1100];
    const logits = Array.from({ length: rows * columns }, (_, index) => (index % 7) / 4);
    const { out } = await device.run(random.categorical({ logits: f32 }), {
      key,
      logits: fromNumbers(f32, [rows, columns], logits),
    });
    const noisy = logits.map((logit, index) => {
      const unit = Math.max(uniformOf(index), 2 ** -126);
      return logit - Math.log(-Math.log(unit));
    });
    for (const [row, place] of [...toNumbers(out)].entries()) {
      const own = noisy.slice(row * columns, (row + 1) * columns);
      expect(own[place]).toBeGreaterThan(Math.max(...own) - 1e-4);
    }
    device.dispose();
  });

  test("elements dropped", async () => {
    const device = await open(kind);
    const x = Array.from({ length: 100 }, (_, index) => index + 1);
    const given = { key, x: fromNumbers(f32, [4, 25], x) };
    const { out } = await device.run(dropout({ x: tensor(f32, [m, n]), rate: 0.25 }), given);
    for (const [index, value] of toNumbers(out).entries())
      expect(value).toBeCloseTo(uniformOf(index) < 0.75 ? (index + 1) / 0.75 : 0, 4);
    const long = { key, x: fromNumbers(f64, [2], [1 / 3, 1e300]) };
    expect([...toNumbers((await device.run(dropout({ x: f64, rate: 0 }), long)).out)]).toEqual([
      ...[1 / 3, 1e300],
    ]);
    device.dispose();
  });
});

/** What JAX 0.11 draws by jax.random.key(42, impl="rbg"). */
describe.each(["simulator", "emulator"] as const)("keys of rbg, on the %s", (kind) => {
  const generator = "rbg" as const;
  const key = fromNumbers(u32, [4], [0, 42, 0, 42]);
  const bits = [2620864722, 2991908441, 282133475, 2589630650, 1779689962, 1069940430, 2483751720];

  test("bits, uniform numbers, draws, and elements dropped", async () => {
    const device = await open(kind);
    const count = 1030;
    const dimensions = { n: count };
    const drawn = [
      ...toNumbers((await device.run(random.bits({ generator }), { key }, { dimensions })).out),
    ];
    expect(drawn.slice(0, 7)).toEqual(bits);
    const unit = drawn.map((each) => (each >>> 9) / 2 ** 23);
    const between = random.uniform({ out: f32, low: -1, generator });
    const uniform = await device.run(between, { key }, { dimensions });
    expect([...toNumbers(uniform.out)]).toEqual(unit.map((each) => Math.fround(each * 2 - 1)));
    const truths = random.bernoulli({ probability: 0.3, generator });
    const chosen = toNumbers((await device.run(truths, { key }, { dimensions: { n: 16 } })).out);
    expect([...chosen].flatMap((each, index) => (each === 1 ? [index] : []))).toEqual([
      2, 5, 7, 11,
    ]);
    const x = fromNumbers(f32, [count], new Float32Array(count).fill(3));
    const { out } = await device.run(dropout({ x: f32, rate: 0.25, generator }), { key, x });
    expect([...toNumbers(out)]).toEqual(unit.map((each) => (each < 0.75 ? 4 : 0)));
    device.dispose();
  });

  test("normal numbers, two of two words", async () => {
    const device = await open(kind);
    const count = 602;
    const words = [
      ...toNumbers(
        (await device.run(random.bits({ generator }), { key }, { dimensions: { n: count } })).out,
      ),
    ];
    for (const out of [f32, bf16]) {
      const normal = random.normal({ out, generator });
      const found = toNumbers(
        (await device.run(normal, { key }, { dimensions: { n: count } })).out,
      );
      expect(found).toHaveLength(count);
      found.forEach((value, index) => {
        const first = index - (index % 2);
        const radius = Math.sqrt(-2 * Math.log(((words[first] ?? NaN) + 0.5) / 2 ** 32));
        const angle = (Math.PI * ((words[first + 1] ?? NaN) | 0)) / 2 ** 31;
        const exact = radius * (index % 2 === 0 ? Math.cos(angle) : Math.sin(angle));
        const rounding = out === f32 ? 0 : 2 ** -8 * Math.abs(exact);
        expect(Math.abs(value - exact)).toBeLessThanOrEqual(4e-6 + rounding);
      });
    }
    device.dispose();
  });

  test("orders and places", async () => {
    const device = await open(kind);
    const twelve = await device.run(
      random.permutation({ generator }),
      { key },
      { dimensions: { n: 12 } },
    );
    expect([...toNumbers(twelve.out)]).toEqual([2, 1, 3, 6, 10, 4, 11, 9, 8, 5, 0, 7]);
    if (kind === "simulator") {
      const seven = { key: fromNumbers(u32, [4], [0, 7, 0, 7]) };
      const many = await device.run(random.permutation({ generator }), seven, {
        dimensions: { n: 2000 },
      });
      expect([...toNumbers(many.out)].slice(0, 6)).toEqual([1898, 1495, 1767, 247, 1435, 1144]);
    }
    // jax.random.categorical(key, jnp.broadcast_to(jnp.arange(10) * 0.25, (12, 10)))
    const logits = Array.from({ length: 120 }, (_, index) => (index % 10) * 0.25);
    const places = await device.run(random.categorical({ logits: f32, generator }), {
      key,
      logits: fromNumbers(f32, [12, 10], logits),
    });
    expect([...toNumbers(places.out)]).toEqual([8, 2, 7, 9, 7, 0, 4, 7, 5, 9, 8, 9]);
    device.dispose();
  });
});

test("a key of another generator is refused where it is given", async () => {
  const device = await open("simulator");
  const four = fromNumbers(u32, [4], [0, 42, 0, 42]);
  const given = { dimensions: { n: 4 } };
  await expect(device.run(random.bits(), { key: four }, given)).rejects.toMatchObject({
    code: "TW4004",
  });
  await expect(device.run(random.bits({ generator: "rbg" }), { key }, given)).rejects.toMatchObject(
    { code: "TW4004" },
  );
  device.dispose();
});

/** Numbers sorted again and again by the bits of keys that are split off. */
function shuffled(count: number, rounds: number): readonly number[] {
  let order = Array.from({ length: count }, (_, index) => index);
  let own: readonly [bigint, bigint] = [BigInt(words[0]), BigInt(words[1])];
  for (let round = 0; round < rounds; round += 1) {
    const drawing = threefry(own, [0n, 1n]);
    own = threefry(own, [0n, 0n]);
    const bits = order.map((_, index) => {
      const [a, b] = threefry(drawing, [0n, BigInt(index)]);
      return Number(a ^ b);
    });
    const places = bits.map((_, index) => index);
    places.sort((left, right) => (bits[left] ?? 0) - (bits[right] ?? 0) || left - right);
    order = places.map((place) => order[place] ?? -1);
  }
  return order;
}

/** By its series, which double precision sums well up to the tails that are drawn here. */
function erf(x: number): number {
  if (Math.abs(x) > 4) return Math.sign(x);
  let [sum, term] = [x, x];
  for (let k = 1; k < 100; k += 1) {
    term *= (-x * x) / k;
    sum += term / (2 * k + 1);
  }
  return (2 / Math.sqrt(Math.PI)) * sum;
}

test("mistakes are reported", () => {
  const refused: readonly (readonly [string, () => unknown])[] = [
    ["TW9901", () => random.bits({ out: i32 as never })],
    ["TW9901", () => random.uniform({ out: i32 as never })],
    ["TW9901", () => dropout({ x: bool as never, rate: 0.5 })],
    ["TW9902", () => random.normal({ out: tensor(f32, [m, n], { strides: [1, m] }) })],
    ["TW9904", () => random.uniform({ out: f32, low: 1, high: 1 })],
    ["TW9904", () => random.uniform({ out: f32, low: -3e38, high: 3e38 })],
    ["TW9904", () => random.uniform({ out: f16, high: 1e6 })],
    ["TW9904", () => random.bernoulli({ probability: 2 })],
    ["TW9904", () => dropout({ x: f32, rate: -1 })],
    ["TW1033", () => dropout({ x: f32, probability: 0.5 } as never)],
    ["TW1033", () => random.bits({ shape: [3] } as never)],
    ["TW1033", () => random.normal({ out: f32, mean: 0 } as never)],
    ["TW1033", () => random.uniform({ out: f32, from: 0 } as never)],
    ["TW1033", () => random.bernoulli({ p: 0.5 } as never)],
    ["TW9902", () => random.permutation({ out: tensor(i32, [m, n]) })],
    ["TW9902", () => random.permutation({ out: f32 as never })],
    ["TW1033", () => random.permutation({ n: 3 } as never)],
    ["TW9901", () => random.categorical({ logits: i32 as never })],
    ["TW9902", () => random.categorical({ logits: f32 }).plan({ m: 2, n: 0 })],
    ["TW1033", () => random.categorical({ x: f32 } as never)],
    ["TW9904", () => random.bits({ generator: "philox" as never })],
    ["TW9904", () => random.normal({ out: f32, generator: "dice" as never })],
    ["TW9904", () => dropout({ x: f32, rate: 0.5, generator: "" as never })],
    ["TW9904", () => random.permutation({ generator: "dice" as never })],
    ["TW9904", () => random.categorical({ logits: f32, generator: "toString" as never })],
    ["TW1008", () => random.bernoulli({ probability: 0.5, generator: 4 as never })],
  ];
  for (const [code, make] of refused) expect(codeOf(make), String(make)).toBe(code);
});
