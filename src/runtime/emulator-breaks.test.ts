/** A long launch on the emulator, and what the host gets to do meanwhile. */
import { expect, test } from "vitest";
import { f32 } from "../formats/dtype.ts";
import { fromNumbers } from "../formats/hostarray.ts";
import { array, kernel, slice } from "../lang/index.ts";
import { open } from "./open.ts";

const elements = 1 << 17;

test("a launch leaves room for the host, which may allocate", async () => {
  const doubled = kernel(
    {
      name: "doubled",
      grid: { i: elements / 512 },
      inputs: { x: array(f32, [elements]) },
      outputs: { out: array(f32, [elements]) },
    },
    ({ i, x, out }) => {
      const here = slice(i.mul(512), 512);
      out.at(here).store(x.at(here).load().mul(2));
    },
  );
  const device = await open("emulator", { threads: 1 });
  let turns = 0;
  const others: { dispose(): void }[] = [];
  const timer = setInterval(() => {
    turns += 1;
    // Large enough for the heap to move.
    if (turns < 5) others.push(device.allocate(f32, [elements << turns]));
  }, 1);
  const numbers = Array.from({ length: elements }, (_, index) => index % 1000);
  const x = fromNumbers(f32, [elements], numbers);
  const { out } = await device.run(doubled, { x });
  clearInterval(timer);
  expect(turns).toBeGreaterThan(1);
  expect([...out.data]).toEqual(numbers.map((value) => 2 * value));
  for (const other of others) other.dispose();
  device.dispose();
});
