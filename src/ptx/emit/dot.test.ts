/** Products of tiles: what happens to operands on their way to tensor cores. */
import { expect, test } from "vitest";
import { f32, u32 } from "../../formats/dtype.ts";
import { fromNumbers, toNumbers } from "../../formats/hostarray.ts";
import { tensor, dot, kernel } from "../../lang/index.ts";
import { open } from "../../runtime/open.ts";
import { Random } from "../../support/random.ts";

const rows = 64;
const columns = 32;

/** Bits of f32 that are a product's left operand, one row each; the right one is the identity. */
const product = kernel(
  {
    name: "rounded",
    inputs: { bits: tensor(u32, [rows, columns]), identity: tensor(f32, [columns, columns]) },
    outputs: { out: tensor(u32, [rows, columns]) },
  },
  ({ bits, identity, out }) => {
    const left = bits.load().bitcast(f32);
    out.store(dot(left, identity.load(), { precision: "tf32" }).bitcast(u32));
  },
);

/** Rounded to 11 bits, halves to even, by integers: 13 bits are cut off, and what was at least half of the last place adds to it. */
function rounded(word: number): number {
  const isNan = (word & 0x7f800000) === 0x7f800000 && (word & 0x7fffff) !== 0;
  if (isNan) return 0x7fc00000;
  const odd = (word >>> 13) & 1;
  return (word + 0xfff + odd) & ~0x1fff;
}

const words = [
  ...[0x3f801000, 0x3f803000, 0x3f801001, 0x3f800fff, 0xbf801000, 0xbf803000],
  // The greatest number is nearer to infinity than to the greatest tf32; the last ones are subnormal, and a NaN in its last bit alone.
  ...[0x7f7fffff, 0x7f7ff000, 0x7f7fefff, 0xff7fffff, 0x00803000, 0x7f800000, 0x7f800001],
];

test.each([
  ["simulator", "sm_90a"],
  ["emulator", "sm_90a"],
  ["emulator", "sm_80"],
] as const)("f32 becomes tf32 as cast makes it: %s, %s", async (place, target) => {
  const device = await open(place, { target, onNotes: () => undefined });
  const bits = new Uint32Array(rows * columns);
  // Each in a row of its own, so that infinity times 0 does not come to the others.
  words.forEach((word, row) => (bits[row * columns] = word));
  const identity = Array.from({ length: columns ** 2 }, (_, at) =>
    at % (columns + 1) === 0 ? 1 : 0,
  );
  const { out } = await device.run(product, {
    bits: fromNumbers(u32, [rows, columns], bits),
    identity: fromNumbers(f32, [columns, columns], identity),
  });
  const found = words.map((_, row) => toNumbers(out)[row * columns] ?? 0);
  const isNan = (word: number): boolean => (word & 0x7fffffff) > 0x7f800000;
  const text = (word: number): string => (isNan(word) ? "NaN" : (word >>> 0).toString(16));
  expect(found.map(text)).toEqual(words.map((word) => text(rounded(word))));
  device.dispose();
});

/** Half to even to 11 bits, by the definition. */
function roundedToTf32(value: number): number {
  if (value === 0) return value;
  const unit = 2 ** (Math.floor(Math.log2(Math.abs(value))) - 10);
  const units = value / unit;
  const below = Math.floor(units);
  const isUp = units - below > 0.5 || (units - below === 0.5 && below % 2 !== 0);
  return (isUp ? below + 1 : below) * unit;
}

// Few rows are multiplied by lanes, 16 by tensor cores. By the unit matrix a product is its other factor, rounded.
test.each([1, 4, 8, 16])(
  "tf32 rounds both factors of %i rows, however they are multiplied",
  async (m) => {
    const random = new Random(m);
    const draw = (count: number): Float32Array =>
      Float32Array.from({ length: count }, () =>
        Math.fround((random.uniform() - 0.5) * 2 ** random.below(9)),
      );
    const [rows, square] = [draw(m * 8), draw(64)];
    rows[0] = 1 + 2 ** -12;
    rows[1] = 1 + 3 * 2 ** -11;
    const unit = (count: number): Float32Array =>
      Float32Array.from({ length: count * 8 }, (_, i) => Number(Math.floor(i / 8) === i % 8));
    const product = kernel(
      {
        name: "product",
        inputs: { a: tensor(f32, [m, 8]), b: tensor(f32, [8, 8]) },
        outputs: { out: tensor(f32, [m, 8]) },
      },
      ({ a, b, out }) => out.store(dot(a.load(), b.load(), { precision: "tf32" })),
    );
    for (const name of ["simulator", "emulator"] as const) {
      const device = await open(name);
      const run = async (a: Float32Array, b: Float32Array): Promise<readonly number[]> => {
        const inputs = { a: fromNumbers(f32, [m, 8], a), b: fromNumbers(f32, [8, 8], b) };
        return [...toNumbers((await device.run(product, inputs)).out)];
      };
      expect(await run(rows, unit(8)), name).toEqual(Array.from(rows, roundedToTf32));
      const first = Array.from(square.subarray(0, 8 * Math.min(m, 8)), roundedToTf32);
      expect((await run(unit(m), square)).slice(0, first.length), name).toEqual(first);
      device.dispose();
    }
  },
);
