/**
 * What is measured. The simulator runs kernels through a device as a user does, with arrays that are already
 * on it; the parts of the compiler and of the arithmetic are called directly, from the source.
 */
import { tensor, bf16, cdiv, convertElements, dim, f32, kernel, open, slice } from "tilewright";
import type { Device, DeviceArray, DTypeName } from "tilewright";
import { axpy } from "../examples/axpy.ts";
import { matmul, matmulOf } from "../examples/matmul.ts";
import { normal } from "../examples/support/data.ts";
import { dotElements } from "../src/formats/arithmetic/index.ts";
import { parseModule } from "../src/ir/parser/parser.ts";
import { printKernel, printModule } from "../src/ir/printer.ts";
import { placeKernel } from "../src/layout/plan/place.ts";
import { runPasses } from "../src/passes/pass-order.ts";
import { defaultTarget } from "../src/targets/target.ts";
import { longKernel } from "../test/support/long-kernel.ts";
import {
  flashAttention,
  matmulWithEpilogue,
  rowSoftmax,
  weightOnlyMatmul,
} from "../test/support/placed-kernels.ts";
import type { Benchmark } from "./measure.ts";

/** Two devices that differ in one thing: whether they look for races and the like. */
export interface Devices {
  readonly checked: Device;
  readonly unchecked: Device;
}

export async function openDevices(): Promise<Devices> {
  const options = { onLeak: () => undefined };
  return {
    checked: await open("simulator", options),
    unchecked: await open("simulator", { ...options, checks: false }),
  };
}

export interface GrowthSuite {
  readonly title: string;
  readonly benchmarks: readonly Benchmark[];
}

const rows = dim("rows");
const columns = 1024;
const rowsPerBlock = 8;

const softmax = kernel(
  {
    name: "softmax",
    grid: { i: cdiv(rows, rowsPerBlock) },
    inputs: { x: tensor(f32, [rows, columns]) },
    outputs: { out: tensor(f32, [rows, columns]) },
  },
  ({ i, x, out }) => {
    const here = slice(i.mul(rowsPerBlock), rowsPerBlock);
    const tile = x.at(here).load();
    const powers = tile.sub(tile.max({ axis: 1, keepDims: true })).exp();
    out.at(here).store(powers.div(powers.sum({ axis: 1, keepDims: true })));
  },
);

type Settings = Pick<Benchmark, "name" | "work" | "target">;

/** A launch on arrays that are made at the first run, which is the warm-up. */
function launching<A>(
  settings: Settings,
  device: Device,
  prepare: () => Promise<A>,
  launch: (args: A) => void,
): Benchmark {
  let prepared: Promise<A> | undefined;
  return {
    ...settings,
    run: async () => {
      prepared ??= prepare();
      launch(await prepared);
      await device.synchronize();
    },
  };
}

function upload<N extends DTypeName>(
  device: Device,
  ...data: Parameters<typeof normal<N>>
): Promise<DeviceArray<N>> {
  return device.upload(normal(...data));
}

function matmulBenchmark(
  device: Device,
  size: number,
  settings: Omit<Settings, "work">,
): Benchmark {
  return launching(
    { ...settings, work: { amount: size ** 3, unit: "MAC" } },
    device,
    async () => ({
      a: await upload(device, bf16, [size, size], 1),
      b: await upload(device, bf16, [size, size], 2),
      c: device.allocate(bf16, [size, size]),
    }),
    (args) => {
      device.launch(matmul, args);
    },
  );
}

function softmaxBenchmark(
  device: Device,
  height: number,
  settings: Omit<Settings, "work">,
): Benchmark {
  return launching(
    { ...settings, work: { amount: height * columns, unit: "element" } },
    device,
    async () => ({
      x: await upload(device, f32, [height, columns], 3),
      out: device.allocate(f32, [height, columns]),
    }),
    (args) => {
      device.launch(softmax, args);
    },
  );
}

