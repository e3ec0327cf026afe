/**
 * bf16 matrix product whose sums lie in tensor memory (sm_100a), in the plainest form: one thread copies a block of each factor, waits for them, starts a product,
 * waits for it, and goes on. Nothing overlaps; `tcgen05-matmul.ts` has a thread for each kind of work, `tcgen05-persistent.ts` goes on from tile to tile, also by pairs of blocks.
 *
 *   copy ─ wait landed ─ product ▶ multiplied ─ wait multiplied ─ copy …      then load the sums once, and store them
 *
 * A commit (▶) arrives when the products before it are over. `tilewright run examples/tcgen05-block.ts --target sm_100a --device emulator` runs it.
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
} from "tilewright";
import type { Device } from "tilewright";
import type { Comparison } from "tilewright/testing";
import { compareProduct } from "./support/bf16-product.ts";

const m = dim("m");
const n = dim("n", { multipleOf: 8 });
const k = dim("k", { multipleOf: 8 });
const [rows, columns, depth] = [128, 64, 64];

export const tcgen05Block = kernel(
  {
    name: "tcgen05_block",
    grid: { i: cdiv(m, rows), j: cdiv(n, columns) },
    inputs: { a: tensor(bf16, [m, k]), b: tensor(bf16, [k, n]) },
    outputs: { c: tensor(bf16, [m, n]) },
    scratch: {
      left: smem(bf16, [rows, depth]),
      right: smem(bf16, [depth, columns]),
      sums: tmem(f32, [rows, columns]),
      landed: barrier({ arrivals: 2 }),
      multiplied: barrier(),
    },
  },
  ({ i, j, a, b, c, left, right, sums, landed, multiplied }) => {
    loop(cdiv(k, depth), (step) => {
      copyAsync(a.at(block(i, rows), block(step, depth)), left, { barrier: landed });
      copyAsync(b.at(block(step, depth), block(j, columns)), right, { barrier: landed });
      landed.wait();
      tcgen05Mma(sums, left, right, { adds: step.gt(0) });
      tcgen05Commit(multiplied);
      multiplied.wait();
    });
    c.at(block(i, rows), block(j, columns)).store(sums.load().cast(bf16));
  },
);

export function main(device: Device): Promise<Comparison> {
  return compareProduct([136, 72, 200], (a, b) => device.run(tcgen05Block, { a, b }));
}
