/** A long launch on the emulator, and what the host gets to do meanwhile. */
import { expect, test } from "vitest";
import { withHostTurns } from "../../test/support/clocks.ts";
import { f32 } from "../formats/dtype.ts";
import { fromNumbers } from "../formats/hostarray.ts";
import { tensor, kernel, slice } from "../lang/index.ts";
import { open } from "./open.ts";

const elements = 1 << 13;

test("a launch leaves room for the host, which may allocate", async () => {
  const doubled = kernel(
    {
      name: "doubled",
      grid: { i: elements / 512 },
      inputs: { x: tensor(f32, [elements]) },
      outputs: { out: tensor(f32, [elements]) },
    },
    ({ i, x, out }) => {
      const here = slice(i.mul(512), 512);
      out.at(here).store(x.at(here).load().mul(2));
    },
  );
  const device = await open("emulator", { threads: 1 });
  const others: { dispose(): void }[] = [];
  const numbers = Array.from({ length: elements }, (_, index) => index % 1000);
  const x = fromNumbers(f32, [elements], numbers);
  const { result, turns } = await withHostTurns(
    (turn) => {
      // Large enough for the heap to move.
      if (turn < 5) others.push(device.allocate(f32, [2 ** (17 + turn)]));
    },
    () => device.run(doubled, { x }),
  );
  expect(turns).toBeGreaterThan(elements / 512);
  expect([...result.out.data]).toEqual(numbers.map((value) => 2 * value));
  for (const other of others) other.dispose();
  device.dispose();
});
