/** A double-buffered matrix product: copies fetch the next pair of tiles while wgmma multiplies one. */
import {
  accumulator,
  all,
  tensor,
  barrier,
  bf16,
  copyAsync,
  f32,
  fromNumbers,
  kernel,
  loop,
  slice,
  smem,
  wgmma,
  when,
} from "tilewright";
import type { KernelDefinition, Scalar } from "tilewright";
import { family } from "./family.ts";

const [steps, rows, columns, depth] = [4, 64, 16, 16];

type Mistake =
  | "no full wait before wgmma"
  | "refilled while wgmma reads"
  | "one arrival for two copies"
  | "fetched into the slot in use"
  | "last fetch not awaited";

const make = (mistake?: Mistake): KernelDefinition =>
  kernel(
    {
      name: "pipeline",
      inputs: { a: tensor(bf16, [rows, steps * depth]), b: tensor(bf16, [steps * depth, columns]) },
      outputs: { out: tensor(f32, [rows, columns]) },
      scratch: {
        tileA: smem(bf16, [2, rows, depth]),
        tileB: smem(bf16, [2, depth, columns]),
        full: barrier({ count: 2, arrivals: mistake === "one arrival for two copies" ? 1 : 2 }),
      },
    },
    ({ a, b, out, tileA, tileB, full }) => {
      const fetch = (step: Scalar<"i32"> | number, slot: Scalar<"i32"> | number): void => {
        const inner = slice(typeof step === "number" ? step * depth : step.mul(depth), depth);
        const left = [a.at(all, inner), tileA.at(slot)] as const;
        const right = [b.at(inner), tileB.at(slot)] as const;
        for (const [source, target] of [left, right])
          copyAsync(source, target, { barrier: full.at(slot) }); // <- operands; last fetch not awaited
      };
      const fetched = mistake === "last fetch not awaited" ? steps + 1 : steps;
      fetch(0, 0);
      const product = loop({ to: steps, carry: accumulator(f32, [rows, columns]) }, (step, sum) => {
        const slot = step.rem(2);
        if (mistake !== "no full wait before wgmma") full.at(slot).wait();
        const started = wgmma(sum, tileA.at(slot), tileB.at(slot)); // <- operands
        const running = started.waitPending(mistake === "refilled while wgmma reads" ? 2 : 1);
        const next = step.add(1);
        when(next.lt(fetched), () => {
          fetch(next, mistake === "fetched into the slot in use" ? slot : next.rem(2));
        });
        return running;
      });
      out.store(product.wait());
    },
  );

const ones = (shape: readonly [number, number]) =>
  fromNumbers(bf16, shape, new Float64Array(shape[0] * shape[1]).fill(1));

export const pipeline = family<Mistake>({
  name: "double-buffered product",
  url: import.meta.url,
  make,
  inputs: { a: ones([rows, steps * depth]), b: ones([steps * depth, columns]) },
  mistakes: {
    "no full wait before wgmma": {
      code: "TW3001",
      at: "operands",
      says: /wait on the copy's barrier full before this wgmma/,
    },
    "refilled while wgmma reads": {
      code: "TW3001",
      at: "operands",
      says: /wait for the wgmma before its operands are changed/,
    },
    "one arrival for two copies": { code: "TW3001", at: "operands" },
    "fetched into the slot in use": { code: "TW3001", at: "operands" },
    "last fetch not awaited": { code: "TW3009", says: /can still be under way/ },
  },
});
