/**
 * bf16 matrix product as one writes it down: a loop over the depth that loads a block of each factor and adds their
 * product to the sum. The compiler pipelines the loop: while the tensor cores multiply the blocks of one step, those of
 * later steps are on their way into shared memory.
 *
 *   step            0        1        2        3
 *   copies    0 1 ▶ 2      ▶ 3      ▶ 4      ▶ 5     `tilewright compile --dump` shows copies, barriers and slots
 *   products        0        1        2        3
 *
 * The result leaves through shared memory in whole rows, which TMA writes.
 */
import {
  tensor,
  bf16,
  block,
  cdiv,
  dim,
  dot,
  f32,
  kernel,
  loop,
  smem,
  storeThrough,
  toNumbers,
  waitGroup,
  zeros,
} from "tilewright";
import type { Device } from "tilewright";
import { compareWithReference } from "tilewright/testing";
import type { Comparison } from "tilewright/testing";
import { roundoff } from "./support/roundoff.ts";
import { normal } from "./support/data.ts";
import { productElement } from "./support/product.ts";

const m = dim("m");
const n = dim("n", { multipleOf: 8 });
const k = dim("k", { multipleOf: 8 });

/** The kernel for tiles of any size: they are parameters of the function that makes it. */
export const matmulOf = (rows: number, columns: number, depth: number) =>
  kernel(
    {
      name: "matmul",
      warps: 8,
      grid: { i: cdiv(m, rows), j: cdiv(n, columns) },
      inputs: { a: tensor(bf16, [m, k]), b: tensor(bf16, [k, n]) },
      outputs: { c: tensor(bf16, [m, n]) },
      scratch: { result: smem(bf16, [4, rows, 64]) },
    },
    ({ i, j, a, b, c, result }) => {
      const carry = zeros(f32, [rows, columns]);
      const product = loop({ to: cdiv(k, depth), carry }, (step, accumulator) => {
        const left = a.at(block(i, rows), block(step, depth)).load();
        const right = b.at(block(step, depth), block(j, columns)).load();
        return dot(left, right, { accumulator });
      });
      storeThrough(result, product.cast(bf16), c, [i.mul(rows), j.mul(columns)]);
      waitGroup(0, { read: true });
    },
  );

export const matmul = matmulOf(128, 256, 64);

export async function main(device: Device): Promise<Comparison> {
  const [height, width, depth] = [200, 264, 328];
  const a = normal(bf16, [height, depth], 6);
  const b = normal(bf16, [depth, width], 7);
  const { c } = await device.run(matmul, { a, b });
  const [left, right] = [toNumbers(a), toNumbers(b)];
  // Products are exact; the sum is rounded once in each step of 16, and to bf16 at the end.
  const roundings = Math.ceil(depth / 16);
  return compareWithReference(c, (index) => {
    const { value, magnitude } = productElement(left, right, { width, depth }, index);
    const error = magnitude * roundings * roundoff.f32 * 1.01;
    return { value, bound: error + (Math.abs(value) + error) * roundoff.bf16 };
  });
}
