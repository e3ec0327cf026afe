/**
 * Random programs on tiles, by what they use of the language: picked, turned and rolled elements, histograms, combiners
 * of the kernel's own, products of items and of parts of f32, random numbers, PTX of the user's own, and kernels made
 * for a batch. Sums are of small whole numbers or wrap, so that every order of them gives the same bits.
 */
import {
  tensor,
  bf16,
  castStochastic,
  elementRun,
  cdiv,
  dim,
  dot,
  f16,
  f32,
  flip,
  full,
  histogram,
  i32,
  i64,
  inlinePtx,
  iota,
  kernel,
  randomKey,
  reduceWith,
  roll,
  scanWith,
  slice,
  takeAlong,
  topK,
  u32,
  vmap,
} from "../../src/index.ts";
import type { Tile } from "../../src/index.ts";
import type { Random } from "../../src/support/random.ts";
import { mostlySmall, someBlocks, tame } from "./parts.ts";
import type { Program } from "./parts.ts";

/** Elements picked by tiles of indices of both widths, and moved by numbers of the program. */
function arranging(random: Random): Program {
  const n = dim("n");
  const [rows, columns] = [mostlySmall([4, 8, 2], random), mostlySmall([8, 16, 6, 32], random)];
  const width = random.pick([i32, i64]);
  const axis = random.below(2);
  const count = 1 + random.below(columns);
  const bins = 1 + random.below(40);
  const least = random.below(2) === 0;
  const by = random.below(2 * columns) - columns;
  const steps = Array.from({ length: 1 + random.below(3) }, () => random.below(3));
  const { kernel: traced } = kernel(
    {
      name: "arranging",
      grid: { i: cdiv(n, rows) },
      inputs: { x: tensor(f32, [n, columns]), at: tensor(width, [n, columns]) },
      outputs: {
        out: tensor(f32, [n, columns]),
        best: tensor(f32, [n, count]),
        places: tensor(i32, [n, count]),
        counts: tensor(i32, [cdiv(n, rows), bins]),
      },
    },
    ({ i, x, at, out, best, places, counts }) => {
      const here = slice(i.mul(rows), rows);
      const last = (axis === 0 ? rows : columns) - 1;
      const indices = at.at(here).load().maximum(0).minimum(last);
      let tile = tame(x.at(here).load(), random);
      for (const step of steps) {
        if (step === 0) tile = takeAlong(tile, indices, { axis });
        else if (step === 1) tile = flip(tile, { axis });
        else tile = roll(tile, by, { axis });
      }
      out.at(here).store(tile);
      const [keys, found] = topK(tile, count, { axis: 1, largest: !least });
      best.at(here).store(keys);
      places.at(here).store(found);
      const values = at.at(here).load().cast(i32);
      const where = values.ge(0).and(values.lt(bins));
      counts.at(i).store(histogram(values, bins, { where }));
    },
  );
  return { kernel: traced, dimensions: { n: someBlocks(rows, random) } };
}

/** Reductions and scans by functions of the kernel's own, which combine in their order only. */
function combining(random: Random): Program {
  const [rows, columns] = [
    mostlySmall([4, 8, 3, 16], random),
    mostlySmall([16, 8, 33, 64], random),
  ];
  const axis = random.below(2);
  const reverse = random.below(2) === 0;
  const kept = axis === 0 ? columns : rows;
  const warps = random.pick([1, 2, 4, 4]);
  const { kernel: traced } = kernel(
    {
      name: "combining",
      warps,
      inputs: { a: tensor(i32, [rows, columns]), b: tensor(i32, [rows, columns]) },
      outputs: {
        values: tensor(i32, [kept]),
        places: tensor(i32, [kept]),
        running: tensor(i32, [rows, columns]),
        first: tensor(i32, [1]),
        seen: tensor(i32, [rows, columns]),
      },
    },
    ({ a, b, values, places, running, first, seen }) => {
      const [value, place] = reduceWith(
        [a.load(), iota(i32, [rows, columns], { axis })],
        ([left, i], [right, j]) => {
          const later = right.gt(left);
          return [later.select(right, left), later.select(j, i)];
        },
        { axis, identity: [-(2 ** 31), -1] },
      );
      values.store(value);
      places.store(place);
      const [, line] = scanWith(
        [a.load(), b.load()],
        ([a0, b0], [a1, b1]) => [a0.mul(a1), b0.mul(a1).add(b1)],
        { axis, identity: [1, 0], reverse },
      );
      running.store(line);
      const earlier = (left: Tile<"i32">, right: Tile<"i32">): Tile<"i32"> =>
        left.ne(0).select(left, right);
      first.at(0).store(b.load().rem(3).reduce(earlier, 0));
      seen.store(b.load().rem(3).scan(earlier, 0, { axis, reverse }));
    },
  );
  return { kernel: traced, dimensions: {} };
}

