/**
 * bf16 matrix product whose sums lie in tensor memory (sm_100a), with a thread for each kind of work: one copies blocks of the factors, one starts
 * products, and one stores the sums when they are complete.
 *
 *   copy       block 0 ▶ full[0]   block 1 ▶ full[1]   wait empty[0], block 4 ▶ full[0]   …
 *   multiply   wait full[0], product ▶ empty[0]   wait full[1], product ▶ empty[1]   …   ▶ done
 *   store      wait done, load the sums once, store them
 *
 * A commit (▶) arrives when the products before it are over. `tilewright run examples/tcgen05-matmul.ts --target sm_100a` runs it.
 */
import {
  barrier,
  bf16,
  block,
  cdiv,
  copyAsync,
  dim,
  f32,
  kernel,
  loop,
  smem,
  tcgen05Commit,
  tcgen05Mma,
  tensor,
  tmem,
  toNumbers,
  when,
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
const [rows, columns, depth, slots] = [128, 128, 64, 4];

export const tcgen05Matmul = kernel(
  {
    name: "tcgen05_matmul",
    grid: { i: cdiv(m, rows), j: cdiv(n, columns) },
    threads: ["copy", "multiply", "store"],
    inputs: { a: tensor(bf16, [m, k]), b: tensor(bf16, [k, n]) },
    outputs: { c: tensor(bf16, [m, n]) },
    scratch: {
      left: smem(bf16, [slots, rows, depth]),
      right: smem(bf16, [slots, depth, columns]),
      sums: tmem(f32, [rows, columns]),
      full: barrier({ count: slots, arrivals: 2 }),
      empty: barrier({ count: slots }),
      done: barrier(),
    },
  },
  ({ i, j, a, b, c, left, right, sums, full, empty, done, copy, multiply, store }) => {
    const steps = cdiv(k, depth);
    copy(() => {
      loop(steps, (step) => {
        const slot = step.rem(slots);
        when(step.ge(slots), () => empty.at(slot).wait());
        const landed = { barrier: full.at(slot) };
        copyAsync(a.at(block(i, rows), block(step, depth)), left.at(slot), landed);
        copyAsync(b.at(block(step, depth), block(j, columns)), right.at(slot), landed);
      });
    });
    multiply(() => {
      loop(steps, (step) => {
        const slot = step.rem(slots);
        full.at(slot).wait();
        tcgen05Mma(sums, left.at(slot), right.at(slot), { adds: step.gt(0) });
        tcgen05Commit(empty.at(slot));
      });
      tcgen05Commit(done);
    });
    store(() => {
      done.wait();
      c.at(block(i, rows), block(j, columns)).store(sums.load().cast(bf16));
    });
  },
);

export async function main(device: Device): Promise<Comparison> {
  const [height, width, inner] = [200, 136, 328];
  const a = normal(bf16, [height, inner], 36);
  const b = normal(bf16, [inner, width], 37);
  const { c } = await device.run(tcgen05Matmul, { a, b });
  const [left, right] = [toNumbers(a), toNumbers(b)];
  // Products are exact; the sum is rounded once in each step of 16, and to bf16 at the end.
  const roundings = Math.ceil(inner / 16);
  return compareWithReference(c, (index) => {
    const { value, magnitude } = productElement(left, right, { width, depth: inner }, index);
    const error = magnitude * roundings * roundoff.f32 * 1.01;
    return { value, bound: error + (Math.abs(value) + error) * roundoff.bf16 };
  });
}
