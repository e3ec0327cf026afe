/** One thread prepares operands in shared memory, another multiplies them with wgmma. */
import {
  accumulator,
  tensor,
  barrier,
  bf16,
  commitShared,
  f32,
  fromNumbers,
  kernel,
  smem,
  wgmma,
} from "tilewright";
import type { KernelDefinition } from "tilewright";
import { family } from "./family.ts";

const [rows, columns, depth] = [64, 16, 16];

type Mistake =
  | "operands not committed"
  | "no wait for the operands"
  | "operand overwritten while in use"
  | "new operand not committed"
  | "accumulator used twice"
  | "accumulator never waited for";

const make = (mistake?: Mistake): KernelDefinition =>
  kernel(
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
        left.store(a.load().mul(2)); // <- prepared
        if (mistake !== "operands not committed") commitShared();
        ready.arrive();
      });
      multiply(() => {
        if (mistake !== "no wait for the operands") ready.wait();
        const first = wgmma(accumulator(f32, [rows, columns]), left, right); // <- prepared; operand overwritten while in use
        if (mistake === "no wait for the operands") {
          out.store(first.wait());
          return;
        }
        const sum =
          mistake === "operand overwritten while in use"
            ? first.waitPending(1)
            : accumulator(f32, [rows, columns], first.wait());
        right.store(b.load().neg()); // <- operand overwritten while in use; new operand not committed
        if (mistake !== "new operand not committed") commitShared();
        const second = wgmma(sum, left, right); // <- new operand not committed
        out.store(second.wait()); // <- accumulator used twice
        if (mistake === "accumulator used twice") out.store(second.wait()); // <- accumulator used twice
        if (mistake === "accumulator never waited for")
          wgmma(accumulator(f32, [rows, columns]), left, right); // <- accumulator never waited for
      });
    },
  );

const ones = (shape: readonly [number, number]) =>
  fromNumbers(bf16, shape, new Float64Array(shape[0] * shape[1]).fill(1));

export const product = family<Mistake>({
  name: "product of stored operands",
  url: import.meta.url,
  make,
  inputs: { a: ones([rows, depth]), b: ones([depth, columns]) },
  mistakes: {
    "operands not committed": {
      code: "TW3001",
      at: "prepared",
      says: /call commitShared\(\) in thread prepare/,
    },
    "no wait for the operands": { code: "TW3001", at: "prepared" },
    "operand overwritten while in use": { code: "TW3001", says: /wait for the wgmma/ },
    "new operand not committed": {
      code: "TW3001",
      says: /call commitShared\(\) in thread multiply/,
    },
    "accumulator used twice": { code: "TW1011" },
    "accumulator never waited for": { code: "TW2206" },
  },
});
