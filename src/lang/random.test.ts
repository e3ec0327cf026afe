import { expect, test } from "vitest";
import {
  array,
  bool,
  f32,
  fromNumbers,
  i32,
  iota,
  kernel,
  open,
  randomKey,
  TilewrightError,
  toNumbers,
  u32,
} from "tilewright";
import { random } from "tilewright/arrays";
import { philox4x32, threefry2x32 } from "./index.ts";
import type { RandomKey, Words } from "./random.ts";

const devices = [await open("simulator"), await open("emulator")];

/** Published answers of the generators' authors, a case a row: counter, key, hash. */
const threefryAnswers = [
  [0, 0, 0, 0, 0x6b200159, 0x99ba4efe],
  [0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff, 0x1cb996fc, 0xbb002be7],
  [0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344, 0xc4923a9c, 0x483df7a0],
];
const philoxAnswers = [
  [0, 0, 0, 0, 0, 0, 0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8],
  [...Array<number>(6).fill(0xffffffff), ...[0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd]],
  [
    ...[0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344, 0xa4093822, 0x299f31d0],
    ...[0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1],
  ],
];

type Hash = (words: readonly Words[]) => readonly Words[];

const generators: readonly (readonly [string, readonly (readonly number[])[], number, Hash])[] = [
  [
    "Threefry-2x32",
    threefryAnswers,
    4,
    ([a, b, c, d]) => threefry2x32([c as Words, d as Words], [a as Words, b as Words]),
  ],
  [
    "Philox-4x32",
    philoxAnswers,
    6,
    ([a, b, c, d, e, f]) =>
      philox4x32([e as Words, f as Words], [a as Words, b as Words, c as Words, d as Words]),
  ],
];

test.each(generators)("%s gives the published answers", async (_, answers, given, hash) => {
  const hashed = kernel(
    {
      name: "hashed",
      inputs: { x: array(u32, [given, 3]) },
      outputs: { out: array(u32, [(answers[0]?.length ?? 0) - given, 3]) },
    },
    ({ x, out }) => {
      const words = hash(Array.from({ length: given }, (_, index) => x.at(index).load()));
      words.forEach((word, index) => {
        out.at(index).store(word);
      });
    },
  );
  const columns = (from: number, to: number): number[] =>
    Array.from({ length: to - from }, (_, index) =>
      answers.map((row) => row[from + index] ?? 0),
    ).flat();
  for (const device of devices) {
    const { out } = await device.run(hashed, {
      x: fromNumbers(u32, [given, 3], columns(0, given)),
    });
    expect([...toNumbers(out)]).toEqual(columns(given, answers[0]?.length ?? 0));
  }
});

test("keys, bits and uniform numbers are those of arrays, block by block", async () => {
  const drawn = kernel(
    {
      name: "drawn",
      grid: { row: 3 },
      inputs: { keys: array(u32, [1, 2]) },
      outputs: {
        bits: array(u32, [3, 7]),
        even: array(f32, [3, 7]),
        turned: array(f32, [3, 7]),
        low: array(bool, [3, 7]),
      },
    },
    ({ row, keys, bits, even, turned, low }) => {
      const numbers = iota(i32, [7], 0).add(row.mul(7));
      const [first, second] = randomKey(keys.at(0)).split(2);
      bits.at(row).store((first ?? randomKey(0)).bits(numbers));
      even.at(row).store((second ?? randomKey(0)).uniform(numbers, { low: -2, high: 3 }));
      // Bounds the wrong way around: nothing is below the first one.
      turned.at(row).store((second ?? randomKey(0)).uniform(numbers, { low: 3, high: -2 }));
      low.at(row).store(randomKey(7).foldIn(5).bernoulli(0.3, numbers));
    },
  );
  const [first, second] = random.split(random.key(2 ** 40 + 9));
  if (first === undefined || second === undefined) throw new Error("two keys");
  const wanted = {
    bits: await random.bits(first, [3, 7]).read(),
    even: await random.uniform(second, [3, 7], { low: -2, high: 3 }).read(),
    turned: await random.uniform(second, [3, 7], { low: 3, high: -2 }).read(),
    low: await random.bernoulli(random.foldIn(random.key(7), 5), 0.3, [3, 7]).read(),
  };
  for (const device of devices) {
    const found = await device.run(drawn, { keys: fromNumbers(u32, [1, 2], [2 ** 8, 9]) });
    for (const name of ["bits", "even", "turned", "low"] as const)
      expect([...toNumbers(found[name])], name).toEqual([...toNumbers(wanted[name])]);
  }
});

test("normal numbers are those of arrays within eight units in the last place, far from 0 too", async () => {
  const count = 4000;
  const drawn = kernel({ name: "drawn", outputs: { out: array(f32, [count]) } }, ({ out }) => {
    out.store(randomKey(3).normal(iota(u32, [count], 0)));
  });
  const wanted = toNumbers(await random.normal(random.key(3), [count]).read());
  expect(Math.max(...wanted.map(Math.abs))).toBeGreaterThan(3.5);
  const places = new Int32Array(Float32Array.from(wanted).buffer);
  for (const device of devices) {
    const { out } = await device.run(drawn, {});
    const found = new Int32Array(Float32Array.from(toNumbers(out)).buffer);
    const worst = Math.max(...found.map((place, index) => Math.abs(place - (places[index] ?? 0))));
    expect(worst).toBeLessThanOrEqual(8);
  }
});

