/**
 * Whether two results are the same, found on the device: fetching them would take longer than measuring. Every output
 * is filled with what no result is before a candidate runs, so that an element that it never writes shows.
 *
 *   floats      |out - expected|  against  |expected|      over all elements, and the largest of each, in f64, where squares of f32 have room
 *   integers    how many differ   against  how many        so that none of their bits is lost
 *
 * Infinities that are equal are the same; those of what is expected are no measure for the others.
 */
import type { Device } from "../device/device.ts";
import type { DeviceArray } from "../device/device-array.ts";
import { dtypes } from "../formats/dtype.ts";
import type { DType, DTypeName, HostValue } from "../formats/dtype.ts";
import { toNumbers } from "../formats/hostarray.ts";
import { elementCount } from "../formats/shape.ts";
import { array, cdiv, dim, full, kernel, slice } from "../lang/index.ts";
import type { Tile } from "../lang/index.ts";

const span = 4096;

function differenceKernel(dtype: DType) {
  const n = dim("n");
  return kernel(
    {
      name: `difference_${dtype.name}`,
      grid: { i: cdiv(n, span) },
      inputs: { x: array(dtype, [n]), y: array(dtype, [n]) },
      outputs: {
        apart: array(dtypes.f64, [cdiv(n, span)]),
        whole: array(dtypes.f64, [cdiv(n, span)]),
        farthest: array(dtypes.f64, [cdiv(n, span)]),
        largest: array(dtypes.f64, [cdiv(n, span)]),
      },
    },
    ({ i, x, y, apart, whole, farthest, largest }) => {
      const here = slice(i.mul(span), span);
      const { off, size } = compared(x.at(here).load() as Tile, y.at(here).load() as Tile);
      apart.at(i).store(off.mul(off).sum());
      whole.at(i).store(size.mul(size).sum());
      farthest.at(i).store(off.abs().max());
      largest.at(i).store(size.abs().max());
    },
  );
}

/** How far apart numbers are, and how large those are that are expected. */
function compared(
  found: Tile,
  expected: Tile,
): { readonly off: Tile<"f64">; readonly size: Tile<"f64"> } {
  const [none, one] = [0, 1].map((value) => full(dtypes.f64, [span], value));
  if (none === undefined || one === undefined) throw new Error("two tiles were made");
  const { kind, bits } = expected.dtype;
  if (kind !== "float") {
    const whole = bits === 64 ? (expected.dtype as typeof dtypes.i64) : dtypes.i32;
    const same = found.cast(whole).eq(expected.cast(whole));
    return { off: same.select(none, one), size: one };
  }
  const wide = (tile: Tile): Tile<"f64"> =>
    bits === 64 ? (tile as Tile<"f64">) : tile.cast(dtypes.f32).cast(dtypes.f64);
  const [left, right] = [wide(found), wide(expected)];
  return {
    off: left.eq(right).select(none, left.sub(right)),
    size: right.abs().lt(Infinity).select(right, none),
  };
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
  const sums = Array.from({ length: 4 }, () => device.allocate(dtypes.f64, [blocks]));
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
    const read = async (of: DeviceArray<"f64">) => toNumbers(await device.download(of));
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

/** Writes what no result is: of integers that can be anything, so that two runs have two of them. */
export async function poison(device: Device, out: DeviceArray, run: 0 | 1): Promise<void> {
  const { kind, bits } = out.dtype;
  const whole = 3 - run;
  const value: HostValue = kind === "float" ? NaN : kind === "bool" ? run === 0 : whole;
  await device.fill(out, bits === 64 && kind !== "float" ? BigInt(whole) : value);
}
