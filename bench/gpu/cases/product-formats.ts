/**
 * Products in every format, batched ones, and what an epilogue costs, beside cuBLAS:
 *
 *   FP8 fast, promoted    `torch._scaled_mm` with fast accumulation      both beside the fast one
 *   f32 as bf16 parts     SGEMM
 *   tf32, f64, i8         cuBLAS in the same format
 *   bias and GELU         our own product without them, in the same rounds
 */
import { tensor, bf16, dim, f32, f64, f8e4m3fn, i32, i8 } from "tilewright";
import type { BoundLaunch, Device, DeviceArray, DType, Tile } from "tilewright";
import { activations, matmul } from "tilewright/kernels";
import type { BenchCase, PreparedCase, Task } from "../case.ts";
import { randomArray } from "../random.ts";
import type { RandomFormat } from "../random.ts";
import { checkElements, halfError } from "./product-sample.ts";
import type { ProductError } from "./product-sample.ts";

/** One product: its formats as we and as peers name them, and how far a result may be off. */
interface FormatTask {
  readonly name: string;
  /** What the peer multiplies: a name of its table of formats. */
  readonly peer: string;
  readonly dtype: DType<RandomFormat>;
  readonly out: DType;
  readonly options?: { readonly [option: string]: string };
  readonly m: number;
  readonly n: number;
  readonly k: number;
  readonly batch?: number;
  /** Whether b lies by rows, as [k, n], or by columns, as [n, k]. */
  readonly b: "kn" | "nk";
  readonly error: ProductError;
}

type Arrays = { readonly [N in "a" | "b" | "out"]: DeviceArray };

function shapesOf({ m, n, k, batch, b }: FormatTask) {
  const layers = batch === undefined ? [] : [batch];
  return {
    a: [...layers, m, k],
    b: [...layers, ...(b === "nk" ? [n, k] : [k, n])],
    out: [...layers, m, n],
  };
}

function productOf({ dtype, out, options = {}, batch, b }: FormatTask, epilogue: object = {}) {
  const [m, n, k, layers] = [dim("m"), dim("n"), dim("k"), dim("batch")];
  const [first, strides] = batch === undefined ? [[], [1, k]] : [[layers], [k.mul(n), 1, k]];
  return matmul({
    a: tensor(dtype, [...first, m, k]),
    b: tensor(dtype, [...first, k, n], b === "nk" ? { strides } : {}),
    ...{ out, ...options, ...epilogue },
  } as unknown as Parameters<typeof matmul>[0]);
}

function madeArrays(device: Device, task: FormatTask, sets: number): readonly Arrays[] {
  const shapes = shapesOf(task);
  return Array.from({ length: sets }, (_, seed) => ({
    a: randomArray(device, task.dtype, shapes.a, seed),
    b: randomArray(device, task.dtype, shapes.b, seed + 50),
    out: device.allocate(task.out, shapes.out),
  }));
}

function bindTo(device: Device, task: FormatTask, op: ReturnType<typeof productOf>) {
  const { m, n, k, batch } = task;
  const dimensions = { m, n, k, ...(batch !== undefined && { batch }) };
  return (arrays: object): BoundLaunch => device.bind(op, arrays as never, { dimensions } as never);
}

function at<T>(all: readonly T[], set: number): T {
  const found = all[set % all.length];
  if (found === undefined) throw new RangeError("a case has one set at least");
  return found;
}

function prepared(device: Device, task: FormatTask, sets: number): PreparedCase {
  const made = madeArrays(device, task, sets);
  const bind = bindTo(device, task, productOf(task));
  return {
    ours: (set) => bind(at(made, set)),
    check: async () => {
      const once = bind(at(made, 0));
      once.launch();
      await device.synchronize();
      once.dispose();
      await checkElements(device, at(made, 0), task, task.error);
    },
    dispose: () => {
      for (const set of made) for (const each of Object.values(set)) each.dispose();
    },
  };
}

