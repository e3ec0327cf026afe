/**
 * Programs of JAX beside JAX, on the same GPU: results beside JAX's, and both timed in turns.
 *
 *   tilewright run bench/gpu/programs/index.ts --device gpu [-- bert kmeans --tf32 --profile --python python3 --folder /tmp/programs]
 *
 *   tilewright   ▮▮▮        ▮▮▮             a round each: the ratio is the median of the ratios of rounds
 *   JAX             ▮▮▮▮       ▮▮▮▮
 *
 * With `--tf32` products of f32 are rounded as JAX rounds them; with `--profile` the ten dearest kinds of launches are listed.
 * Without names all programs run (models.py, sciences.py, data.py, large_models.py).
 * Of those whose arrays are too many for an archive, times alone are compared.
 */
import { execFileSync } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { toNumbers } from "tilewright";
import type { Device, DeviceArray, HostArray } from "tilewright";
import { bench } from "tilewright/bench";
import { readNpz } from "tilewright/files";
import { compilePlan, parseGraph, planText, Program, tensorOfArray } from "tilewright/graph";
import type { Plan } from "tilewright/graph";
import { countOf, dtypeOf, givenArray, randomArray } from "./arrays.ts";
import type { TensorType } from "./arrays.ts";
import { numberTable } from "../../report.ts";
import { Peer } from "../peers/peer.ts";

/** Each round has a sample of either, of as many runs as this allows. */
const sampleMilliseconds = 100;
const mostRuns = 20;

const { values: options, positionals } = parseArgs({
  args: process.argv.slice(2),
  allowPositionals: true,
  options: {
    tf32: { type: "boolean", default: false },
    profile: { type: "boolean", default: false },
    python: { type: "string", default: "python3" },
    folder: { type: "string" },
    rounds: { type: "string", default: "9" },
  },
});
const matmulPrecision = options.tf32 ? "tf32" : "f32";
const folder = options.folder ?? mkdtempSync(join(tmpdir(), "programs-"));
const peerScript = fileURLToPath(new URL("jax_programs.py", import.meta.url));

/** The greatest difference, of the greatest number. */
function differenceOf(ours: HostArray, theirs: HostArray): number {
  const [found, wanted] = [toNumbers(ours), toNumbers(theirs)];
  let [greatest, difference] = [0, 0];
  for (const [i, value] of wanted.entries()) {
    greatest = Math.max(greatest, Math.abs(value));
    const own = found[i] ?? NaN;
    if (!Object.is(own, value)) difference = Math.max(difference, Math.abs(own - value));
  }
  return difference / (greatest || 1);
}

/** A sample of ours, as JAX's is taken: by the host's clock, waiting for the last run. */
function sampler(device: Device, run: () => Promise<unknown>): () => Promise<number> {
  let runs = 1;
  return async () => {
    const begin = performance.now();
    for (let turn = 0; turn < runs; turn += 1) await run();
    await device.synchronize();
    const each = (performance.now() - begin) / runs;
    runs = Math.max(1, Math.min(mostRuns, Math.floor(sampleMilliseconds / each)));
    return each;
  };
}

async function profile(device: Device, plan: Plan, inputs: readonly HostArray[]): Promise<void> {
  const program = await Program.load(device, plan);
  await program.run(inputs.map((each) => tensorOfArray(each)));
  const kinds = new Map<string, { launches: number; milliseconds: number }>();
  for (const { kernel, arrays, milliseconds } of await program.profile()) {
    const kind = `${kernel} ${arrays.join(" ").replaceAll(/tensor<|>/g, "")}`;
    const row = kinds.get(kind) ?? { launches: 0, milliseconds: 0 };
    kinds.set(kind, {
      launches: row.launches + 1,
      milliseconds: row.milliseconds + milliseconds,
    });
  }
  const rows = [...kinds].sort(([, a], [, b]) => b.milliseconds - a.milliseconds);
  for (const [kind, { launches, milliseconds }] of rows.slice(0, 10))
    console.log(`  ${milliseconds.toFixed(3)} ms  ${launches} ×  ${kind}`.slice(0, 180));
  program.dispose();
}

interface Row {
  readonly name: string;
  readonly ours: number;
  readonly theirs: number;
  /** Our time as a multiple of JAX's, and where that lies at 95%. */
  readonly ratio: number;
  readonly low: number;
  readonly high: number;
  /** Undefined where times alone are compared. */
  readonly difference: number | undefined;
  readonly launches: number;
}

