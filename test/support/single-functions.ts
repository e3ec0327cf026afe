/** Operands of functions of f32 at which forms of them change, and how far a result is from the exact one. */
import type { Random } from "../../src/support/random.ts";

const floats = new Float32Array(1);
const words = new Uint32Array(floats.buffer);

export function fromBits(bits: number): number {
  words[0] = bits;
  return floats[0] as number;
}

/** The unit in the last place of f32 at a number. */
function unitAt(value: number): number {
  const exponent = Math.floor(Math.log2(Math.abs(value)));
  return 2 ** Math.max(exponent - 23, -149);
}

/** How far `got` is from `exact`, in units; infinite where one of them is special and the other is not. */
export function singleError(got: number, exact: number): number {
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

export const specialSingles = [
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

/** One number of each so many consecutive ones, and those where forms change. */
export function singleOperands(random: Random, consecutive: number): Float64Array {
  const patterns = Array.from({ length: 2 ** 32 / consecutive }, (_, index) =>
    fromBits(index * consecutive + random.below(consecutive)),
  );
  return Float64Array.from([...specialSingles, ...neighbours, ...patterns]);
}

/** Operands of a pair: any bits, ordinary numbers, and exponents whose power is within the format. */
export function singlePairs(random: Random, count: number): (readonly [number, number])[] {
  const bits = (): number => fromBits(random.bits() >>> 0);
  const ordinary = (): number => Math.fround((random.uniform() - 0.5) * 200);
  const ranged = (): readonly [number, number] => {
    const base = Math.fround(2 ** ((random.uniform() - 0.5) * 60));
    return [base, Math.fround(((random.uniform() - 0.5) * 290) / Math.log2(base))];
  };
  return Array.from({ length: count }, (): readonly (readonly [number, number])[] => [
    [bits(), bits()],
    [ordinary(), ordinary()],
    [ordinary(), Math.trunc(ordinary() / 10)],
    ranged(),
  ]).flat();
}
