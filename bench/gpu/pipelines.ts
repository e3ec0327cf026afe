/**
 * Pipelined kernels of the examples beside each other and beside Triton, in interleaved rounds: what a way of writing
 * costs, or an order of tiles gains. Results are compared with each other before anything is timed.
 *
 *   node dist/cli/main.js run bench/gpu/pipelines.ts -- matmul order split --rounds 15 --launches 20
 */
import { parseArgs } from "node:util";
import { fileURLToPath } from "node:url";
import {
  accumulator,
  array,
  bf16,
  block,
  cdiv,
  f32,
  gmem,
  i32,
  kernel,
  open,
  processors,
} from "tilewright";
import {
  constant,
  semaphore,
  slice,
  smem,
  storeThrough,
  tiles,
  toNumbers,
  warpSpecialized,
  wgmma,
} from "tilewright";
import type { Device, DeviceArray, KernelDefinition, TileOptions } from "tilewright";
import { bench } from "tilewright/bench";
import type { BenchEntry } from "tilewright/bench";
import { gemmOf } from "../../examples/gemm.ts";
import { matmulOf } from "../../examples/matmul.ts";
import { costOf } from "./case.ts";
import { Peer } from "./peers/peer.ts";
import { randomArray } from "./random.ts";

const { values, positionals } = parseArgs({
  args: process.argv.slice(2).filter((argument) => argument !== "--"),
  allowPositionals: true,
  options: {
    rounds: { type: "string", default: "15" },
    launches: { type: "string", default: "20" },
  },
});
const [rounds, launches] = [Number(values.rounds), Number(values.launches)];

type Shape = readonly [m: number, n: number, k: number];

/** Arrays of one product. */
interface Factors {
  readonly a: DeviceArray;
  readonly b: DeviceArray;
  readonly c: DeviceArray;
  readonly counter: DeviceArray;
}

function zero(device: Device): DeviceArray {
  const counter = device.allocate(i32, [1]);
  device.launch(clear, { counter });
  return counter;
}

const clear = kernel({ name: "clear", outputs: { counter: array(i32, [1]) } }, ({ counter }) => {
  counter.at(0).store(0);
});

/**
 * Products whose tiles are dealt beforehand or taken from a counter. Where they are skewed, one of eight, at random,
 * sums over all of the depth and the others over an eighth of it. Split, those of the last round are everybody's.
 */
const dealt = ([m, n, k]: Shape, { counted = false, skewed = false, split = false }) =>
  kernel(
    {
      name: counted ? "counted" : split ? "split" : "dealt",
      grid: { worker: processors },
      threads: ["copy", "first", "second"],
      inputs: { a: array(bf16, [m, k]), b: array(bf16, [k, n]) },
      outputs: { c: array(bf16, [m, n]) },
      inouts: { counter: array(i32, [1]) },
      scratch: {
        result: smem(bf16, [2, 2, 64, 64]),
        ...(split && {
          sums: gmem(f32, [processors, 2, 64, 256]),
          told: semaphore([processors, 2]),
        }),
      },
    },
    ({ a, b, c, counter, result, ...handed }) => {
      const all = Math.ceil(k / 64);
      const order = { order: "grouped" } as const;
      warpSpecialized(
        {
          tiles: tiles(
            { i: cdiv(m, 128), j: cdiv(n, 256) },
            { ...order, ...(counted && { counter }), ...(split && { split: handed as Handed }) },
          ),
          grid: skewed
            ? ({ i, j }) => {
                const mixed = i.mul(40503).add(j.mul(30011)).shr(4).and(7);
                const few = constant(i32, Math.ceil(all / 8));
                return { step: mixed.eq(0).select(constant(i32, all), few) };
              }
            : { step: constant(i32, all) },
          inputs: {
            left: ({ i, step }) => a.at(block(i, 128), block(step, 64)),
            right: ({ j, step }) => b.at(block(step, 64), block(j, 256)),
          },
          depth: 4,
        },
        ({ i, j, part, steps }) => {
          steps(
            accumulator(f32, [64, 256]),
            ({ left, right }, sum) => wgmma(sum, left.at(slice(part.mul(64), 64)), right),
            (product) => {
              const top = i.mul(2).add(part).mul(64);
              storeThrough(result.at(part), product.cast(bf16), c, [top, j.mul(256)]);
            },
          );
        },
      );
    },
  );

