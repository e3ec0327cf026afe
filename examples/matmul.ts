/**
 * bf16 matrix product with double buffering: while the tensor cores multiply one pair of tiles, the next
 * pair is on its way into the other half of shared memory.
 *
 *   step            0        1        2        3
 *   copies    [0]──▶[1]──▶ [0]──▶  [1]──▶            full[slot] completes when both tiles landed
 *   wgmma          slot 0   slot 1   slot 0   slot 1  a slot is refilled once its wgmma is over
 */
import {
  accumulator,
  array,
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
  when,
} from "tilewright";
import type { Device, Scalar } from "tilewright";
import { compareWithReference } from "tilewright/testing";
import type { Comparison } from "tilewright/testing";
import { roundoff } from "./support/roundoff.ts";
import { normal } from "./support/data.ts";
import { productElement } from "./support/product.ts";

const m = dim("m");
const n = dim("n", { multipleOf: 8 });
const k = dim("k", { multipleOf: 8 });

/** The kernel for tiles of any size: they are parameters of the function that makes it. */
export const matmulOf = (tileM: number, tileN: number, tileK: number) =>
  kernel(
    {
      name: "matmul",
      grid: { i: cdiv(m, tileM), j: cdiv(n, tileN) },
      inputs: { a: array(bf16, [m, k]), b: array(bf16, [k, n]) },
      outputs: { c: array(f32, [m, n]) },
      scratch: {
        tileA: smem(bf16, [2, tileM, tileK]),
        tileB: smem(bf16, [2, tileK, tileN]),
        full: barrier({ arrivals: 2, count: 2 }),
      },
    },
    ({ i, j, a, b, c, tileA, tileB, full }) => {
      const rows = slice(i.mul(tileM), tileM);
      const columns = slice(j.mul(tileN), tileN);
      const fetch = (step: Scalar<"i32"> | number): void => {
        const slot = typeof step === "number" ? step % 2 : step.rem(2);
        const depth = slice(typeof step === "number" ? step * tileK : step.mul(tileK), tileK);
        const options = { barrier: full.at(slot) };
        copyAsync(a.at(rows, depth), tileA.at(slot), options);
        copyAsync(b.at(depth, columns), tileB.at(slot), options);
      };
      fetch(0);
      const steps = cdiv(k, tileK);
      const product = loop({ to: steps, carry: accumulator(f32, [tileM, tileN]) }, (step, sum) => {
        const slot = step.rem(2);
        full.at(slot).wait();
        const started = wgmma(sum, tileA.at(slot), tileB.at(slot));
        // The step before this one is over, so its slot may be refilled.
        const running = started.waitPending(1);
        const next = step.add(1);
        when(next.lt(steps), () => {
          fetch(next);
        });
        return running;
      });
      c.at(rows, columns).store(product.wait());
    },
  );

export const matmul = matmulOf(128, 128, 64);

export async function main(device: Device): Promise<Comparison> {
  const [height, width, depth] = [200, 264, 328];
  const a = normal(bf16, [height, depth], 6);
  const b = normal(bf16, [depth, width], 7);
  const { c } = await device.run(matmul, { a, b });
  const [left, right] = [toNumbers(a), toNumbers(b)];
  // Products are exact; the sum is rounded once in each step of 16.
  const roundings = Math.ceil(depth / 16);
  return compareWithReference(c, (index) => {
    const { value, magnitude } = productElement(left, right, { width, depth }, index);
    return { value, bound: magnitude * roundings * roundoff.f32 * 1.01 };
  });
}
