/**
 * GPT-2 small's training step from the parameters and tokens that `jax_reference.py` wrote: losses beside JAX's, time per
 * step, compile time, memory; with `--profile`, the time of every kind of launch.
 *
 *   python3 bench/gpu/gpt2/jax_reference.py /tmp/gpt2
 *   tilewright run bench/gpu/gpt2/index.ts --device gpu -- /tmp/gpt2 [--profile]
 */
import { readFileSync } from "node:fs";
import process from "node:process";
import type { Device, HostArray } from "tilewright";
import { readNpz } from "tilewright/files";
import { compilePlan, parseGraph, Program, tensorOfArray } from "tilewright/graph";
import { array, jit, lower, mapTree, useDevice } from "tilewright/arrays";
import type { NDArray } from "tilewright/arrays";
import { configurations, initialParameters, initialState, stepOf } from "../../../examples/gpt2.ts";
import type { Parameters } from "../../../examples/gpt2.ts";

interface Arrays {
  readonly [name: string]: HostArray;
}

/** The tree with the arrays that an archive has under the paths of its leaves. */
function filled(tree: unknown, arrays: Arrays, path: readonly string[] = []): unknown {
  if (typeof tree !== "object" || tree === null) return tree;
  if ("value" in tree && "shape" in tree) {
    const found = arrays[path.join(".")];
    if (found === undefined) throw new Error(`the archive has no ${path.join(".")}`);
    return array(found);
  }
  if (Array.isArray(tree)) return tree.map((each, i) => filled(each, arrays, [...path, String(i)]));
  return Object.fromEntries(
    Object.entries(tree).map(([name, each]) => [name, filled(each, arrays, [...path, name])]),
  );
}

/** The time of every kind of launch of a step, the longest first. */
async function profile(
  device: Device,
  parameters: Parameters,
  tokens: readonly NDArray<"i32">[],
): Promise<void> {
  const [x, y] = tokens as readonly [NDArray<"i32">, NDArray<"i32">];
  const state = initialState(parameters);
  const text = lower(stepOf(configurations.small), state, x, y);
  const [module] = parseGraph(text);
  if (module === undefined) throw new Error("a step is a program");
  const leaves: NDArray[] = [];
  mapTree([state, x, y], (leaf) => {
    leaves.push(leaf);
    return leaf;
  });
  const inputs = await Promise.all(leaves.map(async (leaf) => tensorOfArray(await leaf.read())));
  const program = await Program.load(device, compilePlan(module, "main"));
  await program.run(inputs);
  const kinds = new Map<string, { launches: number; milliseconds: number; bytes: number }>();
  for (const { kernel, arrays, milliseconds, bytes } of await program.profile()) {
    const kind = `${kernel} ${arrays.join(" ").replaceAll(/tensor<|>/g, "")}`;
    const row = kinds.get(kind) ?? { launches: 0, milliseconds: 0, bytes: 0 };
    row.launches += 1;
    row.milliseconds += milliseconds;
    row.bytes += bytes;
    kinds.set(kind, row);
  }
  const rows = [...kinds].sort(([, a], [, b]) => b.milliseconds - a.milliseconds);
  const all = rows.reduce((sum, [, { milliseconds }]) => sum + milliseconds, 0);
  console.log(`${all.toFixed(2)} ms in all, launch by launch`);
  for (const [kind, { launches, milliseconds, bytes }] of rows) {
    const each = ((1000 * milliseconds) / launches).toFixed(1);
    const speed = (bytes / milliseconds / 1e9).toFixed(2);
    console.log(`${milliseconds.toFixed(3)} ms  ${launches} × ${each} µs  ${speed} TB/s  ${kind}`);
  }
  program.dispose();
  disposeAll(state);
}

function disposeAll(tree: unknown): void {
  mapTree(tree, (leaf) => {
    leaf.dispose();
    return leaf;
  });
}

export async function main(device: Device): Promise<void> {
  const folder = process.argv.at(2) ?? "/tmp/gpt2";
  const configuration = configurations.small;
  const arrays: Arrays = await readNpz(readFileSync(`${folder}/gpt2.npz`));
  const expected = JSON.parse(readFileSync(`${folder}/gpt2-losses.json`, "utf8")) as number[];
  await useDevice(device);
  const parameters = filled(initialParameters(configuration), arrays) as Parameters;
  const [tokens, targets] = ["x", "y"].map((name) => array(arrays[name] as HostArray));
  const step = jit(stepOf(configuration), { name: "train", donate: [0] });
  let state = initialState(parameters);
  for (let turn = 0; turn < 20; turn++) {
    const start = performance.now();
    const result = step(state, tokens as NDArray<"i32">, targets as NDArray<"i32">);
    state = result.state;
    const loss = Number(await result.loss.values());
    result.loss.dispose();
    const reference = expected[turn];
    const difference =
      reference === undefined
        ? ""
        : `  JAX ${reference.toFixed(4)}  difference ${(loss - reference).toFixed(4)}`;
    const time = (performance.now() - start).toFixed(1);
    console.log(`step ${turn}  ${time} ms  loss ${loss.toFixed(4)}${difference}`);
  }
  console.log(`memory: ${(device.memory.peak / 2 ** 30).toFixed(2)} GiB at most`);
  disposeAll(state);
  if (process.argv.includes("--profile"))
    await profile(
      device,
      filled(initialParameters(configuration), arrays) as Parameters,
      [tokens, targets] as readonly NDArray<"i32">[],
    );
  await useDevice();
}
