/** Reductions by 2 to 32 warps whose lanes hold the same in the end: one word a warp, two, and several rows at once. */
import { expect, test } from "vitest";
import { tensor, f32, f64, fromNumbers, i32, kernel, open, toNumbers } from "tilewright";

const devices = [await open("simulator"), await open("emulator")];
const columns = 2048;
const rows = 5;

test.each([2, 4, 8, 16, 32])("%i warps combine what each of them tells", async (warps) => {
  const combined = kernel(
    {
      name: "combined",
      grid: { i: 1 },
      warps,
      inputs: { x: tensor(f32, [rows, columns]), y: tensor(f64, [columns]) },
      outputs: {
        sums: tensor(f32, [rows]),
        greatest: tensor(f32, [1]),
        places: tensor(i32, [rows]),
        wide: tensor(f64, [1]),
      },
    },
    ({ x, y, sums, greatest, places, wide }) => {
      const tile = x.load();
      sums.store(tile.sum({ axis: 1 }));
      places.store(tile.argmax({ axis: 1 }));
      greatest.store(tile.max({ axis: 1 }).max({ axis: 0, keepDims: true }));
      wide.store(y.load().sum({ axis: 0, keepDims: true }));
    },
  );
  // Whole numbers whose sums every order of adding gives; those of y need more than 24 bits.
  const x = Array.from({ length: rows * columns }, (_, at) => ((at * 7919) % 4093) - 2000);
  const y = Array.from({ length: columns }, (_, at) => 2 ** 30 + ((at * 104_729) % 65_537));
  const of = (row: number): readonly number[] => x.slice(row * columns, (row + 1) * columns);
  const all = Array.from({ length: rows }, (_, row) => of(row));
  for (const device of devices) {
    const found = await device.run(combined, {
      x: fromNumbers(f32, [rows, columns], x),
      y: fromNumbers(f64, [columns], y),
    });
    expect([...toNumbers(found.sums)]).toEqual(all.map((row) => row.reduce((a, b) => a + b)));
    expect([...toNumbers(found.places)]).toEqual(all.map((row) => row.indexOf(Math.max(...row))));
    expect([...toNumbers(found.greatest)]).toEqual([Math.max(...x)]);
    expect([...toNumbers(found.wide)]).toEqual([y.reduce((a, b) => a + b)]);
  }
});
