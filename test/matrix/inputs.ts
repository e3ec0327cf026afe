/** Random arrays: half of the elements are ordinary numbers, half are whatever their bits say. */
import { isFloat } from "../../src/formats/dtype.ts";
import type { DType } from "../../src/formats/dtype.ts";
import { convertElements } from "../../src/formats/convert.ts";
import { fromNumbers, hostArray } from "../../src/formats/hostarray.ts";
import type { HostArray } from "../../src/formats/hostarray.ts";
import { Random } from "../../src/support/random.ts";

const count = (shape: readonly number[]): number => shape.reduce((all, extent) => all * extent, 1);

/** Any bits that the format has, with many small numbers among them. */
export function anyNumbers(dtype: DType, shape: readonly number[], seed: number): HostArray {
  const random = new Random(seed);
  if (dtype.kind === "bool") return flags(dtype, shape, random);
  const ordinary = ordinaryNumbers(dtype, shape, seed + 1);
  // Not every 32 bits are a tf32.
  if (dtype.name === "tf32") return ordinary;
  const bytes = bytesOf(ordinary);
  const size = Math.max(1, dtype.bits / 8);
  for (let start = 0; start < bytes.length; start += size)
    if (random.uniform() < 0.5)
      for (let byte = start; byte < start + size; byte += 1) bytes[byte] = random.bits() & 255;
  return ordinary;
}

/** Numbers of moderate size: sums and products of some of them stay in range. */
export function ordinaryNumbers(dtype: DType, shape: readonly number[], seed: number): HostArray {
  const random = new Random(seed);
  if (dtype.kind === "bool") return flags(dtype, shape, random);
  const array = hostArray(dtype, shape);
  if (dtype.bits === 64 && !isFloat(dtype)) {
    const data = array.data as BigInt64Array | BigUint64Array;
    data.forEach((_, index) => {
      data[index] = BigInt(random.below(200)) - (dtype.kind === "signed" ? 100n : 0n);
    });
    return array;
  }
  const limit = dtype.bits === 4 ? 7 : 100;
  const draw = (): number => {
    if (isFloat(dtype))
      return dtype.name === "f8e8m0fnu" ? 2 ** (random.below(20) - 10) : random.normal() * 2;
    return random.below(limit) - (dtype.kind === "signed" ? limit >> 1 : 0);
  };
  return fromNumbers(dtype, shape, Array.from({ length: count(shape) }, draw));
}

/** Numbers from `low` to `high`, for functions that have a domain. */
export function numbersBetween(
  dtype: DType,
  shape: readonly number[],
  [low, high]: readonly [number, number],
  seed: number,
): HostArray {
  const random = new Random(seed);
  const draw = (): number => low + (high - low) * random.uniform();
  return fromNumbers(dtype, shape, Array.from({ length: count(shape) }, draw));
}

function flags(dtype: DType, shape: readonly number[], random: Random): HostArray {
  const array = hostArray(dtype, shape);
  const bytes = bytesOf(array);
  for (let index = 0; index < bytes.length; index += 1) bytes[index] = random.bits() & 1;
  return array;
}

export function bytesOf({ data }: HostArray): Uint8Array {
  return new Uint8Array(data.buffer, data.byteOffset, data.byteLength);
}

/** The same numbers in another format. */
export function convertHost(array: HostArray, dtype: DType): HostArray {
  const made = hostArray(dtype, array.shape);
  convertElements(array.dtype, dtype, array.data, made.data);
  return made;
}
