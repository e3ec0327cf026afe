/**
 * Random programs of the kernel language, by shape of program. Ops and formats at random are `randomKernel`'s; here
 * is what it does not reach: windows that reach over edges or begin where i32 ends, carries of several layouts, sorts
 * with payloads, rings of buffers between threads, clusters, split barriers, semaphores between blocks. Programs on
 * tiles alone are in `tile-programs.ts`, products in flight in `flight-programs.ts`, copies
 * out of shared memory, unions, warps on their own and multicasts in `shared-programs.ts`, and those whose results are computed beside them in `reference`.
 *
 *   programOf("carries", random)    a kernel that is right by construction, for any schedule and target it fits
 */
import type { DType } from "../../src/formats/dtype.ts";
import {
  tensor,
  barrier,
  bf16,
  blockSync,
  cdiv,
  clusterArrive,
  clusterRank,
  clusterSync,
  clusterWait,
  commitShared,
  concatenate,
  constant,
  copyAsync,
  dim,
  dot,
  f16,
  f32,
  i16,
  i32,
  i4,
  i8,
  iota,
  kernel,
  loop,
  scalar,
  semaphore,
  slice,
  smem,
  u8,
  when,
  zeros,
} from "../../src/index.ts";
import type { Scalar, Tile } from "../../src/index.ts";
import type { Random } from "../../src/support/random.ts";
import { flightPrograms } from "./flight-programs.ts";
import { mostlySmall, polish, someBlocks, tame } from "./parts.ts";
import type { Program } from "./parts.ts";
import { exchanges } from "./reference/exchanges.ts";
import { referenced } from "./reference/programs.ts";
import { specialized } from "./reference/warp-specialized.ts";
import { sharedPrograms } from "./shared-programs.ts";
import { tilePrograms } from "./tile-programs.ts";

const loadFormats: readonly DType[] = [f32, f32, i32, f16, bf16, i8, u8, i16, i4];

/** Tiles of arrays whose sizes are no multiples of them, read before the start and past the end. */
function edges(random: Random): Program {
  const [n, m] = [dim("n"), dim("m")];
  const rows = mostlySmall([4, 2, 1, 8, 16], random);
  const columns = mostlySmall([8, 16, 1, 32, 64], random);
  const dtype = random.pick(loadFormats);
  const [down, right] = [random.below(5) - 2, random.below(7) - 3];
  const turned = random.below(3) === 0;
  const { kernel: traced } = kernel(
    {
      name: "edges",
      grid: { i: cdiv(n, rows), j: cdiv(m, columns) },
      inputs: { x: tensor(dtype, [n, m]), y: tensor(f32, [m]) },
      outputs: { out: tensor(f32, [n, m]), sums: tensor(f32, [n, cdiv(m, columns)]) },
    },
    ({ i, j, x, y, out, sums }) => {
      const [row, column] = [i.mul(rows), j.mul(columns)];
      const here = x.at(slice(row, rows), slice(column, columns)).load();
      const there = x.at(slice(row.add(down), rows), slice(column.add(right), columns)).load();
      const line = y.at(slice(column.sub(right), columns)).load();
      const first = tame(here, random);
      const second = tame(there, random);
      const both = turned
        ? first.transpose().add(second.transpose()).transpose()
        : first.add(second);
      const result = both.add(tame(line, random).broadcastTo([rows, columns]));
      out.at(slice(row, rows), slice(column, columns)).store(result);
      sums.at(slice(row, rows), slice(j, 1)).store(result.sum({ axis: 1 }).reshape([rows, 1]));
    },
  );
  return {
    kernel: traced,
    dimensions: { n: someBlocks(rows, random), m: someBlocks(columns, random) },
  };
}

const edge = 2 ** 31;
const farStarts = [-edge, 1 - edge, 31 - edge, -edge / 2, edge / 2, edge - 33, edge - 2, edge - 1];

/**
 * Windows that begin and, for some axes, end at numbers of the launch, in a loop whose steps may wrap, and one at the end of
 * an array whose extent is a sum of products.
 */
