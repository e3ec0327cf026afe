/**
 * Estimates of launches beside their times, by kinds of kernels: what `planCosts` says and what `profile()` measures.
 *
 *   tilewright run bench/gpu/programs/costs.ts --device gpu -- test/fixtures/models bert kmeans gnn_grad
 *
 * Without names, all programs of the folder. Arguments are those of NAME.npz beside the program where there is one, else small random numbers. The
 * last lines are the median ratio of all kinds and the three kinds whose estimates are furthest off; `--launches` lists the launches of each kind
 * that are furthest off.
 */
import { existsSync, readdirSync, readFileSync } from "node:fs";
import process from "node:process";
import { brotliDecompressSync } from "node:zlib";
import type { Device } from "tilewright";
import { readNpz } from "tilewright/files";
import { compilePlan, parseGraph, planCosts, Program, tensorOfArray } from "tilewright/graph";
import type { StepCost } from "tilewright/graph";
import { givenArray, randomArray } from "./arrays.ts";

const [folder = ".", ...rest] = process.argv.slice(2);
const options = rest.filter((each) => each.startsWith("--"));
const chosen = rest.filter((each) => !each.startsWith("--"));
const matmulPrecision = options.includes("--tf32") ? "tf32" : "f32";

/** A launch's estimate beside its time, in microseconds. */
interface Pair {
  readonly program: string;
  readonly cost: StepCost;
  readonly measured: number;
}

function textOf(name: string): string {
  const path = `${folder}/${name}.mlir`;
  if (existsSync(path)) return readFileSync(path, "utf8");
  return brotliDecompressSync(readFileSync(`${path}.br`)).toString("utf8");
}

async function pairsOf(device: Device, name: string): Promise<readonly Pair[]> {
  const [module] = parseGraph(textOf(name), name);
  if (module === undefined) throw new Error(`${name} has no program`);
  const plan = compilePlan(module, "main", undefined, { matmulPrecision, target: device.target });
  const costs = planCosts(plan);
  const archive = `${folder}/${name}.npz`;
  const file = existsSync(archive) ? await readNpz(readFileSync(archive)) : undefined;
  const inputs = plan.parameters.map((type, i) =>
    file === undefined ? randomArray(type, i) : givenArray(file, `in${i}`, type),
  );
  const program = await Program.load(device, plan);
  try {
    await program.run(inputs.map((each) => tensorOfArray(each)));
    const times = await program.profile();
    return costs.flatMap((cost, i) => {
      const milliseconds = times[i]?.milliseconds;
      return milliseconds === undefined
        ? []
        : [{ program: name, cost, measured: 1000 * milliseconds }];
    });
  } finally {
    program.dispose();
  }
}

function median(numbers: readonly number[]): number {
  const sorted = numbers.toSorted((left, right) => left - right);
  return sorted[Math.floor(sorted.length / 2)] ?? NaN;
}

function ratio({ cost, measured }: Pair): number {
  return cost.estimate / measured;
}

/** How far off a ratio is, to either side. */
function distance(value: number): number {
  return Math.abs(Math.log(value));
}

function rowOf(kind: string, pairs: readonly Pair[]): string {
  const sum = pairs.reduce((total, { measured }) => total + measured, 0);
  const estimate = pairs.reduce((total, { cost }) => total + cost.estimate, 0);
  const ratios = pairs.map(ratio);
  const range = `${Math.min(...ratios).toFixed(2)} to ${Math.max(...ratios).toFixed(2)}`;
  return (
    `${String(pairs.length).padStart(6)} ${kind.padEnd(30)} measured ${sum.toFixed(0).padStart(8)} µs, ` +
    `estimated ${estimate.toFixed(0).padStart(8)}, median ratio ${median(ratios).toFixed(2)}, ${range}`
  );
}

function launchText({ program, cost, measured }: Pair): string {
  const { kernel, bound, blocks, roofline, estimate, unknownLoops } = cost;
  const loops = unknownLoops === 0 ? "" : `, ${unknownLoops} loops unknown`;
  return (
    `         ${program} ${kernel}: estimated ${estimate.toFixed(1)}, measured ${measured.toFixed(1)}, ` +
    `roofline ${roofline.toFixed(1)}, ${bound}, blocks ${blocks.join("+")}${loops}`
  );
}

function report(pairs: readonly Pair[]): void {
  const kinds = new Map<string, Pair[]>();
  for (const pair of pairs) kinds.set(pair.cost.kind, [...(kinds.get(pair.cost.kind) ?? []), pair]);
  const total = (own: readonly Pair[]): number =>
    own.reduce((sum, { measured }) => sum + measured, 0);
  const rows = [...kinds].sort(([, left], [, right]) => total(right) - total(left));
  for (const [kind, own] of rows) {
    console.log(rowOf(kind, own));
    if (!options.includes("--launches")) continue;
    const far = own.toSorted((left, right) => distance(ratio(right)) - distance(ratio(left)));
    const seen = new Set<string>();
    for (const text of far.map(launchText)) if (seen.size < 3) seen.add(text);
    for (const text of seen) console.log(text);
  }
  const medians = rows.map(([kind, own]) => [kind, median(own.map(ratio))] as const);
  console.log(
    `median of ${rows.length} kinds: ${median(medians.map(([, each]) => each)).toFixed(2)}`,
  );
  const worst = medians.toSorted(([, left], [, right]) => distance(right) - distance(left));
  for (const [kind, each] of worst.slice(0, 3)) console.log(`worst: ${kind}, ${each.toFixed(2)}`);
}

export async function main(device: Device): Promise<void> {
  const names = new Set(
    readdirSync(folder).flatMap((file) => /^(.*)\.mlir(?:\.br)?$/.exec(file)?.slice(1) ?? []),
  );
  const pairs: Pair[] = [];
  for (const name of chosen.length > 0 ? chosen : names)
    try {
      pairs.push(...(await pairsOf(device, name)));
    } catch (error) {
      console.log(`${name}: ${String(error).split("\n")[0] ?? ""}`);
    }
  report(pairs);
}
