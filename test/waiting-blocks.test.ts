/**
 * Blocks that wait for later ones, all of their warps together: a loop that looks at words, with barriers and shared memory
 * between the looks. Simulator and emulator start blocks as they like, and must not leave those out that others wait for.
 *
 *   block 0   look · look · look ……… told · tell      block 2   tell
 *   block 1   look · look ……… told · tell
 */
import { expect, test } from "vitest";
import {
  tensor,
  fromNumbers,
  kernel,
  open,
  slice,
  toNumbers,
  u32,
  whileLoop,
  zeros,
} from "tilewright";

const [blocks, width] = [3, 64];

/** A block adds to its own words once all of the next block's are there. */
const chain = kernel(
  {
    name: "chain",
    grid: { i: blocks },
    outputs: { order: tensor(u32, [blocks, width]) },
    inouts: { told: tensor(u32, [blocks + 1, width]) },
  },
  ({ i, order, told }) => {
    const here = slice(0, width);
    const { found } = whileLoop(
      { found: zeros(u32, [width]) },
      ({ found: known }) => known.eq(0).reduce("or"),
      () => ({ found: told.at(i.add(1), here).atomicAdd(zeros(u32, [width])) }),
    );
    order.at(i, here).store(found);
    told.at(i, here).atomicAdd(found.add(1));
  },
);

test.each(["simulator", "emulator"] as const)(
  "warps that poll together hear of blocks that begin later, on the %s",
  { timeout: 120_000 },
  async (kind) => {
    const device = await open(kind, { onNotes: () => undefined });
    const words = Array.from({ length: (blocks + 1) * width }, (_, index) =>
      index < blocks * width ? 0 : 1,
    );
    const told = fromNumbers(u32, [blocks + 1, width], words);
    const { order } = await device.run(chain, { told });
    device.dispose();
    expect([...toNumbers(order)].filter((_, index) => index % width === 0)).toEqual([3, 2, 1]);
  },
);