/** Products of the items of two tiles, and of f32 by parts. */
function products(random: Random): Program {
  const items = mostlySmall([2, 1, 3], random);
  const [m, k, n] = [random.pick([16, 8]), random.pick([16, 8]), 8];
  const precision = random.pick(["ieee", "tf32", "tf32x3", "bf16x3", "bf16x6"] as const);
  const dtype = random.pick([f16, f32]);
  const { kernel: traced } = kernel(
    {
      name: "products",
      inputs: { x: tensor(f32, [items, m, k]), y: tensor(f32, [items, k, n]) },
      outputs: { out: tensor(f32, [items, m, n]) },
    },
    ({ x, y, out }) => {
      const [left, right] = [tame(x.load(), random), tame(y.load(), random)];
      out.store(
        dtype === f16
          ? dot(left.cast(f16), right.cast(f16), { dtype: f32 })
          : dot(left, right, { precision }),
      );
    },
  );
  return { kernel: traced, dimensions: {} };
}

/** Random numbers of every generator, with keys that follow from the block, from others and from memory. */
function draws(random: Random): Program {
  const blocks = 1 + random.below(2);
  const size = mostlySmall([16, 32, 7, 64], random);
  const generator = random.pick(["philox", "rbg", "threefry"] as const);
  const seed = random.below(2 ** 31);
  const [fromMemory, way, kind] = [random.below(2) === 0, random.below(3), random.below(4)];
  const inOrder = random.below(2) === 0;
  const { kernel: traced } = kernel(
    {
      name: "draws",
      grid: { i: blocks },
      inputs: { key: tensor(u32, [generator === "rbg" ? 4 : 2]) },
      outputs: { out: tensor(f32, [blocks, size]) },
    },
    ({ i, key, out }) => {
      const numbers = inOrder
        ? elementRun(i, [size])
        : iota(i32, [size], { axis: 0 }).add(i.mul(size));
      const first = randomKey(fromMemory ? key : seed, { generator });
      const own = [first, first.foldIn(i), first.split(2)[1]][way] ?? first;
      const drawn = [
        () => own.bits(numbers).rem(65_521).cast(f32),
        () => own.uniform(numbers),
        () => own.bernoulli(0.25, numbers).cast(f32),
        () => castStochastic(own.uniform(numbers), bf16, own.foldIn(1).bits(numbers)).cast(f32),
      ][kind];
      if (drawn !== undefined) out.at(i).store(drawn());
    },
  );
  return { kernel: traced, dimensions: {} };
}

/** PTX of the user's own among ordinary steps. */
function inlined(random: Random): Program {
  const [rows, columns] = [mostlySmall([4, 8, 1], random), mostlySmall([16, 8, 32, 5], random)];
  const pick = random.below(3);
  const { kernel: traced } = kernel(
    {
      name: "inlined",
      inputs: { x: tensor(f32, [rows, columns]), y: tensor(i32, [rows, columns]) },
      outputs: { out: tensor(f32, [rows, columns]), bits: tensor(i32, [rows, columns]) },
    },
    ({ x, y, out, bits }) => {
      const [clamped] = inlinePtx({
        operands: [tame(x.load(), random)],
        results: [f32],
        code: ([from], [to]) => `add.sat.f32 ${to}, ${from}, 0f00000000;`,
        meaning: (from) => [from.maximum(0).minimum(1)],
      });
      out.store(clamped.add(pick));
      const [left, right] = [y.load(), iota(i32, [rows, columns], { axis: 1 })];
      const [mixed] = inlinePtx({
        operands: [left, right],
        results: [i32],
        code: ([a, b], [to]) =>
          [
            `xor.b32 ${to}, ${a}, ${b};`,
            `and.b32 ${to}, ${a}, ${b};`,
            `mad.lo.s32 ${to}, ${a}, ${b}, ${a};`,
          ][pick] ?? "",
        meaning: (a, b) => [[a.xor(b), a.and(b), a.mul(b).add(a)][pick] ?? a],
      });
      bits.store(mixed);
    },
  );
  return { kernel: traced, dimensions: {} };
}

/** A kernel of one item, made for a batch along any axis. */
function batches(random: Random): Program {
  const [rows, columns] = [mostlySmall([4, 8, 2], random), mostlySmall([16, 8, 32], random)];
  const [ofX, ofOut] = [random.below(3), random.below(3)];
  const shares = random.below(2) === 0;
  const one = kernel(
    {
      name: "one",
      inputs: { x: tensor(f32, [rows, columns]), y: tensor(f32, [columns]) },
      outputs: { out: tensor(f32, [rows, columns]), total: tensor(f32, [rows]) },
    },
    ({ x, y, out, total }) => {
      const line: Tile<"f32"> = tame(y.load(), random);
      const tile = tame(x.load(), random).add(line.broadcastTo([rows, columns]));
      out.store(
        tile
          .transpose()
          .add(full(f32, [columns, rows], 1))
          .transpose(),
      );
      total.store(tile.sum({ axis: 1 }));
    },
  );
  const axes = { x: ofX, out: ofOut, ...(shares ? {} : { y: 0 }) };
  return { kernel: vmap(one, axes).kernel, dimensions: { batch: 1 + random.below(4) } };
}

export const tilePrograms = { arranging, combining, products, draws, inlined, batches };
