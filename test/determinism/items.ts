/**
 * What two processes make, to be compared by hashes: compiled kernels, plans, printed programs, results, files, and names of the cache.
 * An item makes everything it needs itself, so that items can be made in any order and more than once.
 */
import { mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import {
  tensor,
  bf16,
  cdiv,
  compileAhead,
  dim,
  f16,
  f32,
  f64,
  fromNumbers,
  i32,
  i8,
  kernel,
  open,
  slice,
  targets,
  TilewrightError,
} from "tilewright";
import type { DeviceName, HostArray, KernelDefinition, OpenOptions, Operation } from "tilewright";
import * as arrays from "tilewright/arrays";
import { writeNpy, writeNpz, writeSafetensors } from "tilewright/files";
import {
  compilePlan,
  evaluate,
  parseGraph,
  planText,
  printGraph,
  tensorOfArray,
} from "tilewright/graph";
import * as library from "tilewright/kernels";
import { TuningTable } from "tilewright/tune";
import { KernelCache } from "../../src/cuda/cache/kernel-cache.ts";
import { FileStore } from "../../src/cuda/cache/store.ts";
import { Random } from "../../src/support/random.ts";
import { exampleKernels } from "../example-kernels.ts";

/** Bytes and texts, the parts of what an item is. */
export type Part = string | Uint8Array;

/** What must not show in what is made. */
export interface Surroundings {
  /** Of the emulator. */
  readonly threads: number;
  /** Whether what has no order is given the other way around. */
  readonly isTurned: boolean;
}

export interface Item {
  readonly name: string;
  readonly make: (surroundings: Surroundings) => readonly Part[] | Promise<readonly Part[]>;
}

function text(value: unknown): string {
  return JSON.stringify(value, (_, each: unknown) =>
    typeof each === "bigint"
      ? `${each}n`
      : ArrayBuffer.isView(each) && !(each instanceof DataView)
        ? [...(each as Uint8Array)]
        : each,
  );
}

function bytesOf({ data }: HostArray): Uint8Array {
  return new Uint8Array(data.buffer, data.byteOffset, data.byteLength);
}

function numbers(seed: number, count: number): readonly number[] {
  const random = new Random(seed);
  return Array.from({ length: count }, () => random.normal());
}

/** PTX, manifest and tile IR. Paths of sources are told from the working directory on, which is not the kernel's. */
function compiled(definition: KernelDefinition, target: keyof typeof targets): readonly Part[] {
  const { ptx, manifest } = compileAhead(definition, target);
  const code = ptx.replace(/(\.file\s+\d+\s+)"([^"]*)"/g, (_, head: string, path: string) => {
    return head + basename(path);
  });
  const told = text({ ...manifest, code: undefined }).replace(
    /"file":"([^"]*)"/g,
    (_, path: string) => `"file":"${basename(path)}"`,
  );
  return [String(definition), code, told];
}

/** Launches of an operation, chosen without any measurement, and what they are compiled to. */
function planned(
  operation: Operation,
  dimensions: { readonly [name: string]: number },
  target: keyof typeof targets = "sm_90a",
): readonly Part[] {
  const plan = operation.plan(dimensions, target);
  const launches = plan.launches.map(({ kernel: _, ...inputs }) => inputs);
  return [
    text([plan.configuration, plan.source, plan.scratch]),
    text(launches),
    ...plan.launches.flatMap((launch) => compiled(launch.kernel, target)),
  ];
}

/** What a device gives, in how many steps or rounds. */
async function given(
  name: DeviceName,
  options: OpenOptions,
  what: Parameters<Awaited<ReturnType<typeof open>>["run"]>[0],
  inputs: { readonly [name: string]: HostArray },
): Promise<readonly Part[]> {
  const device = await open(name, options);
  try {
    const results = await device.run(what, inputs as never);
    return Object.entries(results as { readonly [name: string]: HostArray }).flatMap(
      ([result, value]) => [result, text(value.shape), bytesOf(value)],
    );
  } finally {
    device.dispose();
  }
}

/** A kernel whose sums depend on the order of blocks, so on the schedule and its seed. */
const sums = (): KernelDefinition => {
  const n = dim("n");
  return kernel(
    {
      name: "sums",
      grid: { i: cdiv(n, 32) },
      inputs: { x: tensor(f32, [n]) },
      inouts: { total: tensor(f32, [32]) },
    },
    ({ i, x, total }) => {
      total.atomicAdd(x.at(slice(i.mul(32), 32)).load());
    },
  ) as unknown as KernelDefinition;
};