function caseOf(
  task: FormatTask,
  prepare: (device: Device, sets: number) => PreparedCase = (device, sets) =>
    prepared(device, task, sets),
): BenchCase {
  const { name, peer, m, n, k, batch = 1, b, dtype, out } = task;
  const asked: Task = { op: "product", format: peer, m, n, k, batch, b };
  return {
    name: `matmul ${name} ${batch === 1 ? "" : `${batch}x`}${m}x${n}x${k}`,
    task: asked,
    unit: "TFLOP/s",
    work: 2 * batch * m * n * k,
    setBytes: (batch * ((m * k + k * n) * dtype.bits + m * n * out.bits)) / 8,
    prepare,
  };
}

/** Bias and GELU beside the product alone: what the peer does is the product alone, too. */
function epilogueCase(task: FormatTask): BenchCase {
  return caseOf(task, (device, sets) => {
    const plain = prepared(device, task, sets);
    const made = madeArrays(device, task, sets);
    const bias = randomArray(device, f32, [task.n], 99);
    const op = productOf(task, {
      inputs: { bias: tensor(f32, [dim("n")]) },
      epilogue: ({ sums, bias: added }: { readonly [name: string]: Tile<"f32"> }) =>
        sums === undefined || added === undefined
          ? undefined
          : activations.gelu(sums.add(added), { approximate: true }).cast(bf16),
    });
    const bind = bindTo(device, task, op);
    return {
      ...plain,
      ours: (set) => bind({ ...at(made, set), bias }),
      beside: { "ours, without them": plain.ours },
      dispose: () => {
        plain.dispose();
        for (const each of [...made.flatMap((set) => Object.values(set)), bias]) each.dispose();
      },
    };
  });
}

const cube = (size: number) => ({ m: size, n: size, k: size });

function parts(size: number, precision: string, product: number): FormatTask {
  return {
    ...{ name: `f32 ${precision}`, peer: "f32", dtype: f32, out: f32, options: { precision } },
    ...{ ...cube(size), b: "kn", error: { product, step: 2 ** -21, per: 16, result: 2 ** -23 } },
  };
}

function bytes(size: number, accumulation: string, error: ProductError): FormatTask {
  return {
    ...{ name: `FP8 ${accumulation}`, peer: "f8", dtype: f8e4m3fn, out: bf16 },
    ...{ options: { accumulation }, ...cube(size), b: "nk", error },
  };
}

const halves = { peer: "bf16", dtype: bf16, out: bf16, b: "kn", error: halfError } as const;

/** Products of the two sizes, the larger one where tensor cores are fastest; of batches the smaller one's parts. */
export function formatCases(large: number, small: number): readonly BenchCase[] {
  const tasks: readonly FormatTask[] = [
    bytes(large, "fast", { product: 0, step: 2 ** -12, per: 32, result: 2 ** -8 }),
    bytes(large, "promoted", { product: 2 ** -9, step: 2 ** -22, per: 64, result: 2 ** -8 }),
    parts(small, "bf16x3", 2 ** -14),
    parts(small, "bf16x6", 2 ** -20),
    parts(small, "bf16x9", 2 ** -22),
    { ...parts(small, "tf32", 2 ** -10), peer: "tf32" },
    {
      ...{ name: "f64", peer: "f64", dtype: f64, out: f64, ...cube(small), b: "kn" },
      error: { product: 0, step: 2 ** -51, per: 1, result: 0 },
    },
    {
      ...{ name: "i8", peer: "i8", dtype: i8, out: i32, ...cube(large), b: "nk" },
      error: { product: 0, step: 0, per: 1, result: 0 },
    },
    { ...halves, name: "bf16 batched", ...cube(small / 4), batch: 32 },
    { ...halves, name: "bf16 batched", ...cube(small / 8), batch: 128 },
  ];
  const ended: FormatTask = { ...halves, name: "bf16, bias and GELU,", ...cube(small) };
  return [
    ...tasks.map((task) => caseOf(task)),
    epilogueCase(ended),
    epilogueCase({ ...ended, ...cube(large) }),
  ];
}
