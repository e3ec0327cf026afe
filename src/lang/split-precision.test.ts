/** Products of f32 made of parts, against exact sums: what each way of splitting promises. */
import { expect, test } from "vitest";
import { f32 } from "../formats/dtype.ts";
import { fromNumbers, toNumbers } from "../formats/hostarray.ts";
import { tensor, dot, kernel } from "./index.ts";
import type { SplitPrecision } from "./index.ts";
import { splitTerms, summedDepth } from "./split-precision.ts";
import { open } from "../runtime/open.ts";
import { Random } from "../support/random.ts";
import { takesAll } from "../../test/support/sample.ts";

const [rows, columns, usualDepth] = [16, 16, 64];

const product = (precision: SplitPrecision | "ieee", depth = usualDepth) =>
  kernel(
    {
      name: "product",
      inputs: {
        a: tensor(f32, [rows, depth]),
        b: tensor(f32, [depth, columns]),
        c: tensor(f32, [rows, columns]),
      },
      outputs: { out: tensor(f32, [rows, columns]) },
    },
    ({ a, b, c, out }) => {
      out.store(dot(a.load(), b.load(), { accumulator: c.load(), precision }));
    },
  );

/** Factors by rows and by columns. */
interface Factors {
  readonly a: Float32Array;
  readonly b: Float32Array;
}

function drawn(depth: number, draw: () => number): Factors {
  const numbers = (count: number): Float32Array => Float32Array.from({ length: count }, draw);
  return { a: numbers(rows * depth), b: numbers(depth * columns) };
}

/** Numbers of both signs, some of them 128 times as large as others. */
const wide =
  (random: Random): (() => number) =>
  () =>
    (random.bits() / 2 ** 32 - 0.3) * 2 ** (random.bits() % 8);

const zeros = fromNumbers(f32, [rows, columns], new Float32Array(rows * columns));

async function multiplied(
  precision: SplitPrecision | "ieee",
  { a, b }: Factors,
  on: "simulator" | "emulator" = "simulator",
): Promise<ArrayLike<number>> {
  const depth = a.length / rows;
  const device = await open(on);
  const { out } = await device.run(product(precision, depth), {
    a: fromNumbers(f32, [rows, depth], a),
    b: fromNumbers(f32, [depth, columns], b),
    c: zeros,
  });
  device.dispose();
  return toNumbers(out);
}

/** The greatest error of a result beside the sum of the absolute values of its products, which float64 adds up with 29 bits to spare. */
function worstOf(result: ArrayLike<number>, { a, b }: Factors): number {
  const depth = a.length / rows;
  let worst = 0;
  for (let index = 0; index < rows * columns; index += 1) {
    const [i, j] = [Math.floor(index / columns), index % columns];
    let [sum, magnitude] = [0, 0];
    for (let l = 0; l < depth; l += 1) {
      const term = (a[i * depth + l] ?? NaN) * (b[l * columns + j] ?? NaN);
      sum += term;
      magnitude += Math.abs(term);
    }
    worst = Math.max(worst, Math.abs((result[index] ?? NaN) - sum) / magnitude);
  }
  return worst;
}

/**
 * What the parts leave out of a product of two numbers, in parts of it. A first part of p bits is off by 2^-p at most, and each further one has p + 1 bits more,
 * for its sign is one; three of bf16 have all 24 bits. What is not multiplied is left out besides.
 */
const leftOut = {
  tf32: 2 * 2 ** -11 + 2 ** -22,
  bf16x3: 2 * 2 ** -17 + 2 ** -16 + 2 ** -32,
  tf32x3: 2 * 2 ** -23 + 2 ** -22 + 2 ** -45,
  bf16x6: 2 * 2 ** -25 + 2 ** -34,
  bf16x9: 0,
} as const;

/**
 * The most that a product of parts can be off, in parts of the sum of its absolute products. An instruction cuts off less than 2^-25 of the greatest number of
 * each of the q products and the sum that it adds, then less than 2^-23 of the result; each addition in f32 rounds by 2^-24 at most.
 */
function limitOf(precision: keyof typeof leftOut, depth: number): number {
  const { dtype, terms } = splitTerms(precision);
  const [bits, q] = dtype.name === "bf16" ? [8, 16] : [11, 8];
  const stretch = summedDepth({ dtype });
  const perInstruction = (q + 1) * 2 ** -25 + 2 ** -23;
  const grown = (1 + 2 ** -bits) ** 2;
  const greatest = grown * (stretch / q) * perInstruction;
  const corrections = terms.length - 1;
  const steps = corrections * Math.ceil(depth / q);
  const ofCorrections = steps * perInstruction * corrections * 2 ** -bits * grown;
  const additions = Math.ceil(depth / stretch) * 2 ** -24;
  return leftOut[precision] + (greatest + ofCorrections + additions) * 1.001;
}

const precisions = ["tf32", "tf32x3", "bf16x3", "bf16x6", "bf16x9"] as const;

test("errors are those of the bits that are kept", async () => {
  const seed = 11;
  const factors = drawn(usualDepth, wide(new Random(seed)));
  const of = async (precision: SplitPrecision): Promise<number> =>
    worstOf(await multiplied(precision, factors), factors);
  expect(await of("tf32")).toBeGreaterThan(2 ** -16);
  expect(await of("bf16x3")).toBeGreaterThan(2 ** -21);
  for (const precision of precisions)
    expect(await of(precision), `${precision}, seed ${seed}`).toBeLessThan(
      limitOf(precision, usualDepth),
    );
});

