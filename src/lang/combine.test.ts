import { expect, test } from "vitest";
import {
  tensor,
  f32,
  f4e2m1fn,
  f64,
  f8e4m3fn,
  f8e5m2,
  f8e8m0fnu,
  fromNumbers,
  full,
  i32,
  iota,
  kernel,
  open,
  reduceWith,
  scanWith,
  TilewrightError,
  toNumbers,
} from "tilewright";
import type { Tile } from "tilewright";

const device = await open("simulator");
const [rows, columns] = [3, 21];
const numbers = Array.from({ length: rows * columns }, (_, index) => ((index * 37) % 23) - 11);
const at = (row: number, column: number): number => numbers[row * columns + column] ?? NaN;

test("the greatest of each row, and the first place where it is", async () => {
  const k = kernel(
    {
      name: "greatest",
      inputs: { x: tensor(f32, [rows, columns]) },
      outputs: { value: tensor(f32, [rows]), place: tensor(i32, [rows]) },
    },
    ({ x, value, place }) => {
      const [greatest, where] = reduceWith(
        [x.load(), iota(i32, [rows, columns], { axis: 1 })],
        ([a, i], [b, j]) => {
          const later = b.gt(a);
          return [later.select(b, a), later.select(j, i)];
        },
        { axis: -1, identity: [-Infinity, -1] },
      );
      value.store(greatest);
      place.store(where);
    },
  );
  const { value, place } = await device.run(k, { x: fromNumbers(f32, [rows, columns], numbers) });
  for (let row = 0; row < rows; row += 1) {
    const own = numbers.slice(row * columns, (row + 1) * columns);
    expect(toNumbers(value)[row]).toBe(Math.max(...own));
    expect(toNumbers(place)[row]).toBe(own.indexOf(Math.max(...own)));
  }
});

test.each([false, true])("a linear recurrence, from the end: %s", async (reverse) => {
  const k = kernel(
    {
      name: "recurrence",
      inputs: { x: tensor(f64, [rows, columns]) },
      outputs: { out: tensor(f64, [rows, columns]) },
    },
    ({ x, out }) => {
      const b = x.load();
      const [, y] = scanWith(
        [b.mul(0).add(0.5), b],
        ([a0, b0], [a1, b1]) => [a0.mul(a1), b0.mul(a1).add(b1)],
        { axis: 1, identity: [1, 0], reverse },
      );
      out.store(y);
    },
  );
  const { out } = await device.run(k, { x: fromNumbers(f64, [rows, columns], numbers) });
  for (let row = 0; row < rows; row += 1) {
    let y = 0;
    for (let step = 0; step < columns; step += 1) {
      const column = reverse ? columns - 1 - step : step;
      y = 0.5 * y + at(row, column);
      expect(toNumbers(out)[row * columns + column]).toBeCloseTo(y, 9);
    }
  }
});

test("one tile needs no list, and keeps its axis", async () => {
  const k = kernel(
    {
      name: "one",
      inputs: { x: tensor(i32, [rows, columns]) },
      outputs: { all: tensor(i32, [1, columns]), running: tensor(i32, [rows, columns]) },
    },
    ({ x, all, running }) => {
      const tile = x.load();
      all.store(reduceWith(tile, (a, b) => a.xor(b), { axis: 0, identity: 0, keepDims: true }));
      running.store(scanWith(tile, (a, b) => a.xor(b), { axis: 0, identity: 0 }));
    },
  );
  const { all, running } = await device.run(k, { x: fromNumbers(i32, [rows, columns], numbers) });
  for (let column = 0; column < columns; column += 1) {
    let so = 0;
    for (let row = 0; row < rows; row += 1) {
      so ^= at(row, column);
      expect(toNumbers(running)[row * columns + column]).toBe(so);
    }
    expect(toNumbers(all)[column]).toBe(so);
  }
});