/** Blocks that take long enough for the emulator to hand some to threads, on a clock that is fast. */
const work = (): KernelDefinition => {
  const n = dim("n");
  return kernel(
    {
      name: "work",
      grid: { i: cdiv(n, 64) },
      inputs: { x: tensor(f32, [n]) },
      outputs: { out: tensor(f32, [n]) },
    },
    ({ i, x, out }) => {
      const here = slice(i.mul(64), 64);
      out.at(here).store(x.at(here).load().mul(1.01).sin());
    },
  ) as unknown as KernelDefinition;
};

const vector = fromNumbers(f32, [1024], numbers(1, 1024));
const sumsGiven = { x: vector, total: fromNumbers(f32, [32], numbers(2, 32)) };

type F = arrays.NDArray<"f32">;

/** What a function of arrays is recorded as, planned as, and gives on the evaluator and, where it is asked for, on a device. */
async function program(
  f: (...given: F[]) => unknown,
  inputs: () => readonly F[],
  device?: "simulator" | "emulator",
): Promise<readonly Part[]> {
  const recorded = arrays.lower(f, ...inputs());
  const [module] = parseGraph(recorded);
  if (module === undefined) throw new Error("no program was recorded");
  const plan = compilePlan(module, [...module.functions.keys()][0] ?? "main");
  const read = async (): Promise<string> => {
    const results = arrays.jit(f)(...inputs());
    const leaves = (Array.isArray(results) ? results : [results]) as readonly F[];
    return text(await Promise.all(leaves.map(async (each) => bytesOf(await each.read()))));
  };
  await arrays.useDevice("evaluator");
  const parts = [recorded, printGraph(module), planText(plan), await read()];
  if (device === undefined) return parts;
  const opened = await open(device);
  try {
    await arrays.useDevice(opened);
    return [...parts, await read()];
  } finally {
    await arrays.useDevice();
    opened.dispose();
  }
}

const listed = (seed: number, ...shape: readonly number[]): F => {
  const count = shape.reduce((product, extent) => product * extent, 1);
  return arrays.array(fromNumbers(f32, shape, numbers(seed, count)));
};

const loss = (w: F, x: F): F =>
  arrays.mean(arrays.tanh(arrays.add(arrays.matmul(x, w), arrays.sin(arrays.sum(w)))));

const gradients = (w: F, x: F): readonly F[] => {
  const [value, slope] = arrays.valueAndGrad(loss)(w, x);
  return [arrays.astype(value, "f32"), slope];
};

const stablehlo = `module @jit_step {
  func.func public @main(%arg0: tensor<4x8xf32>, %arg1: tensor<8xf32>) -> (tensor<4xf32>, tensor<4x8xi32>) {
    %zero = stablehlo.constant dense<0.0> : tensor<f32>
    %count = stablehlo.constant dense<0> : tensor<i32>
    %end = stablehlo.constant dense<3> : tensor<i32>
    %one = stablehlo.constant dense<1> : tensor<i32>
    %0 = stablehlo.dot_general %arg0, %arg1, contracting_dims = [1] x [0] : (tensor<4x8xf32>, tensor<8xf32>) -> tensor<4xf32>
    %1:2 = stablehlo.while(%i = %count, %v = %0) : tensor<i32>, tensor<4xf32>
      cond {
        %c = stablehlo.compare LT, %i, %end : (tensor<i32>, tensor<i32>) -> tensor<i1>
        stablehlo.return %c : tensor<i1>
      } do {
        %n = stablehlo.add %i, %one : tensor<i32>
        %e = stablehlo.exponential %v : tensor<4xf32>
        %l = stablehlo.log %e : tensor<4xf32>
        stablehlo.return %n, %l : tensor<i32>, tensor<4xf32>
      }
    %2 = stablehlo.iota dim = 1 : tensor<4x8xi32>
    %3:2 = "stablehlo.sort"(%arg0, %2) <{dimension = 1 : i64, is_stable = true}> ({
    ^bb0(%a: tensor<f32>, %b: tensor<f32>, %p: tensor<i32>, %q: tensor<i32>):
      %s = stablehlo.compare LT, %a, %b, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
      stablehlo.return %s : tensor<i1>
    }) : (tensor<4x8xf32>, tensor<4x8xi32>) -> (tensor<4x8xf32>, tensor<4x8xi32>)
    return %1#1, %3#1 : tensor<4xf32>, tensor<4x8xi32>
  }
}`;

