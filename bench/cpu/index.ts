/**
 * `npm run bench -- --part cpu`: programs on the CPU device, beside jax-js's WebAssembly back end in the same process and NumPy in one of its own
 * where there is Python. In every round each takes its turn; medians count. First calls, which compile, are told apart.
 *
 *   program        1 thread   2 threads   jax-js   ratio   NumPy   first call   jax-js
 *   matmul 512     6.9 ms     3.6 ms      11.3     1.6     0.9     9.0          31
 */
import { spawnSync } from "node:child_process";
import { cpus } from "node:os";
import process from "node:process";
import { open, fromNumbers, f32, i32 } from "tilewright";
import type { Device, HostArray } from "tilewright";
import { array, jit, useDevice } from "tilewright/arrays";
import type { NDArray } from "tilewright/arrays";
import type * as Jax from "@jax-js/jax";
import { programs } from "./programs.ts";
import type { Argument, CpuProgram } from "./programs.ts";

export interface CpuSettings {
  readonly rounds: number;
  /** A part of the names of the programs to measure; all unless given. */
  readonly only: string | undefined;
}

/** Who takes turns. */
interface Runner {
  readonly name: string;
  readonly first: number;
  readonly run: () => Promise<number>;
}

export interface CpuResult {
  readonly program: string;
  /** Milliseconds of first calls, by who ran. */
  readonly first: { readonly [name: string]: number };
  /** Medians of later calls. */
  readonly warm: { readonly [name: string]: number };
}

/** The same numbers for everybody. */
function numbersOf({ shape, below }: Argument, seed: number): Float64Array {
  let state = seed;
  return Float64Array.from({ length: shape.reduce((all, each) => all * each, 1) }, () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    const uniform = state / 2 ** 32;
    return below === undefined ? uniform - 0.5 : Math.floor(uniform * below);
  });
}

function hostOf(argument: Argument, seed: number): HostArray<"f32"> | HostArray<"i32"> {
  const values = numbersOf(argument, seed);
  return argument.below === undefined
    ? fromNumbers(f32, argument.shape, values)
    : fromNumbers(i32, argument.shape, values);
}

async function timed(work: () => Promise<void>): Promise<number> {
  const begin = performance.now();
  await work();
  return performance.now() - begin;
}

async function ourRunner(program: CpuProgram, name: string, device: Device): Promise<Runner> {
  const f = jit(program.ours);
  const given = program.arguments.map((each, i): NDArray =>
    array(hostOf(each, i + 1) as HostArray<"f32">),
  );
  const run = async (): Promise<number> => {
    // The queue of the device before is empty: switching costs nothing that is timed.
    await useDevice(device);
    return timed(async () => {
      const result = f(...given);
      await result.blockUntilReady();
      result.dispose();
    });
  };
  return { name, first: await run(), run };
}

async function jaxRunner(program: CpuProgram, jax: typeof Jax): Promise<Runner | undefined> {
  if (program.jax === undefined) return undefined;
  const { numpy: np, jit: compile, blockUntilReady } = jax;
  const own = program.jax(jax);
  const f = compile((all: Jax.numpy.Array[]): Jax.numpy.Array => own(...all));
  const given = program.arguments.map((each, i) => {
    const values = numbersOf(each, i + 1);
    const data = each.below === undefined ? Float32Array.from(values) : Int32Array.from(values);
    return np.array(data).reshape([...each.shape]);
  });
  const run = (): Promise<number> =>
    timed(async () => {
      const result = f(given.map((each) => each.ref));
      await blockUntilReady(result);
      result.dispose();
    });
  return { name: "jax-js", first: await run(), run };
}

/** jax-js on one thread; undefined where it is not installed or this Node is too old for it. */
async function loadJax(): Promise<typeof Jax | undefined> {
  try {
    const jax = await import("@jax-js/jax");
    await jax.init("wasm");
    jax.defaultDevice("wasm");
    return jax;
  } catch (error) {
    console.log(
      `jax-js does not run here: ${error instanceof Error ? error.message : String(error)}`,
    );
    return undefined;
  }
}

function median(times: readonly number[]): number {
  const sorted = [...times].sort((a, b) => a - b);
  return sorted[Math.floor(sorted.length / 2)] ?? NaN;
}

