/**
 * JAX's programs on tilewright: results beside JAX's, and the time of a run beside JAX's on the same GPU.
 *
 *   python3 bench/gpu/programs/jax_programs.py /tmp/programs bert kmeans
 *   tilewright run bench/gpu/programs/index.ts --device gpu -- /tmp/programs bert kmeans [--tf32] [--profile]
 *
 * With `--tf32` products of f32 are rounded as JAX rounds them; with `--profile` the ten dearest kinds of launches are listed.
 */
import { readFileSync } from "node:fs";
import process from "node:process";
import {
  bf16,
  bool,
  f16,
  f32,
  f64,
  fromNumbers,
  i32,
  i64,
  i8,
  toNumbers,
  u32,
  u8,
} from "tilewright";
import type { Device, DeviceArray, DType, HostArray } from "tilewright";
import { readNpz } from "tilewright/files";
import { compilePlan, parseGraph, planText, Program, tensorOfArray } from "tilewright/graph";
import type { Plan } from "tilewright/graph";

const rounds = 7;
const roundMilliseconds = 300;

const [folder = ".", ...others] = process.argv.slice(2);
const names = others.filter((each) => !each.startsWith("--"));
const matmulPrecision = others.includes("--tf32") ? "tf32" : "f32";

type TensorType = Plan["parameters"][number];

/** By their names in StableHLO. */
const formats: { readonly [element: string]: DType } = {
  ...{ bf16, f16, f32, f64, i8, i32, i64 },
  ...{ i1: bool, ui8: u8, ui32: u32 },
};

function dtypeOf({ element }: TensorType): DType {
  const found = formats[element];
  if (found === undefined) throw new Error(`no array has elements of ${element}`);
  return found;
}

function countOf({ shape }: TensorType): number {
  return Math.max(
    1,
    shape.reduce((product, extent) => product * extent, 1),
  );
}

/** An array of an archive, in the format that the program wants: NumPy has no bf16. */
function given(file: { readonly [name: string]: HostArray }, name: string, type: TensorType) {
  const key = Object.keys(file).find((each) => each === name || each.startsWith(`${name}.`));
  const array = key === undefined ? undefined : file[key];
  if (array === undefined) throw new Error(`the archive has no ${name}`);
  const dtype = dtypeOf(type);
  const numbers = toNumbers(array);
  return array.dtype === dtype ? array : fromNumbers(dtype, array.shape, [...numbers]);
}

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

async function medianOfRuns(device: Device, run: () => Promise<unknown>): Promise<number> {
  const start = performance.now();
  await run();
  await device.synchronize();
  const runs = Math.max(
    1,
    Math.min(20, Math.floor(roundMilliseconds / (performance.now() - start))),
  );
  const times: number[] = [];
  for (let round = 0; round < rounds; round += 1) {
    const begin = performance.now();
    for (let turn = 0; turn < runs; turn += 1) await run();
    await device.synchronize();
    times.push((performance.now() - begin) / runs);
  }
  return times.sort((left, right) => left - right)[Math.floor(rounds / 2)] ?? NaN;
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

async function tryProgram(device: Device, name: string): Promise<void> {
  const [module] = parseGraph(readFileSync(`${folder}/${name}.mlir`, "utf8"));
  if (module === undefined) throw new Error(`${name}.mlir has no program`);
  const plan = compilePlan(module, "main", [], { matmulPrecision });
  const program = await Program.load(device, plan);
  const file = await readNpz(readFileSync(`${folder}/${name}.npz`));
  const arrays = plan.parameters.map((type, i) => given(file, `in${i}`, type));
  const inputs: DeviceArray[] = [];
  for (const [i, array] of arrays.entries()) {
    const type = plan.parameters[i];
    if (type !== undefined) inputs.push(await device.upload({ ...array, shape: [countOf(type)] }));
  }
  const outputs = plan.results.map((type) => device.allocate(dtypeOf(type), [countOf(type)]));
  const bound = program.bind(inputs, outputs);
  await bound.run();
  let worst = 0;
  for (const [i, type] of plan.results.entries()) {
    const output = outputs[i];
    if (output === undefined) continue;
    const ours = await device.download(output);
    worst = Math.max(worst, differenceOf(ours, given(file, `out${i}`, type)));
  }
  const ours = await medianOfRuns(device, () => bound.run());
  const { ms: theirs } = JSON.parse(readFileSync(`${folder}/${name}.json`, "utf8")) as {
    ms: number;
  };
  const launches = /^launches (\d+)/m.exec(planText(plan))?.[1];
  console.log(
    `${name}: ${ours.toFixed(3)} ms, JAX ${theirs.toFixed(3)}: ${(ours / theirs).toFixed(2)} ×; ` +
      `differs by ${worst.toExponential(1)} of the greatest; ${launches} launches`,
  );
  if (others.includes("--profile")) await profile(device, plan, arrays);
  bound.dispose();
  program.dispose();
  for (const array of [...inputs, ...outputs]) array.dispose();
}

export async function main(device: Device): Promise<void> {
  for (const name of names) await tryProgram(device, name);
}
