/**
 * Step 3: shared memory. TMA brings the tiles into shared memory, a barrier says when they have landed, and
 * `wgmma` reads them from there. Nothing overlaps yet: in Timeline, copies and products take turns.
 */
import {
  accumulator,
  tensor,
  barrier,
  bf16,
  cdiv,
  copyAsync,
  dim,
  f32,
  kernel,
  loop,
  slice,
  smem,
  toNumbers,
  wgmma,
  zeros,
} from "tilewright";
import type { Device } from "tilewright";
import { compareWithReference } from "tilewright/testing";
import type { Comparison } from "tilewright/testing";
import { normal } from "./support/data.ts";
import { productElement } from "./support/product.ts";
import { roundoff } from "./support/roundoff.ts";

const m = dim("m");
const n = dim("n", { multipleOf: 8 });
const k = dim("k", { multipleOf: 8 });
const tile = 64;

export const matmul = kernel(
  {
    name: "matmul",
    grid: { i: cdiv(m, tile), j: cdiv(n, tile) },
    inputs: { a: tensor(bf16, [m, k]), b: tensor(bf16, [k, n]) },
    outputs: { c: tensor(f32, [m, n]) },
    scratch: {
      tileA: smem(bf16, [tile, tile]),
      tileB: smem(bf16, [tile, tile]),
      landed: barrier({ arrivals: 2 }),
    },
  },
  ({ i, j, a, b, c, tileA, tileB, landed }) => {
    const rows = slice(i.mul(tile), tile);
    const columns = slice(j.mul(tile), tile);
    const product = loop({ to: cdiv(k, tile), carry: zeros(f32, [tile, tile]) }, (step, sum) => {
      const along = slice(step.mul(tile), tile);
      copyAsync(a.at(rows, along), tileA, { barrier: landed });
      copyAsync(b.at(along, columns), tileB, { barrier: landed });
      landed.wait();
      // The tiles are overwritten in the next step, so this one's product must be over.
      return wgmma(accumulator(f32, [tile, tile], sum), tileA, tileB).wait();
    });
    c.at(rows, columns).store(product);
  },
);

export async function main(device: Device): Promise<Comparison> {
  const [height, width, depth] = [130, 104, 200];
  const a = normal(bf16, [height, depth], 1);
  const b = normal(bf16, [depth, width], 2);
  const { c } = await device.run(matmul, { a, b });
  const [left, right] = [toNumbers(a), toNumbers(b)];
  return compareWithReference(c, (index) => {
    const { value, magnitude } = productElement(left, right, { width, depth }, index);
    return { value, bound: magnitude * Math.ceil(depth / 16) * roundoff.f32 * 1.01 };
  });
}
