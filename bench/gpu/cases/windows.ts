/** Pooling of images with channels last, and kinds of elements: what the library's parts have beside rows and orders. */
import { tensor, bf16, i32, toNumbers } from "tilewright";
import type { Device, DeviceArray, DTypeName, Operation } from "tilewright";
import { pool, unique } from "tilewright/kernels";
import type { BenchCase } from "../case.ts";
import { randomArray, randomIndices } from "../random.ts";
import { prepared } from "./memory.ts";

/** Windows of 3 × 3, two apart, of square images. */
export function poolCase(
  kind: "max" | "average",
  images: number,
  size: number,
  channels: number,
): BenchCase {
  const x = tensor(bf16, [images, size, size, channels]);
  const half = Math.floor((size - 1) / 2) + 1;
  const operation = pool({ x, kind, window: 3, strides: 2, padding: 1 });
  const [given, made] = [images * size * size * channels, images * half * half * channels];
  return {
    name: `library pool ${kind} bf16 ${images}x${size}x${size}x${channels}`,
    task: { op: "pool", kind, images, size, channels, dtype: "bf16" },
    work: 2 * (given + made),
    setBytes: 2 * (given + made),
    unit: "TB/s",
    prepare: (device, sets) =>
      prepared(
        device,
        Array.from({ length: sets }, (_, seed) => ({
          x: randomArray(device, bf16, [images, size, size, channels], seed),
          out: device.allocate(bf16, [images, half, half, channels]),
        })),
        (arrays) => device.bind(operation as unknown as Operation, arrays as never),
        async (arrays) => {
          const [values, found] = [
            await numbers(device, arrays.x),
            await numbers(device, arrays.out),
          ];
          checkCorner(kind, values, found, { size, channels });
        },
      ),
  };
}

async function numbers(device: Device, of: DeviceArray<DTypeName>): Promise<Float64Array> {
  return toNumbers(await device.download(of));
}

/** The window at the second place of the second row, of the first channel. */
function checkCorner(
  kind: "max" | "average",
  values: Float64Array,
  found: Float64Array,
  { size, channels }: { readonly size: number; readonly channels: number },
): void {
  const half = Math.floor((size - 1) / 2) + 1;
  const own = [1, 2, 3].flatMap((row) =>
    [1, 2, 3].map((column) => values[(row * size + column) * channels] ?? NaN),
  );
  const expected =
    kind === "max" ? Math.max(...own) : own.reduce((sum, value) => sum + value, 0) / own.length;
  const got = found[(half + 1) * channels] ?? NaN;
  if (!(Math.abs(got - expected) <= 2 ** -7 * Math.abs(expected) + 1e-3))
    throw new Error(`pool ${kind} gave ${got}, not ${expected}`);
}

/** The distinct of whole numbers, with their counts. */
export function uniqueCase(count: number, kinds: number): BenchCase {
  const operation = unique({ x: tensor(i32, [count]), size: kinds, counts: true });
  return {
    name: `library unique i32 ${count} of ${kinds}`,
    task: { op: "unique", count, kinds },
    work: count * 4,
    setBytes: count * 4,
    unit: "TB/s",
    prepare: (device, sets) =>
      prepared(
        device,
        Array.from({ length: sets }, (_, seed) => ({
          x: randomIndices(device, count, kinds, seed),
          values: device.allocate(i32, [kinds]),
          count: device.allocate(i32, [1]),
          counts: device.allocate(i32, [kinds]),
        })),
        (arrays) => device.bind(operation as unknown as Operation, arrays as never),
        async (arrays) => {
          const distinct = new Set(await numbers(device, arrays.x));
          const [found] = await numbers(device, arrays.count);
          if (found !== distinct.size)
            throw new Error(`unique found ${found}, not ${distinct.size}`);
        },
      ),
  };
}