test.each(["simulator", "emulator"] as const)(
  "methods combine a tile by itself: all of it to a scalar, or along axes, on the %s",
  async (name) => {
    const k = kernel(
      {
        name: "methods",
        inputs: { x: tensor(i32, [rows, columns]), y: tensor(f32, [3]) },
        outputs: {
          first: tensor(i32, [1]),
          smallest: tensor(f32, [1]),
          along: tensor(i32, [rows, 1]),
          seen: tensor(i32, [rows, columns]),
        },
      },
      ({ x, y, first, smallest, along, seen }) => {
        const tile = x.load();
        // The first that is not 0, which depends on the order of the elements; 0 is the identity.
        const earlier = (a: Tile<"i32">, b: Tile<"i32">): Tile<"i32"> => a.ne(0).select(a, b);
        first.at(0).store(tile.reduce(earlier, 0));
        smallest.at(0).store(y.load().reduce((a, b) => a.abs().le(b.abs()).select(a, b), Infinity));
        along.store(tile.reduce(earlier, 0, { axis: -1, keepDims: true }));
        seen.store(tile.scan((a, b) => a.or(b), 0, { axis: 1, reverse: true }));
      },
    );
    const own = await open(name);
    const late = numbers.map((number, index) => (index % columns < 17 ? 0 : number));
    const given = {
      x: fromNumbers(i32, [rows, columns], late),
      y: fromNumbers(f32, [3], [3, -0, -2]),
    };
    const { first, smallest, along, seen } = await own.run(k, given);
    own.dispose();
    expect([...toNumbers(first)]).toEqual([late.find((number) => number !== 0)]);
    expect(Object.is(toNumbers(smallest)[0], -0)).toBe(true);
    for (let row = 0; row < rows; row += 1) {
      const mine = late.slice(row * columns, (row + 1) * columns);
      expect(toNumbers(along)[row]).toBe(mine.find((number) => number !== 0));
      let bits = 0;
      for (let column = columns - 1; column >= 0; column -= 1) {
        bits |= mine[column] ?? NaN;
        expect(toNumbers(seen)[row * columns + column]).toBe(bits);
      }
    }
  },
);

/** How many, their mean, and the sum of squares about it: two sets become one without a loss of digits. */
const joinMoments = (
  [n0, m0, s0]: readonly [Tile<"f32">, Tile<"f32">, Tile<"f32">],
  [n1, m1, s1]: readonly [Tile<"f32">, Tile<"f32">, Tile<"f32">],
): readonly [Tile<"f32">, Tile<"f32">, Tile<"f32">] => {
  const count = n0.add(n1);
  const share = count.eq(0).select(0, n1.div(count));
  const apart = m1.sub(m0);
  return [count, m0.add(apart.mul(share)), s0.add(s1).add(apart.mul(apart).mul(n0).mul(share))];
};

test.each(["simulator", "emulator"] as const)(
  "mean and deviation over two axes of three at once, on the %s",
  async (name) => {
    const shape = [3, 4, 5] as const;
    const k = kernel(
      {
        name: "moments",
        inputs: { x: tensor(f32, shape) },
        outputs: { mean: tensor(f32, [4]), squares: tensor(f32, [1, 4, 1]) },
      },
      ({ x, mean, squares }) => {
        const tile = x.load();
        const start = [full(f32, shape, 1), tile, full(f32, shape, 0)] as const;
        const identity = [0, 0, 0] as const;
        mean.store(reduceWith(start, joinMoments, { axis: [-1, 0], identity })[1]);
        const kept = reduceWith(start, joinMoments, { axis: [0, 2], identity, keepDims: true });
        squares.store(kept[2]);
      },
    );
    const values = Array.from({ length: 60 }, (_, index) => 1000 + ((index * 37) % 23));
    const own = await open(name);
    const { mean, squares } = await own.run(k, { x: fromNumbers(f32, shape, values) });
    own.dispose();
    for (let middle = 0; middle < 4; middle += 1) {
      const set = values.filter((_, index) => Math.floor(index / 5) % 4 === middle);
      const average = set.reduce((sum, value) => sum + value, 0) / set.length;
      expect(toNumbers(mean)[middle]).toBeCloseTo(average, 3);
      const sum = set.reduce((total, value) => total + (value - average) ** 2, 0);
      expect((toNumbers(squares)[middle] ?? NaN) / sum).toBeCloseTo(1, 4);
    }
  },
);

