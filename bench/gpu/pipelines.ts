/**
 * Pipelined kernels of the examples beside each other and beside Triton, in interleaved rounds: what a way of writing
 * costs, or an order of tiles gains. Results are compared with each other before anything is timed.
 *
 *   node dist/cli/main.js run bench/gpu/pipelines.ts -- matmul --rounds 15 --launches 20
 */
import { parseArgs } from "node:util";
import { fileURLToPath } from "node:url";
import { bf16, open, toNumbers } from "tilewright";
import type { Device, DeviceArray, KernelDefinition } from "tilewright";
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
}

function factors(device: Device, [m, n, k]: Shape, seed: number): Factors {
  return {
    a: randomArray(device, bf16, [m, k], seed),
    b: randomArray(device, bf16, [k, n], seed + 50),
    c: device.allocate(bf16, [m, n]),
  };
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
    device.launch(definition, first as never);
    const found = toNumbers(await device.download(first.c));
    reference ??= found;
    const wrong = found.findIndex((value, at) => Math.abs(value - (reference?.[at] ?? NaN)) > 2);
    if (wrong >= 0) throw new Error(`${name}: element ${wrong} is ${found[wrong]}`);
  }
  const bound = (definition: KernelDefinition): BenchEntry => {
    return (set) => device.bind(definition, (sets[set % sets.length] ?? first) as never);
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
  for (const { a, b, c } of sets) for (const each of [a, b, c]) each.dispose();
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
      const kernels = { matmul: matmulOf(128, 128, 64), gemm: gemmOf() };
      await products(device, shape, kernels, Object.fromEntries(others));
    } finally {
      peer.stop();
    }
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
