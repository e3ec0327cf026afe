/** A linear layer with bias and relu: `matmul` of the library, with an epilogue of one's own. */
import { tensor, bf16, dim, f32, toNumbers } from "tilewright";
import type { Device } from "tilewright";
import { matmul } from "tilewright/kernels";
import { compareWithReference } from "tilewright/testing";
import type { Comparison } from "tilewright/testing";
import { normal } from "./support/data.ts";
import { roundoff } from "./support/roundoff.ts";

const n = dim("n");
const linear = matmul({
  a: bf16,
  b: bf16,
  out: f32,
  inputs: { bias: tensor(f32, [n]) },
  epilogue: ({ sums, bias }) => sums.add(bias).maximum(0),
});

export async function main(device: Device): Promise<Comparison> {
  const [rows, columns, inner] = [64, 48, 32];
  const a = normal(bf16, [rows, inner], 1);
  const b = normal(bf16, [inner, columns], 2);
  const bias = normal(f32, [columns], 3);
  const { out } = await device.run(linear, { a, b, bias });
  const [as, bs, biases] = [toNumbers(a), toNumbers(b), toNumbers(bias)];
  return compareWithReference(out, (index) => {
    const [row, column] = [Math.floor(index / columns), index % columns];
    let value = biases[column] ?? NaN;
    let size = Math.abs(value);
    for (let k = 0; k < inner; k++) {
      const term = (as[row * inner + k] ?? NaN) * (bs[k * columns + column] ?? NaN);
      value += term;
      size += Math.abs(term);
    }
    // Products of bf16 are exact; each sum rounds once.
    return { value: Math.max(0, value), bound: size * (inner + 1) * roundoff.f32 };
  });
}