function starts(random: Random): Program {
  const [n, m] = [dim("n"), dim("m")];
  const [rows, columns] = [random.pick([1, 2, 8]), random.pick([1, 4, 8, 32])];
  const dtype = random.pick(loadFormats);
  const [down, right] = [random.pick([-1, 0, 1, 2, 8, edge / 2]), random.pick([-3, 0, 1, 4, 8])];
  const turns = 1 + random.below(4);
  const [endsRows, endsColumns] = [random.below(2) === 0, random.below(3) === 0];
  const length = n.mul(2).add(m.div(2)).sub(1);
  const { kernel: traced } = kernel(
    {
      name: "starts",
      inputs: {
        x: tensor(dtype, [n, m]),
        row: scalar(i32),
        column: scalar(i32),
        rowEnd: scalar(i32),
        columnEnd: scalar(i32),
      },
      outputs: { out: tensor(f32, [turns, rows, columns]) },
      inouts: { y: tensor(f32, [n, m]), line: tensor(f32, [length]) },
    },
    ({ x, row, column, rowEnd, columnEnd, out, y, line }) => {
      line.at(slice(constant(i32, length.sub(3)), 8)).store(2);
      loop(turns, (k) => {
        const at = [
          slice(row.add(k.mul(down)), rows, endsRows ? { end: rowEnd } : {}),
          slice(column.add(k.mul(right)), columns, endsColumns ? { end: columnEnd } : {}),
        ] as const;
        const found = tame(x.at(...at).load(), random);
        out.at(k).store(found);
        y.at(...at).store(found.add(k.cast(f32)));
      });
    },
  );
  const dimensions = { n: 1 + random.below(20), m: 1 + random.below(50) };
  const start = (extent: number): number => {
    const near = random.below(extent + 8) - 4;
    return random.below(2) === 0 ? near : random.pick(farStarts);
  };
  const scalars = {
    row: start(dimensions.n),
    column: start(dimensions.m),
    rowEnd: start(dimensions.n),
    columnEnd: start(dimensions.m),
  };
  return { kernel: traced, dimensions, scalars };
}

/** A loop whose carries are used in different ways, and handed on to each other. */
function carries(random: Random): Program {
  const size = mostlySmall([16, 8, 32, 4, 64], random);
  const shape = [size, size];
  const usesDot = random.below(2) === 0;
  const trips = 1 + random.below(4);
  const turns = Array.from({ length: 3 }, () => random.below(8));
  const { kernel: traced } = kernel(
    {
      name: "carries",
      inputs: { x: tensor(f16, shape), y: tensor(f32, shape) },
      outputs: { a: tensor(f32, shape), b: tensor(f32, shape), c: tensor(f32, [size]) },
    },
    ({ x, y, a, b, c }) => {
      const left = tame(x.load(), random);
      const carried: [Tile<"f32">, Tile<"f32">, Tile<"f32">] = [left, tame(y.load(), random), left];
      const step = (
        k: Scalar<"i32">,
        [p, q, r]: readonly [Tile<"f32">, Tile<"f32">, Tile<"f32">],
      ): [Tile<"f32">, Tile<"f32">, Tile<"f32">] => {
        const product = usesDot
          ? dot(p.cast(f16), q.cast(f16), { dtype: f32 }).minimum(8).maximum(-8)
          : p.add(q);
        const choices: readonly (() => Tile<"f32">)[] = [
          () => product,
          () => q,
          () => p.transpose(),
          () => r.add(k.cast(f32)).minimum(9),
          () => q.sum({ axis: 0 }).minimum(8).maximum(-8).broadcastTo(shape),
          () => p.max({ axis: 1 }).reshape([size, 1]).broadcastTo(shape),
          () => polish(r, random).minimum(8).maximum(-8),
          () => concatenate([q, q], { axis: 0 }).slice([size / 2, 0], shape),
        ];
        const [first = 0, second = 1, third = 2] = turns;
        const pick = (turn: number): Tile<"f32"> => (choices[turn] ?? (() => product))();
        const shared = pick(first);
        // One value handed to two carries: they may want it in different places.
        return [shared, pick(second), third < 3 ? shared : pick(third)];
      };
      const [p, q, r] = loop({ to: trips, carry: carried }, step);
      a.store(p);
      b.store(q.add(r.transpose()));
      c.store(r.sum({ axis: 1 }));
    },
  );
  return { kernel: traced, dimensions: {} };
}