function fromText(): readonly Part[] {
  const [module] = parseGraph(stablehlo, "step.mlir");
  if (module === undefined) throw new Error("no program");
  const inputs = [[4, 8], [8]].map((shape, seed) =>
    tensorOfArray(fromNumbers(f32, shape, numbers(seed, shape.length === 2 ? 32 : 8))),
  );
  return [
    printGraph(module),
    printGraph(module, { locations: true }),
    planText(compilePlan(module, "main")),
    text(evaluate(module, "main", inputs)),
  ];
}

/** Files of the same arrays, which a program made in one order or the other. */
function files(): readonly Part[] {
  const named = {
    weights: fromNumbers(f16, [3, 5], numbers(3, 15)),
    bias: fromNumbers(f64, [5], numbers(4, 5)),
    ids: fromNumbers(i32, [0], []),
  };
  return [
    writeNpy(named.weights),
    writeNpz(named),
    writeSafetensors(named, { author: "somebody", about: "weights" }),
  ];
}

/** The names of what the cache on disk keeps, and its bytes. */
function cached(): readonly Part[] {
  const folder = mkdtempSync(join(tmpdir(), "tilewright-keys-"));
  try {
    const cache = new KernelCache(new FileStore(folder, 2 ** 20), "compiler");
    const build = { target: targets.sm_90a, driverVersion: 13_000, capability: "9.0" };
    const { ptx } = compileAhead(sums());
    const code = ptx.replace(/\.file.*/g, "");
    cache.writeCode(build, "sums", { ptx: code, log: undefined });
    return readdirSync(folder).sort();
  } finally {
    rmSync(folder, { recursive: true });
  }
}

/** The text of a table of measurements, which does not say in which order its lines and their sizes came. */
function tuned(isTurned: boolean): string {
  const about = { op: "mine", variant: "x f32", key: "00", gpu: "H200", target: "sm_90a" };
  const measured = { driver: "CUDA 13.0", us: 10, spread: 0.01, rounds: 15 };
  const lines = [16, 32, 64].map((tile) => ({
    ...about,
    ...measured,
    bucket: isTurned ? { n: 64, m: 32 } : { m: 32, n: 64 },
    choice: { tile },
  }));
  return new TuningTable(isTurned ? lines.toReversed() : lines).text;
}

const { key, normal, permutation, split, uniform } = arrays.random;

/** What every run of the tests takes. */
export const usual: readonly Item[] = [
  ...["axpy", "handoff", "softmax"].map((name) => ({
    name: `compiled example ${name}`,
    make: () => compiled(exampleKernels[name] as KernelDefinition, "sm_90a"),
  })),
  {
    name: "planned softmax",
    make: () => planned(library.softmax({ x: bf16 }) as unknown as Operation, { m: 64, n: 512 }),
  },
  {
    name: "sums on the simulator",
    make: async () => [
      ...(await given("simulator", { schedule: "random", seed: 3 }, sums(), sumsGiven)),
      ...(await given("simulator", {}, sums(), sumsGiven)),
    ],
  },
  {
    name: "sums on the emulator",
    make: ({ threads }) => given("emulator", { seed: 5, threads }, sums(), sumsGiven),
  },
  {
    name: "work on the emulator",
    make: ({ threads }) => given("emulator", { threads }, work(), { x: vector }),
  },
  {
    name: "gradients",
    make: () => program(gradients, () => [listed(1, 4, 3), listed(2, 5, 4)]),
  },
  {
    name: "tuning files",
    make: ({ isTurned }) => [tuned(isTurned)],
  },
  {
    name: "records of arrays",
    make: ({ isTurned }) => {
      const [a, b] = [listed(1, 3), listed(2, 3)];
      const f = (given: { readonly a: F; readonly b: F }): F => arrays.sub(given.a, given.b);
      return [arrays.lower(f, isTurned ? { b, a } : { a, b })];
    },
  },
  {
    name: "random numbers",
    make: () =>
      program(
        () => uniform(key(7), [8]),
        () => [],
      ),
  },
  {
    name: "sorted arrays",
    make: () =>
      program(
        (x: F) => [arrays.sort(x), arrays.argsort(x)],
        () => [listed(1, 3, 17)],
      ),
  },
  { name: "StableHLO text", make: fromText },
  { name: "files", make: files },
  { name: "names of the cache", make: cached },
];

