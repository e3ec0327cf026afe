import { expect, test } from "vitest";
import { testMistakes, wrong } from "../../../test/language.ts";
import type { Mistake } from "../../../test/language.ts";
import { f32, i32 } from "../../formats/dtype.ts";
import { tensor, dim, kernel, loop, pipeline, processors, smem, storeThrough } from "../index.ts";
import { tiles, warpSpecialized, when, zeros } from "../index.ts";
import type { Ref, Scalar, Tile } from "../index.ts";
import { registersFor } from "./registers.ts";

interface Things {
  readonly x: Ref<"f32">;
  readonly y: Ref<"f32">;
  readonly counter: Ref<"i32">;
  readonly buffers: Ref<"f32">;
  readonly first: (body: () => void) => void;
  readonly row: Tile<"f32">;
}

/** A kernel of three threads whose body is `body`. */
function trace(body: (things: Things) => void): unknown {
  return kernel(
    {
      name: "traced",
      grid: { worker: processors, half: 2 },
      threads: ["copier", "first", "second"],
      inputs: { x: tensor(f32, [8, 64]) },
      outputs: { y: tensor(f32, [dim("n"), 64]) },
      inouts: { counter: tensor(i32, [1]) },
      scratch: { buffers: smem(f32, [2, 32]) },
    },
    ({ x, y, counter, buffers, first }) => {
      body({ x, y, counter, buffers, first, row: zeros(f32, [64]) });
    },
  );
}

const rowOf =
  (x: Ref<"f32">) =>
  ({ k }: { readonly k: Scalar<"i32"> }): Ref<"f32"> =>
    x.at(k);