/** Sorted rows with payloads of several formats, scans and the places of extremes. */
function sorts(random: Random): Program {
  const n = dim("n");
  const width = mostlySmall([8, 16, 2, 64], random);
  const rows = mostlySmall([2, 1, 4, 8], random);
  const keyFormat = random.pick([f32, i32, i8, f16, u8, bf16]);
  const payloadFormat = random.pick([i32, f32, i8, f16]);
  const second = random.below(2) === 0;
  const descending = random.below(2) === 0;
  const { kernel: traced } = kernel(
    {
      name: "sorts",
      grid: { i: cdiv(n, rows) },
      inputs: { x: tensor(keyFormat, [n, width]), y: tensor(payloadFormat, [n, width]) },
      outputs: {
        keys: tensor(keyFormat, [n, width]),
        payload: tensor(payloadFormat, [n, width]),
        places: tensor(i32, [n]),
        running: tensor(f32, [n, width]),
      },
    },
    ({ i, x, y, keys, payload, places, running }) => {
      const at = slice(i.mul(rows), rows);
      const found = x.at(at).load();
      // Keys that are equal would leave the order of their payloads open.
      const falling = iota(i32, [rows, width], { axis: 1 })
        .mul(-1)
        .add(width - 1);
      const distinct = found.mul(0).add(falling.cast(keyFormat));
      const loaded = y.at(at).load();
      if (second) {
        const [sorted, carried, places] = distinct.sortWith([loaded, falling], {
          axis: 1,
          descending,
        });
        keys.at(at).store(sorted.add(places.mul(0).cast(keyFormat)));
        payload.at(at).store(carried);
      } else {
        const [sorted, carried] = distinct.sortWith([loaded], { axis: 1, descending });
        keys.at(at).store(sorted);
        payload.at(at).store(carried);
      }
      places.at(at).store(found.argmax({ axis: 1 }));
      running.at(at).store(tame(found, random).cumsum({ axis: 1 }));
    },
  );
  return { kernel: traced, dimensions: { n: someBlocks(rows, random) } };
}

/** A thread that copies into a ring of buffers, and one that uses them. */
function pipeline(random: Random): Program {
  const [stages, tiles] = [1 + random.below(4), 1 + mostlySmall([3, 2, 5, 0, 7], random)];
  const [rows, columns] = [random.pick([8, 16]), mostlySmall([16, 32, 64], random)];
  const dtype = random.pick([f32, f16, bf16]);
  const consumers = 1 + random.below(2);
  const writesBack = random.below(2) === 0;
  const threads = consumers === 1 ? (["copy", "use"] as const) : (["copy", "use", "more"] as const);
  const { kernel: traced } = kernel(
    {
      name: "pipeline",
      grid: { i: 2 },
      threads: [...threads],
      inputs: { x: tensor(dtype, [2 * tiles * rows, columns]) },
      outputs: { out: tensor(f32, [2, columns]), last: tensor(f32, [2, columns]) },
      scratch: {
        ring: smem(dtype, [stages, rows, columns]),
        full: barrier({ count: stages }),
        empty: barrier({ count: stages, arrivals: consumers }),
      },
    },
    (args) => {
      const { i, x, out, last, ring, full, empty } = args;
      args.copy(() => {
        loop(tiles, (k) => {
          const slot = k.rem(stages);
          when(k.ge(stages), () => empty.at(slot).wait());
          const from = x.at(slice(i.mul(tiles * rows).add(k.mul(rows)), rows));
          copyAsync(from, ring.at(slot), { barrier: full.at(slot) });
        });
      });
      const use = (target: typeof out): void => {
        const total = loop({ to: tiles, carry: zeros(f32, [columns]) }, (k, sum) => {
          const slot = k.rem(stages);
          full.at(slot).wait();
          const tile = tame(ring.at(slot).load(), random);
          const next = sum.add(writesBack ? tile.max({ axis: 0 }) : tile.sum({ axis: 0 }));
          commitShared();
          empty.at(slot).arrive();
          return next;
        });
        target.at(i).store(total);
      };
      args.use(() => {
        use(out);
        if (consumers === 1) last.at(i).store(zeros(f32, [columns]));
      });
      if ("more" in args)
        args.more(() => {
          use(last);
        });
    },
  );
  return { kernel: traced, dimensions: {} };
}

/**
 * Blocks of a cluster that read each other's memory behind a barrier. Between its halves lanes of a block exchange
 * elements through memory of their own, which the barrier does not order.
 */
