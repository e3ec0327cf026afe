/** Operations on rows of the library, one after the other: a norm with a residual, softmax, and the two best of each row. */
import { bf16, f32, toNumbers } from "tilewright";
import type { Device } from "tilewright";
import { rmsNorm, softmax, topK } from "tilewright/kernels";
import { normal } from "./support/data.ts";

const norm = rmsNorm({ x: bf16, residual: bf16, scale: f32 });
const shares = softmax({ x: bf16, out: f32 });
const best = topK({ x: f32, k: 2 });

export async function main(device: Device): Promise<void> {
  const shape = [16, 64];
  const [x, residual] = [normal(bf16, shape, 1), normal(bf16, shape, 2)];
  const scale = normal(f32, [64], 3);
  const { out: normed } = await device.run(norm, { x, residual, scale });
  const { out: probable } = await device.run(shares, { x: normed });
  const { values, indices } = await device.run(best, { x: probable });
  const [first] = toNumbers(values);
  const [column] = toNumbers(indices);
  console.log(`the first row's best is column ${column}, with a share of ${first?.toFixed(4)}`);
  const sums = new Float64Array(16);
  toNumbers(probable).forEach((share, index) => {
    sums[Math.floor(index / 64)] = (sums[Math.floor(index / 64)] ?? 0) + share;
  });
  if (sums.some((sum) => Math.abs(sum - 1) > 1e-5))
    throw new Error("a row's shares do not sum to 1");
}
