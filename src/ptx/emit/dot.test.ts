/** Products of tiles: what happens to operands on their way to tensor cores. */
import { expect, test } from "vitest";
import { f32, u32 } from "../../formats/dtype.ts";
import { fromNumbers, toNumbers } from "../../formats/hostarray.ts";
import { array, dot, kernel } from "../../lang/index.ts";
import { open } from "../../runtime/open.ts";

const rows = 64;
const columns = 32;

/** Bits of f32 that are a product's left operand, one row each; the right one is the identity. */
const product = kernel(
  {
    name: "rounded",
    inputs: { bits: array(u32, [rows, columns]), identity: array(f32, [columns, columns]) },
    outputs: { out: array(u32, [rows, columns]) },
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