test("Gumbel numbers are -log(-log(u)) of the key's uniform ones, and categorical takes the greatest", async () => {
  const [rows, columns] = [60, 9];
  const count = rows * columns;
  const logit = (column: number): number => (column * 5) % 4;
  const drawn = kernel(
    {
      name: "drawn",
      inputs: { logits: array(f32, [columns]) },
      outputs: { out: array(f32, [count]), chosen: array(i32, [rows]) },
    },
    ({ logits, out, chosen }) => {
      const numbers = iota(u32, [count], 0);
      out.store(randomKey(11).gumbel(numbers));
      const spread = logits.load().broadcastTo([rows, columns]);
      chosen.store(randomKey(11).categorical(spread, numbers.reshape([rows, columns])));
    },
  );
  const uniform = toNumbers(await random.uniform(random.key(11), [count]).read());
  const exact = Array.from(uniform, (value) => -Math.log(-Math.log(Math.max(value, 2 ** -126))));
  // Half of all uniform numbers are below a half, and their Gumbel numbers below 0.37.
  expect(exact.filter((value) => value < 0.36).length).toBeGreaterThan(count / 3);
  const logits = Array.from({ length: columns }, (_, column) => logit(column));
  const choices = Array.from({ length: rows }, (_, row) => {
    const own = logits.map((value, column) => value + (exact[row * columns + column] ?? NaN));
    return own.indexOf(Math.max(...own));
  });
  for (const device of devices) {
    const { out, chosen } = await device.run(drawn, {
      logits: fromNumbers(f32, [columns], logits),
    });
    toNumbers(out).forEach((value, index) => {
      const wanted = exact[index] ?? NaN;
      expect(Math.abs(value - wanted)).toBeLessThan(1e-6 * Math.max(1, Math.abs(wanted)));
    });
    expect([...toNumbers(chosen)]).toEqual(choices);
  }
});

/** Philox-4x32 by its definition, in whole numbers of any size. */
function philox(key: readonly [bigint, bigint], counter: readonly bigint[]): readonly number[] {
  const word = (value: bigint): bigint => BigInt.asUintN(32, value);
  let [x = 0n, y = 0n, z = 0n, w = 0n] = counter;
  let [k, l] = key;
  for (let round = 0; round < 10; round++) {
    const [left, right] = [0xd2511f53n * x, 0xcd9e8d57n * z];
    [x, y, z, w] = [(right >> 32n) ^ y ^ k, word(right), (left >> 32n) ^ w ^ l, word(left)];
    [k, l] = [word(k + 0x9e3779b9n), word(l + 0xbb67ae85n)];
  }
  return [x, y, z, w].map(Number);
}

test("keys of Philox: of a seed and in memory, split, folded, and bits of elements", async () => {
  const seed = 2 ** 40 + 77;
  const drawn = kernel(
    {
      name: "drawn",
      grid: { row: 2 },
      inputs: { keys: array(u32, [2, 2]) },
      outputs: {
        seeded: array(u32, [2, 5]),
        stored: array(u32, [2, 5]),
        folded: array(u32, [2, 5]),
      },
    },
    ({ row, keys, seeded, stored, folded }) => {
      const numbers = iota(i32, [5], 0).add(row.mul(5));
      const key: RandomKey<"philox"> = randomKey(seed, { generator: "philox" });
      seeded.at(row).store(key.bits(numbers));
      stored.at(row).store(randomKey(keys.at(row), { generator: "philox" }).bits(numbers));
      const [, second = key] = key.split(2);
      folded.at(row).store(second.foldIn(row).bits(numbers));
    },
  );
  const elements = Array.from({ length: 10 }, (_, index) => BigInt(index));
  const bits = (key: readonly [bigint, bigint], number: bigint): number =>
    philox(key, [number, 0n, 0n, 0n])[0] ?? NaN;
  const keyOf = (key: readonly [bigint, bigint], number: bigint): readonly [bigint, bigint] => {
    const [low = 0, high = 0] = philox(key, [number, 0n, 0n, 1n]);
    return [BigInt(low), BigInt(high)];
  };
  const key = [BigInt(seed % 2 ** 32), 256n] as const;
  const rowOf = (number: bigint): bigint => number / 5n;
  for (const device of devices) {
    const keys = fromNumbers(u32, [2, 2], [1, 2, 3, 4]);
    const found = await device.run(drawn, { keys });
    expect([...toNumbers(found.seeded)]).toEqual(elements.map((number) => bits(key, number)));
    expect([...toNumbers(found.stored)]).toEqual(
      elements.map((number) => bits(rowOf(number) === 0n ? [2n, 1n] : [4n, 3n], number)),
    );
    expect([...toNumbers(found.folded)]).toEqual(
      elements.map((number) => bits(keyOf(keyOf(key, 1n), rowOf(number)), number)),
    );
  }
});

test("keys of different generators are of different types", () => {
  kernel({ name: "typed" }, () => {
    // @ts-expect-error a key of Threefry is none of Philox
    const key: RandomKey<"philox"> = randomKey(1);
    expect(key.generator).toBe("threefry");
  });
});

test.each([
  ["an unknown generator", () => randomKey(1, { generator: "dice" as never })],
  ["a fraction for a seed", () => randomKey(0.5)],
  ["a tile for a key", () => randomKey(iota(u32, [2], 0) as never)],
  ["floats for numbers", () => randomKey(1).bits(iota(f32 as never, [2], 0) as never)],
  ["no keys at all", () => randomKey(1).split(0)],
] as const)("%s is refused", (_, make) => {
  const trace = (): unknown =>
    kernel({ name: "wrong" }, () => {
      make();
    });
  expect(trace).toThrow(TilewrightError);
});