const operations: readonly (readonly [string, () => unknown])[] = [
  ["matmul", () => library.matmul({ a: bf16, b: bf16 })],
  ["matmul of f32", () => library.matmul({ a: f32, b: f32, precision: "tf32x3" })],
  ["attention", () => library.attention({ q: bf16, k: bf16, v: bf16, causal: true })],
  ["gradients of attention", () => library.attentionBackward({ q: bf16, k: bf16, v: bf16 })],
  ["paged attention", () => library.pagedAttention({ q: bf16, pages: { k: bf16, v: bf16 } })],
  ["ragged products", () => library.raggedDot({ a: bf16, b: bf16 })],
  ["layer norm", () => library.layerNorm({ x: bf16 })],
  ["its gradients", () => library.layerNormBackward({ x: bf16, scale: bf16 })],
  ["cross entropy", () => library.crossEntropy({ logits: bf16, gradient: true })],
  ["quantised rows", () => library.quantize({ x: bf16, out: i8 })],
  ["reductions", () => library.reduce({ x: f32 })],
  ["running sums", () => library.scan({ x: f32 })],
  ["sorts", () => library.sort({ x: f32 })],
  ["top k", () => library.topK({ x: f32, k: 8 })],
  [
    "convolution",
    () =>
      library.convolution({
        x: tensor(bf16, [2, 8, 8, 64]),
        w: tensor(bf16, [64, 3, 3, 64]),
        padding: 1,
      }),
  ],
];

interface Sizes {
  readonly [name: string]: number;
}

const sizes: Sizes = { m: 512, n: 512, k: 512, d: 64, e: 64 };

function plannedFor(operation: Operation, target: keyof typeof targets): readonly Part[] {
  const given = operation.kernel.dimensions.map(({ name, multipleOf }) => [
    name,
    sizes[name] ?? Math.max(multipleOf, 64),
  ]);
  return planned(operation, Object.fromEntries(given) as Sizes, target);
}

function draws(): readonly F[] {
  const [first = key(8), second = key(9)] = split(key(7));
  return [arrays.astype(permutation(first, 9), "f32"), normal(second, [16])];
}

const image = (): F => listed(5, 1, 6, 6, 2);

const programs: readonly (readonly [string, (...given: F[]) => unknown, () => readonly F[]])[] = [
  [
    "convolution",
    (x, w) => arrays.nn.conv(x as never, w as never),
    () => [image(), listed(6, 3, 3, 2, 4)],
  ],
  ["attention", (q) => arrays.nn.attention(q, q, q), () => [listed(7, 2, 4, 2, 8)]],
  ["drawn numbers", draws, () => []],
  [
    "loop",
    (x) =>
      arrays.scan(
        (c: F, each: F) => [arrays.add(c, each), arrays.mul(c, each)] as const,
        arrays.sum(x, { axis: 0 }),
        x,
      ),
    () => [listed(8, 4, 3)],
  ],
  [
    "batches",
    (x) => arrays.vmap((row: F) => arrays.softmax(arrays.cumsum(row)))(x),
    () => [listed(9, 4, 6)],
  ],
  [
    "second derivatives",
    (x) =>
      arrays.grad((y: F) =>
        arrays.sum(arrays.grad((z: F) => arrays.sum(arrays.exp(arrays.sin(z))))(y)),
      )(x),
    () => [listed(10, 5)],
  ],
  [
    "scattered sums",
    (x) => arrays.addAt(arrays.zeros([4, 3]), arrays.array([1, 0, 1, 3], "i32"), x),
    () => [listed(11, 4, 3)],
  ],
];

/** Further items, which `TILEWRIGHT_CASES=all` takes. */
const further: readonly Item[] = [
  ...Object.entries(exampleKernels).flatMap(([name, definition]) =>
    (["sm_90a", "sm_80", "sm_100a"] as const).map((target) => ({
      name: `compiled example ${name} for ${target}`,
      make: () => runsOn(() => compiled(definition, target)),
    })),
  ),
  ...operations.flatMap(([name, make]) =>
    (["sm_90a", "sm_80"] as const).map((target) => ({
      name: `planned ${name} for ${target}`,
      make: () => runsOn(() => plannedFor(make() as Operation, target)),
    })),
  ),
  ...programs.flatMap(([name, f, inputs]) =>
    (["simulator", "emulator"] as const).map((device) => ({
      name: `program of ${name} on the ${device}`,
      make: () => program(f, inputs, device),
    })),
  ),
];

/** What is made, or why a target has no such kernel. */
function runsOn(make: () => readonly Part[]): readonly Part[] {
  try {
    return make();
  } catch (error) {
    if (!(error instanceof TilewrightError)) throw error;
    return [error.code, error.message];
  }
}

export const all: readonly Item[] = [...usual, ...further];
