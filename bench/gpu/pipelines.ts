/**
 * Pipelined kernels of the examples beside Triton, beside each other, and beside kernels of files of one's own, in
 * interleaved rounds. `--beside` may be repeated; parts take from a file what it exports under their own name, a kernel or a
 * function that makes one.
 *
 *   node dist/cli/main.js run bench/gpu/pipelines.ts -- matmul order split --rounds 15 --launches 20
 *   node dist/cli/main.js run bench/gpu/pipelines.ts -- gemm attention --beside by-hand/gemm.ts --beside by-hand/attention.ts
 */
import { fileURLToPath } from "node:url";
import { open } from "tilewright";
import type { Device } from "tilewright";
import type { BenchEntry } from "tilewright/bench";
import { attentionOf } from "../../examples/attention.ts";
import { gemmOf } from "../../examples/gemm.ts";
import { matmulOf } from "../../examples/matmul.ts";
import { numberOption, scriptArguments } from "../../scripts/arguments.ts";
import { timeAlike } from "./alike.ts";
import type { AlikeWork, Kernels } from "./alike.ts";
import { setsOf } from "./case.ts";
import { Peer } from "./peers/peer.ts";
import { kernelsBeside, productOf } from "./pipeline-kernels.ts";
import type { Shape } from "./pipeline-kernels.ts";

const { values, positionals } = scriptArguments(import.meta.url, {
  rounds: { type: "string", default: "15" },
  launches: { type: "string", default: "20" },
  beside: { type: "string", multiple: true, default: [] },
});
const settings = {
  rounds: numberOption("rounds", values.rounds),
  launches: numberOption("launches", values.launches),
};
const square: Shape = [4096, 4096, 4096];

function productWork([m, n, k]: Shape, what = ""): AlikeWork {
  return {
    title: `${m} × ${n} × ${k}${what}`,
    inputs: { a: [m, k], b: [k, n] },
    output: [m, n],
    work: 2 * m * n * k,
    tolerance: 2,
  };
}

/** Triton's fastest product, started for as long as `work` takes. */
async function withTriton(
  [m, n, k]: Shape,
  work: (lanes: { readonly [name: string]: BenchEntry }) => Promise<void>,
): Promise<void> {
  const script = fileURLToPath(new URL("./peers/triton_peer.py", import.meta.url));
  const peer = await Peer.start({ name: "Triton", command: ["python3", script] });
  try {
    const task = { op: "matmul", dtype: "bf16", m, n, k, b: "kn" };
    const sets = setsOf({ setBytes: 2 * (m * k + k * n + m * n) }, settings.launches);
    const { lanes } = await peer.prepare(task, sets, settings.launches);
    for (const { name, how } of lanes) process.stdout.write(`${name}: ${how}\n`);
    await work(Object.fromEntries(lanes.map(({ name, timed }) => [name, () => timed] as const)));
  } finally {
    peer.stop();
  }
}

async function orders(device: Device, skewed: boolean): Promise<void> {
  const shape: Shape = [8192, 8192, 4096];
  const what = skewed ? ", skewed tiles" : ", even tiles";
  await timeAlike(device, productWork(shape, what), settings, {
    counted: productOf(shape, { counted: true, skewed }),
    dealt: productOf(shape, { skewed }),
  });
}

/** The example's kernel, and what files have of the name. */
async function besideFiles(
  device: Device,
  work: AlikeWork,
  name: string,
  example: Kernels,
  options?: object,
): Promise<void> {
  const others = await kernelsBeside(values.beside, name, options);
  await timeAlike(device, work, settings, { ...example, ...others });
}

const parts: { readonly [name: string]: (device: Device) => Promise<void> } = {
  async matmul(device) {
    const kernels = { matmul: matmulOf(128, 256, 64), gemm: gemmOf() };
    await withTriton(square, (lanes) =>
      timeAlike(device, productWork(square), settings, kernels, lanes),
    );
  },
  async gemm(device) {
    await besideFiles(device, productWork(square), "gemm", { gemm: gemmOf() });
  },
  async attention(device) {
    const [heads, length, width] = [64, 4096, 128];
    const shape = [heads, length, width];
    for (const causal of [false, true]) {
      const work: AlikeWork = {
        title: `attention of ${heads} heads, ${length} × ${width}${causal ? ", causal" : ""}`,
        inputs: { q: shape, k: shape, v: shape },
        output: shape,
        work: (causal ? 2 : 4) * heads * length ** 2 * width,
        tolerance: 0.02,
      };
      const example = { attention: attentionOf({ causal }) };
      await besideFiles(device, work, "attention", example, { causal });
    }
  },
  async order(device) {
    await orders(device, false);
    await orders(device, true);
  },
  async split(device) {
    const shape: Shape = [1664, 2816, 16384];
    await timeAlike(device, productWork(shape), settings, {
      split: productOf(shape, { split: true }),
      dealt: productOf(shape),
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
