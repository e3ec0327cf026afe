/**
 * Products of groups of rows: `raggedDot` beside PyTorch's grouped product and JAX's `ragged_dot`, and `raggedOuter` beside PyTorch's. Groups are
 * equal, or halve: the first has half of all rows, the next half of the rest, and so on, so that most have few. Matrices in few bits are timed
 * beside the same product of bf16. What all rows take with one matrix, the dense product, is timed with `raggedDot`, which is told as a part of it.
 */
import { bf16, dim, f8e4m3fn, fromNumbers, i32, i4, toNumbers } from "tilewright";
import type { Device, DeviceArray } from "tilewright";
import type { BenchEntry } from "tilewright/bench";
import {
  dequantizeWeights,
  matmul,
  quantized,
  quantizeWeights,
  raggedDot,
  raggedOuter,
} from "tilewright/kernels";
import type { BenchCase, PreparedCase } from "../case.ts";
import { randomArray } from "../random.ts";

export interface RaggedTask {
  readonly m: number;
  readonly n: number;
  readonly k: number;
  readonly groups: number;
  readonly halving: boolean;
}

/** Rows of each group. */
export function groupSizesOf({ m, groups, halving }: RaggedTask): readonly number[] {
  if (!halving) return Array.from({ length: groups }, () => m / groups);
  let rest = m;
  return Array.from({ length: groups }, (_, group) => {
    const own = group === groups - 1 ? rest : Math.floor(rest / 2);
    rest -= own;
    return own;
  });
}

/** Bytes of rows and results, and of the matrices of groups that have rows, of so many bits an element. */
function movedOf(task: RaggedTask, bits: number): number {
  const { m, n, k } = task;
  const matrices = groupSizesOf(task).filter((size) => size > 0).length;
  return 2 * m * (k + n) + (matrices * k * n * bits) / 8;
}

export function raggedCase(task: RaggedTask): BenchCase {
  const { m, n, k, groups, halving } = task;
  return {
    name: `ragged dot bf16 ${m}x${n}x${k}, ${groups} ${halving ? "halving" : "equal"} groups`,
    task: { op: "ragged_dot", ...task, halving: halving ? 1 : 0 },
    unit: "TFLOP/s",
    work: 2 * m * n * k,
    moved: movedOf(task, bf16.bits),
    setBytes: 2 * (m * k + groups * k * n + m * n),
    prepare: (device, sets) => prepared(device, task, dotForm(task), sets),
  };
}

const weightFormats = { i4, f8e4m3fn } as const;
type WeightName = keyof typeof weightFormats;
/** Elements along k that share a scale. */
const group = 128;

/** Matrices in few bits, with a scale of bf16 for each 128 of a column. */
export function raggedWeightsCase(task: RaggedTask, weights: WeightName): BenchCase {
  const { m, n, k, groups, halving } = task;
  return {
    name: `ragged dot ${weights} ${m}x${n}x${k}, ${groups} ${halving ? "halving" : "equal"} groups`,
    task: { op: "ragged_dot", ...task, halving: halving ? 1 : 0 },
    unit: "TFLOP/s",
    work: 2 * m * n * k,
    moved: movedOf(task, weightFormats[weights].bits),
    setBytes: 2 * (m * k + m * n) + (groups * k * n * weightFormats[weights].bits) / 8,
    prepare: (device, sets) => preparedWeights(device, task, weights, sets),
  };
}

/** The product of the rows of two arrays by groups: [m, k] and [m, n] to [groups, k, n]. */
export function raggedOuterCase(task: RaggedTask): BenchCase {
  const { m, n, k, groups, halving } = task;
  return {
    name: `ragged outer bf16 ${m}x${n}x${k}, ${groups} ${halving ? "halving" : "equal"} groups`,
    task: { op: "ragged_outer", ...task, halving: halving ? 1 : 0 },
    unit: "TFLOP/s",
    work: 2 * m * n * k,
    setBytes: 2 * (m * k + groups * k * n + m * n),
    prepare: (device, sets) => prepared(device, task, outerForm(task), sets),
  };
}

