/** Intrinsics on halves and bytes of words that nvcc compiled, with what they must compute. */
import { expect } from "vitest";
import { Random } from "../../src/support/random.ts";
import { at, input, made, output, scalar, sum } from "./case.ts";
import type { ForeignCase } from "./case.ts";

/** The elements of a word, lowest first. */
function parts(word: number, count: 2 | 4, signed: boolean): readonly number[] {
  const bits = 32 / count;
  return made(count, (index) => {
    const value = Math.floor(word / 2 ** (bits * index)) % 2 ** bits;
    return signed && value >= 2 ** (bits - 1) ? value - 2 ** bits : value;
  });
}

function joined(values: readonly number[]): number {
  const size = 2 ** (32 / values.length);
  return values.reduce((word, value, index) => word + ((value + size) % size) * size ** index, 0);
}

type Combine = (a: number, b: number) => number;

/** Element by element. */
function each(count: 2 | 4, signed: boolean, combine: Combine): Combine {
  return (x, y) => {
    const other = parts(y, count, signed);
    return joined(parts(x, count, signed).map((a, index) => combine(a, at(other, index))));
  };
}

function distances(count: 2 | 4, signed: boolean): Combine {
  return (x, y) => {
    const other = parts(y, count, signed);
    return sum(parts(x, count, signed).map((a, index) => Math.abs(a - at(other, index))));
  };
}

const distance: Combine = (a, b) => Math.abs(a - b);
const references: readonly Combine[] = [
  each(4, false, distance),
  distances(4, false),
  each(4, true, distance),
  distances(2, true),
  distances(2, false),
  each(4, false, (a, b) => Math.floor((a + b + 1) / 2)),
  each(4, true, Math.max),
  each(2, false, Math.min),
  each(4, false, (a, b) => Math.min(255, a + b)),
  each(2, true, (a, b) => Math.max(-32768, Math.min(32767, a - b))),
  each(4, true, (a, b) => (a > b ? 255 : 0)),
  each(2, true, (a) => Math.min(32767, Math.abs(a))),
];

function packedLanes(): ForeignCase {
  const count = 150;
  const random = new Random(71);
  const edges = [0, 0xffffffff, 0x80008000, 0x80808080, 0x7f7f7f7f, 0x7fff7fff, 0x00ff01fe];
  const word = (): number => (random.below(4) === 0 ? random.pick(edges) : random.bits());
  const a = made(count, word);
  const b = made(count, word);
  return {
    file: "nvcc/packed-lanes.ptx",
    entry: "packed_lanes",
    blocks: [3, 1, 1],
    threads: [64, 1, 1],
    arguments: [
      input("a", Uint32Array.from(a)),
      input("b", Uint32Array.from(b)),
      output("out", new Uint32Array(count * references.length)),
      scalar(count),
    ],
    check(results) {
      const expected = a.flatMap((x, index) => references.map((make) => make(x, at(b, index))));
      expect([...results.numbers("out")]).toEqual(expected);
    },
  };
}

export const packedCases: readonly ForeignCase[] = [packedLanes()];