function axpyBenchmark(
  device: Device,
  length: number,
  settings: Omit<Settings, "work">,
): Benchmark {
  return launching(
    { ...settings, work: { amount: length, unit: "element" } },
    device,
    async () => ({
      x: await upload(device, f32, [length], 4),
      y: await upload(device, f32, [length], 5),
      alpha: 2.5,
      out: device.allocate(f32, [length]),
    }),
    (args) => {
      device.launch(axpy, args);
    },
  );
}

export function simulatorBenchmarks({ checked, unchecked }: Devices): readonly Benchmark[] {
  return [
    matmulBenchmark(checked, 512, { name: "matmul bf16 512³, checked", target: 1000 }),
    matmulBenchmark(unchecked, 512, { name: "matmul bf16 512³, unchecked", target: 250 }),
    softmaxBenchmark(checked, 4096, { name: "softmax f32 4096×1024, checked", target: 500 }),
    softmaxBenchmark(unchecked, 4096, { name: "softmax f32 4096×1024, unchecked" }),
    axpyBenchmark(checked, 2 ** 22, { name: "axpy f32 2²², checked" }),
  ];
}

export function growthSuites({ checked }: Devices): readonly GrowthSuite[] {
  return [
    {
      title: "matmul bf16, checked",
      benchmarks: [256, 512, 1024].map((size) =>
        matmulBenchmark(checked, size, { name: `${size}³` }),
      ),
    },
    {
      title: "softmax f32, checked",
      benchmarks: [1024, 2048, 4096, 8192].map((height) =>
        softmaxBenchmark(checked, height, { name: `${height}×${columns}` }),
      ),
    },
    {
      title: "placing a long kernel",
      benchmarks: [1250, 2500, 5000, 10_000].map((ops) => {
        const long = longKernel(ops);
        return {
          name: `${ops} ops`,
          work: { amount: ops, unit: "op" },
          run: () => void placeKernel(long, defaultTarget),
        };
      }),
    },
  ];
}

const tile = [128, 128, 64] as const;

function countOps(text: string): number {
  return text.split("\n").filter((line) => /^\s*(%\d+.*= )?[a-z_]+\b/.test(line)).length;
}

export function compilerBenchmarks(): readonly Benchmark[] {
  const text = printKernel(matmul.kernel);
  const module = parseModule(text);
  const [traced] = module.kernels;
  if (traced === undefined) throw new Error("the text of a kernel holds no kernel");
  const work = { amount: countOps(text), unit: "op" };
  return [
    { name: "trace matmul", work, repeat: 20, run: () => void matmulOf(...tile) },
    { name: "passes over matmul", work, repeat: 20, run: () => void runPasses(traced) },
    { name: "print matmul", work, repeat: 100, run: () => void printModule(module) },
    { name: "parse matmul", work, repeat: 50, run: () => void parseModule(text) },
  ];
}

/** Layouts of kernels as users write them: each within 50 ms. */
export function placementBenchmarks(): readonly Benchmark[] {
  const kernels = { flashAttention, matmulWithEpilogue, rowSoftmax, weightOnlyMatmul };
  return Object.values(kernels).map((make) => {
    const { kernel: traced, name } = make();
    const amount = countOps(printKernel(traced));
    return {
      name: `place ${name}`,
      work: { amount, unit: "op" },
      target: 50,
      run: () => void placeKernel(traced, defaultTarget),
    };
  });
}

export function formatBenchmarks(): readonly Benchmark[] {
  const count = 2 ** 20;
  const numbers = normal(f32, [count], 6).data;
  const converted = new Uint16Array(count);
  const [m, n, k] = [128, 128, 512];
  const a = normal(bf16, [m, k], 7).data;
  const b = normal(bf16, [k, n], 8).data;
  const c = new Float32Array(m * n);
  return [
    {
      name: "convert f32 to bf16, 2²⁰",
      work: { amount: count, unit: "element" },
      repeat: 4,
      run: () => {
        convertElements(f32, bf16, numbers, converted);
      },
    },
    {
      name: "dot bf16 128×128×512",
      work: { amount: m * n * k, unit: "MAC" },
      repeat: 4,
      run: () => {
        dotElements({ m, n, k, operand: bf16, accumulator: f32 }, a, b, c);
      },
    },
  ];
}
