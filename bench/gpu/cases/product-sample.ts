/** Results of products on a device against sums in float64, on a sample: fetching all of a large one takes too long. */
import { tensor, cdiv, dim, i32, kernel, scalar, slice, toNumbers } from "tilewright";
import type { Device, DeviceArray, DType } from "tilewright";

/** Positions spread over an axis, its ends among them. */
export function positions(extent: number, count: number): readonly number[] {
  const all = Array.from({ length: count }, (_, index) =>
    Math.round((index * (extent - 1)) / Math.max(1, count - 1)),
  );
  return [...new Set(all)];
}

const span = 1024;

/** One column of a matrix by rows, copied on the device: fetching all of a large one takes too long. */
const columnOf = (dtype: DType) => {
  const [rows, columns] = [dim("rows"), dim("columns")];
  return kernel(
    {
      name: "column",
      grid: { i: cdiv(rows, span) },
      inputs: { x: tensor(dtype, [rows, columns]), column: scalar(i32) },
      outputs: { out: tensor(dtype, [rows]) },
    },
    ({ i, x, column, out }) => {
      const here = slice(i.mul(span), span);
      out.at(here).store(x.at(here, slice(column, 1)).load().reshape([span]));
    },
  );
};

/** The last of the matrices of a batch. */
function lastLayer(all: DeviceArray, batch: number): DeviceArray {
  const [, rows = 1, columns = 1] = all.shape;
  return all.slice(batch - 1, batch).reshape([rows, columns]);
}

async function rowNumbers(device: Device, matrix: DeviceArray, row: number): Promise<Float64Array> {
  return toNumbers(await device.download(matrix.slice(row, row + 1)));
}

export async function columnNumbers(
  device: Device,
  matrix: DeviceArray,
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

/** How far a result may be off, in parts of the sum of its products' absolute values, and of itself. */
export interface ProductError {
  /** Of every product. */
  readonly product: number;
  /** Of every step of the sum, which takes in `per` of k. */
  readonly step: number;
  readonly per: number;
  /** Of the result, by rounding. */
  readonly result: number;
}

/** Tensor cores add sixteen products of bf16 or f16 at a time to a sum of 22 fraction bits. */
export const halfError: ProductError = { product: 0, step: 2 ** -22, per: 16, result: 2 ** -8 };

export interface SampledSizes {
  readonly m: number;
  readonly n: number;
  readonly k: number;
  /** Of a batch the last layer is looked at. */
  readonly batch?: number;
  readonly b: "kn" | "nk";
}

/** Elements where some rows meet some columns, against sums in float64. */
export async function checkElements(
  device: Device,
  arrays: { readonly [N in "a" | "b" | "out"]: DeviceArray },
  { m, n, k, batch, b: order }: SampledSizes,
  error: ProductError,
): Promise<void> {
  const layer = (each: DeviceArray): DeviceArray =>
    batch === undefined ? each : lastLayer(each, batch);
  const [a, b, out] = [layer(arrays.a), layer(arrays.b), layer(arrays.out)];
  const right = new Map<number, Float64Array>();
  for (const column of positions(n, 12)) {
    const fetched = order === "nk" ? rowNumbers : columnNumbers;
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
      const steps = Math.ceil(k / error.per) + 2;
      const bound =
        magnitude * (error.product + error.step * steps) + Math.abs(value) * error.result;
      const got = found[column] ?? NaN;
      if (!(Math.abs(got - value) <= bound))
        throw new Error(`out[${row}, ${column}] is ${got}, not ${value}`);
    }
  }
}
