/** Mistakes with tiles that are split along their steps. */
import { testMistakes, wrong } from "../../../test/language.ts";
import type { Mistake } from "../../../test/language.ts";
import { f32, i32 } from "../../formats/dtype.ts";
import { tensor, gmem, kernel, semaphore, smem, tiles, warpSpecialized, zeros } from "../index.ts";
import type { Ref, Scalar, TileOptions } from "../index.ts";

type Handed = NonNullable<TileOptions["streamK"]>;

interface Things {
  readonly x: Ref<"f32">;
  readonly y: Ref<"f32">;
  readonly counter: Ref<"i32">;
  readonly buffers: Ref<"f32">;
  readonly split: Handed;
}

/** A kernel of three threads on a grid of one axis, or of two, whose body is `body`. */
function trace(body: (things: Things) => void, grid: { readonly [axis: string]: number } = {}) {
  return kernel(
    {
      name: "traced",
      grid: { worker: 3, ...grid },
      threads: ["copier", "first", "second"],
      inputs: { x: tensor(f32, [8, 64]) },
      inouts: { counter: tensor(i32, [1]), y: tensor(f32, [8, 64]) },
      scratch: {
        buffers: smem(f32, [2, 32]),
        sums: gmem(f32, [3, 2, 64]),
        told: semaphore([3, 2]),
      },
    },
    ({ x, y, counter, buffers, sums, told }) => {
      body({ x, y, counter, buffers, split: { sums, flags: told } });
    },
  );
}

type K = { readonly k: Scalar<"i32"> };

const mistakes: readonly Mistake[] = [
  {
    name: "blocks of several axes",
    code: "TW1110",
    make: () =>
      trace(
        ({ split }) => {
          tiles({ i: 4 }, { along: "worker", streamK: split }); // <- here
        },
        { half: 2 },
      ),
    found: "worker, half",
  },
  {
    name: "no semaphore",
    code: "TW1008",
    make: () =>
      trace(({ split: { sums } }) => {
        tiles({ i: 4 }, { streamK: wrong({ sums }) }); // <- here
      }),
    message: "what split tiles hand over",
  },
  {
    name: "sums in shared memory",
    code: "TW1008",
    make: () =>
      trace(({ split: { flags: told }, buffers }) => {
        tiles({ i: 4 }, { streamK: { sums: buffers, flags: told } }); // <- here
      }),
    message: "the sums of split tiles",
  },
  {
    name: "a counter besides",
    code: "TW1110",
    make: () =>
      trace(({ split, counter }) => {
        tiles({ i: 4 }, { streamK: split, counter }); // <- here
      }),
    found: "both",
  },
  {
    name: "tiles that have no steps",
    code: "TW1110",
    make: () =>
      trace(({ split }) => {
        tiles({ i: 4 }, { streamK: split }).each(() => undefined); // <- here
      }),
    message: "no steps",
  },
  {
    name: "a number of steps by tile",
    code: "TW1112",
    make: () =>
      trace(({ split, x }) => {
        const work = tiles({ i: 4 }, { streamK: split });
        const inputs = { row: ({ k }: K) => x.at(k) };
        const grid = ({ i }: { readonly i: Scalar<"i32"> }) => ({ k: i });
        warpSpecialized({ tiles: work, grid, inputs }, () => undefined); // <- here
      }),
    found: "a function",
  },
  {
    name: "several axes of steps",
    code: "TW1112",
    make: () =>
      trace(({ split, x }) => {
        const work = tiles({ i: 4 }, { streamK: split });
        const inputs = { row: ({ k }: K) => x.at(k) };
        warpSpecialized({ tiles: work, grid: { j: 2, k: 2 }, inputs }, () => undefined); // <- here
      }),
    found: "j, k",
  },
  {
    name: "an output that every part would store",
    code: "TW1112",
    make: () =>
      trace(({ split, x, y }) => {
        const work = tiles({ i: 4 }, { streamK: split });
        const blocks = {
          inputs: { row: ({ k }: K) => x.at(k) },
          outputs: { out: ({ i }: { readonly i: Scalar<"i32"> }) => y.at(i) },
        };
        warpSpecialized({ tiles: work, grid: { k: 2 }, ...blocks }, () => undefined); // <- here
      }),
    found: "out",
  },
  {
    name: "sums that are stored by every part",
    code: "TW1112",
    make: () =>
      trace(({ split, x }) => {
        const options = { grid: { k: 2 }, inputs: { row: ({ k }: K) => x.at(k) } };
        warpSpecialized({ tiles: tiles({ i: 4 }, { streamK: split }), ...options }, ({ steps }) => {
          steps(zeros(f32, [64]), ({ row }, sum) => sum.add(row.load())); // <- here
        });
      }),
    found: "no third function",
  },
  {
    name: "no sums",
    code: "TW1112",
    make: () =>
      trace(({ split, x }) => {
        const options = { grid: { k: 2 }, inputs: { row: ({ k }: K) => x.at(k) } };
        warpSpecialized({ tiles: tiles({ i: 4 }, { streamK: split }), ...options }, ({ steps }) => {
          steps(() => undefined); // <- here
        });
      }),
    expected: "steps(tile or accumulator, body",
  },
  {
    name: "something else than a function for the sums",
    code: "TW1008",
    make: () =>
      trace(({ split, x }) => {
        const options = { grid: { k: 2 }, inputs: { row: ({ k }: K) => x.at(k) } };
        warpSpecialized({ tiles: tiles({ i: 4 }, { streamK: split }), ...options }, ({ steps }) => {
          steps(zeros(f32, [64]), (_, sum) => sum, wrong(3)); // <- here
        });
      }),
    message: "what is done with the sums",
  },
];

testMistakes("mistakes with split tiles", mistakes);
