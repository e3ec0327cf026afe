/** Products: `tilewright/kernels` beside cuBLAS, Pallas:Mosaic GPU and Triton. */
import { tensor, bf16, dim, f16 } from "tilewright";
import type { BoundLaunch, Device, DeviceArray } from "tilewright";
import { matmul } from "tilewright/kernels";
import type { BenchCase, PreparedCase } from "../case.ts";
import { randomArray } from "../random.ts";
import { checkElements, halfError } from "./product-sample.ts";

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
      a: tensor(format, [rows, depth]),
      b: tensor(format, [depth, columns], b === "nk" ? { strides: [1, depth] } : {}),
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
  const made = Array.from({ length: sets }, (_, seed) => ({
    a: randomArray(device, format, [m, k], seed),
    b: randomArray(device, format, b === "nk" ? [n, k] : [k, n], seed + 50),
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
        await checkElements(device, first, { m, n, k, b }, halfError);
      }
    },
    dispose: () => {
      for (const set of made) for (const each of Object.values(set)) each.dispose();
    },
  };
}

type Format = "bf16" | "f16";
