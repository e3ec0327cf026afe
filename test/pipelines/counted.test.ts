/** Tiles that a kernel of one thread takes from a counter. */
import { expect, test } from "vitest";
import { tensor, f32, fromNumbers, i32, kernel, open, tiles, toNumbers } from "tilewright";
import { requireClean } from "./run.ts";

const [count, size] = [5, 8];

const doubled = kernel(
  {
    name: "doubled",
    grid: { worker: 3 },
    inputs: { x: tensor(f32, [count, size]) },
    outputs: { y: tensor(f32, [count, size]) },
    inouts: { counter: tensor(i32, [1]) },
  },
  ({ x, y, counter }) => {
    tiles({ i: count }, { counter }).each(({ i }) => {
      y.at(i).store(x.at(i).load().mul(2));
    });
  },
);

const numbers = Array.from({ length: count * size }, (_, place) => place);
const x = fromNumbers(f32, [count, size], numbers);
const counter = fromNumbers(i32, [1], [0]);
const expected = {
  inputs: { x, counter },
  results: { y: numbers.map((value) => 2 * value), counter: [0] },
};

test("every tile is taken once, and the counter is left at 0, under twenty schedules", async () => {
  await requireClean(doubled, expected, 20);
});

test("a counter that was left by one launch serves the next", async () => {
  const device = await open("emulator", { seed: 3 });
  try {
    const kept = { x: await device.upload(x), y: device.allocate(f32, [count, size]) };
    const taken = await device.upload(counter);
    for (const launch of [1, 2]) {
      device.launch(doubled, { ...kept, counter: taken });
      expect([...toNumbers(await device.download(kept.y))], `launch ${launch}`).toEqual(
        expected.results.y,
      );
    }
    expect([...toNumbers(await device.download(taken))]).toEqual([0]);
    for (const each of [kept.x, kept.y, taken]) each.dispose();
  } finally {
    device.dispose();
  }
});
