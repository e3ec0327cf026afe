/** Symbolic bounds against evaluation: for small launches, every value that a fact allows is tried. */
import { describe, expect, test } from "vitest";
import {
  addSizes,
  ceilDivSize,
  dimension,
  evaluateIndexSize,
  floorDivSize,
  multiplySizes,
  sizeText,
} from "../size.ts";
import type { Size, SymbolicSize } from "../size.ts";
import { Random } from "../../support/random.ts";
import { binaryFact } from "./arithmetic.ts";
import { allows, between, exactly, tightened } from "./fact.ts";
import type { Fact } from "./fact.ts";
import { endsWithin, isAtMost, SizeFacts } from "./sizes.ts";

const range = { least: -(2n ** 31n), greatest: 2n ** 31n - 1n };
const [n, m] = [dimension("n", 6), dimension("m")];

const sizes: readonly SymbolicSize[] = [
  n,
  m,
  ceilDivSize(n, 4),
  ceilDivSize(m, 3),
  multiplySizes(2, n),
  multiplySizes(n, ceilDivSize(m, 3)),
  multiplySizes(ceilDivSize(n, 4), ceilDivSize(m, 3)),
  ceilDivSize(n, 3),
  addSizes(n, 2),
  addSizes(m, multiplySizes(-1, n), 6),
  floorDivSize(addSizes(m, 1), 2),
  multiplySizes(3, floorDivSize(addSizes(m, -2), 2)),
].filter((size) => typeof size !== "number");

/** Launches with every small value, the empty ones too. */
const launches = [0, 6, 12, 24].flatMap((a) =>
  [0, 1, 3, 7].map(
    (b) =>
      new Map([
        ["n", a],
        ["m", b],
      ]),
  ),
);

function randomFact(random: Random, facts: SizeFacts, depth = 2): Fact {
  if (depth > 0 && random.below(4) === 0) {
    const [left, right] = [0, 1].map(() => randomFact(random, facts, depth - 1));
    if (left === undefined || right === undefined) throw new Error("two facts");
    return binaryFact(random.pick(["add", "sub"] as const), left, right, range);
  }
  if (random.below(5) === 0) return exactly(BigInt(random.below(9) - 2));
  if (random.below(3) === 0) return facts.of(random.pick(sizes));
  const modulus = BigInt(1 + random.below(6));
  return tightened({
    least: random.below(4) === 0 ? -5n : 0n,
    greatest: random.below(3) === 0 ? BigInt(random.below(20)) : 2n ** 31n - 1n,
    modulus,
    residue: BigInt(random.below(Number(modulus))),
    below: random.below(2) === 0 ? [] : [random.pick(sizes)],
  });
}

/** The values near 0 that the fact allows in a launch. */
function valuesOf(fact: Fact, launch: ReadonlyMap<string, number>): readonly bigint[] {
  const evaluate = (size: Size) => evaluateIndexSize(size, launch);
  const values = Array.from({ length: 40 }, (_, index) => BigInt(index - 6));
  return values.filter((value) => allows(fact, value, evaluate));
}

const multiple = dimension("k", 64);

/** From 0 on, so much more than multiples of the modulus, and below a multiple of 64. */
function startingAt(modulus: bigint, residue: bigint): Fact {
  const greatest = range.greatest - 1000n;
  return tightened({ least: 0n, greatest, modulus, residue, below: [multiple] });
}

const meanings = {
  add: (a: bigint, b: bigint) => a + b,
  sub: (a: bigint, b: bigint) => a - b,
  mul: (a: bigint, b: bigint) => a * b,
  div: (a: bigint, b: bigint) => (b === 0n ? -1n : a / b),
  rem: (a: bigint, b: bigint) => (b === 0n ? a : a % b),
  min: (a: bigint, b: bigint) => (a < b ? a : b),
  max: (a: bigint, b: bigint) => (a > b ? a : b),
} as const;