interface RaggedSet {
  readonly a: DeviceArray<"bf16">;
  readonly b: DeviceArray<"bf16">;
  readonly out: DeviceArray<"bf16">;
}

/** What differs between the two products: the operation, the shapes, and which of its elements are held against float64. */
interface RaggedForm {
  readonly op:
    | ReturnType<typeof raggedDot<"bf16", "bf16">>
    | ReturnType<typeof raggedOuter<"bf16", "bf16">>;
  readonly shapes: { readonly [N in keyof RaggedSet]: readonly number[] };
  readonly check: (device: Device, set: RaggedSet, task: RaggedTask) => Promise<void>;
  /** The product of all rows with one matrix. */
  readonly dense?: (device: Device, set: RaggedSet) => ReturnType<BenchEntry>;
}

function dotForm({ m, n, k, groups }: RaggedTask): RaggedForm {
  const shapes = { a: [m, k], b: [groups, k, n], out: [m, n] };
  const product = matmul({ a: bf16, b: bf16 });
  return {
    ...{ op: raggedDot({ a: bf16, b: bf16 }), shapes, check: checkRows },
    dense: (device, { a, b, out }) =>
      device.bind(product, { a, b: b.reshape([groups * k, n]).slice(0, k), out }),
  };
}

function outerForm({ m, n, k, groups }: RaggedTask): RaggedForm {
  const shapes = { a: [m, k], b: [m, n], out: [groups, k, n] };
  return { op: raggedOuter({ a: bf16, b: bf16 }), shapes, check: checkMatrices };
}

async function prepared(
  device: Device,
  task: RaggedTask,
  { op, shapes, check, dense }: RaggedForm,
  sets: number,
): Promise<PreparedCase> {
  const sizes = fromNumbers(i32, [task.groups], [...groupSizesOf(task)]);
  const groupSizes = await device.upload(sizes);
  const made = Array.from({ length: sets }, (_, seed): RaggedSet => ({
    a: randomArray(device, bf16, shapes.a, seed),
    b: randomArray(device, bf16, shapes.b, seed + 40),
    out: device.allocate(bf16, shapes.out),
  }));
  const first = firstOf(made);
  const setOf = (set: number): RaggedSet => made[set % sets] ?? first;
  const bound = (set: number) => device.bind(op, { ...setOf(set), groupSizes });
  return {
    ours: bound,
    ...(dense && {
      measures: { "the dense product": (set: number) => dense(device, setOf(set)) },
    }),
    check: async () => {
      const once = bound(0);
      once.launch();
      await device.synchronize();
      once.dispose();
      await check(device, first, task);
    },
    dispose: () => {
      groupSizes.dispose();
      for (const { a, b, out } of made) for (const each of [a, b, out]) each.dispose();
    },
  };
}

function firstOf<T>(made: readonly T[]): T {
  const [first] = made;
  if (first === undefined) throw new RangeError("a case has one set at least");
  return first;
}

/** The same with stored weights, whose products are held against those of what they stand for. */
async function preparedWeights(
  device: Device,
  task: RaggedTask,
  name: WeightName,
  sets: number,
): Promise<PreparedCase> {
  const { m, n, k, groups } = task;
  const dtype = weightFormats[name];
  const spec = quantized(dtype, [dim("g"), dim("k"), dim("n")], { groupSize: group, scale: bf16 });
  const groupSizes = await device.upload(fromNumbers(i32, [groups], [...groupSizesOf(task)]));
  const whole = device.allocate(bf16, [groups, k, n]);
  const made = Array.from({ length: sets }, (_, seed) => {
    const x = randomArray(device, bf16, [groups, k, n], seed + 40);
    const b = device.allocate(dtype, [groups, n, k]);
    const bScale = device.allocate(bf16, [groups, k / group, n]);
    device.launch(quantizeWeights({ x: bf16, b: spec }), { x, b, bScale });
    x.dispose();
    const out = device.allocate(bf16, [m, n]);
    return { a: randomArray(device, bf16, [m, k], seed), b, bScale, out };
  });
  const op = raggedDot({ a: bf16, b: spec });
  const first = firstOf(made);
  const bound = (set: number) => device.bind(op, { ...(made[set % sets] ?? first), groupSizes });
  return {
    ours: bound,
    check: async () => {
      const { a, out, b, bScale } = first;
      device.launch(dequantizeWeights({ x: bf16, b: spec }), { b, bScale, x: whole });
      const once = bound(0);
      once.launch();
      await device.synchronize();
      once.dispose();
      await checkRows(device, { a, b: whole, out }, task);
    },
    dispose: () => {
      for (const each of [groupSizes, whole, ...made.flatMap((set) => Object.values(set))])
        each.dispose();
    },
  };
}