test("elements of several axes come in row-major order", async () => {
  const k = kernel(
    { name: "order", inputs: { x: tensor(i32, [2, 3, 2]) }, outputs: { out: tensor(i32, [3]) } },
    ({ x, out }) => {
      // Digits of decimal numbers: not commutative.
      const tile = x.load();
      const [, digits] = reduceWith(
        [full(i32, [2, 3, 2], 10), tile],
        ([p0, v0], [p1, v1]) => [p0.mul(p1), v0.mul(p1).add(v1)],
        { axis: [2, 0], identity: [1, 0] },
      );
      out.store(digits);
    },
  );
  const x = fromNumbers(i32, [2, 3, 2], [1, 2, 3, 4, 5, 6, 7, 8, 9, 1, 2, 3]);
  const { out } = await device.run(k, { x });
  expect([...toNumbers(out)]).toEqual([1278, 3491, 5623]);
});

test.each([f8e4m3fn, f8e5m2, f8e8m0fnu, f4e2m1fn])(
  "all elements of $name become one, although it has no functions of its own",
  async (dtype) => {
    const greatest = kernel(
      { name: "greatest", inputs: { x: tensor(dtype, [5]) }, outputs: { out: tensor(dtype, [1]) } },
      ({ x, out }) => {
        const greater = (a: Tile, b: Tile): Tile => a.cast(f32).maximum(b.cast(f32)).cast(dtype);
        out.at(0).store((x.load() as Tile).reduce(greater, 1) as never);
      },
    );
    const x = fromNumbers(dtype, [5], [1, 2, 4, 2, 1]);
    const { out } = await device.run(greatest, { x });
    expect([...toNumbers(out)]).toEqual([4]);
  },
);

const mistakes: readonly (readonly [string, string, (tile: Tile<"f32">) => unknown])[] = [
  ["a method's axis that is not there", "TW1008", (x) => x.reduce((a) => a, 0, { axis: 2 })],
  ["a method's axes without one", "TW1008", (x) => x.reduce((a) => a, 0, { axis: [] })],
  ["a name that is none", "TW1008", (x) => x.reduce("median" as never, 0)],
  ["no identity", "TW1008", (x) => x.reduce((a) => a, undefined as never)],
  ["an identity of another kind", "TW1007", (x) => x.reduce((a) => a, true as never)],
  [
    "a function that gives other tiles",
    "TW1038",
    (x) => x.scan((a) => a.gt(0) as never, 0, { axis: 0 }),
  ],
  ["a scan without a function", "TW1008", (x) => x.scan("sum" as never, 0, { axis: 0 })],
  [
    "an option of scans",
    "TW1033",
    (x) => x.reduce((a) => a, 0, { axis: 0, reverse: true } as never),
  ],
  [
    "an option of reductions",
    "TW1033",
    (x) => x.scan((a) => a, 0, { axis: 0, keepDims: true } as never),
  ],
  [
    "too few tiles",
    "TW1038",
    (x) => reduceWith([x, x], ([a]) => [a] as never, { axis: 0, identity: [0, 0] }),
  ],
  ["an axis that is not there", "TW1008", (x) => scanWith(x, (a) => a, { axis: 2, identity: 0 })],
  [
    "one number for two tiles",
    "TW1008",
    (x) => reduceWith([x, x], (a) => a, { axis: 0, identity: [0] as never }),
  ],
  ["an axis twice", "TW1008", (x) => reduceWith(x, (a) => a, { axis: [0, -2], identity: 0 })],
  ["no axis", "TW1008", (x) => reduceWith(x, (a) => a, { axis: [], identity: 0 })],
  ["no tiles", "TW1008", () => reduceWith([], (a) => a, { axis: 0, identity: [] })],
  [
    "an option of others",
    "TW1033",
    (x) => scanWith(x, (a) => a, { axis: 0, identity: 0, keep: true } as never),
  ],
];

test.each(mistakes)("%s is refused", (_, code, make) => {
  const trace = (): unknown =>
    kernel({ name: "wrong", inputs: { x: tensor(f32, [4, 4]) } }, ({ x }) => {
      make(x.load());
    });
  expect(trace).toThrow(TilewrightError);
  try {
    trace();
  } catch (error) {
    expect((error as TilewrightError).code).toBe(code);
  }
});
