/** Elements of matrices for tests: numbers of each type whose sums of products are exact, and their bits. */
import { encodeFloat } from "../../src/formats/floats.ts";
import type { Random } from "../../src/support/random.ts";

export interface Element {
  readonly bits: 1 | 4 | 8 | 16 | 32;
  readonly draw: (random: Random) => number;
  readonly encode: (value: number) => number;
}

const small = (random: Random): number => random.below(9) - 4;

const elements: { readonly [type: string]: Element } = {
  f16: { bits: 16, draw: small, encode: (value) => encodeFloat("f16", value) },
  bf16: { bits: 16, draw: small, encode: (value) => encodeFloat("bf16", value) },
  tf32: { bits: 32, draw: small, encode: (value) => encodeFloat("tf32", value) },
  e4m3: { bits: 8, draw: small, encode: (value) => encodeFloat("f8e4m3fn", value) },
  e5m2: { bits: 8, draw: small, encode: (value) => encodeFloat("f8e5m2", value) },
  s8: { bits: 8, draw: (random) => random.below(256) - 128, encode: (value) => value & 0xff },
  u8: { bits: 8, draw: (random) => random.below(256), encode: (value) => value },
  s4: { bits: 4, draw: (random) => random.below(16) - 8, encode: (value) => value & 15 },
  u4: { bits: 4, draw: (random) => random.below(16), encode: (value) => value },
  b1: { bits: 1, draw: (random) => random.below(2), encode: (value) => value },
};

export function elementOf(type: string): Element {
  const element = elements[type];
  if (element === undefined) throw new Error(type);
  return element;
}
