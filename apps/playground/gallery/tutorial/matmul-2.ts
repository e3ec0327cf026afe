/**
 * Step 2: any depth. A loop walks along the sum and carries the product so far; the carry keeps its registers from one
 * step to the next. Tails need no code: what lies outside of an array is zero when it is loaded.
 */
import {
  tensor,
  bf16,
  cdiv,
  dim,
  dot,
  f32,
  kernel,
  loop,
  slice,
  toNumbers,
  zeros,
} from "tilewright";
import type { Device } from "tilewright";
import { compareWithReference } from "tilewright/testing";
import type { Comparison } from "tilewright/testing";
import { normal } from "./support/data.ts";
import { productElement } from "./support/product.ts";
import { roundoff } from "./support/roundoff.ts";

const [m, n, k] = [dim("m"), dim("n"), dim("k")];
const tile = 64;

export const matmul = kernel(
  {
    name: "matmul",
    grid: { i: cdiv(m, tile), j: cdiv(n, tile) },
    inputs: { a: tensor(bf16, [m, k]), b: tensor(bf16, [k, n]) },
    outputs: { c: tensor(f32, [m, n]) },
  },
  ({ i, j, a, b, c }) => {
    const rows = slice(i.mul(tile), tile);
    const columns = slice(j.mul(tile), tile);
    const product = loop({ to: cdiv(k, tile), carry: zeros(f32, [tile, tile]) }, (step, sum) => {
      const along = slice(step.mul(tile), tile);
      return dot(a.at(rows, along).load(), b.at(along, columns).load(), { accumulator: sum });
    });
    c.at(rows, columns).store(product);
  },
);

export async function main(device: Device): Promise<Comparison> {
  const [height, width, depth] = [130, 100, 200];
  const a = normal(bf16, [height, depth], 1);
  const b = normal(bf16, [depth, width], 2);
  const { c } = await device.run(matmul, { a, b });
  const [left, right] = [toNumbers(a), toNumbers(b)];
  return compareWithReference(c, (index) => {
    const { value, magnitude } = productElement(left, right, { width, depth }, index);
    return { value, bound: magnitude * Math.ceil(depth / 16) * roundoff.f32 * 1.01 };
  });
}
