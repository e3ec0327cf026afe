/** Floats are exchanged where the bits are those that are expected: a NaN is what it is, and zeros differ. */
import { expect, test } from "vitest";
import { f32, f64 } from "../formats/dtype.ts";
import { fromNumbers, toNumbers } from "../formats/hostarray.ts";
import { kernel, tensor } from "../lang/index.ts";
import { open } from "../runtime/open.ts";

test.each(["simulator", "emulator"] as const)("compareExchange of floats on the %s", async (on) => {
  const device = await open(on);
  try {
    for (const dtype of [f32, f64]) {
      const exchange = kernel(
        {
          name: "exchange",
          inputs: { expected: tensor(dtype, [4]) },
          inouts: { x: tensor(dtype, [4]) },
          outputs: { old: tensor(dtype, [4]) },
        },
        ({ expected, x, old }) => {
          old.store(x.compareExchange(expected.load(), 7));
        },
      );
      const x = fromNumbers(dtype, [4], [1, 0, NaN, 2]);
      const expected = fromNumbers(dtype, [4], [1, -0, NaN, 3]);
      const after = await device.run(exchange, { x, expected });
      expect([...toNumbers(after.old)]).toEqual([1, 0, NaN, 2]);
      expect([...toNumbers(after.x)]).toEqual([7, 0, 7, 2]);
    }
  } finally {
    device.dispose();
  }
});
