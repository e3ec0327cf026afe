/** Every step of every tile is some block's exactly once, and those who hand over sums are those who are waited for. */
import { afterAll, beforeAll, expect, test } from "vitest";
import type { Device } from "../../device/device.ts";
import { i32 } from "../../formats/dtype.ts";
import { toNumbers } from "../../formats/hostarray.ts";
import { array, constant, dim, kernel, loop, scalar } from "../../lang/index.ts";
import { open } from "../../runtime/open.ts";
import { splitTiles } from "./segments.ts";

const most = 8;
const workersDimension = dim("workers");

/** Writes down what each block does: tile, first step, steps and others of up to eight segments. */
const listingOf = (mostParts?: number) =>
  kernel(
    {
      name: "listing",
      grid: { worker: workersDimension },
      inputs: { tiles: scalar(i32), steps: scalar(i32) },
      outputs: {
        counts: array(i32, [workersDimension]),
        rows: array(i32, [workersDimension, most, 4]),
      },
    },
    ({ worker, tiles, steps, counts, rows }) => {
      const workers = constant(i32, workersDimension);
      const deal = { worker, workers, tiles, steps };
      const segments = splitTiles(mostParts === undefined ? deal : { ...deal, mostParts });
      counts.at(worker).store(segments.bounds.to);
      // Places beyond the count are filled too, with what nobody reads.
      loop(most, (index) => {
        const segment = segments.at(index);
        const values = [segment.tile, segment.from, segment.steps, segment.others];
        for (const [place, value] of values.entries()) rows.at(worker, index, place).store(value);
      });
    },
  );

interface Segment {
  readonly worker: number;
  readonly tile: number;
  readonly from: number;
  readonly steps: number;
  readonly others: number;
}

let device: Device;
beforeAll(async () => {
  device = await open("simulator");
});
afterAll(() => {
  device.dispose();
});

async function segmentsFor(
  workers: number,
  tiles: number,
  steps: number,
  mostParts?: number,
): Promise<readonly Segment[]> {
  const dimensions = { workers };
  const listing = listingOf(mostParts);
  const { counts, rows } = await device.run(listing, { tiles, steps }, { dimensions });
  const values = toNumbers(rows);
  return [...toNumbers(counts)].flatMap((count, worker) =>
    Array.from({ length: count }, (_, index) => {
      const at = (place: number): number => values[(worker * most + index) * 4 + place] ?? NaN;
      return { worker, tile: at(0), from: at(1), steps: at(2), others: at(3) };
    }),
  );
}

test.each<[workers: number, tiles: number, steps: number, mostParts?: number]>([
  [3, 4, 6],
  [4, 3, 6],
  [5, 5, 4],
  [5, 11, 7],
  [7, 2, 9],
  [6, 1, 100],
  [3, 8, 1],
  [5, 2, 2],
  [6, 8, 9],
  [12, 1, 7],
  [3, 4, 0],
  [12, 1, 7, 3],
  [6, 8, 9, 4],
  [12, 13, 2, 4],
])("%i blocks, %i tiles of %i steps", async (workers, tiles, steps, mostParts) => {
  const segments = await segmentsFor(workers, tiles, steps, mostParts);
  const owners = new Map<string, number>();
  for (const { worker, tile, from, steps: count } of segments)
    for (let step = from; step < from + count; step += 1) {
      expect(owners.has(`${tile}:${step}`)).toBe(false);
      owners.set(`${tile}:${step}`, worker);
    }
  expect(owners.size).toBe(tiles * steps);
  const firsts = segments.filter(({ from }) => from === 0).map(({ tile }) => tile);
  expect(firsts.toSorted((a, b) => a - b)).toEqual([...new Array(tiles).keys()]);
  for (const { worker, tile, from, others } of segments) {
    const after = new Set(
      segments.filter((each) => each.tile === tile && each.from > 0).map((each) => each.worker),
    );
    if (from === 0)
      expect([...after].sort((a, b) => a - b)).toEqual(
        Array.from({ length: others }, (_, index) => worker + 1 + index),
      );
    // A block hands over sums once, so that one place a block is enough.
    else expect(segments.filter((each) => each.worker === worker && each.from > 0)).toHaveLength(1);
  }
  const work = Array.from({ length: workers }, (_, worker) =>
    segments.reduce((sum, each) => sum + (each.worker === worker ? each.steps : 0), 0),
  );
  const parts = Math.min(
    ...[Math.max(steps, 1), mostParts ?? Infinity],
    Math.floor(workers / Math.max(1, tiles % workers)),
  );
  const last = tiles % workers === 0 ? 0 : Math.ceil(steps / parts);
  expect(Math.max(...work)).toBe(Math.floor(tiles / workers) * steps + last);
});

/** Writes down what each block does where two parts of a tile are halves of its columns: tile, first step, steps, others and the half. */
const halvesListing = kernel(
  {
    name: "halves_listing",
    grid: { worker: workersDimension },
    inputs: { tiles: scalar(i32), steps: scalar(i32) },
    outputs: {
      counts: array(i32, [workersDimension]),
      rows: array(i32, [workersDimension, most, 5]),
    },
  },
  ({ worker, tiles, steps, counts, rows }) => {
    const workers = constant(i32, workersDimension);
    const segments = splitTiles({ worker, workers, tiles, steps, mostParts: 4, halves: true });
    counts.at(worker).store(segments.bounds.to);
    loop(most, (index) => {
      const { tile, from, steps: own, others, half = -1 } = segments.at(index);
      for (const [place, value] of [tile, from, own, others, half].entries())
        rows.at(worker, index, place).store(value);
    });
  },
);

test.each<[workers: number, tiles: number, isHalved: boolean]>([
  [6, 6, false],
  [6, 4, false],
  [6, 9, true],
  [7, 3, true],
  [6, 8, false],
  [9, 11, false],
])("%i blocks, %i tiles, those of the last round halved: %s", async (workers, tiles, isHalved) => {
  const steps = 9;
  const dimensions = { workers };
  const { counts, rows } = await device.run(halvesListing, { tiles, steps }, { dimensions });
  const values = toNumbers(rows);
  const segments = [...toNumbers(counts)].flatMap((count, worker) =>
    Array.from({ length: count }, (_, index) => {
      const at = (place: number): number => values[(worker * most + index) * 5 + place] ?? NaN;
      return { tile: at(0), from: at(1), steps: at(2), others: at(3), half: at(4) };
    }),
  );
  const whole = Math.floor(tiles / workers) * workers;
  for (let tile = 0; tile < tiles; tile += 1) {
    const own = segments.filter((each) => each.tile === tile);
    const cut = isHalved && tile >= whole;
    expect(own.map(({ half }) => half)).toEqual(cut ? [1, 2] : own.map(() => 0));
    expect(own.reduce((sum, each) => sum + each.steps, 0)).toBe(cut ? 2 * steps : steps);
    if (cut)
      expect(own.map(({ from, others }) => [from, others])).toEqual([
        [0, 0],
        [0, 0],
      ]);
  }
});
