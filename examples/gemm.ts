/**
 * bf16 matrix product with a program thread that copies and two that multiply. Tiles travel through a ring
 * of buffers; `full` says that a pair of tiles has landed, `empty` that both multipliers are done with it.
 *
 *   copy        fill 0   fill 1   fill 2   fill 3   wait empty 0, fill 0   …
 *   multiply 0  wait full 0, wgmma rows 0–63   …   arrive empty 0 once the wgmma after it has started
 *   multiply 1  wait full 0, wgmma rows 64–127 …   arrive empty 0
 *   both        result through the ring's memory, and out by copies
 */
import {
  accumulator,
  array,
  barrier,
  bf16,
  cdiv,
  commitGroup,
  commitShared,
  copyAsync,
  dim,
  f32,
  kernel,
  loop,
  setRegisters,
  slice,
  smem,
  toNumbers,
  union,
  waitGroup,
  wgmma,
  when,
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

interface Tiling {
  readonly columns?: number;
  readonly depth?: number;
  readonly stages?: number;
}

const rows = 128;
const half = rows / 2;

export const gemmOf = ({ columns = 256, depth = 64, stages = 4 }: Tiling = {}) =>
  kernel(
    {
      name: "gemm",
      grid: { j: cdiv(n, columns), i: cdiv(m, rows) },
      threads: ["copy", "first", "second"],
      inputs: { a: array(bf16, [m, k]), b: array(bf16, [k, n]) },
      outputs: { c: array(bf16, [m, n]) },
      scratch: {
        memory: union(
          {
            tileA: smem(bf16, [stages, rows, depth]),
            tileB: smem(bf16, [stages, depth, columns]),
          },
          { result: smem(bf16, [2, half, columns]) },
        ),
        full: barrier({ count: stages, arrivals: 2 }),
        empty: barrier({ count: stages, arrivals: 2 }),
        drained: barrier({ arrivals: 2 }),
      },
    },
    ({ i, j, a, b, c, memory, full, empty, drained, copy, first, second }) => {
      const { tileA, tileB, result } = memory;
      const steps = cdiv(k, depth);
      const top = i.mul(rows);
      const left = slice(j.mul(columns), columns);
      copy(() => {
        setRegisters(40);
        loop(steps, (step) => {
          const slot = step.rem(stages);
          when(step.ge(stages), () => {
            empty.at(slot).wait();
          });
          const along = slice(step.mul(depth), depth);
          const landed = { barrier: full.at(slot) };
          copyAsync(a.at(slice(top, rows), along), tileA.at(slot), landed);
          copyAsync(b.at(along, left), tileB.at(slot), landed);
        });
      });
      [first, second].forEach((multiply, part) => {
        multiply(() => {
          setRegisters(232);
          const product = loop(
            { to: steps, carry: accumulator(f32, [half, columns]) },
            (step, sum) => {
              const slot = step.rem(stages);
              full.at(slot).wait();
              const mine = tileA.at(slot, slice(part * half, half));
              const running = wgmma(sum, mine, tileB.at(slot)).waitPending(1);
              // The step before this one is over, so its slot may be refilled.
              when(step.gt(0), () => {
                empty.at(step.add(stages - 1).rem(stages)).arrive();
              });
              return running;
            },
          ).wait();
          drained.arrive();
          drained.wait();
          const own = result.at(part);
          own.store(product.cast(bf16));
          commitShared();
          copyAsync(own, c.at(slice(top.add(part * half), half), left));
          commitGroup();
          waitGroup(0, { read: true });
        });
      });
    },
  );

export const gemm = gemmOf();

export async function main(device: Device): Promise<Comparison> {
  const [height, width, depth] = [200, 264, 328];
  const a = normal(bf16, [height, depth], 16);
  const b = normal(bf16, [depth, width], 17);
  const { c } = await device.run(gemm, { a, b });
  const [left, right] = [toNumbers(a), toNumbers(b)];
  // Products are exact; the sum is rounded once in each step of 16, and to bf16 at the end.
  const roundings = Math.ceil(depth / 16);
  return compareWithReference(c, (index) => {
    const { value, magnitude } = productElement(left, right, { width, depth }, index);
    const error = magnitude * roundings * roundoff.f32 * 1.01;
    return { value, bound: error + (Math.abs(value) + error) * roundoff.bf16 };
  });
}
