/**
 * The kernels of docs/matmul-steps.md, from the naive one to that of the library, timed in turns on a GPU. The page shows
 * the same text, which a test holds it to.
 *
 *   node dist/cli/main.js run bench/gpu/matmul-steps.ts [-- SIZE]
 */
import {
  accumulator,
  tensor,
  bf16,
  block,
  cdiv,
  dim,
  dot,
  f32,
  kernel,
  loop,
  open,
} from "tilewright";
import { processors, slice, smem, storeThrough, tiles, waitGroup } from "tilewright";
import { warpSpecialized, wgmma, zeros } from "tilewright";
import { bench } from "tilewright/bench";
import { matmul } from "tilewright/kernels";
import { randomArray } from "./random.ts";

const [m, n, k] = [dim("m"), dim("n", { multipleOf: 8 }), dim("k", { multipleOf: 8 })];

const naive = kernel(
  {
    name: "naive",
    grid: { i: cdiv(m, 16), j: cdiv(n, 16) },
    inputs: { a: tensor(bf16, [m, k]), b: tensor(bf16, [k, n]) },
    outputs: { c: tensor(bf16, [m, n]) },
  },
  ({ i, j, a, b, c }) => {
    const sums = loop({ to: k, carry: zeros(f32, [16, 16]) }, (step, before) => {
      const column = a.at(block(i, 16), slice(step, 1)).load().cast(f32);
      const row = b.at(slice(step, 1), block(j, 16)).load().cast(f32);
      return before.add(column.mul(row));
    });
    c.at(block(i, 16), block(j, 16)).store(sums.cast(bf16));
  },
);

const tensorCores = kernel(
  {
    name: "tensor_cores",
    grid: { i: cdiv(m, 64), j: cdiv(n, 64) },
    inputs: { a: tensor(bf16, [m, k]), b: tensor(bf16, [k, n]) },
    outputs: { c: tensor(bf16, [m, n]) },
  },
  ({ i, j, a, b, c }) => {
    const steps = { to: cdiv(k, 32), carry: zeros(f32, [64, 64]), depth: 1 };
    const sums = loop(steps, (step, before) => {
      const left = a.at(block(i, 64), block(step, 32)).load();
      const right = b.at(block(step, 32), block(j, 64)).load();
      return dot(left, right, { accumulator: before });
    });
    c.at(block(i, 64), block(j, 64)).store(sums.cast(bf16));
  },
);

const pipelined = kernel(
  {
    name: "pipelined",
    grid: { i: cdiv(m, 64), j: cdiv(n, 64) },
    inputs: { a: tensor(bf16, [m, k]), b: tensor(bf16, [k, n]) },
    outputs: { c: tensor(bf16, [m, n]) },
  },
  ({ i, j, a, b, c }) => {
    const steps = { to: cdiv(k, 64), carry: zeros(f32, [64, 64]) };
    const sums = loop(steps, (step, before) => {
      const left = a.at(block(i, 64), block(step, 64)).load();
      const right = b.at(block(step, 64), block(j, 64)).load();
      return dot(left, right, { accumulator: before });
    });
    c.at(block(i, 64), block(j, 64)).store(sums.cast(bf16));
  },
);

const wide = kernel(
  {
    name: "wide",
    warps: 8,
    grid: { i: cdiv(m, 128), j: cdiv(n, 256) },
    inputs: { a: tensor(bf16, [m, k]), b: tensor(bf16, [k, n]) },
    outputs: { c: tensor(bf16, [m, n]) },
    scratch: { result: smem(bf16, [4, 128, 64]) },
  },
  ({ i, j, a, b, c, result }) => {
    const steps = { to: cdiv(k, 64), carry: zeros(f32, [128, 256]) };
    const sums = loop(steps, (step, before) => {
      const left = a.at(block(i, 128), block(step, 64)).load();
      const right = b.at(block(step, 64), block(j, 256)).load();
      return dot(left, right, { accumulator: before });
    });
    storeThrough(result, sums.cast(bf16), c, [i.mul(128), j.mul(256)]);
    waitGroup(0, { read: true });
  },
);

const persistent = kernel(
  {
    name: "persistent",
    grid: { worker: processors },
    threads: ["copy", "first", "second"],
    inputs: { a: tensor(bf16, [m, k]), b: tensor(bf16, [k, n]) },
    outputs: { c: tensor(bf16, [m, n]) },
    scratch: { result: smem(bf16, [2, 2, 64, 64]) },
  },
  ({ a, b, c, result }) => {
    warpSpecialized(
      {
        tiles: tiles({ i: cdiv(m, 128), j: cdiv(n, 256) }, { order: "grouped" }),
        grid: { step: cdiv(k, 64) },
        inputs: {
          left: ({ i, step }) => a.at(block(i, 128), block(step, 64)),
          right: ({ j, step }) => b.at(block(step, 64), block(j, 256)),
        },
        depth: 4,
      },
      ({ i, j, part, steps }) => {
        const sums = steps(accumulator(f32, [64, 256]), ({ left, right }, before) =>
          wgmma(before, left.at(slice(part.mul(64), 64)), right),
        );
        const top = i.mul(2).add(part).mul(64);
        storeThrough(result.at(part), sums.cast(bf16), c, [top, j.mul(256)]);
      },
    );
  },
);

const [given] = process.argv.slice(2).map(Number);
const size = given === undefined || Number.isNaN(given) ? 4096 : given;
const device = await open("gpu");
const sets = Array.from({ length: 3 }, (_, seed) => ({
  a: randomArray(device, bf16, [size, size], seed),
  b: randomArray(device, bf16, [size, size], seed + 50),
  c: device.allocate(bf16, [size, size]),
}));
const arrays = (set: number) => {
  const found = sets[set % sets.length];
  if (found === undefined) throw new RangeError(`no set ${set}`);
  return found;
};
const library = matmul({ a: bf16, b: bf16 });
const result = await bench(
  device,
  {
    naive: (set) => device.bind(naive, arrays(set)),
    tensorCores: (set) => device.bind(tensorCores, arrays(set)),
    pipelined: (set) => device.bind(pipelined, arrays(set)),
    wide: (set) => device.bind(wide, arrays(set)),
    persistent: (set) => device.bind(persistent, arrays(set)),
    library: (set) => {
      const { a, b, c } = arrays(set);
      return device.bind(library, { a, b, out: c });
    },
  },
  {
    ...{ sets: sets.length, launches: 5 },
    cost: library.plan({ m: size, n: size, k: size }).cost(),
  },
);
process.stdout.write(result.table());
for (const set of sets) for (const each of Object.values(set)) each.dispose();
device.dispose();
