/** Gradients of norms and of the cross-entropy: what a training step has besides products and attention. */
import { tensor, bf16, f32, toNumbers } from "tilewright";
import type { Device, DeviceArray, DTypeName, Operation } from "tilewright";
import { crossEntropy, layerNormBackward, rmsNormBackward } from "tilewright/kernels";
import type { BenchCase } from "../case.ts";
import { randomArray, randomIndices } from "../random.ts";
import { prepared } from "./memory.ts";

type Numbers = (of: DeviceArray<DTypeName>) => Promise<Float64Array>;

function downloading(device: Device): Numbers {
  return async (of) => toNumbers(await device.download(of));
}

function requireNear(name: string, found: number, expected: number, bound: number): void {
  if (!(Math.abs(found - expected) <= bound))
    throw new Error(`${name} is ${found}, not ${expected}`);
}

/** dx, and the sums over rows; statistics are any numbers, as nothing but their use is measured. */
export function normBackwardCase(
  op: "layer_norm_backward" | "rms_norm_backward",
  rows: number,
  columns: number,
): BenchCase {
  const x = tensor(bf16, [rows, columns]);
  const hasMean = op === "layer_norm_backward";
  const operation = hasMean
    ? layerNormBackward({ x, scale: bf16, bias: true })
    : rmsNormBackward({ x, scale: bf16 });
  return {
    name: `library ${op} bf16 ${rows}x${columns}`,
    task: { op, rows, columns, dtype: "bf16" },
    work: rows * columns * 6,
    setBytes: rows * columns * 6,
    unit: "TB/s",
    prepare: (device, sets) =>
      prepared(
        device,
        Array.from({ length: sets }, (_, seed) => ({
          x: randomArray(device, bf16, [rows, columns], seed),
          dOut: randomArray(device, bf16, [rows, columns], seed + 3),
          scale: randomArray(device, bf16, [columns], 5),
          ...(hasMean && { mean: randomArray(device, f32, [rows], seed + 7) }),
          inverseDeviation: randomArray(device, f32, [rows], seed + 8),
          dx: device.allocate(bf16, [rows, columns]),
          dScale: device.allocate(f32, [columns]),
          ...(hasMean && { dBias: device.allocate(f32, [columns]) }),
        })),
        (arrays) => device.bind(operation as unknown as Operation, arrays as never),
        async (arrays) => {
          const given = arrays as { readonly [name: string]: DeviceArray<DTypeName> };
          await checkNorm(downloading(device), given, columns);
        },
      ),
  };
}

/** The gradients of the first row, and the sum over rows of the first column. */
async function checkNorm(
  numbers: Numbers,
  given: { readonly [name: string]: DeviceArray<DTypeName> },
  columns: number,
): Promise<void> {
  const of = async (name: string): Promise<Float64Array | undefined> => {
    const found = given[name];
    return found === undefined ? undefined : await numbers(found);
  };
  const [x, dOut, scale, mean] = [
    await of("x"),
    await of("dOut"),
    await of("scale"),
    await of("mean"),
  ];
  const [inverse, dx, dScale] = [await of("inverseDeviation"), await of("dx"), await of("dScale")];
  const at = (list: Float64Array | undefined, place: number): number => list?.[place] ?? 0;
  const normal = (place: number): number => {
    const row = Math.floor(place / columns);
    return (at(x, place) - at(mean, row)) * at(inverse, row);
  };
  const slopes = Array.from({ length: columns }, (_, j) => at(dOut, j) * at(scale, j));
  const along = slopes.reduce((sum, value, j) => sum + value * normal(j), 0) / columns;
  const even = mean === undefined ? 0 : slopes.reduce((sum, value) => sum + value, 0) / columns;
  for (const [j, slope] of slopes.entries()) {
    const wanted = at(inverse, 0) * (slope - even - normal(j) * along);
    requireNear(`dx[${j}]`, at(dx, j), wanted, Math.abs(wanted) * 2 ** -7 + 1e-4);
  }
  let sum = 0;
  for (let place = 0; place < (x?.length ?? 0); place += columns)
    sum += at(dOut, place) * normal(place);
  requireNear("dScale[0]", at(dScale, 0), sum, 1e-2 + Math.abs(sum) * 1e-4);
}

/** Losses and the gradient of logits, one read and one write. */
export function crossEntropyCase(rows: number, columns: number): BenchCase {
  const operation = crossEntropy({ logits: tensor(bf16, [rows, columns]), gradient: true });
  return {
    name: `library cross_entropy with gradient bf16 ${rows}x${columns}`,
    task: { op: "cross_entropy", rows, columns, dtype: "bf16" },
    work: rows * columns * 4,
    setBytes: rows * columns * 4,
    unit: "TB/s",
    prepare: (device, sets) =>
      prepared(
        device,
        Array.from({ length: sets }, (_, seed) => ({
          logits: randomArray(device, bf16, [rows, columns], seed),
          labels: randomIndices(device, rows, columns, seed),
          loss: device.allocate(f32, [rows]),
          gradient: device.allocate(bf16, [rows, columns]),
        })),
        (arrays) => device.bind(operation as unknown as Operation, arrays as never),
        async (arrays) => {
          const numbers = downloading(device);
          const logits = (await numbers(arrays.logits.slice(0, 1))).slice(0, columns);
          const gradient = await numbers(arrays.gradient.slice(0, 1));
          const label = (await numbers(arrays.labels))[0] ?? NaN;
          const total = logits.reduce((sum, value) => sum + Math.exp(value), 0);
          for (const [j, value] of logits.entries()) {
            const wanted = Math.exp(value) / total - (j === label ? 1 : 0);
            requireNear(
              `gradient[${j}]`,
              gradient[j] ?? NaN,
              wanted,
              Math.abs(wanted) * 2 ** -7 + 1e-6,
            );
          }
        },
      ),
  };
}
