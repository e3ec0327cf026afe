/** One thread prepares a tile in shared memory, another multiplies it. Everybody waits for everybody, and yet. */
import { accumulator, tensor, barrier, bf16, f32, kernel, smem, wgmma } from "tilewright";

const [rows, columns, depth] = [64, 64, 64];

export const product = kernel(
  {
    name: "product",
    threads: ["prepare", "multiply"],
    inputs: { a: tensor(bf16, [rows, depth]), b: tensor(bf16, [depth, columns]) },
    outputs: { out: tensor(f32, [rows, columns]) },
    scratch: {
      left: smem(bf16, [rows, depth]),
      right: smem(bf16, [depth, columns]),
      ready: barrier(),
    },
  },
  ({ a, b, out, left, right, ready, prepare, multiply }) => {
    prepare(() => {
      right.store(b.load());
      left.store(a.load().mul(2));
      ready.arrive();
    });
    multiply(() => {
      ready.wait();
      const sum = wgmma(accumulator(f32, [rows, columns]), left, right);
      out.store(sum.wait());
    });
  },
);
