/** Numbers close to a normal distribution, made on the device: uploading gigabytes would take longer. */
import { tensor, cdiv, f32, i32, iota, kernel, scalar, slice, u32 } from "tilewright";
import type { Device, DeviceArray, DType, Scalar, Tile } from "tilewright";

const span = 4096;

/** A mixed counter: every bit of it is as good as thrown. */
function mix(position: Tile<"u32">, seed: Scalar<"u32">): Tile<"u32"> {
  let mixed = position.mul(0x9e3779b9).xor(seed);
  mixed = mixed.xor(mixed.shr(16)).mul(0x85ebca6b);
  mixed = mixed.xor(mixed.shr(13)).mul(0xc2b2ae35);
  return mixed.xor(mixed.shr(16));
}

export type RandomFormat = "bf16" | "f16" | "f32" | "f64" | "f8e4m3fn" | "i8";

/**
 * Each element is the sum of the four bytes of a mixed counter: mean 510, deviation 147.8. Whole numbers have a deviation of 32,
 * and none of them is beyond i8.
 */
const randomKernel = <N extends RandomFormat>(dtype: DType<N>, shape: readonly number[]) => {
  const count = shape.reduce((all, extent) => all * extent, 1);
  return kernel(
    {
      name: `random_${dtype.name}`,
      grid: { i: cdiv(count, span) },
      inputs: { seed: scalar(u32) },
      outputs: { out: tensor(dtype, shape) },
    },
    ({ i, seed, out }) => {
      const start = i.mul(span);
      const position = iota(u32, [span], { axis: 0 }).add(start.cast(u32));
      const mixed = mix(position, seed);
      const byte = (shift: number) => mixed.shr(shift).and(255);
      const sum = byte(0).add(byte(8)).add(byte(16)).add(byte(24)).cast(f32);
      const normal = sum.sub(510).mul((dtype.name === "i8" ? 32 : 1) / 147.8);
      out.reshape([count]).at(slice(start, span)).store(normal.cast(dtype));
    },
  );
};

/** An array of random numbers on the device. */
export function randomArray<N extends RandomFormat>(
  device: Device,
  dtype: DType<N>,
  shape: readonly number[],
  seed: number,
): DeviceArray<N> {
  const out = device.allocate(dtype, shape);
  device.launch(randomKernel(dtype, shape), { seed, out });
  return out;
}

const indexKernel = (count: number, below: number) =>
  kernel(
    {
      name: "random_indices",
      grid: { i: cdiv(count, span) },
      inputs: { seed: scalar(u32) },
      outputs: { out: tensor(i32, [count]) },
    },
    ({ i, seed, out }) => {
      const start = i.mul(span);
      const mixed = mix(iota(u32, [span], { axis: 0 }).add(start.cast(u32)), seed);
      out.at(slice(start, span)).store(mixed.rem(below).cast(i32));
    },
  );

/** Random whole numbers from 0 below a bound, on the device. */
export function randomIndices(
  device: Device,
  count: number,
  below: number,
  seed: number,
): DeviceArray<"i32"> {
  const out = device.allocate(i32, [count]);
  device.launch(indexKernel(count, below), { seed, out });
  return out;
}

const wordKernel = (count: number) =>
  kernel(
    {
      name: "random_words",
      grid: { i: cdiv(count, span) },
      inputs: { seed: scalar(u32) },
      outputs: { out: tensor(u32, [count]) },
    },
    ({ i, seed, out }) => {
      const start = i.mul(span);
      out
        .at(slice(start, span))
        .store(mix(iota(u32, [span], { axis: 0 }).add(start.cast(u32)), seed));
    },
  );

/** Words of 32 random bits, on the device. */
export function randomWords(device: Device, count: number, seed: number): DeviceArray<"u32"> {
  const out = device.allocate(u32, [count]);
  device.launch(wordKernel(count), { seed, out });
  return out;
}
