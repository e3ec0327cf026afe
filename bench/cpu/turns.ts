/**
 * Whoever is compared takes turns in one process, round by round, so that whatever else the machine does falls on all alike; medians count, of
 * the second call of each turn.
 * NumPy has a process of its own, on one thread.
 *
 *   round 1   1 thread   2 threads   jax-js
 *   round 2   1 thread   2 threads   jax-js    …
 */
import { spawnSync } from "node:child_process";
import process from "node:process";
import { fromNumbers, f32, i32 } from "tilewright";
import type { HostArray } from "tilewright";
import { median } from "../measure.ts";

/** An argument: numbers from −0.5 to 0.5, or from a least number one further, or whole numbers below a bound. */
export interface Argument {
  readonly shape: readonly number[];
  readonly least?: number;
  readonly below?: number;
}

/** Who takes turns: `run` gives the milliseconds of a call. */
export interface Runner {
  readonly name: string;
  readonly first: number;
  readonly run: () => Promise<number>;
  /** Gives its memory back, which others need. */
  readonly end?: () => void;
}

export interface CpuResult {
  readonly program: string;
  /** Milliseconds of first calls, by who ran. */
  readonly first: { readonly [name: string]: number };
  /** Medians of later calls. */
  readonly warm: { readonly [name: string]: number };
}

/** The same numbers for everybody. */
export function numbersOf({ shape, below, least = -0.5 }: Argument, seed: number): Float64Array {
  let state = seed;
  return Float64Array.from({ length: shape.reduce((all, each) => all * each, 1) }, () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    const uniform = state / 2 ** 32;
    return below === undefined ? uniform + least : Math.floor(uniform * below);
  });
}

export function hostOf(argument: Argument, seed: number): HostArray<"f32"> | HostArray<"i32"> {
  const values = numbersOf(argument, seed);
  return argument.below === undefined
    ? fromNumbers(f32, argument.shape, values)
    : fromNumbers(i32, argument.shape, values);
}

/** The same numbers in a typed array. */
export function elementsOf(argument: Argument, seed: number): Float32Array | Int32Array {
  const values = numbersOf(argument, seed);
  return argument.below === undefined ? Float32Array.from(values) : Int32Array.from(values);
}

export async function timed(work: () => Promise<void>): Promise<number> {
  const begin = performance.now();
  await work();
  return performance.now() - begin;
}

/** What somebody else's code gives; undefined, with a line that says why, where it throws. */
export async function unlessItThrows<T>(
  name: string,
  work: () => Promise<T> | T,
): Promise<T | undefined> {
  try {
    return await work();
  } catch (error) {
    console.log(`${name}: ${error instanceof Error ? error.message : String(error)}`);
    return undefined;
  }
}

/** Engines optimise within the first rounds. */
const warmups = 3;

/** Medians of rounds in turns; who throws in the midst of them is left out. */
export async function inTurns(
  program: string,
  runners: readonly Runner[],
  rounds: number,
): Promise<CpuResult> {
  const times = new Map(runners.map((runner) => [runner, [] as number[]]));
  for (let round = -warmups; round < rounds; round++)
    for (const [runner, own] of times) {
      // A device that comes anew loads its programs and gets its arrays again: the second call of each turn counts.
      const time = await unlessItThrows(`${runner.name}, ${program}`, async () => {
        await runner.run();
        return runner.run();
      });
      if (time === undefined) times.delete(runner);
      else if (round >= 0) own.push(time);
    }
  for (const { end } of runners) end?.();
  return {
    program,
    first: Object.fromEntries(runners.map(({ name, first }) => [name, first])),
    warm: Object.fromEntries([...times].map(([{ name }, own]) => [name, median(own)])),
  };
}

/** Milliseconds of an expression of x0, x1 … in NumPy, on one thread; undefined where there is no Python or no NumPy. */
export function numpyTime(
  numpy: string | undefined,
  given: readonly Argument[],
  rounds: number,
): number | undefined {
  if (numpy === undefined) return undefined;
  const made = given.map(({ shape, below, least = -0.5 }, i) =>
    below === undefined
      ? `x${i} = r.random(${JSON.stringify(shape)}, dtype=np.float32) + np.float32(${least})`
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

/** The result with NumPy's time beside it. */
export function besideNumPy(result: CpuResult, time: number | undefined): CpuResult {
  return time === undefined ? result : { ...result, warm: { ...result.warm, NumPy: time } };
}

const shown = (time: number | undefined): string =>
  time === undefined ? "" : time.toPrecision(time >= 100 ? 4 : 3);

/** How many times as fast one thread is as somebody else; undefined where one of them did not run. */
export function ratioTo(name: string, { warm }: CpuResult): number | undefined {
  const [theirs, ours] = [warm[name], warm["1 thread"]];
  return theirs === undefined || ours === undefined ? undefined : theirs / ours;
}

/** A table of milliseconds, with the ratio of one thread to somebody else, and its worst, best and mean below. */
export function tableOf(results: readonly CpuResult[], peer: string): readonly string[] {
  const columns = ["1 thread", "2 threads", peer, "NumPy"];
  const rows = results.map((result) => [
    result.program,
    ...columns.map((name) => shown(result.warm[name])),
    ratioTo(peer, result)?.toFixed(2) ?? "",
    shown(result.first["1 thread"]),
    shown(result.first[peer]),
  ]);
  const head = ["ms", ...columns, "ratio", "first", `${peer} first`];
  const widths = head.map((title, i) =>
    Math.max(title.length, ...rows.map((row) => (row[i] ?? "").length)),
  );
  const lines = [head, ...rows].map((row) =>
    row
      .map((cell, i) => (i === 0 ? cell.padEnd(widths[i] ?? 0) : cell.padStart(widths[i] ?? 0)))
      .join("  "),
  );
  return [...lines, ...summaryOf(results, peer)];
}

/** The worst and the best ratio, and the geometric mean of all. */
export function summaryOf(results: readonly CpuResult[], peer: string): readonly string[] {
  const ratios = results
    .flatMap((result) => {
      const ratio = ratioTo(peer, result);
      return ratio === undefined ? [] : [{ program: result.program, ratio }];
    })
    .sort((a, b) => a.ratio - b.ratio);
  const [worst] = ratios;
  const best = ratios.at(-1);
  if (worst === undefined || best === undefined) return [];
  const logarithms = ratios.map(({ ratio }) => Math.log(ratio));
  const mean = Math.exp(logarithms.reduce((sum, each) => sum + each, 0) / ratios.length);
  return [
    `times as fast as ${peer}, one thread: worst ${worst.ratio.toFixed(2)} (${worst.program}), best ${best.ratio.toFixed(2)} (${best.program}), geometric mean of ${ratios.length} ${mean.toFixed(2)}`,
  ];
}
