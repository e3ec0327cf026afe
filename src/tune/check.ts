/**
 * Whether two results are the same, found on the device: fetching them would take longer than measuring. Every output
 * is filled with what no result is before a candidate runs, so that an element that it never writes shows.
 *
 *   floats      |out - expected|  against  |expected|      over all elements, and the largest of each, in f64
 *   integers    how many differ   against  how many        so that none of their bits is lost
 *
 * Squares of f64 have no room for all of f64, so each block scales its numbers by a power of two that brings the largest to between 1 and 2:
 *
 *   numbers      3e200, 1e200        1e-170        sums of squares    1.6 times a power of two twice,  1.4 times another one
 *
 * Infinities that are equal are the same; those of what is expected are no measure for the others.
 */
import type { Device } from "../device/device.ts";
import type { DeviceArray } from "../device/device-array.ts";
import { dtypes } from "../formats/dtype.ts";
import type { DType, DTypeName, HostValue } from "../formats/dtype.ts";
import { toNumbers } from "../formats/hostarray.ts";
import { elementCount } from "../formats/shape.ts";
import { tensor, cdiv, dim, full, kernel, slice } from "../lang/index.ts";
import type { Scalar, Tile } from "../lang/index.ts";

const span = 4096;

function differenceKernel(dtype: DType) {
  const n = dim("n");
  return kernel(
    {
      name: `difference_${dtype.name}`,
      grid: { i: cdiv(n, span) },
      inputs: { x: tensor(dtype, [n]), y: tensor(dtype, [n]) },
      outputs: {
        apart: tensor(dtypes.f64, [cdiv(n, span)]),
        whole: tensor(dtypes.f64, [cdiv(n, span)]),
        farthest: tensor(dtypes.f64, [cdiv(n, span)]),
        largest: tensor(dtypes.f64, [cdiv(n, span)]),
      },
    },
    ({ i, x, y, apart, whole, farthest, largest }) => {
      const here = slice(i.mul(span), span);
      const { off, size } = compared(x.at(here).load(), y.at(here).load());
      for (const [numbers, squares, most] of [
        [off, apart, farthest],
        [size, whole, largest],
      ] as const) {
        const greatest = numbers.abs().max();
        const scaled = numbers.mul(scaleTo(greatest));
        squares.at(i).store(scaled.mul(scaled).sum());
        most.at(i).store(greatest);
      }
    },
  );
}

/** Of the fields of an f64: bits of the fraction, the exponents that powers of two and their inverses add up to, the least one. */
const [fractionBits, bothExponents, leastExponent] = [52, 2046, 1];

/** The power of two that brings a number to between 1 and 2, or as near as there is one. */
function scaleTo(greatest: Scalar<"f64">): Scalar<"f64"> {
  const exponent = greatest.bitcast(dtypes.i64).shr(BigInt(fractionBits));
  const inverse = exponent.neg().add(BigInt(bothExponents)).maximum(BigInt(leastExponent));
  return inverse.shl(BigInt(fractionBits)).bitcast(dtypes.f64);
}

/** The same, by which the host knows what was done. */
function scaleOf(greatest: number): number {
  const bits = new BigInt64Array(new Float64Array([greatest]).buffer)[0] ?? 0n;
  const inverse = BigInt(bothExponents) - (bits >> BigInt(fractionBits));
  const least = BigInt(leastExponent);
  const field = (inverse > least ? inverse : least) << BigInt(fractionBits);
  return new Float64Array(new BigInt64Array([field]).buffer)[0] ?? 1;
}

/** The largest number of all blocks, and the sum of all squares, scaled as squares of that one are. */
interface Scaled {
  readonly most: number;
  readonly squares: number;
}

function joined(squares: Float64Array, greatest: Float64Array): Scaled {
  const most = greatest.reduce(
    (known, value) => (Number.isNaN(value) ? NaN : Math.max(known, value)),
    0,
  );
  const scale = scaleOf(most);
  const sum = squares.reduce((all, value, block) => {
    const share = scale / scaleOf(greatest[block] ?? 0);
    return all + value * share * share;
  }, 0);
  return { most, squares: sum };
}

/** Numbers as a part of others; nothing is no part of nothing. */
function part(of: number, whole: number): number {
  return of === 0 ? 0 : of / whole;
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
    const whole = bits === 64 ? expected.dtype : dtypes.i32;
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
    const differences = joined(await read(apart), await read(farthest));
    const sizes = joined(await read(whole), await read(largest));
    const error =
      part(Math.sqrt(differences.squares), Math.sqrt(sizes.squares)) *
      (scaleOf(sizes.most) / scaleOf(differences.most));
    const off = part(differences.most, sizes.most);
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
