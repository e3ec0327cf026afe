/** Products: `tilewright/kernels` beside cuBLAS, Pallas:Mosaic GPU and Triton. */
import { array, bf16, cdiv, dim, f16, i32, kernel, scalar, slice, toNumbers } from "tilewright";
import type { BoundLaunch, Device, DeviceArray, DType } from "tilewright";
import { matmul } from "tilewright/kernels";
import type { BenchCase, PreparedCase } from "../case.ts";
import { randomArray } from "../random.ts";

const dtypes = { bf16, f16 } as const;

export interface ProductTask {
  readonly dtype: keyof typeof dtypes;
  readonly m: number;
  readonly n: number;
  readonly k: number;
  /** Whether b lies by rows, as [k, n], or by columns, as [n, k]. */
  readonly b: "kn" | "nk";
}

export function matmulCase(task: ProductTask): BenchCase {
  const { dtype, m, n, k, b } = task;
  return {
    name: `matmul ${dtype} ${m}x${n}x${k}${b === "nk" ? " (b by columns)" : ""}`,
    task: { op: "matmul", ...task },
    unit: "TFLOP/s",
    work: 2 * m * n * k,
    setBytes: 2 * (m * k + k * n + m * n),
    prepare: (device, sets) => preparedProduct(device, task, sets, byLibrary(task)),
  };
}

export type ProductArrays<F extends Format = Format> = {
  readonly [N in "a" | "b" | "out"]: DeviceArray<F>;
};

/** A way to compute out = a · b on a device. */
export type ProductWay = (device: Device) => (arrays: ProductArrays) => BoundLaunch;

const byLibrary =
  ({ dtype, m, n, k, b }: ProductTask): ProductWay =>
  (device) => {
    const format = dtypes[dtype];
    const [rows, columns, depth] = [dim("m"), dim("n"), dim("k")];
    const product = matmul({
      a: array(format, [rows, depth]),
      b: array(format, [depth, columns], b === "nk" ? { strides: [1, depth] } : {}),
      out: format,
    });
    return (arrays) => device.bind(product, arrays, { dimensions: { m, n, k } });
  };

/** Our way and others beside it, all of which are checked. */
export function preparedProduct(
  device: Device,
  { dtype, m, n, k, b }: ProductTask,
  sets: number,
  ours: ProductWay,
  beside: { readonly [name: string]: ProductWay } = {},
): PreparedCase {
  const format = dtypes[dtype];
  const byColumns = b === "nk";
  const made = Array.from({ length: sets }, (_, seed) => ({
    a: randomArray(device, format, [m, k], seed),
    b: randomArray(device, format, byColumns ? [n, k] : [k, n], seed + 50),
    out: device.allocate(format, [m, n]),
  }));
  const [first] = made;
  if (first === undefined) throw new RangeError("a case has one set at least");
  const entryOf = (way: ProductWay) => {
    const bind = way(device);
    return (set: number) => bind(made[set % sets] ?? first);
  };
  const others = Object.entries(beside).map(([name, way]) => [name, entryOf(way)] as const);
  const own = entryOf(ours);
  return {
    ours: own,
    beside: Object.fromEntries(others),
    check: async () => {
      for (const entry of [...others.map(([, each]) => each), own]) {
        await device.fill(first.out, NaN);
        const once = entry(0);
        once.launch();
        await device.synchronize();
        once.dispose();
        await checkSample(device, first, { m, n, k, byColumns });
      }
    },
    dispose: () => {
      for (const set of made) for (const each of Object.values(set)) each.dispose();
    },
  };
}

type Format = "bf16" | "f16";

/** Positions spread over an axis, its ends among them. */
function positions(extent: number, count: number): readonly number[] {
  const all = Array.from({ length: count }, (_, index) =>
    Math.round((index * (extent - 1)) / Math.max(1, count - 1)),
  );
  return [...new Set(all)];
}

const span = 1024;

/** One column of a matrix by rows, copied on the device: fetching all of a large one takes too long. */
const columnOf = (dtype: DType<Format>) => {
  const [rows, columns] = [dim("rows"), dim("columns")];
  return kernel(
    {
      name: "column",
      grid: { i: cdiv(rows, span) },
      inputs: { x: array(dtype, [rows, columns]), column: scalar(i32) },
      outputs: { out: array(dtype, [rows]) },
    },
    ({ i, x, column, out }) => {
      const here = slice(i.mul(span), span);
      out.at(here).store(x.at(here, slice(column, 1)).load().reshape([span]));
    },
  );
};

async function rowNumbers(
  device: Device,
  matrix: DeviceArray<Format>,
  row: number,
): Promise<Float64Array> {
  return toNumbers(await device.download(matrix.slice(row, row + 1)));
}

async function columnNumbers(
  device: Device,
  matrix: DeviceArray<Format>,
  column: number,
): Promise<Float64Array> {
  const out = device.allocate(matrix.dtype, [matrix.shape[0] ?? 0]);
  try {
    device.launch(columnOf(matrix.dtype), { x: matrix, column, out });
    return toNumbers(await device.download(out));
  } finally {
    out.dispose();
  }
}

/** Elements where some rows meet some columns, against sums in float64. */
export async function checkSample(
  device: Device,
  { a, b, out }: ProductArrays,
  { m, n, k, byColumns }: { m: number; n: number; k: number; byColumns: boolean },
): Promise<void> {
  const right = new Map<number, Float64Array>();
  for (const column of positions(n, 12)) {
    const fetched = byColumns ? rowNumbers : columnNumbers;
    right.set(column, await fetched(device, b, column));
  }
  for (const row of positions(m, 12)) {
    const left = await rowNumbers(device, a, row);
    const found = await rowNumbers(device, out, row);
    for (const [column, values] of right) {
      let [value, magnitude] = [0, 0];
      for (let inner = 0; inner < k; inner += 1) {
        const term = (left[inner] ?? NaN) * (values[inner] ?? NaN);
        value += term;
        magnitude += Math.abs(term);
      }
      // Tensor cores add sixteen products at a time to a sum of 22 fraction bits; the result is rounded to its format.
      const bound = magnitude * (k / 16) * 2 ** -22 + Math.abs(value) * 2 ** -8;
      const got = found[column] ?? NaN;
      if (!(Math.abs(got - value) <= bound))
        throw new Error(`out[${row}, ${column}] is ${got}, not ${value}`);
    }
  }
}