const mistakes: readonly Mistake[] = [
  {
    name: "nobody to copy for",
    code: "TW1106",
    make: () =>
      kernel({ name: "single" }, () => {
        warpSpecialized({ grid: { k: 4 } }, () => undefined); // <- here
      }),
    expected: "two program threads or more",
  },
  {
    name: "specialized within a thread",
    code: "TW1106",
    make: () =>
      trace(({ first }) => {
        first(() => {
          warpSpecialized({ grid: { k: 4 } }, () => undefined); // <- here
        });
      }),
    found: "the code of first",
  },
  {
    name: "copier that there is not",
    code: "TW1106",
    make: () =>
      trace(() => {
        warpSpecialized({ grid: { k: 4 }, copy: "third" }, () => undefined); // <- here
      }),
    expected: "one of copier, first, second",
  },
  {
    name: "pipeline of computing threads",
    code: "TW1106",
    make: () =>
      trace(({ x }) => {
        warpSpecialized({ grid: { k: 4 } }, ({ steps }) => {
          steps(() => {
            pipeline({ grid: { k: 4 }, inputs: { row: rowOf(x) } }, () => undefined); // <- here
          });
        });
      }),
    found: "the code of first and second",
  },
  {
    name: "steps called twice",
    code: "TW1108",
    make: () =>
      trace(() => {
        warpSpecialized({ grid: { k: 4 } }, ({ steps }) => {
          steps(() => undefined);
          steps(() => undefined); // <- here
        });
      }),
    message: "steps is called again",
  },
  {
    name: "steps in a branch",
    code: "TW1108",
    make: () =>
      trace(() => {
        warpSpecialized({ grid: { k: 4 } }, ({ part, steps }) => {
          when(part.eq(0), () => {
            steps(() => undefined); // <- here
          });
        });
      }),
    message: "steps is called in a loop or a branch",
  },
  {
    name: "steps not called",
    code: "TW1108",
    make: () =>
      trace(() => {
        warpSpecialized({ grid: { k: 4 } }, () => undefined); // <- here
      }),
    message: "does not call steps",
  },
  {
    name: "manual block not released",
    code: "TW1108",
    make: () =>
      trace(({ x }) => {
        const row = { at: rowOf(x), manual: true };
        warpSpecialized({ grid: { k: 4 }, inputs: { row } }, ({ steps }) => {
          const body = ({ wait }: { readonly wait: (name: "row") => void }): void => {
            wait("row");
          };
          steps(body); // <- here
        });
      }),
    message: "row is waited for 1 times and released 0 times",
  },
  {
    name: "manual block released in a loop",
    code: "TW1108",
    make: () =>
      trace(({ x }) => {
        const row = { at: rowOf(x), manual: true };
        warpSpecialized({ grid: { k: 4 }, inputs: { row } }, ({ steps }) => {
          steps(({ wait, release }) => {
            wait("row");
            loop(2, () => {
              release("row"); // <- here
            });
          });
        });
      }),
    message: "row is released in a loop or a branch",
  },
  {
    name: "block that is not manual",
    code: "TW1108",
    make: () =>
      trace(({ x }) => {
        warpSpecialized({ grid: { k: 4 }, inputs: { row: rowOf(x) } }, ({ steps }) => {
          steps(({ wait }) => {
            wait("row"); // <- here
          });
        });
      }),
    expected: "a block that is declared manual",
  },
  {
    name: "manual block whose window grows by nothing",
    code: "TW1102",
    make: () =>
      trace(({ x }) => {
        const at = ({ k }: { readonly k: Scalar<"i32"> }) => x.at(k.mul(2).sub(k).sub(k)); // <- here
        warpSpecialized({ grid: { k: 4 }, inputs: { row: { at, manual: true } } }, () => undefined);
      }),
    found: "a block that moves sometimes",
  },
  {
    name: "early blocks beside others that the steps wait for",
    code: "TW1102",
    make: () =>
      trace(({ x }) => {
        const inputs = {
          row: { at: rowOf(x), manual: true, early: true },
          other: ({ k }: { readonly k: Scalar<"i32"> }) => x.at(k), // <- here
        };
        warpSpecialized({ grid: { k: 4 }, inputs }, ({ steps }) => {
          steps(() => undefined);
        });
      }),
    expected: "manual: true of every block that moves",
  },
  {
    name: "early block that the body of the tile does not take",
    code: "TW1108",
    make: () =>
      trace(({ x }) => {
        const row = { at: rowOf(x), manual: true, early: true };
        const body = ({ steps }: { readonly steps: (body: () => void) => void }): void => {
          steps(() => undefined);
        };
        warpSpecialized({ grid: { k: 4 }, inputs: { row } }, body); // <- here
      }),
    message: "row is waited for 0 times and released 0 times",
  },
  {
    name: "last block before the steps",
    code: "TW1108",
    make: () =>
      trace(({ x }) => {
        const row = { at: rowOf(x), manual: true, early: true };
        const other = { at: rowOf(x), manual: true };
        warpSpecialized({ grid: { k: 4 }, inputs: { row, other } }, ({ wait }) => {
          wait("other"); // <- here
        });
      }),
    expected: "one of row",
  },
  {
    name: "block of the tile where none is early",
    code: "TW1108",
    make: () =>
      trace(({ x }) => {
        const row = { at: rowOf(x), manual: true };
        warpSpecialized({ grid: { k: 4 }, inputs: { row } }, ({ wait }) => {
          wait("row"); // <- here
        });
      }),
    expected: "a block that is declared manual",
  },
  {
    name: "block of the steps in the body of the tile",
    code: "TW1109",
    make: () =>
      trace(({ x }) => {
        warpSpecialized({ grid: { k: 4 }, inputs: { row: rowOf(x) } }, (tile) => {
          tile.row.load(); // <- here
          tile.steps(() => undefined);
        });
      }),
    message: "row is a block of the steps",
  },
  {
    name: "tiles along no axis",
    code: "TW1110",
    make: () =>
      trace(() => {
        tiles({ i: 4 }); // <- here
      }),
    expected: "along: one of worker, half",
  },
  {
    name: "tiles along an axis of a kernel without a grid",
    code: "TW1110",
    make: () =>
      kernel({ name: "free" }, () => {
        tiles({ i: 4 }, { along: "worker" }); // <- here
      }),
    expected: "no `along` in a kernel without a grid",
  },
  {
    name: "snake along one axis",
    code: "TW1110",
    make: () =>
      trace(() => {
        tiles({ i: 4 }, { along: "worker", order: "snake" }); // <- here
      }),
    found: "one",
  },
  {
    name: "a counter for blocks of several axes",
    code: "TW1110",
    make: () =>
      trace(({ counter }) => {
        tiles({ i: 4 }, { along: "worker", counter }); // <- here
      }),
    found: "worker, half",
  },
  {
    name: "counted tiles dealt back and forth",
    code: "TW1110",
    make: () =>
      trace(({ counter }) => {
        tiles({ i: 4 }, { along: "worker", alternate: true, counter }); // <- here
      }),
    found: "alternate and counter",
  },
  {
    name: "an alternate that is no flag",
    code: "TW1008",
    make: () =>
      trace(() => {
        tiles({ i: 4 }, { along: "worker", alternate: wrong(1) }); // <- here
      }),
    expected: "true or false",
  },
  {
    name: "a counter that is no integer",
    code: "TW1008",
    make: () =>
      trace(({ y }) => {
        tiles({ i: 4 }, { along: "worker", counter: wrong(y) }); // <- here
      }),
    message: "the counter of tiles",
  },
  {
    name: "a counter of two axes",
    code: "TW1110",
    make: () =>
      trace(({ counter }) => {
        tiles({ i: 4 }, { along: "worker", counter: counter.reshape([1, 1]) }); // <- here
      }),
    found: "2 axes",
  },
  {
    name: "several threads that each take tiles",
    code: "TW1110",
    make: () =>
      kernel(
        {
          name: "taking",
          grid: { worker: 2 },
          threads: ["first", "second"],
          inouts: { counter: tensor(i32, [1]) },
        },
        ({ counter }) => {
          tiles({ i: 4 }, { counter }).each(() => undefined); // <- here
        },
      ),
    found: "2 threads",
  },
  {
    name: "pieces that do not divide the tile",
    code: "TW1111",
    make: () =>
      trace(({ y, buffers, row }) => {
        storeThrough(buffers, wrong(row.reshape([2, 32])), y, [0, 0]); // <- here
      }),
    found: "buffers of shape [32]",
  },
];

testMistakes("mistakes with specialized threads", mistakes);

test("registers of a processor are shared out in steps of 8, never more than there are", () => {
  const shares = [1, 2, 3, 4, 7].map((computing) => registersFor(computing));
  expect(shares).toEqual([
    undefined,
    { copy: 40, compute: 232 },
    { copy: 32, compute: 160 },
    { copy: 24, compute: 112 },
    { copy: 24, compute: 64 },
  ]);
  for (const [position, computing] of [2, 3, 4, 7].entries()) {
    const { copy = 0, compute = 0 } = shares[position + 1] ?? {};
    expect((copy + computing * compute) * 128).toBeLessThanOrEqual(65536);
    expect([copy % 8, compute % 8]).toEqual([0, 0]);
  }
});
