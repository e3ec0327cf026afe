/**
 * A million and more random numbers of every kind, drawn by kernels on a device, in files that `random_bits.py` holds against
 * JAX (Threefry) and Triton (Philox), bit for bit. Sizes are no powers of two.
 *
 *   node dist/cli/main.js run test/gpu/random-bits.ts -- FOLDER          draws; `emulator SMALLER` for a try without a GPU
 *   python3 test/gpu/random_bits.py FOLDER                               compares
 */
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { array, bool, cdiv, f32, i32, iota, kernel, open, randomKey, slice, u32 } from "tilewright";
import type { DType, RandomKey, Tile } from "tilewright";

type Numbers = Tile<"u32">;
type Draw = (key: RandomKey, numbers: Numbers) => Tile;

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

const drawing = (shape: readonly number[], generator: "threefry" | "philox", drawn: Drawn) => {
  const count = shape.reduce((all, extent) => all * extent, 1);
  return kernel(
    {
      name: `${generator}_${drawn.name}`,
      grid: { i: cdiv(count, span) },
      outputs: { out: array(drawn.dtype, shape) },
    },
    ({ i, out }) => {
      const start = i.mul(span);
      const numbers = iota(u32, [span], 0).add(start.cast(u32));
      const values = drawn.draw(randomKey(seed, { generator }), numbers);
      out
        .reshape([count])
        .at(slice(start, span))
        .store(values as never);
    },
  );
};

/** An index of 10 for each of so many rows. */
const choosing = (rows: number) =>
  kernel(
    { name: "choosing", grid: { i: cdiv(rows, 64) }, outputs: { out: array(i32, [rows]) } },
    ({ i, out }) => {
      const numbers = iota(i32, [640], 0).add(i.mul(640)).reshape([64, 10]);
      const logits = iota(f32, [64, 10], 1).mul(0.25);
      out.at(slice(i.mul(64), 64)).store(randomKey(seed).categorical(logits, numbers));
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
    for (const generator of ["threefry", "philox"] as const)
      for (const drawn of generator === "threefry" ? draws : draws.slice(0, 1)) {
        const { out } = await device.run(drawing(shape, generator, drawn), {});
        const file = [generator, drawn.name, ...shape].join("-");
        writeFileSync(join(folder, `${file}.bin`), out.data as Uint8Array);
      }
  const rows = Math.ceil(100_003 / share);
  const { out } = await device.run(choosing(rows), {});
  writeFileSync(join(folder, `threefry-categorical-${rows}.bin`), out.data);
} finally {
  device.dispose();
}
