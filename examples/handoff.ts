/**
 * Two program threads hand tiles over through a ring of two buffers. `load` fills a buffer and `compute`
 * empties it; `full` says that a tile has landed, `empty` that its buffer may be refilled.
 *
 *   load     fill 0   fill 1   wait empty 0, fill 0   …
 *   compute  wait full 0, use, arrive empty 0   wait full 1, use, …
 */
import {
  tensor,
  barrier,
  cdiv,
  commitShared,
  copyAsync,
  dim,
  f32,
  kernel,
  loop,
  slice,
  smem,
  toNumbers,
  when,
} from "tilewright";
import type { Device, KernelDefinition } from "tilewright";
import { compareWithReference } from "tilewright/testing";
import type { Comparison } from "tilewright/testing";
import { roundoff } from "./support/roundoff.ts";
import { normal } from "./support/data.ts";

const n = dim("n", { multipleOf: 4 });
const length = 256;
const slots = 2;
const tilesPerBlock = 8;
const span = length * tilesPerBlock;

interface Mistake {
  /** Forget to wait until `compute` has emptied the buffer. */
  readonly refillTooEarly?: boolean;
}

export const makeHandoff = ({ refillTooEarly = false }: Mistake = {}) =>
  kernel(
    {
      name: "handoff",
      grid: { i: cdiv(n, span) },
      threads: ["load", "compute"],
      inputs: { x: tensor(f32, [n]) },
      outputs: { out: tensor(f32, [n]) },
      scratch: {
        ring: smem(f32, [slots, length]),
        full: barrier({ count: slots }),
        empty: barrier({ count: slots }),
      },
    },
    ({ i, x, out, ring, full, empty, load, compute }) => {
      const first = i.mul(span);
      load(() => {
        loop(tilesPerBlock, (tile) => {
          const slot = tile.rem(slots);
          if (!refillTooEarly) when(tile.ge(slots), () => empty.at(slot).wait());
          const source = x.at(slice(first.add(tile.mul(length)), length));
          copyAsync(source, ring.at(slot), { barrier: full.at(slot) });
        });
      });
      compute(() => {
        loop(tilesPerBlock, (tile) => {
          const slot = tile.rem(slots);
          full.at(slot).wait();
          const value = ring.at(slot).load();
          // The last tiles are not refilled, so nobody waits for their buffers.
          when(tile.lt(tilesPerBlock - slots), () => {
            commitShared(); // TMA will overwrite what was read here
            empty.at(slot).arrive();
          });
          const positive = value.maximum(0);
          out.at(slice(first.add(tile.mul(length)), length)).store(positive.sqrt());
        });
      });
    },
  );

export const handoff = makeHandoff();

/** The same kernel with one wait missing; the simulator names both accesses. */
export const brokenHandoff: KernelDefinition = makeHandoff({ refillTooEarly: true });

export async function main(device: Device): Promise<Comparison> {
  const count = 10_004;
  const x = normal(f32, [count], 8);
  const { out } = await device.run(handoff, { x });
  const numbers = toNumbers(x);
  return compareWithReference(out, (index) => {
    const value = Math.sqrt(Math.max(numbers[index] ?? NaN, 0));
    return { value, bound: value * roundoff.f32 };
  });
}
