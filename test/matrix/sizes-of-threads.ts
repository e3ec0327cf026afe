/**
 * Program threads of other sizes than a warpgroup: tiles held by 1 to 32 warps together, reduced, scanned, sorted, converted,
 * multiplied and updated across all of them, and barriers on which all of them arrive.
 *
 *   | warps | [16, 96] of f32                       | products                                   |
 *   |-------|---------------------------------------|--------------------------------------------|
 *   | 1, 2  | 48, 24 elements a lane                | mma.sync                                   |
 *   | 8     | 6 elements a lane                     | wgmma, slabs of rows for two warpgroups    |
 *   | 32    | fewer elements than lanes would like  | mma.sync, warps beside and below each other |
 */
import { bf16, f32, i32, i64 } from "../../src/formats/dtype.ts";
import type { HostArray } from "../../src/formats/hostarray.ts";
import { fromNumbers } from "../../src/formats/hostarray.ts";
import {
  accumulator,
  tensor,
  barrier,
  commitShared,
  copyAsync,
  dot,
  histogram,
  kernel,
  loop,
  smem,
  takeAlong,
  warps,
  wgmma,
  when,
} from "../../src/lang/index.ts";
import { exactCase } from "./case.ts";
import type { MatrixCase } from "./case.ts";
import { convertHost, ordinaryNumbers } from "./inputs.ts";

const x = ordinaryNumbers(i32, [16, 96], 5);
const inputs = { x: tensor(i32, [16, 96]) };

/** Whole numbers, whose sums of products are exact. */
function whole(shape: readonly number[], seed: number): HostArray {
  return convertHost(ordinaryNumbers(i32, shape, seed), bf16);
}

function combined(count: number): readonly MatrixCase[] {
  return [
    exactCase(`reductions of ${count} warps`, { x }, () =>
      kernel(
        {
          name: "reduced",
          warps: count,
          inputs,
          outputs: {
            rows: tensor(i32, [16]),
            columns: tensor(i32, [96]),
            places: tensor(i32, [96]),
            all: tensor(i32, [1]),
          },
        },
        ({ x: source, rows, columns, places, all }) => {
          const tile = source.load();
          rows.store(tile.max({ axis: 1 }));
          columns.store(tile.sum({ axis: 0 }));
          places.store(tile.argmin({ axis: 0 }));
          all.at(0).store(tile.sum());
        },
      ),
    ),
    exactCase(`scans and sorts of ${count} warps`, { x }, () =>
      kernel(
        {
          name: "ordered",
          warps: count,
          inputs,
          outputs: { sums: tensor(i32, [16, 96]), sorted: tensor(i32, [16, 96]) },
        },
        ({ x: source, sums, sorted }) => {
          const tile = source.load();
          sums.store(tile.cumsum({ axis: 1 }).add(tile.cumsum({ axis: 0, reverse: true })));
          sorted.store(tile.sort({ axis: 1 }).sort({ axis: 0 }));
        },
      ),
    ),
    exactCase(`rearrangements by ${count} warps`, { x }, () =>
      kernel(
        {
          name: "rearranged",
          warps: count,
          inputs,
          outputs: {
            turned: tensor(i32, [96, 16]),
            shaped: tensor(i32, [24, 64]),
            taken: tensor(i32, [16, 96]),
            counts: tensor(i32, [10]),
          },
        },
        ({ x: source, turned, shaped, taken, counts }) => {
          const tile = source.load();
          turned.store(tile.transpose());
          shaped.store(tile.reshape([24, 64]));
          taken.store(takeAlong(tile, tile.abs().rem(96), { axis: 1 }));
          counts.store(histogram(tile.abs().rem(10), 10));
        },
      ),
    ),
  ];
}