type Handed = NonNullable<TileOptions["split"]>;

function factors(device: Device, [m, n, k]: Shape, seed: number): Factors {
  return {
    a: randomArray(device, bf16, [m, k], seed),
    b: randomArray(device, bf16, [k, n], seed + 50),
    c: device.allocate(bf16, [m, n]),
    counter: zero(device),
  };
}

/** Those of the arrays that the kernel has. */
function argumentsOf({ kernel: { parameters } }: KernelDefinition, given: Factors): object {
  const names = new Set(parameters.map(({ name }) => name));
  return Object.fromEntries(Object.entries(given).filter(([name]) => names.has(name)));
}

/** Kernels that compute the same product, by name; ratios are to the last of them. */
async function products(
  device: Device,
  shape: Shape,
  kernels: { readonly [name: string]: KernelDefinition },
  peers: { readonly [name: string]: BenchEntry } = {},
): Promise<void> {
  const [m, n, k] = shape;
  const sets = [0, 1, 2, 3].map((seed) => factors(device, shape, seed));
  const [first] = sets;
  if (first === undefined) throw new Error("no arrays");
  let reference: Float64Array | undefined;
  for (const [name, definition] of Object.entries(kernels)) {
    device.launch(definition, argumentsOf(definition, first) as never);
    const found = toNumbers(await device.download(first.c));
    reference ??= found;
    const wrong = found.findIndex((value, at) => Math.abs(value - (reference?.[at] ?? NaN)) > 2);
    if (wrong >= 0) throw new Error(`${name}: element ${wrong} is ${found[wrong]}`);
  }
  const bound = (definition: KernelDefinition): BenchEntry => {
    return (set) =>
      device.bind(definition, argumentsOf(definition, sets[set % sets.length] ?? first) as never);
  };
  const ours = Object.entries(kernels).map(([name, each]) => [name, bound(each)] as const);
  const entries = { ...Object.fromEntries(ours), ...peers };
  const cost = costOf({ unit: "TFLOP/s", work: 2 * m * n * k });
  const result = await bench(device, entries, {
    rounds,
    launches,
    sets: sets.length,
    cost,
  });
  process.stdout.write(`${shape.join(" × ")}\n${result.table()}\n`);
  for (const set of sets) for (const each of [set.a, set.b, set.c, set.counter]) each.dispose();
}

async function orders(device: Device, skewed: boolean): Promise<void> {
  const shape: Shape = [8192, 8192, 4096];
  process.stdout.write(skewed ? "skewed tiles\n" : "even tiles\n");
  await products(device, shape, {
    counted: dealt(shape, { counted: true, skewed }),
    dealt: dealt(shape, { skewed }),
  });
}

const parts: { readonly [name: string]: (device: Device) => Promise<void> } = {
  async matmul(device) {
    const triton = fileURLToPath(new URL("./peers/triton_peer.py", import.meta.url));
    const peer = await Peer.start({
      name: "Triton",
      command: ["python3", triton],
    });
    try {
      const shape: Shape = [4096, 4096, 4096];
      const [m, n, k] = shape;
      const task = { op: "matmul", dtype: "bf16", m, n, k, b: "kn" };
      const { lanes } = await peer.prepare(task, 4, launches);
      const others = lanes.map(({ name, how, timed }) => {
        process.stdout.write(`${name}: ${how}\n`);
        return [name, () => timed] as const;
      });
      const kernels = { matmul: matmulOf(128, 256, 64), gemm: gemmOf() };
      await products(device, shape, kernels, Object.fromEntries(others));
    } finally {
      peer.stop();
    }
  },
  async order(device) {
    await orders(device, false);
    await orders(device, true);
  },
  async split(device) {
    const shape: Shape = [1664, 2816, 16384];
    await products(device, shape, {
      split: dealt(shape, { split: true }),
      dealt: dealt(shape, {}),
    });
  },
};

const device = await open("gpu");
try {
  for (const name of positionals) {
    const part = parts[name];
    if (part === undefined) throw new Error(`no part ${name}: ${Object.keys(parts).join(", ")}`);
    await part(device);
  }
} finally {
  device.dispose();
}