describe("what results are below", () => {
  test.each(Object.entries(meanings))("%s", (fn, compute) => {
    const facts = new SizeFacts([]);
    for (let seed = 0; seed < 160; seed += 1) {
      const random = new Random(seed);
      const [left, right] = [randomFact(random, facts), randomFact(random, facts)];
      const result = binaryFact(fn as keyof typeof meanings, left, right, range);
      for (const launch of launches) {
        const rights = valuesOf(right, launch);
        for (const a of valuesOf(left, launch))
          for (const b of rights)
            if (!allows(result, compute(a, b), (size) => evaluateIndexSize(size, launch)))
              throw new Error(
                `seed ${seed}: ${a} ${fn} ${b} below ${result.below.map(sizeText).join()} ` +
                  `for ${JSON.stringify([...launch])}`,
              );
      }
    }
  });

  test("products of a block's index are below what its axis covers", () => {
    const facts = new SizeFacts([{ extent: ceilDivSize(n, 4) }]);
    const extent = ceilDivSize(n, 4) as SymbolicSize;
    const block = between(0n, facts.of(extent).greatest - 1n, [extent]);
    expect(binaryFact("mul", block, exactly(4n), range).below.map(sizeText)).toContain("n");
    // Of few blocks, whose product does not wrap around.
    const few = between(0n, 100n, [extent]);
    expect(binaryFact("mul", few, exactly(8n), range).below.map(sizeText)).not.toContain("n");
  });

  test("what is left of an axis behind a block's index is an index of it, too", () => {
    const facts = new SizeFacts([{ extent: ceilDivSize(n, 4) }]);
    const extent = ceilDivSize(n, 4) as SymbolicSize;
    const block = between(0n, facts.of(extent).greatest - 1n, [extent]);
    const last = binaryFact("sub", facts.of(extent), exactly(1n), range);
    for (const each of [last, binaryFact("add", facts.of(extent), exactly(-1n), range)]) {
      const mirrored = binaryFact("sub", each, block, range);
      expect(mirrored.least).toBe(0n);
      expect(mirrored.below.map(sizeText)).toContain(sizeText(extent));
      expect(binaryFact("mul", mirrored, exactly(4n), range).below.map(sizeText)).toContain("n");
    }
    // One more may be the axis' end, and one less may lie before it.
    const whole = binaryFact("sub", facts.of(extent), block, range);
    expect(whole.least).toBe(1n);
    expect(whole.below).toEqual([]);
    const less = binaryFact("sub", facts.of(extent), exactly(2n), range);
    expect(binaryFact("sub", less, block, range).least).toBeLessThan(0n);
  });

  test("a sum stays below a multiple as long as it does not reach the next one", () => {
    const below = (greatest: bigint) =>
      binaryFact("add", startingAt(64n, 8n), between(0n, greatest, []), range).below;
    expect(below(55n)).toEqual([multiple]);
    expect(below(56n)).toEqual([]);
    // One more than the last index of an axis is its end.
    expect(binaryFact("add", startingAt(1n, 0n), exactly(1n), range).below).toEqual([]);
    // And a size that is no multiple may end within the step.
    const stepped = { ...startingAt(64n, 0n), below: [m] };
    expect(binaryFact("add", stepped, between(0n, 8n, []), range).below).toEqual([]);
  });

  test("tiles counted along two axes are taken apart", () => {
    const [rows, columns] = [ceilDivSize(n, 4), ceilDivSize(m, 3)];
    const facts = new SizeFacts([]);
    const tiles = multiplySizes(rows, columns) as SymbolicSize;
    const tile = tightened({ ...facts.of(tiles), least: 0n, below: [tiles], size: undefined });
    // 2³¹ of the one times 2³¹ of the other: a counter is below 2³¹ all the same.
    const counter = { ...tile, greatest: range.greatest - 1n };
    const columnsFact = facts.of(columns);
    const row = binaryFact("div", counter, columnsFact, range);
    const column = binaryFact("rem", counter, columnsFact, range);
    expect([row.least, ...row.below.map(sizeText)]).toEqual([0n, "ceildiv(n, 4)"]);
    expect([column.least, ...column.below.map(sizeText)]).toContain("ceildiv(m, 3)");
  });

  test("a remainder by a size that may be 0 is not below it", () => {
    const facts = new SizeFacts([]);
    const index = tightened({ ...facts.of(m), least: 0n, size: undefined });
    expect(binaryFact("rem", index, facts.of(m), range).below).toEqual([]);
    const running = new SizeFacts([{ extent: m }]);
    expect(binaryFact("rem", index, running.of(m), range).below).toEqual([m]);
    const others = new SizeFacts([{ extent: addSizes(m, 1) }]);
    expect(binaryFact("rem", index, others.of(m), range).below).toEqual([]);
    // Nor below one that is less than 0: the remainder has the sign of what is divided.
    const negative = multiplySizes(-1, m);
    expect(binaryFact("rem", index, running.of(negative), range).below).toEqual([]);
  });
});

test("quotients of what may be below 0 are rounded down", () => {
  const facts = new SizeFacts([]);
  const ends = (size: Size): readonly bigint[] => [facts.of(size).least, facts.of(size).greatest];
  expect(ends(floorDivSize(addSizes(m, -13), 2))).toEqual([-7n, 2n ** 30n - 7n]);
  expect(ends(floorDivSize(addSizes(m, -12), 2))).toEqual([-6n, 2n ** 30n - 7n]);
  expect(ends(ceilDivSize(addSizes(m, -13), 2))).toEqual([-6n, 2n ** 30n - 7n]);
});

describe("windows that end within", () => {
  test("for every small launch", () => {
    const facts = new SizeFacts([]);
    for (let seed = 0; seed < 150; seed += 1) {
      const random = new Random(seed);
      const start = randomFact(random, facts);
      const end = random.pick([...sizes, 1 + random.below(12)]);
      const count = random.below(4) === 0 ? end : 1 + random.below(6);
      const [proven, atMost] = [endsWithin(start, count, end, facts), isAtMost(start, end, facts)];
      for (const launch of launches)
        for (const value of valuesOf(start, launch)) {
          const [size, stop] = [count, end].map((each) => BigInt(evaluateIndexSize(each, launch)));
          if (size === undefined || stop === undefined) throw new Error("two sizes");
          if (proven && value + size > stop) throw new Error(`seed ${seed}: ${value} + ${size}`);
          if (atMost && value > stop) throw new Error(`seed ${seed}: ${value} of ${stop}`);
        }
    }
  });

  test.each([
    [startingAt(64n, 0n), 64, true],
    [startingAt(64n, 0n), 65, false],
    [startingAt(64n, 8n), 56, true],
    [startingAt(64n, 8n), 57, false],
    [startingAt(1n, 0n), 1, true],
    [startingAt(48n, 0n), 1, false],
  ] as const)("case %#", (start, count, expected) => {
    expect(endsWithin(start, count, multiple, new SizeFacts([]))).toBe(expected);
  });
});
