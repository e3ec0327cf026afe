import { expect, test } from "vitest";
import {
  tensor,
  bool,
  constant,
  elementRun,
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
  when,
} from "tilewright";
import { random } from "tilewright/arrays";
import { codeOf } from "../../test/support/library-checks.ts";
import { philox, rbgBits } from "../../test/support/philox.ts";
import { threefry } from "../../test/support/threefry.ts";
import { philox4x32, threefry2x32 } from "./index.ts";
import type { Words } from "./random-hashes.ts";
import { normalsOfWords } from "./random-normals.ts";
import type { RandomKey } from "./random.ts";

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
      inputs: { x: tensor(u32, [given, 3]) },
      outputs: { out: tensor(u32, [(answers[0]?.length ?? 0) - given, 3]) },
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
      inputs: { keys: tensor(u32, [1, 2]) },
      outputs: {
        bits: tensor(u32, [3, 7]),
        even: tensor(f32, [3, 7]),
        turned: tensor(f32, [3, 7]),
        low: tensor(bool, [3, 7]),
      },
    },
    ({ row, keys, bits, even, turned, low }) => {
      const numbers = iota(i32, [7], { axis: 0 }).add(row.mul(7));
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
  const drawn = kernel({ name: "drawn", outputs: { out: tensor(f32, [count]) } }, ({ out }) => {
    out.store(randomKey(3).normal(iota(u32, [count], { axis: 0 })));
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
      inputs: { logits: tensor(f32, [columns]) },
      outputs: { out: tensor(f32, [count]), chosen: tensor(i32, [rows]) },
    },
    ({ logits, out, chosen }) => {
      const numbers = iota(u32, [count], { axis: 0 });
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

test("keys of Philox: of a seed and in memory, split, folded, and bits of elements", async () => {
  const seed = 2 ** 40 + 77;
  const drawn = kernel(
    {
      name: "drawn",
      grid: { row: 2 },
      inputs: { keys: tensor(u32, [2, 2]) },
      outputs: {
        seeded: tensor(u32, [2, 5]),
        stored: tensor(u32, [2, 5]),
        folded: tensor(u32, [2, 5]),
      },
    },
    ({ row, keys, seeded, stored, folded }) => {
      const numbers = iota(i32, [5], { axis: 0 }).add(row.mul(5));
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

test("bits of keys of rbg are JAX's, also where the counter's words end", async () => {
  // jax.random.bits of jax.random.key(42, impl="rbg"), and of these words from element 16380 on.
  const seeded = [0, 42, 0, 42];
  const jax = [2620864722, 2991908441, 282133475, 2589630650, 1779689962, 1069940430, 2483751720];
  expect(jax.map((_, element) => rbgBits(seeded, element))).toEqual(jax);
  const ending = [0x12345678, 0x9abcdef0, 0xfffff000, 0xffffffff];
  const behind = [529953504, 751516774, 3962810239, 2353479234, 3938551892, 1342516440, 2991998059];
  expect(behind.map((_, index) => rbgBits(ending, 16_380 + index))).toEqual(behind);
  const full = [0xffffffff, 0xffffffff, 0xfffffffe, 0xffffffff];
  const [blocks, size] = [2, 96];
  const drawn = (first: number, shape: readonly number[]) =>
    kernel(
      {
        name: "drawn",
        grid: { i: blocks },
        inputs: { key: tensor(u32, [4]) },
        outputs: { run: tensor(u32, [blocks, size]), each: tensor(u32, [blocks, size]) },
      },
      ({ i, key, run, each }) => {
        const own = randomKey(key, { generator: "rbg" });
        const number = i.add(first);
        run.at(i).store(own.bits(elementRun(number, shape)).reshape([size]));
        const numbers = iota(i32, [size], { axis: 0 }).add(number.mul(size));
        each.at(i).store(own.bits(numbers));
      },
    );
  const cases = [
    [seeded, 0, [size]],
    // Element 16384 is in the first block.
    [ending, 170, [4, 24]],
    [full, 0, [2, 3, 16]],
  ] as const;
  for (const [words, first, shape] of cases)
    for (const device of devices) {
      const found = await device.run(drawn(first, shape), { key: fromNumbers(u32, [4], words) });
      const wanted = Array.from({ length: blocks * size }, (_, index) =>
        rbgBits(words, first * size + index),
      );
      expect([...toNumbers(found.run)]).toEqual(wanted);
      expect([...toNumbers(found.each)]).toEqual(wanted);
    }
});

test("a run that is no whole hashes, and keys and uniform numbers of rbg", async () => {
  const drawn = kernel(
    {
      name: "drawn",
      grid: { i: 3 },
      outputs: { odd: tensor(u32, [3, 5]), even: tensor(f32, [3, 8]), keys: tensor(u32, [4, 4]) },
    },
    ({ i, odd, even, keys }) => {
      const key = randomKey(42, { generator: "rbg" });
      odd.at(i).store(key.bits(elementRun(i, [5])));
      even.at(i).store(key.uniform(elementRun(i, [8]), { low: -1, high: 1 }));
      const [, second = key] = key.split(2);
      const stored = (row: number, { words }: RandomKey): void => {
        words.forEach((word, at) => {
          keys.at(row, at).store(word.max());
        });
      };
      when(i.eq(0), () => {
        stored(0, second);
        stored(1, key.foldIn(77));
      });
      when(i.eq(1), () => {
        stored(2, key.foldIn(i));
        const [a, b, c, d] = [
          constant(u32, 1),
          constant(u32, 2),
          constant(u32, 3),
          constant(u32, 4),
        ];
        stored(3, randomKey([a, b, c, d], { generator: "rbg" }).foldIn(9));
      });
    },
  );
  const seeded = [0, 42, 0, 42];
  const count = (size: number): number[] => Array.from({ length: size }, (_, index) => index);
  for (const device of devices) {
    const { odd, even, keys } = await device.run(drawn, {});
    expect([...toNumbers(odd)]).toEqual(count(15).map((index) => rbgBits(seeded, index)));
    const unit = (index: number): number => (rbgBits(seeded, index) >>> 9) / 2 ** 23;
    expect([...toNumbers(even)]).toEqual(
      count(24).map((index) => Math.fround(unit(index) * 2 - 1)),
    );
    // jax.random.key_data of split(key, 2)[1], of fold_in(key, 77), and of fold_in(key, 1), which is the first again.
    const split = [64467757, 2916123636, 64467757, 2916123636];
    const folded = [3343870397, 3703666311, 3343870397, 3703666311];
    const halves = [...threefry([1, 2], [0, 9]), ...threefry([3, 4], [0, 9])];
    expect([...toNumbers(keys)]).toEqual([...split, ...folded, ...split, ...halves]);
  }
});

test("normal numbers of rbg are Box and Muller's, wherever the words lie", async () => {
  const radial = [
    ...[
      0,
      1,
      2,
      255,
      2 ** 16,
      2 ** 24 + 1,
      2 ** 31,
      2 ** 32 - 2 ** 22,
      2 ** 32 - 2 ** 20,
      2 ** 32 - 2 ** 14,
    ],
    ...[2 ** 32 - 1024, 2 ** 32 - 300, 2 ** 32 - 129, 2 ** 32 - 128, 2 ** 32 - 1, 0xdeadbeef],
  ];
  const angular = [0, 1, 2 ** 29, 2 ** 30, 2 ** 31 - 1, 2 ** 31, 3 * 2 ** 30, 2 ** 32 - 1];
  const pairs = radial.flatMap((first) => angular.map((second) => [first, second] as const));
  const count = pairs.length;
  const turned = kernel(
    {
      name: "turned",
      inputs: { first: tensor(u32, [count]), second: tensor(u32, [count]) },
      outputs: { out: tensor(f32, [4, count]) },
    },
    ({ first, second, out }) => {
      const [a, b] = [first.load(), second.load()];
      normalsOfWords([a, b, a, b]).forEach((values, at) => {
        out.at(at).store(values);
      });
    },
  );
  const given = {
    first: fromNumbers(
      u32,
      [count],
      pairs.map(([each]) => each),
    ),
    second: fromNumbers(
      u32,
      [count],
      pairs.map(([, each]) => each),
    ),
  };
  for (const device of devices) {
    const found = toNumbers((await device.run(turned, given)).out);
    expect(Math.max(...found)).toBeLessThan(6.77);
    pairs.forEach(([first, second], index) => {
      // Words are rounded to f32, the last 128 to 2³².
      const u = Math.fround(Math.fround(first) / 2 ** 32 + 2 ** -33);
      const radius = Math.sqrt(-2 * Math.log(u));
      const angle = (Math.PI * (second | 0)) / 2 ** 31;
      const exact = [radius * Math.cos(angle), radius * Math.sin(angle)];
      [0, 1, 2, 3].forEach((at) => {
        const away = Math.abs((found[at * count + index] ?? NaN) - (exact[at % 2] ?? NaN));
        expect(away, `${first} ${second}`).toBeLessThan(3e-6);
      });
    });
  }
});

/** The distribution function of normal numbers, by the series of its integral. */
function below(x: number): number {
  let [sum, term] = [x, x];
  for (let k = 1; Math.abs(term) > 1e-18 && k < 400; k++) {
    term *= (x * x) / (2 * k + 1);
    sum += term;
  }
  return 0.5 + (sum * Math.exp((-x * x) / 2)) / Math.sqrt(2 * Math.PI);
}

test("normal numbers of rbg are distributed as they should be", async () => {
  const [blocks, size] = [4, 8192];
  const drawn = kernel(
    { name: "drawn", grid: { i: blocks }, outputs: { out: tensor(f32, [blocks, size]) } },
    ({ i, out }) => {
      const key = randomKey(2026, { generator: "rbg" });
      out.at(i).store(key.normal(elementRun(i, [size])));
    },
  );
  const [device] = devices;
  if (device === undefined) throw new Error("no device");
  const numbers = [...toNumbers((await device.run(drawn, {})).out)].sort((a, b) => a - b);
  const count = numbers.length;
  const moment = (power: number): number =>
    numbers.reduce((sum, value) => sum + value ** power, 0) / count;
  // Three deviations of each mean.
  expect(Math.abs(moment(1))).toBeLessThan(3 / Math.sqrt(count));
  expect(Math.abs(moment(2) - 1)).toBeLessThan(3 * Math.sqrt(2 / count));
  expect(Math.abs(moment(3))).toBeLessThan(3 * Math.sqrt(15 / count));
  expect(Math.abs(moment(4) - 3)).toBeLessThan(3 * Math.sqrt(96 / count));
  // Kolmogorov and Smirnov's distance, above which one sample in a hundred is.
  const distance = Math.max(
    ...numbers.map((value, index) =>
      Math.max((index + 1) / count - below(value), below(value) - index / count),
    ),
  );
  expect(distance).toBeLessThan(1.63 / Math.sqrt(count));
  // Neighbours come from one hash, and those of a pair from one radius; signs and sizes of both are independent.
  const given = toNumbers((await device.run(drawn, {})).out);
  for (const apart of [1, 2, 3]) {
    const both = (power: number): number =>
      given.reduce((sum, value, index) => {
        const other = given[index + apart] ?? 0;
        return (
          sum + (value ** power - (power === 2 ? 1 : 0)) * (other ** power - (power === 2 ? 1 : 0))
        );
      }, 0) / count;
    expect(Math.abs(both(1)), `${apart} apart`).toBeLessThan(3.5 / Math.sqrt(count));
    expect(Math.abs(both(2)), `squares, ${apart} apart`).toBeLessThan((3.5 * 2) / Math.sqrt(count));
  }
});

test("keys of different generators are of different types", () => {
  kernel({ name: "typed" }, () => {
    // @ts-expect-error a key of Threefry is none of Philox
    const key: RandomKey<"philox"> = randomKey(1);
    expect(key.generator).toBe("threefry");
    const word = constant(u32, 1);
    // @ts-expect-error a key of rbg has four words
    const short = (): unknown => randomKey([word, word], { generator: "rbg" });
    expect(short).toThrow(TilewrightError);
  });
});

test.each([
  ["an unknown generator", () => randomKey(1, { generator: "dice" as never })],
  ["a fraction for a seed", () => randomKey(0.5)],
  ["a tile for a key", () => randomKey(iota(u32, [2], { axis: 0 }) as never)],
  ["floats for numbers", () => randomKey(1).bits(iota(f32 as never, [2], { axis: 0 }) as never)],
  ["no keys at all", () => randomKey(1).split(0)],
  [
    "half of a key",
    () => randomKey([constant(u32, 1), constant(u32, 2)] as never, { generator: "rbg" }),
  ],
  ["two keys for one", () => randomKey(Array(4).fill(constant(u32, 1)) as never)],
  ["a run of floats", () => elementRun(constant(f32, 1) as never, [4])],
  ["a run before the array", () => elementRun(-1, [4])],
  ["a run of nothing", () => elementRun(0, [0])],
] as const)("%s is refused", (_, make) => {
  const trace = (): unknown =>
    kernel({ name: "wrong" }, () => {
      make();
    });
  expect(codeOf(trace)).toBe("TW1008");
});

test("keys in memory have as many words as their generator asks for", () => {
  const reading = (length: number, generator: "threefry" | "rbg") => (): unknown =>
    kernel({ name: "reading", inputs: { key: tensor(u32, [length]) } }, ({ key }) => {
      randomKey(key, { generator });
    });
  expect(codeOf(reading(4, "threefry"))).toBe("TW1008");
  expect(codeOf(reading(2, "rbg"))).toBe("TW1008");
});
