/**
 * How fast kernels run on the GPU of this machine, beside what PyTorch, cuBLAS and Triton make of the same
 * work in the same minute. Results are checked against float64 on a sample before anything is timed.
 *
 *   npm run bench:gpu                     a table
 *   npm run bench:gpu -- --json FILE      and everything as JSON; what else the file holds stays
 */
import { spawnSync } from "node:child_process";
import { writeFileSync } from "node:fs";
import { bf16, f32, open, toNumbers } from "tilewright";
import type { BoundLaunch, Device, DeviceArray, DTypeName } from "tilewright";
import { gemmOf } from "../../examples/gemm.ts";
import { withRun } from "./figures.ts";
import type { GpuResult } from "./figures.ts";
import { axpy, copy, rmsNorm, rowSoftmax } from "./kernels.ts";
import { randomArray } from "./random.ts";

interface Job {
  readonly name: string;
  /** The peers' names for the same work. */
  readonly peers: readonly string[];
  readonly unit: "TB/s" | "TFLOP/s";
  /** Bytes or operations of one run. */
  readonly work: number;
  /** Several sets of arguments, taken in turn, so that none stays in the cache. */
  readonly launches: readonly BoundLaunch[];
  /** Throws where the results are wrong. */
  readonly check: () => Promise<void>;
  readonly dispose: () => void;
}

const rounds = 20;

async function timeOf(device: Device, { launches }: Job): Promise<number> {
  const round = device.record([...launches]);
  round.launch();
  await device.synchronize();
  const samples: number[] = [];
  for (let index = 0; index < rounds; index += 1)
    samples.push(await device.time(() => round.launch()));
  round.dispose();
  samples.sort((left, right) => left - right);
  return (samples[samples.length >> 1] ?? NaN) / launches.length;
}

type Arrays = readonly DeviceArray<DTypeName>[];

function disposer(arrays: Arrays, launches: readonly BoundLaunch[]): () => void {
  return () => {
    for (const launch of launches) launch.dispose();
    for (const array of arrays) array.dispose();
  };
}

/** Numbers at some positions of an array. */
async function sampled(device: Device, array: DeviceArray<DTypeName>): Promise<Float64Array> {
  return toNumbers(await device.download(array));
}

function ensure(holds: boolean, what: string): void {
  if (!holds) throw new Error(what);
}

function pointwiseJob(device: Device, kind: "copy" | "axpy"): Job {
  const count = 1 << 27;
  const sets = [0, 1].map((seed) => ({
    x: randomArray(device, f32, [count], seed),
    y: kind === "axpy" ? randomArray(device, f32, [count], seed + 9) : undefined,
    out: device.allocate(f32, [count]),
  }));
  const launches = sets.map(({ x, y, out }) =>
    y === undefined ? device.bind(copy, { x, out }) : device.bind(axpy, { x, y, out }),
  );
  const arrays = sets.flatMap(({ x, y, out }) => (y === undefined ? [x, out] : [x, y, out]));
  return {
    name: kind,
    peers: kind === "copy" ? ["copy torch"] : ["axpy torch.compile"],
    unit: "TB/s",
    work: count * 4 * (kind === "copy" ? 2 : 3),
    launches,
    check: async () => {
      const [first] = sets;
      if (first === undefined) return;
      launches[0]?.launch();
      const [x, out] = [await sampled(device, first.x), await sampled(device, first.out)];
      const y = first.y && (await sampled(device, first.y));
      for (let index = 0; index < count; index += 977) {
        const expected =
          y === undefined ? x[index] : Math.fround(2 * (x[index] ?? 0) + (y[index] ?? 0));
        ensure(out[index] === expected, `${kind}[${index}] is ${out[index]}, not ${expected}`);
      }
    },
    dispose: disposer(arrays, launches),
  };
}

function rowJob(device: Device, kind: "softmax" | "rms_norm"): Job {
  const [rows, columns] = [16384, 8192];
  const weight = randomArray(device, bf16, [columns], 5);
  const sets = [0, 1, 2, 3].map((seed) => ({
    x: randomArray(device, bf16, [rows, columns], seed),
    out: device.allocate(bf16, [rows, columns]),
  }));
  const softmax = rowSoftmax(rows, columns);
  const norm = rmsNorm(rows, columns);
  const launches = sets.map(({ x, out }) =>
    kind === "softmax" ? device.bind(softmax, { x, out }) : device.bind(norm, { x, weight, out }),
  );
  return {
    name: `${kind} 16384x8192`,
    peers:
      kind === "softmax" ? ["softmax torch.compile", "softmax torch"] : ["rms_norm torch.compile"],
    unit: "TB/s",
    work: rows * columns * 2 * 2,
    launches,
    check: async () => {
      const [first] = sets;
      if (first === undefined) return;
      launches[0]?.launch();
      const [x, out] = [await sampled(device, first.x), await sampled(device, first.out)];
      const weights = await sampled(device, weight);
      for (const row of [0, 777, rows - 1]) checkRow(kind, x, out, weights, row * columns, columns);
    },
    dispose: disposer([weight, ...sets.flatMap(({ x, out }) => [x, out])] as Arrays, launches),
  };
}

