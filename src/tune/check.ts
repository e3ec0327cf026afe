/**
 * Whether two results are the same, found on the device: fetching them would take longer than measuring. Every output
 * is filled with what no result is before a candidate runs, so that an element that it never writes shows.
 *
 *   |out - expected|  against  |expected|      over all elements, and the largest of each
 */
import type { Device } from "../device/device.ts";
import type { DeviceArray } from "../device/device-array.ts";
import { dtypes } from "../formats/dtype.ts";
import type { DType, DTypeName, HostValue } from "../formats/dtype.ts";
import { toNumbers } from "../formats/hostarray.ts";
import { elementCount } from "../formats/shape.ts";
import { array, cdiv, dim, kernel, slice } from "../lang/index.ts";

const span = 4096;

function differenceKernel(dtype: DType) {
  const n = dim("n");
  return kernel(
    {
      name: `difference_${dtype.name}`,
      grid: { i: cdiv(n, span) },
      inputs: { x: array(dtype, [n]), y: array(dtype, [n]) },
      outputs: {
        apart: array(dtypes.f32, [cdiv(n, span)]),
        whole: array(dtypes.f32, [cdiv(n, span)]),
        farthest: array(dtypes.f32, [cdiv(n, span)]),
        largest: array(dtypes.f32, [cdiv(n, span)]),
      },
    },
    ({ i, x, y, apart, whole, farthest, largest }) => {
      const here = slice(i.mul(span), span);
      const right = y.at(here).load().cast(dtypes.f32);
      const off = x.at(here).load().cast(dtypes.f32).sub(right);
      apart.at(i).store(off.mul(off).sum());
      whole.at(i).store(right.mul(right).sum());
      farthest.at(i).store(off.abs().max());
      largest.at(i).store(right.abs().max());
    },
  );
}

/** How far apart results may lie that differ in the order of sums alone, as a part of the whole. */
const tolerances: { readonly [N in DTypeName]?: number } = {
  f64: 1e-9,
  f32: 1e-3,
  tf32: 1e-3,
  f16: 5e-3,
  bf16: 1e-2,
  f8e4m3fn: 0.1,
  f8e5m2: 0.2,
};

/** How many times as far a single element may be off, as a part of the largest. */
const single = 10;

/** What is different about an output, in words; undefined where it is the same. */
export async function differenceOf(
  device: Device,
  name: string,
  found: DeviceArray,
  expected: DeviceArray,
): Promise<string | undefined> {
  const count = elementCount(expected.shape);
  if (count === 0) return undefined;
  const blocks = Math.ceil(count / span);
  const sums = Array.from({ length: 4 }, () => device.allocate(dtypes.f32, [blocks]));
  const [apart, whole, farthest, largest] = sums;
  if (!apart || !whole || !farthest || !largest) throw new Error("four arrays were made");
  try {
    const [x, y] = [found.reshape([count]), expected.reshape([count])];
    device.launch(differenceKernel(expected.dtype), {
      x,
      y,
      apart,
      whole,
      farthest,
      largest,
    });
    const read = async (of: DeviceArray<"f32">) => toNumbers(await device.download(of));
    const total = (values: Float64Array): number => values.reduce((sum, value) => sum + value, 0);
    const most = (values: Float64Array): number =>
      values.reduce((known, value) => (Number.isNaN(value) ? NaN : Math.max(known, value)), 0);
    const error = Math.sqrt(total(await read(apart)) / Math.max(total(await read(whole)), 1e-300));
    const off = most(await read(farthest)) / Math.max(most(await read(largest)), 1e-300);
    const allowed = tolerances[expected.dtype.name] ?? 0;
    if (error <= allowed && off <= allowed * single) return undefined;
    return `${name} differs by ${error.toPrecision(3)} of the whole, at most by ${off.toPrecision(3)} of the largest element; ${allowed} and ${allowed * single} are allowed`;
  } finally {
    for (const each of sums) each.dispose();
  }
}

/** Writes what no result is. */
export async function poison(device: Device, out: DeviceArray): Promise<void> {
  const value: HostValue = out.dtype.kind === "float" ? NaN : out.dtype.kind === "bool" ? true : 3;
  await device.fill(out, out.dtype.bits === 64 && out.dtype.kind !== "float" ? 3n : value);
}