/** Some elements of the matrices of some groups, against float64. */
async function checkMatrices(device: Device, { a, b, out }: RaggedSet, task: RaggedTask) {
  const { n, k, groups } = task;
  const sizes = groupSizesOf(task);
  for (const group of new Set([0, groups >> 1, groups - 1])) {
    const start = sizes.slice(0, group).reduce((sum, size) => sum + size, 0);
    const end = start + (sizes[group] ?? 0);
    if (start === end) continue;
    const left = toNumbers(await device.download(a.slice(start, end)));
    const right = toNumbers(await device.download(b.slice(start, end)));
    for (const row of [0, k - 1]) {
      const line = group * k + row;
      const kept = out.reshape([groups * k, n]).slice(line, line + 1);
      const found = toNumbers(await device.download(kept));
      for (const column of [0, n >> 1, n - 1]) {
        let [sum, magnitude] = [0, 0];
        for (let i = 0; i < end - start; i += 1) {
          const term = (left[i * k + row] ?? NaN) * (right[i * n + column] ?? NaN);
          sum += term;
          magnitude += Math.abs(term);
        }
        requireClose(`out[${group}, ${row}, ${column}]`, found[column] ?? NaN, {
          ...{ sum, magnitude, terms: end - start },
        });
      }
    }
  }
}

/** Sums are made in f32 and rounded to bf16. */
function requireClose(
  name: string,
  found: number,
  { sum, magnitude, terms }: { readonly [N in "sum" | "magnitude" | "terms"]: number },
): void {
  if (!(Math.abs(found - sum) <= 2 ** -8 * Math.abs(sum) + terms * 2 ** -24 * magnitude))
    throw new Error(`${name} is ${found}, not ${sum}`);
}

/** The first and the last row of some groups, against float64. */
async function checkRows(device: Device, { a, b, out }: RaggedSet, task: RaggedTask) {
  const { n, k, groups } = task;
  const sizes = groupSizesOf(task);
  const starts = sizes.map((_, group) =>
    sizes.slice(0, group).reduce((sum, size) => sum + size, 0),
  );
  for (const group of new Set([0, groups >> 1, groups - 1])) {
    const [start = 0, size = 0] = [starts[group], sizes[group]];
    if (size === 0) continue;
    const rows = b.reshape([groups * k, n]).slice(group * k, (group + 1) * k);
    const matrix = toNumbers(await device.download(rows));
    for (const row of new Set([start, start + size - 1])) {
      const left = toNumbers(await device.download(a.slice(row, row + 1)));
      const found = toNumbers(await device.download(out.slice(row, row + 1)));
      for (const column of [0, n >> 1, n - 1]) {
        let [sum, magnitude] = [0, 0];
        for (let i = 0; i < k; i += 1) {
          const term = (left[i] ?? NaN) * (matrix[i * n + column] ?? NaN);
          sum += term;
          magnitude += Math.abs(term);
        }
        requireClose(`out[${row}, ${column}]`, found[column] ?? NaN, { sum, magnitude, terms: k });
      }
    }
  }
}
