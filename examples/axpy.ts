/** alpha * x + y over a vector whose last block is not full: the tail needs no code. */
import { tensor, cdiv, dim, f32, kernel, scalar, slice, toNumbers } from "tilewright";
import type { Device } from "tilewright";
import { compareWithReference } from "tilewright/testing";
import type { Comparison } from "tilewright/testing";
import { roundoff } from "./support/roundoff.ts";
import { normal } from "./support/data.ts";

const n = dim("n");
const block = 1024;

export const axpy = kernel(
  {
    name: "axpy",
    grid: { i: cdiv(n, block) },
    inputs: { x: tensor(f32, [n]), y: tensor(f32, [n]), alpha: scalar(f32) },
    outputs: { out: tensor(f32, [n]) },
  },
  ({ i, x, y, alpha, out }) => {
    const here = slice(i.mul(block), block);
    out.at(here).store(x.at(here).load().mul(alpha).add(y.at(here).load()));
  },
);

export async function main(device: Device): Promise<Comparison> {
  const length = 100_003;
  const alpha = 2.5;
  const x = normal(f32, [length], 1);
  const y = normal(f32, [length], 2);
  const { out } = await device.run(axpy, { x, y, alpha });
  const [xs, ys] = [toNumbers(x), toNumbers(y)];
  return compareWithReference(out, (index) => {
    const product = alpha * (xs[index] ?? NaN);
    const value = product + (ys[index] ?? NaN);
    // The product is rounded, then the sum of it.
    const rounded = Math.abs(product) * roundoff.f32;
    return { value, bound: rounded + (Math.abs(value) + rounded) * roundoff.f32 };
  });
}
