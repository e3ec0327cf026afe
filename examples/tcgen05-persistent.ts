/**
 * The product of tcgen05-matmul.ts two steps further. Blocks stay and take tile after tile, with two tiles of sums in tensor memory, so that one is stored
 * while the next one is multiplied; and two blocks of a cluster make each tile together (`pair`), which copies half as much of b:
 *
 *   multiply   tile 0 ▶ complete[0]   tile 1 ▶ complete[1]   wait drained[0], tile 2 …
 *   store                  wait complete[0], tile 0, ▷ drained[0]   wait complete[1], tile 1 …
 *
 *   of a pair     rows of a and sums      columns of b     copies tell         products      commits (▶) tell
 *   half 0        0 … 127                 first half       half 0              of both       both
 *   half 1        128 … 255               second half      half 0
 */
import {
  all,
  barrier,
  bf16,
  block,
  cdiv,
  clusterSync,
  constant,
  copyAsync,
  dim,
  f32,
  gridSize,
  i32,
  kernel,
  loop,
  processors,
  slice,
  smem,
  tcgen05Commit,
  tcgen05Mma,
  tensor,
  tmem,
  toNumbers,
  when,
} from "tilewright";
import type { Device, DType, Scalar } from "tilewright";
import { compareWithReference } from "tilewright/testing";
import type { Comparison } from "tilewright/testing";
import { normal } from "./support/data.ts";
import { productElement } from "./support/product.ts";
import { roundoff } from "./support/roundoff.ts";

const m = dim("m");
const n = dim("n", { multipleOf: 8 });
const k = dim("k", { multipleOf: 8 });

interface Form {
  /** Whether two blocks make a tile together, of twice the rows. */
  readonly pair: boolean;
  readonly dtype?: DType<"f16" | "bf16">;
  readonly result?: DType<"f16" | "bf16" | "f32">;
  readonly columns?: number;
  readonly depth?: number;
  readonly slots?: number;
  /** Places of the grid: as many as the GPU has processors for, unless given. */
  readonly workers?: number;
}

/** Rows of each block, and columns that are stored at once. */
const [rows, width] = [128, 32];

interface Tile {
  /** Which of all blocks' rows, and which columns. */
  readonly i: Scalar<"i32">;
  readonly j: Scalar<"i32">;
  /** How many tiles came before. */
  readonly turn: Scalar<"i32">;
}

interface Worker {
  readonly worker: Scalar<"i32">;
  readonly half: Scalar<"i32">;
  readonly together: number;
  readonly columns: number;
}

/** Every tile of a worker, one after the other. */
function tilesOf({
  worker,
  half,
  together,
  columns,
}: Worker): (body: (tile: Tile) => void) => void {
  const across = cdiv(n, columns);
  const [to, step] = [cdiv(m, together * rows).mul(across), gridSize("worker")];
  return (body) => {
    loop({ from: worker, to, step, carry: constant(i32, 0) }, (number, turn) => {
      body({ i: number.div(across).mul(together).add(half), j: number.rem(across), turn });
      return turn.add(1);
    });
  };
}

function scratchOf({ pair, dtype = bf16, columns = 256, depth = 64, slots = 4 }: Form) {
  const together = pair ? 2 : 1;
  return {
    left: smem(dtype, [slots, rows, depth]),
    right: smem(dtype, [slots, depth, columns / together]),
    sums: tmem(f32, [2, rows, columns], { pair }),
    full: barrier({ count: slots, arrivals: 2 }),
    empty: barrier({ count: slots }),
    complete: barrier({ count: 2 }),
    drained: barrier({ count: 2, arrivals: together }),
  };
}

export function persistentOf(form: Form) {
  const { pair, dtype = bf16, result = bf16, columns = 256, depth = 64, slots = 4 } = form;
  const together = pair ? 2 : 1;
  const { workers = cdiv(processors, together) } = form;
  const toBoth = pair ? { multicast: "half" } : {};
  return kernel(
    {
      name: pair ? "tcgen05_pairs" : "tcgen05_persistent",
      grid: { worker: workers },
      cluster: { half: together },
      threads: ["copy", "multiply", "store"],
      inputs: { a: tensor(dtype, [m, k]), b: tensor(dtype, [k, n]) },
      outputs: { c: tensor(result, [m, n]) },
      scratch: scratchOf(form),
    },
    ({ worker, half, a, b, c, left, right, sums, full, empty, complete, drained, ...threads }) => {
      const { copy, multiply, store } = threads;
      const steps = cdiv(k, depth);
      const eachTile = tilesOf({ worker, half, together, columns });
      copy(() => {
        eachTile(({ i, j, turn }) => {
          loop(steps, (each) => {
            const count = turn.mul(steps).add(each);
            const slot = count.rem(slots);
            when(count.ge(slots), () => empty.at(slot).wait());
            const landed = { barrier: full.at(slot), pair };
            const ofBlock = block(j.mul(together).add(half), columns / together);
            copyAsync(a.at(block(i, rows), block(each, depth)), left.at(slot), landed);
            copyAsync(b.at(block(each, depth), ofBlock), right.at(slot), landed);
          });
        });
      });
      multiply(() => {
        when(half.eq(0), () => {
          eachTile(({ turn }) => {
            const tile = turn.rem(2);
            when(turn.ge(2), () => drained.at(tile).wait());
            loop(steps, (each) => {
              const slot = turn.mul(steps).add(each).rem(slots);
              full.at(slot).wait();
              const adds = each.gt(0);
              tcgen05Mma(sums.at(tile), left.at(slot), right.at(slot), { adds, pair });
              tcgen05Commit(empty.at(slot), toBoth);
            });
            tcgen05Commit(complete.at(tile), toBoth);
          });
        });
      });
      store(() => {
        eachTile(({ i, j, turn }) => {
          const tile = turn.rem(2);
          complete.at(tile).wait();
          for (let column = 0; column < columns; column += width) {
            const part = sums.at(tile, all, slice(column, width)).load();
            c.at(block(i, rows), slice(j.mul(columns).add(column), width)).store(part.cast(result));
          }
          drained.at(tile).arrive(pair ? { peer: 0 } : {});
        });
      });
      // Blocks of a pair arrive on each other's barriers to the end.
      clusterSync();
    },
  );
}

export const persistent = persistentOf({ pair: false });
export const pairs = persistentOf({ pair: true });

export async function main(device: Device): Promise<Comparison> {
  const [height, across, inner] = [392, 72, 72];
  const a = normal(bf16, [height, inner], 38);
  const b = normal(bf16, [inner, across], 39);
  const [left, right] = [toNumbers(a), toNumbers(b)];
  // Products are exact; the sum is rounded once in each step of 16, and to bf16 at the end.
  const roundings = Math.ceil(inner / 16);
  const compared: Comparison[] = [];
  for (const pair of [false, true]) {
    // Of few workers each has several tiles.
    const few = persistentOf({ pair, columns: 64, workers: 1 });
    const { c } = await device.run(few, { a, b });
    const one = compareWithReference(c, (index) => {
      const { value, magnitude } = productElement(
        left,
        right,
        { width: across, depth: inner },
        index,
      );
      const error = magnitude * roundings * roundoff.f32 * 1.01;
      return { value, bound: error + (Math.abs(value) + error) * roundoff.bf16 };
    });
    compared.push(one);
  }
  return compared.reduce((worse, each) => (each.worst > worse.worst ? each : worse));
}