function checkRow(
  kind: "softmax" | "rms_norm",
  x: Float64Array,
  out: Float64Array,
  weights: Float64Array,
  from: number,
  columns: number,
): void {
  const row = x.subarray(from, from + columns);
  const largest = row.reduce((a, b) => Math.max(a, b));
  const sum = row.reduce((total, value) => total + Math.exp(value - largest), 0);
  const mean = row.reduce((total, value) => total + value * value, 0) / columns;
  for (let column = 0; column < columns; column += 1) {
    const value = row[column] ?? NaN;
    const expected =
      kind === "softmax"
        ? Math.exp(value - largest) / sum
        : (value / Math.sqrt(mean + 1e-6)) * (weights[column] ?? NaN);
    const found = out[from + column] ?? NaN;
    // bf16 rounds by at most 2^-8 of the value; f32 arithmetic before that by far less.
    ensure(
      Math.abs(found - expected) <= Math.abs(expected) * 2 ** -7.99 + 1e-30,
      `${kind}[${from + column}] is ${found}, not ${expected}`,
    );
  }
}

function gemmJob(device: Device, size: number): Job {
  const gemm = gemmOf();
  const sets = [0, 1, 2].map((seed) => ({
    a: randomArray(device, bf16, [size, size], seed),
    b: randomArray(device, bf16, [size, size], seed + 50),
    c: device.allocate(bf16, [size, size]),
  }));
  const launches = sets.map((set) => device.bind(gemm, set));
  return {
    name: `gemm ${size}`,
    peers: [`gemm ${size} cuBLAS`],
    unit: "TFLOP/s",
    work: 2 * size ** 3,
    launches,
    check: async () => {
      const [first] = sets;
      if (first === undefined) return;
      launches[0]?.launch();
      const [a, b, c] = [
        await sampled(device, first.a),
        await sampled(device, first.b),
        await sampled(device, first.c),
      ];
      for (let sample = 0; sample < 500; sample += 1) {
        const [row, column] = [(sample * 7919) % size, (sample * 104729) % size];
        let value = 0;
        let magnitude = 0;
        for (let inner = 0; inner < size; inner += 1) {
          const term = (a[row * size + inner] ?? NaN) * (b[inner * size + column] ?? NaN);
          value += term;
          magnitude += Math.abs(term);
        }
        const found = c[row * size + column] ?? NaN;
        const bound = magnitude * (size / 16) * 2 ** -22 + Math.abs(value) * 2 ** -8;
        ensure(Math.abs(found - value) <= bound, `c[${row}, ${column}] is ${found}, not ${value}`);
      }
    },
    dispose: disposer(
      sets.flatMap(({ a, b, c }) => [a, b, c]),
      launches,
    ),
  };
}

/** Microseconds of the host for a bound launch of a small kernel. */
async function launchCost(device: Device): Promise<number> {
  const count = 4096;
  const x = randomArray(device, f32, [count], 1);
  const out = device.allocate(f32, [count]);
  const bound = device.bind(copy, { x, out });
  const samples: number[] = [];
  for (let round = 0; round < 30; round += 1) {
    await device.synchronize();
    const start = performance.now();
    for (let index = 0; index < 500; index += 1) bound.launch();
    samples.push(((performance.now() - start) / 500) * 1000);
  }
  await device.synchronize();
  disposer([x, out] as Arrays, [bound])();
  samples.sort((left, right) => left - right);
  return samples[samples.length >> 1] ?? NaN;
}

function peerTimes(): { readonly [name: string]: number } {
  const script = process.env["TILEWRIGHT_PEERS"] ?? "bench/gpu/peers.py";
  const { status, stdout, stderr } = spawnSync("python3", [script], { encoding: "utf8" });
  const [line = "{}"] = stdout.trim().split("\n").slice(-1);
  if (status === 0) return JSON.parse(line) as { readonly [name: string]: number };
  process.stderr.write(`no peers: ${stderr.trim().split("\n").at(-1) ?? ""}\n`);
  return {};
}

const device = await open("gpu");
const results: GpuResult[] = [];
const jobs: readonly (() => Job)[] = [
  () => pointwiseJob(device, "copy"),
  () => pointwiseJob(device, "axpy"),
  () => rowJob(device, "softmax"),
  () => rowJob(device, "rms_norm"),
  () => gemmJob(device, 2048),
  () => gemmJob(device, 4096),
  () => gemmJob(device, 8192),
];
const times: {
  readonly job: Pick<Job, "name" | "peers" | "unit" | "work">;
  readonly ms: number;
}[] = [];
for (const make of jobs) {
  const job = make();
  try {
    await job.check();
    times.push({ job, ms: await timeOf(device, job) });
    const last = times.at(-1);
    process.stderr.write(`${job.name}: ${last?.ms.toFixed(4)} ms\n`);
  } catch (error) {
    process.stderr.write(
      `${job.name}: ${error instanceof Error ? error.message : String(error)}\n`,
    );
  } finally {
    job.dispose();
  }
}
const microseconds = await launchCost(device);
device.dispose();
const peers = process.argv.includes("--no-peers") ? {} : peerTimes();
const rate = ({ unit, work }: Pick<Job, "unit" | "work">, ms: number): string =>
  `${(work / ms / 1e9).toFixed(unit === "TB/s" ? 2 : 0)} ${unit}`;
for (const { job, ms } of times) {
  const others = job.peers.map((name) => {
    const time = peers[name];
    return time === undefined
      ? `${name} -`
      : `${name} ${rate(job, time)} (${(time / ms).toFixed(2)}x)`;
  });
  process.stdout.write(
    `${job.name.padEnd(24)} ${rate(job, ms).padStart(12)}   ${others.join(", ")}\n`,
  );
  results.push({ name: job.name, milliseconds: ms, unit: job.unit, work: job.work });
}
process.stdout.write(`bound launch              ${microseconds.toFixed(2)} us of the host\n`);
const position = process.argv.indexOf("--json");
const file = position < 0 ? undefined : process.argv[position + 1];
if (file !== undefined) {
  const date = new Date().toISOString().slice(0, 10);
  writeFileSync(file, withRun(file, { date, results, peers, launchMicroseconds: microseconds }));
}
