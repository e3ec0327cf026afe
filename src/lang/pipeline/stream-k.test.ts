/** Every step of every tile is some block's exactly once, and those who hand over sums are those who are waited for. */
import { afterAll, beforeAll, expect, test } from "vitest";
import type { Device } from "../../device/device.ts";
import { i32 } from "../../formats/dtype.ts";
import { toNumbers } from "../../formats/hostarray.ts";
import { tensor, constant, dim, kernel, loop, scalar } from "../index.ts";
import { open } from "../../runtime/open.ts";
import { knownCut, splitTiles } from "./stream-k.ts";

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
        counts: tensor(i32, [workersDimension]),
        rows: tensor(i32, [workersDimension, most, 4]),
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
        const values = [segment.tile, segment.from, segment.steps, segment.shared?.others ?? -1];
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

/** What is written down of a segment where parts may be of halves of columns. */
const columns = [
  ...["tile", "from", "steps", "half"],
  ...["starter", "others", "apart", "last", "isOfBoth"],
] as const;
type Halved = { readonly [N in (typeof columns)[number] | "worker"]: number };

const halvesListing = (mostParts: number) =>
  kernel(
    {
      name: "halves_listing",
      grid: { worker: workersDimension },
      inputs: { tiles: scalar(i32), steps: scalar(i32) },
      outputs: {
        counts: tensor(i32, [workersDimension]),
        rows: tensor(i32, [workersDimension, most, columns.length]),
      },
    },
    ({ worker, tiles, steps, counts, rows }) => {
      const workers = constant(i32, workersDimension);
      const segments = splitTiles({ worker, workers, tiles, steps, mostParts, halves: true });
      counts.at(worker).store(segments.bounds.to);
      loop(most, (index) => {
        const { tile, from, steps: own, shared, half = -1 } = segments.at(index);
        if (shared === undefined) throw new Error("split tiles are shared");
        const { starter, others, apart, last, isOfBoth } = shared;
        const values = [
          tile,
          from,
          own,
          half,
          starter,
          others,
          apart,
          last,
          isOfBoth?.select(constant(i32, 1), 0) ?? -1,
        ];
        for (const [place, value] of values.entries()) rows.at(worker, index, place).store(value);
      });
    },
  );

async function halvesFor(
  workers: number,
  tiles: number,
  steps: number,
  mostParts: number,
): Promise<readonly Halved[]> {
  const dimensions = { workers };
  const listing = halvesListing(mostParts);
  const { counts, rows } = await device.run(listing, { tiles, steps }, { dimensions });
  const values = toNumbers(rows);
  return [...toNumbers(counts)].flatMap((count, worker) =>
    Array.from({ length: count }, (_, index) => {
      const start = (worker * most + index) * columns.length;
      const named = columns.map((name, place) => [name, values[start + place]]);
      return { worker, ...Object.fromEntries(named) } as Halved;
    }),
  );
}

/** Whose sums the starter of a tile, or of a half of it, is handed, as those say who hand them. */
function handedTo(segments: readonly Halved[], { worker, half }: Halved): readonly number[] {
  return segments
    .filter(({ from }) => from > 0)
    .filter(
      ({ starter, isOfBoth }) => starter === worker || (isOfBoth === 1 && starter + 1 === worker),
    )
    .filter((each) => each.half === half || each.half === 0)
    .map((each) => each.worker);
}

test.each<
  [workers: number, tiles: number, steps: number, mostParts: number, halves: number, whole: number]
>([
  // Two halves, nothing else.
  [6, 9, 9, 4, 1, 0],
  [7, 3, 9, 4, 1, 0],
  // Two halves of the first steps, and a part of the last ones.
  [6, 8, 9, 4, 1, 1],
  [6, 8, 64, 4, 1, 1],
  [7, 1, 30, 7, 3, 1],
  [20, 1, 18, 20, 3, 0],
  [20, 1, 25, 20, 3, 1],
  [11, 1, 70, 11, 5, 1],
  // Too few steps for a third.
  [6, 8, 2, 4, 1, 0],
  // Halves of parts.
  [9, 11, 9, 4, 2, 0],
  [12, 13, 80, 12, 6, 0],
  [12, 13, 23, 12, 3, 0],
  // Fewer steps than parts.
  [12, 1, 4, 12, 1, 0],
  [12, 1, 1, 12, 0, 1],
  [6, 8, 0, 4, 0, 1],
  // So many steps that parts are of whole tiles, and no processors for two parts.
  [6, 8, 1000, 4, 0, 3],
  [6, 4, 9, 4, 0, 1],
  [6, 6, 9, 4, 0, 1],
])(
  "%i blocks, %i tiles of %i steps, %i parts at most: %i of halves, %i of whole tiles",
  async (workers, tiles, steps, mostParts, halves, whole) => {
    const segments = await halvesFor(workers, tiles, steps, mostParts);
    // What the host knows of it.
    const known = knownCut(tiles, workers, steps, true);
    const last = segments.filter(({ tile }) => tile === tiles - 1);
    if (mostParts >= Math.floor(workers / Math.max(1, tiles % workers)))
      expect(known).toEqual({
        parts: halves > 0 ? halves : whole,
        each: Math.max(...last.map((each) => each.steps)),
        isHalved: halves > 0,
        others: Math.max(...last.map((each) => each.others)),
      });
    const rounds = Math.floor(tiles / workers) * workers;
    for (let tile = 0; tile < tiles; tile += 1) {
      const own = segments.filter((each) => each.tile === tile);
      const isCut = tile >= rounds;
      const parts = (half: number): readonly Halved[] => own.filter((each) => each.half === half);
      expect([0, 1, 2].map((half) => parts(half).length)).toEqual(
        isCut ? [whole, halves, halves] : [1, 0, 0],
      );
      const starters = own.filter(({ from }) => from === 0);
      // Either the whole is begun by one block, or each half by one.
      expect(starters.map(({ half }) => half)).toEqual(isCut && halves > 0 ? [1, 2] : [0]);
      for (const starter of starters) {
        const others = Array.from({ length: starter.others }, (_, index) =>
          Math.min(starter.worker + (index + 1) * starter.apart, starter.last),
        );
        expect(handedTo(isCut ? own : [], starter)).toEqual(others);
        // A block waits for others with higher numbers, and has their steps in order.
        expect(others.every((other) => other > starter.worker)).toBe(true);
        const all = [starter.worker, ...others].map((worker) =>
          own.find((each) => each.worker === worker),
        );
        let next = 0;
        for (const each of all) {
          expect(each?.from).toBe(next);
          next += each?.steps ?? NaN;
        }
        expect(next).toBe(steps);
      }
    }
  },
);