function clusters(random: Random): Program {
  const size = mostlySmall([2, 4], random);
  const blocks = random.pick([1, 2]) * size;
  const [rows, columns] = [mostlySmall([4, 8, 16], random), mostlySmall([8, 16, 32], random)];
  const rounds = 1 + random.below(3);
  const exchanges = random.below(3) > 0;
  const { kernel: traced } = kernel(
    {
      name: "clusters",
      grid: { i: blocks },
      cluster: { i: size },
      inputs: { x: tensor(f32, [blocks, rows, columns]) },
      outputs: { out: tensor(f32, [blocks, rows, columns]) },
      scratch: { own: smem(f32, [rows, columns]), aside: smem(f32, [columns, rows]) },
    },
    ({ i, x, out, own, aside }) => {
      const rank = clusterRank("i");
      const start = tame(x.at(i).load(), random);
      const result = loop({ to: rounds, carry: start }, (k, tile) => {
        own.store(tile);
        clusterArrive();
        let between = polish(tile, random);
        if (exchanges) {
          aside.store(between.transpose());
          between = aside.load().transpose();
        }
        clusterWait();
        const other = own.peer(rank.add(k).add(1).rem(size)).load();
        clusterSync();
        return between.add(other).minimum(9).maximum(-9);
      });
      out.at(i).store(result);
    },
  );
  return { kernel: traced, dimensions: {} };
}

/** Blocks in a chain, each of which adds to what the one before has written. */
function chains(random: Random): Program {
  const n = dim("n");
  const columns = random.pick([1, 8, 32]);
  const { kernel: traced } = kernel(
    {
      name: "chains",
      grid: { i: n },
      inputs: { x: tensor(f32, [n, columns]) },
      outputs: { out: tensor(f32, [n, columns]) },
      inouts: { total: tensor(i32, [1]) },
      scratch: { turn: semaphore([n]) },
    },
    ({ i, x, out, total, turn }) => {
      const own = tame(x.at(i).load(), random);
      const before = when(
        i.gt(0),
        () => {
          turn.at(i.sub(1)).wait(1);
          return out.at(i.sub(1)).load();
        },
        () => zeros(f32, [columns]),
      );
      const sum = before.add(own).minimum(99).maximum(-99);
      out.at(i).store(sum);
      total.at(0).atomic("add", 1);
      turn.at(i).signal(1);
    },
  );
  return { kernel: traced, dimensions: { n: 2 + random.below(6) } };
}

/** Tiles through shared memory, changed by ordinary stores and sent away by copies. */
function exchange(random: Random): Program {
  const [rows, columns] = [mostlySmall([8, 16, 32], random), mostlySmall([8, 16, 32], random)];
  const [blocks, dtype] = [1 + random.below(2), random.pick([f32, f16, i32])];
  const { kernel: traced } = kernel(
    {
      name: "exchange",
      grid: { i: blocks },
      threads: ["first", "second"],
      inputs: { x: tensor(dtype, [blocks, rows, columns]) },
      outputs: {
        out: tensor(dtype, [blocks, rows, columns]),
        turned: tensor(dtype, [blocks, columns, rows]),
      },
      scratch: { tile: smem(dtype, [rows, columns]), ready: barrier() },
    },
    ({ first, second, i, x, out, turned, tile, ready }) => {
      first(() => {
        tile.store(x.at(i).load().maximum(-5).minimum(5));
        commitShared();
        ready.arrive();
      });
      second(() => {
        ready.wait();
        turned.at(i).store(tile.load().transpose());
      });
      blockSync();
      first(() => {
        const half = slice(0, rows / 2);
        out.at(i).at(half).store(tile.at(half).load());
      });
      second(() => {
        const half = slice(rows / 2, rows / 2);
        out.at(i).at(half).store(tile.at(half).load());
      });
    },
  );
  return { kernel: traced, dimensions: {} };
}

const makers = {
  ...{ edges, starts, carries, sorts, pipeline, clusters, chains, exchange },
  ...tilePrograms,
  ...flightPrograms,
  ...sharedPrograms,
  ...{ referenced, exchanges, specialized },
};

export type ProgramKind = keyof typeof makers;
export const programKinds = Object.keys(makers) as readonly ProgramKind[];

export function programOf(kind: ProgramKind, random: Random): Program {
  return makers[kind](random);
}
