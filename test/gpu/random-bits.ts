/**
 * A million and more random numbers of every kind, drawn by kernels on a device, in files that `random_bits.py` holds against
 * JAX (Threefry and rbg) and Triton (Philox), bit for bit. Sizes are no powers of two.
 *
 *   node dist/cli/main.js run test/gpu/random-bits.ts -- FOLDER          draws; `emulator SMALLER` for a try without a GPU
 *   python3 test/gpu/random_bits.py FOLDER                               compares
 */
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import {
  tensor,
  bool,
  cdiv,
  constant,
  elementRun,
  f32,
  i32,
  iota,
  kernel,
  open,
  randomKey,
  slice,
  u32,
} from "tilewright";
import type { DType, ElementNumbers, RandomGenerator, RandomKey, Tile } from "tilewright";

type Draw = (key: RandomKey, numbers: ElementNumbers) => Tile;

interface Drawn {
  readonly name: string;
  readonly dtype: DType<"u32" | "f32" | "bool">;
  readonly draw: Draw;
}

const span = 2048;
const seed = 2 ** 32 * 3 + 12345;

const draws: readonly Drawn[] = [
  { name: "bits", dtype: u32, draw: (key, numbers) => key.bits(numbers) },
  { name: "split", dtype: u32, draw: (key, numbers) => (key.split(5)[3] ?? key).bits(numbers) },
  { name: "fold_in", dtype: u32, draw: (key, numbers) => key.foldIn(77).bits(numbers) },
  { name: "uniform", dtype: f32, draw: (key, numbers) => key.uniform(numbers) },
  {
    name: "uniform_between",
    dtype: f32,
    draw: (key, numbers) => key.uniform(numbers, { low: -3, high: 0.7 }),
  },
  { name: "normal", dtype: f32, draw: (key, numbers) => key.normal(numbers) },
  { name: "bernoulli", dtype: bool, draw: (key, numbers) => key.bernoulli(0.3, numbers) },
];

/** A key whose counter's lowest words end among its first elements. */
const ending = [0x12345678, 0x9abcdef0, 0xfffff000, 0xffffffff] as const;

function keyOf(generator: RandomGenerator | "ending"): RandomKey {
  if (generator !== "ending") return randomKey(seed, { generator });
  const [a, b, c, d] = ending;
  const words = [constant(u32, a), constant(u32, b), constant(u32, c), constant(u32, d)] as const;
  return randomKey(words, { generator: "rbg" });
}

const drawing = (shape: readonly number[], generator: RandomGenerator | "ending", drawn: Drawn) => {
  const count = shape.reduce((all, extent) => all * extent, 1);
  return kernel(
    {
      name: `${generator}_${drawn.name}`,
      grid: { i: cdiv(count, span) },
      outputs: { out: tensor(drawn.dtype, shape) },
    },
    ({ i, out }) => {
      const start = i.mul(span);
      const values = drawn.draw(keyOf(generator), elementRun(i, [span]));
      out
        .reshape([count])
        .at(slice(start, span))
        .store(values as never);
    },
  );
};

/** An index of 10 for each of so many rows. */
const choosing = (rows: number, generator: RandomGenerator) =>
  kernel(
    { name: "choosing", grid: { i: cdiv(rows, 64) }, outputs: { out: tensor(i32, [rows]) } },
    ({ i, out }) => {
      const numbers = iota(i32, [640], { axis: 0 }).add(i.mul(640)).reshape([64, 10]);
      const logits = iota(f32, [64, 10], { axis: 1 }).mul(0.25);
      out
        .at(slice(i.mul(64), 64))
        .store(randomKey(seed, { generator }).categorical(logits, numbers));
    },
  );

const [folder = "random-bits", name = "gpu", smaller = "1"] = process.argv
  .slice(2)
  .filter((argument) => argument !== "--");
const share = Number(smaller);
const shapes = [
  [Math.ceil(1_000_003 / share)],
  [Math.ceil(1009 / share), 997],
  [7, 13, Math.ceil(10_993 / share)],
];
mkdirSync(folder, { recursive: true });
const device = await open(name as "gpu");
try {
  for (const shape of shapes)
    for (const generator of ["threefry", "rbg", "ending", "philox"] as const)
      for (const drawn of generator === "philox" ? draws.slice(0, 1) : draws) {
        const { out } = await device.run(drawing(shape, generator, drawn), {});
        const file = [generator, drawn.name, ...shape].join("-");
        writeFileSync(join(folder, `${file}.bin`), out.data as Uint8Array);
      }
  const rows = Math.ceil(100_003 / share);
  for (const generator of ["threefry", "rbg"] as const) {
    const { out } = await device.run(choosing(rows, generator), {});
    writeFileSync(join(folder, `${generator}-categorical-${rows}.bin`), out.data);
  }
} finally {
  device.dispose();
}