async function compareProgram(device: Device, peer: Peer, name: string): Promise<Row> {
  const { lanes } = await peer.prepare({ program: name, folder }, 1, 1);
  const [jax] = lanes;
  if (jax === undefined) throw new Error("JAX has no such program");
  const [module] = parseGraph(readFileSync(join(folder, `${name}.mlir`), "utf8"));
  if (module === undefined) throw new Error(`${name}.mlir has no program`);
  const plan = compilePlan(module, "main", undefined, { matmulPrecision });
  const program = await Program.load(device, plan);
  const archive = join(folder, `${name}.npz`);
  const file = existsSync(archive) ? await readNpz(readFileSync(archive)) : undefined;
  const arrayAt = (type: TensorType, i: number): HostArray =>
    file === undefined ? randomArray(type, i) : givenArray(file, `in${i}`, type);
  const inputs: DeviceArray[] = [];
  for (const [i, type] of plan.parameters.entries())
    inputs.push(await device.upload({ ...arrayAt(type, i), shape: [countOf(type)] }));
  const outputs = plan.results.map((type, i) => {
    const given = inputs[plan.aliases.get(i) ?? -1];
    return given ?? device.allocate(dtypeOf(type), [countOf(type)]);
  });
  const bound = program.bind(inputs, outputs);
  await bound.run();
  let difference: number | undefined = undefined;
  for (const [i, type] of file === undefined ? [] : plan.results.entries()) {
    const output = outputs[i];
    if (output === undefined || file === undefined) continue;
    const ours = await device.download(output);
    const own = differenceOf(ours, givenArray(file, `out${i}`, type));
    difference = Math.max(difference ?? 0, own);
  }
  const timed = await bench(
    device,
    { tilewright: () => ({ sample: sampler(device, () => bound.run()) }), jax: () => jax.timed },
    { rounds: Number(options.rounds), warmUp: 2, against: "jax" },
  );
  const { milliseconds: ours, ratio, interval } = timed.of("tilewright");
  const launches = Number(/^launches (\d+)/m.exec(planText(plan))?.[1]);
  if (options.profile) await profile(device, plan, plan.parameters.map(arrayAt));
  bound.dispose();
  program.dispose();
  for (const array of new Set([...inputs, ...outputs])) array.dispose();
  await peer.forget();
  return {
    ...{ name, ours, theirs: timed.of("jax").milliseconds, ratio: 1 / ratio },
    ...{ low: 1 / interval.high, high: 1 / interval.low, difference, launches },
  };
}

function cellsOf({ name, ours, theirs, ratio, low, high, difference, launches }: Row) {
  return [
    ...[name, theirs.toFixed(3), ours.toFixed(3)],
    `${ratio.toFixed(2)} (${low.toFixed(2)} to ${high.toFixed(2)})`,
    ...[difference?.toExponential(1) ?? "", `${launches}`],
  ];
}

const heading = ["program", "JAX ms", "ours ms", "times JAX's", "difference", "launches"];

function summary(rows: readonly Row[]): string {
  const sorted = rows.toSorted((left, right) => left.ratio - right.ratio);
  const [best, worst] = [sorted.at(0), sorted.at(-1)];
  if (best === undefined || worst === undefined) return "No program was measured.";
  const logs = rows.reduce((sum, { ratio }) => sum + Math.log(ratio), 0);
  const mean = Math.exp(logs / rows.length);
  return (
    `${rows.length} programs: worst ${worst.ratio.toFixed(2)} (${worst.name}), ` +
    `best ${best.ratio.toFixed(2)} (${best.name}), geometric mean ${mean.toFixed(2)} times JAX's time.`
  );
}

export async function main(device: Device): Promise<void> {
  const { python } = options;
  const names =
    positionals.length > 0
      ? positionals
      : execFileSync(python, [peerScript, "--names"], { encoding: "utf8" }).trim().split(/\s+/);
  const peer = await Peer.start({ name: "JAX", command: [python, peerScript, "--serve"] });
  console.log(`${peer.description}; products of f32 here: ${matmulPrecision}`);
  const rows: Row[] = [];
  try {
    for (const name of names) {
      try {
        const row = await compareProgram(device, peer, name);
        rows.push(row);
        console.log(cellsOf(row).join("  "));
      } catch (error) {
        console.log(`${name}: ${error instanceof Error ? error.message : String(error)}`);
        process.exitCode = 1;
      }
    }
  } finally {
    peer.stop();
  }
  console.log(`\n${numberTable([heading, ...rows.map(cellsOf)])}\n\n${summary(rows)}`);
}