function updated(count: number): MatrixCase {
  const old = fromNumbers(i64, [16], Array<bigint>(16).fill(7n));
  return exactCase(`atomic updates by ${count} warps`, { x, table: old }, () =>
    kernel(
      {
        name: "updated",
        warps: count,
        inputs,
        inouts: { table: tensor(i64, [16]) },
        outputs: { before: tensor(i64, [16]) },
      },
      ({ x: source, table, before }) => {
        before.store(table.atomicAdd(source.load().sum({ axis: 1 }).cast(i64)));
      },
    ),
  );
}

/** Warps on their own, of which the last writes what all read. */
function apart(count: number): MatrixCase {
  return exactCase(`${count} warps on their own`, { x }, () =>
    kernel(
      {
        name: "apart",
        warps: count,
        inputs,
        outputs: { out: tensor(i32, [32, 96]) },
        scratch: { row: smem(i32, [96]) },
      },
      ({ x: source, out, row }) => {
        warps((warp) => {
          when(warp.eq(count - 1), () => {
            row.store(source.at(3).load().cumsum({ axis: 0 }));
          });
        });
        loop(32 / count, (round) => {
          warps((warp) => {
            out.at(round.mul(count).add(warp)).store(row.load().add(warp).sort({ axis: 0 }));
          });
        });
      },
    ),
  );
}

/** A copy that one thread starts and another waits for, which gives the buffer back with all its warps. */
function handed(count: number): MatrixCase {
  const many = ordinaryNumbers(f32, [4, 32, 32], 6);
  return exactCase(`buffers handed on by ${count} warps`, { x: many }, () =>
    kernel(
      {
        name: "handed",
        warps: count,
        threads: ["copy", "use"],
        inputs: { x: tensor(f32, [4, 32, 32]) },
        outputs: { out: tensor(f32, [4, 32, 32]) },
        scratch: { buffer: smem(f32, [32, 32]), full: barrier(), free: barrier() },
      },
      ({ x: source, out, buffer, full, free, copy, use }) => {
        copy(() => {
          loop(4, (round) => {
            when(round.gt(0), () => free.wait());
            copyAsync(source.at(round), buffer, { barrier: full });
          });
        });
        use(() => {
          loop(4, (round) => {
            full.wait();
            out.at(round).store(buffer.transpose().load());
            commitShared();
            free.arrive();
          });
        });
      },
    ),
  );
}

type Multiply = "in registers" | "from shared memory" | "half from shared memory" | "in flight";

function multiplied(count: number, way: Multiply): MatrixCase {
  const [m, n, k] = [(64 * Math.max(4, count)) / 4, 32, 32] as const;
  const given = { a: whole([m, k], 1), b: whole([k, n], 2) };
  return exactCase(`product ${way} by ${count} warps`, given, () =>
    kernel(
      {
        name: "product",
        warps: count,
        inputs: { a: tensor(bf16, [m, k]), b: tensor(bf16, [k, n]) },
        outputs: { out: tensor(f32, [m, n]) },
        scratch: { left: smem(bf16, [m, k]), right: smem(bf16, [k, n]) },
      },
      ({ a, b, out, left, right }) => {
        left.store(a.load());
        right.store(b.load());
        commitShared();
        if (way === "in flight") out.store(wgmma(accumulator(f32, [m, n]), left, right).wait());
        else
          out.store(
            dot(
              (way === "from shared memory" ? left : a).load(),
              (way === "in registers" ? b : right).load(),
            ),
          );
      },
    ),
  );
}

export function sizesOfThreadsCases(): readonly MatrixCase[] {
  const counts = [1, 2, 8, 16, 32];
  return [
    ...counts.flatMap(combined),
    ...counts.map(updated),
    ...counts.map(apart),
    ...[1, 2, 8, 16].map(handed),
    ...counts.map((count) => multiplied(count, "in registers")),
    ...[2, 8, 16].map((count) => multiplied(count, "from shared memory")),
    ...[8, 16].flatMap((count) =>
      (["half from shared memory", "in flight"] as const).map((way) => multiplied(count, way)),
    ),
  ];
}