/** Factors whose parts leave out as much as they can, all of it of one sign, in one product and in many. */
const leftMost: { readonly [P in "tf32x3" | "bf16x3"]: number } = {
  // 4095 units below a number of 11 bits: the second part is off by a unit.
  tf32x3: 1 + 2 ** -10 - 4095 * 2 ** -23,
  // Half of the second part's last bit short of half of the first's: that part is off by 64 units.
  bf16x3: 1 + 2 ** -7 - (2 ** 15 - 2 ** 6) * 2 ** -23,
};

test.each(["tf32x3", "bf16x3"] as const)(
  "what %s leaves out is met, and not exceeded",
  async (precision) => {
    const value = leftMost[precision];
    for (const depth of [1, 64]) {
      const factors = drawn(depth, () => value);
      const worst = worstOf(await multiplied(precision, factors), factors);
      expect(worst, `depth ${depth}`).toBeLessThan(limitOf(precision, depth));
      if (depth > 1) continue;
      // Of one product nothing is cut off but by its last rounding.
      expect(worst).toBeLessThan(leftOut[precision] + 2 ** -24);
      expect(worst).toBeGreaterThan(0.9 * leftOut[precision]);
    }
  },
);

test.each(precisions)("no product of %s is off by more than its limit", async (precision) => {
  for (const seed of takesAll ? [1, 2, 3, 4, 5, 6] : [1]) {
    const random = new Random(seed);
    const draws: { readonly [name: string]: () => number } = {
      wide: wide(random),
      // Tensor cores align what they add to the greatest, and cut off the rest.
      "one great": () => (random.below(16) === 0 ? 1 : 2 ** -12 * (1 + random.uniform())),
      "one sign": () => 1 + random.uniform(),
      "all bits": () => 2 - 2 ** -23 * (1 + random.below(3)),
    };
    for (const [name, draw] of Object.entries(draws))
      for (const depth of [5, 32, 160]) {
        const factors = drawn(depth, draw);
        const worst = worstOf(await multiplied(precision, factors), factors);
        expect(worst, `${name}, depth ${depth}, seed ${seed}`).toBeLessThan(
          limitOf(precision, depth),
        );
      }
  }
});

test("long sums of one sign are as good as those of matmul, which adds stretches of the greatest products in f32", async () => {
  for (const depth of [16, 64, 256]) {
    const random = new Random(5);
    const factors = drawn(depth, () => 1 + random.uniform());
    const of = async (precision: SplitPrecision): Promise<number> =>
      worstOf(await multiplied(precision, factors), factors);
    expect(await of("bf16x6"), `depth ${depth}`).toBeLessThan(1.4 * 2 ** -24);
    expect(await of("bf16x9"), `depth ${depth}`).toBeLessThan(1.4 * 2 ** -24);
    expect(await of("tf32x3"), `depth ${depth}`).toBeLessThan(5 * 2 ** -24);
  }
});

test.each(["tf32x3", "bf16x6"] as const)(
  "the emulator makes the same bits of %s",
  async (precision) => {
    const seed = 3;
    const factors = drawn(48, wide(new Random(seed)));
    const found = await multiplied(precision, factors, "emulator");
    expect(Array.from(found), `seed ${seed}`).toEqual(
      Array.from(await multiplied(precision, factors)),
    );
  },
);

test("sums go on from the accumulator; what is not finite, and the greatest numbers, stay what they are", async () => {
  const device = await open("simulator");
  const greatest = (2 - 2 ** -23) * 2 ** 127;
  const firsts = [Infinity, NaN, greatest, -greatest, 2 ** -149, 1.5];
  const a = new Float32Array(rows * usualDepth);
  for (const [row, first] of firsts.entries()) a[row * usualDepth] = first;
  const b = new Float32Array(usualDepth * columns);
  for (let column = 0; column < columns; column += 1) b[column] = 0.5;
  // Both are less than their first parts, so that the others are negative.
  [b[1], b[2]] = [0.1, 1e30];
  for (const precision of ["tf32x3", "bf16x3", "bf16x6", "bf16x9"] as const) {
    const { out } = await device.run(product(precision), {
      a: fromNumbers(f32, [rows, usualDepth], a),
      b: fromNumbers(f32, [usualDepth, columns], b),
      c: fromNumbers(f32, [rows, columns], new Float32Array(rows * columns).fill(1)),
    });
    const values = firsts.map((_, row) => toNumbers(out)[row * columns] ?? NaN);
    expect(values.slice(0, 2)).toEqual([Infinity, NaN]);
    expect(Math.abs((values[2] ?? NaN) / (greatest / 2) - 1)).toBeLessThan(2 ** -15);
    expect(values[3]).toBe(-(values[2] ?? NaN));
    expect(values.slice(4)).toEqual([1, 1.75]);
    expect(toNumbers(out)[1]).toBe(Infinity);
    expect([0, 2, 3].map((row) => toNumbers(out)[row * columns + 2])).toEqual([
      ...[Infinity, Infinity, -Infinity],
    ]);
  }
  device.dispose();
});
