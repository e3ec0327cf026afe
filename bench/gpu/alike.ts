/**
 * Kernels that take the same arrays and compute the same, beside each other: what a way of writing costs, or an order of
 * tiles gains. Their results are compared with those of the first before anything is timed; ratios are to the last.
 *
 *   sets       q k v → out   q k v → out   …      so many that no launch finds its arrays in the cache
 *   kernels    example: (q, k, v) → out     by hand: (q, k, v) → result     a kernel's own name of its result does not matter
 */
import { tensor, bf16, i32, kernel, toNumbers } from "tilewright";
import type { Device, DeviceArray, KernelDefinition } from "tilewright";
import { bench } from "tilewright/bench";
import type { BenchEntry } from "tilewright/bench";
import { costOf, setsOf } from "./case.ts";
import { randomArray } from "./random.ts";

/** What kernels are given and how much work that is. */
export interface AlikeWork {
  readonly title: string;
  readonly inputs: { readonly [name: string]: readonly number[] };
  readonly output: readonly number[];
  /** Operations of one launch. */
  readonly work: number;
  /** How far elements may lie from those of the first kernel. */
  readonly tolerance: number;
}

export interface AlikeSettings {
  readonly rounds: number;
  readonly launches: number;
}

/** Kernels by name. */
export interface Kernels {
  readonly [name: string]: KernelDefinition;
}

/** One launch's arrays. A counter is there for kernels that take their tiles from one. */
interface ArraySet {
  readonly inputs: { readonly [name: string]: DeviceArray };
  readonly output: DeviceArray;
  readonly counter: DeviceArray;
}

const clear = kernel({ name: "clear", outputs: { counter: tensor(i32, [1]) } }, ({ counter }) => {
  counter.at(0).store(0);
});

function arraySet(device: Device, { inputs, output }: AlikeWork, seed: number): ArraySet {
  const counter = device.allocate(i32, [1]);
  device.launch(clear, { counter });
  const filled = Object.entries(inputs).map(
    ([name, shape], place) => [name, randomArray(device, bf16, shape, seed + 50 * place)] as const,
  );
  return { inputs: Object.fromEntries(filled), output: device.allocate(bf16, output), counter };
}

/** The arrays by the names that the kernel has for them. */
function argumentsOf(definition: KernelDefinition, set: ArraySet): object {
  const outputs = Object.keys(definition.outputs).map((name) => [name, set.output] as const);
  const inouts = Object.keys(definition.inouts).map((name) => [name, set.counter] as const);
  return { ...set.inputs, ...Object.fromEntries([...outputs, ...inouts]) };
}

async function requireAlike(
  device: Device,
  kernels: Kernels,
  set: ArraySet,
  tolerance: number,
): Promise<void> {
  let reference: Float64Array | undefined;
  for (const [name, definition] of Object.entries(kernels)) {
    device.launch(definition, argumentsOf(definition, set) as never);
    const found = toNumbers(await device.download(set.output));
    const expected = (reference ??= found);
    const wrong = found.findIndex(
      (value, at) => !(Math.abs(value - (expected[at] ?? NaN)) <= tolerance),
    );
    if (wrong >= 0)
      throw new Error(`${name}: element ${wrong} is ${found[wrong]}, not ${expected[wrong]}`);
  }
}

/** Times the kernels, and others' work, and writes the table. */
export async function timeAlike(
  device: Device,
  work: AlikeWork,
  { rounds, launches }: AlikeSettings,
  kernels: Kernels,
  others: { readonly [name: string]: BenchEntry } = {},
): Promise<void> {
  const elements = [...Object.values(work.inputs), work.output].map((shape) =>
    shape.reduce((all, extent) => all * extent, 1),
  );
  const setBytes = 2 * elements.reduce((sum, count) => sum + count, 0);
  const first = arraySet(device, work, 0);
  const count = setsOf({ setBytes }, launches);
  const more = Array.from({ length: count - 1 }, (_, at) => arraySet(device, work, at + 1));
  const sets = [first, ...more];
  try {
    await requireAlike(device, kernels, first, work.tolerance);
    const ours = Object.entries(kernels).map(([name, definition]) => {
      const entry: BenchEntry = (set) =>
        device.bind(definition, argumentsOf(definition, sets[set] ?? first) as never);
      return [name, entry] as const;
    });
    const result = await bench(
      device,
      { ...Object.fromEntries(ours), ...others },
      { rounds, launches, sets: count, cost: costOf({ unit: "TFLOP/s", work: work.work }) },
    );
    process.stdout.write(`${work.title}\n${result.table()}\n`);
  } finally {
    for (const { inputs, output, counter } of sets)
      for (const each of [...Object.values(inputs), output, counter]) each.dispose();
  }
}