/** Milliseconds of an expression in NumPy, on one thread; undefined where there is no Python or no NumPy. */
function numpyTime({ numpy, arguments: given }: CpuProgram, rounds: number): number | undefined {
  if (numpy === undefined) return undefined;
  const made = given.map(({ shape, below }, i) =>
    below === undefined
      ? `x${i} = r.random(${JSON.stringify(shape)}, dtype=np.float32) - 0.5`
      : `x${i} = r.integers(0, ${below}, ${JSON.stringify(shape)})`,
  );
  const script = [
    "import time, numpy as np",
    "r = np.random.default_rng(0)",
    ...made,
    "t = []",
    `for _ in range(${rounds + 2}):`,
    "  s = time.perf_counter()",
    `  ${numpy}`,
    "  t.append(time.perf_counter() - s)",
    "print(1e3 * sorted(t[2:])[len(t[2:]) // 2])",
  ].join("\n");
  const env = { ...process.env, OMP_NUM_THREADS: "1", OPENBLAS_NUM_THREADS: "1" };
  const { stdout, status } = spawnSync("python3", ["-c", script], { encoding: "utf8", env });
  return status === 0 ? Number(stdout) : undefined;
}

async function measured(
  program: CpuProgram,
  devices: ReadonlyMap<string, Device>,
  jax: typeof Jax | undefined,
  rounds: number,
): Promise<CpuResult> {
  const runners: Runner[] = [];
  for (const [name, device] of devices) runners.push(await ourRunner(program, name, device));
  const theirs =
    jax === undefined
      ? undefined
      : await jaxRunner(program, jax).catch((error: unknown) => {
          console.log(
            `jax-js, ${program.name}: ${error instanceof Error ? error.message : String(error)}`,
          );
          return undefined;
        });
  if (theirs !== undefined) runners.push(theirs);
  const times = new Map(runners.map((runner) => [runner, [] as number[]]));
  // Engines optimise within the first rounds.
  for (let round = -3; round < rounds; round++)
    for (const [runner, own] of times) {
      const time = await runner.run();
      if (round >= 0) own.push(time);
    }
  const numpy = numpyTime(program, rounds);
  return {
    program: program.name,
    first: Object.fromEntries(runners.map(({ name, first }) => [name, first])),
    warm: {
      ...Object.fromEntries([...times].map(([{ name }, own]) => [name, median(own)])),
      ...(numpy !== undefined && { NumPy: numpy }),
    },
  };
}

function geometricMean(values: readonly number[]): number {
  return Math.exp(values.reduce((total, value) => total + Math.log(value), 0) / values.length);
}

const shown = (time: number | undefined): string =>
  time === undefined ? "" : time.toPrecision(time >= 100 ? 4 : 3);

/** The rows of the table, with a ratio of one thread each. */
function tableOf(results: readonly CpuResult[]): readonly string[] {
  const columns = ["1 thread", "2 threads", "jax-js", "NumPy"];
  const rows = results.map(({ program, warm, first }) => {
    const ratio = (warm["jax-js"] ?? NaN) / (warm["1 thread"] ?? NaN);
    return [
      program,
      ...columns.map((name) => shown(warm[name])),
      Number.isNaN(ratio) ? "" : ratio.toFixed(2),
      shown(first["1 thread"]),
      shown(first["jax-js"]),
    ];
  });
  const head = ["ms", ...columns, "ratio", "first", "jax-js first"];
  const widths = head.map((title, i) =>
    Math.max(title.length, ...rows.map((row) => (row[i] ?? "").length)),
  );
  return [head, ...rows].map((row) =>
    row
      .map((cell, i) => (i === 0 ? cell.padEnd(widths[i] ?? 0) : cell.padStart(widths[i] ?? 0)))
      .join("  "),
  );
}

export async function benchCpu({ rounds, only }: CpuSettings): Promise<readonly CpuResult[]> {
  const devices = new Map<string, Device>();
  for (const threads of [1, 2])
    devices.set(`${threads} thread${threads === 1 ? "" : "s"}`, await open("cpu", { threads }));
  const jax = await loadJax();
  const results: CpuResult[] = [];
  try {
    for (const program of programs) {
      if (only !== undefined && !program.name.includes(only)) continue;
      try {
        results.push(await measured(program, devices, jax, rounds));
      } catch (error) {
        console.log(`${program.name}: ${error instanceof Error ? error.message : String(error)}`);
      }
    }
  } finally {
    await useDevice();
    for (const device of devices.values()) device.dispose();
  }
  console.log(`${cpus()[0]?.model.trim() ?? "unknown processor"}, Node ${process.versions.node}`);
  for (const line of tableOf(results)) console.log(line);
  const ratios = results.flatMap(({ warm }) => {
    const [theirs, ours] = [warm["jax-js"], warm["1 thread"]];
    return theirs === undefined || ours === undefined ? [] : [theirs / ours];
  });
  if (ratios.length > 0)
    console.log(`geometric mean of ratios: ${geometricMean(ratios).toFixed(2)}`);
  return results;
}
