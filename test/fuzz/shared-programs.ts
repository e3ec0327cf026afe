/**
 * Random programs around shared memory: results that copies take away behind their backs, members of unions that follow
 * each other, warps that work on their own between meetings, and copies that all blocks of a cluster receive.
 */
import {
  tensor,
  barrier,
  bf16,
  clusterRank,
  clusterSync,
  commitGroup,
  commitShared,
  copyAsync,
  dim,
  f16,
  f32,
  i32,
  kernel,
  loop,
  scoped,
  slice,
  smem,
  union,
  waitGroup,
  warps,
  when,
  zeros,
} from "../../src/index.ts";
import type { Ref, Tile } from "../../src/index.ts";
import type { Random } from "../../src/support/random.ts";
import { mostlySmall, polish, someBlocks, tame } from "./parts.ts";
import type { Program } from "./parts.ts";

/** Tiles stored into a ring, from which copies take them or add them to what is there. */
function staging(random: Random): Program {
  const adds = random.below(3) === 0;
  // TMA adds to rows of whole sixteens of bytes alone.
  const multiple = random.pick(adds ? [4, 8] : [1, 4, 8]);
  const [n, m] = [dim("n"), dim("m", { multipleOf: multiple })];
  const [rows, columns] = [mostlySmall([4, 8, 16], random), mostlySmall([8, 16, 32, 64], random)];
  const slots = 1 + random.below(3);
  const rounds = 1 + random.below(5);
  const turns = random.below(2) === 0;
  const [down, right] = [random.below(3), random.pick(adds ? [0, 4] : [0, 0, 4, 3])];
  const { kernel: traced } = kernel(
    {
      name: "staging",
      inputs: { x: tensor(f32, [rounds, rows, columns]) },
      inouts: { out: tensor(f32, [n, m]) },
      scratch: { ring: smem(f32, [slots, rows, columns]) },
    },
    ({ x, out, ring }) => {
      loop(rounds, (k) => {
        const slot = ring.at(k.rem(slots));
        waitGroup(slots - 1, { read: true });
        const tile = tame(x.at(k).load(), random);
        slot.store(turns ? polish(tile.transpose(), random).transpose() : tile);
        commitShared();
        // Each round has rows of its own: what several add to an element depends on their order.
        const top = k.mul(rows).add(down);
        const window = out.at(slice(top, rows), slice(right, columns));
        copyAsync(slot, window, adds ? { reduction: "add" } : {});
        commitGroup();
      });
      waitGroup(0);
    },
  );
  const wide = Math.ceil(someBlocks(columns, random) / multiple) * multiple;
  return { kernel: traced, dimensions: { n: someBlocks(rows * 2, random), m: wide } };
}

/** Members of a union, of several formats, written and read one after the other, in rounds and in scopes. */
function members(random: Random): Program {
  const size = mostlySmall([16, 8, 32], random);
  const rounds = 1 + random.below(3);
  const order = Array.from({ length: 2 + random.below(4) }, () => random.below(3));
  const inScope = random.below(2) === 0;
  const shape = [size, size];
  const { kernel: traced } = kernel(
    {
      name: "members",
      inputs: { x: tensor(f32, shape) },
      outputs: { out: tensor(f32, shape) },
      scratch: {
        memory: union(
          { wide: smem(f32, shape), line: smem(f32, [size]) },
          { half: smem(f16, shape) },
          { whole: smem(i32, [2, size, size / 2]) },
        ),
      },
    },
    ({ x, out, memory: { wide, line, half, whole } }) => {
      const through: readonly ((tile: Tile<"f32">) => Tile<"f32">)[] = [
        (tile) => {
          wide.store(tile);
          line.store(tile.sum({ axis: 0 }).minimum(8).maximum(-8));
          return wide.transpose().load().add(line.load().broadcastTo(shape));
        },
        (tile) => {
          half.store(tile.cast(f16));
          return half.transpose().load().cast(f32);
        },
        (tile) => {
          whole.store(tile.cast(i32).reshape([2, size, size / 2]));
          return whole.load().reshape(shape).cast(f32);
        },
      ];
      const round = (given: Tile<"f32">): Tile<"f32"> => {
        let tile = given;
        for (const way of order)
          tile = polish(through[way]?.(tile) ?? tile, random)
            .minimum(8)
            .maximum(-8);
        return tile;
      };
      const scratch = { aside: smem(bf16, [size, size]) };
      const scopedRound = (tile: Tile<"f32">): Tile<"f32"> =>
        scoped(scratch, ({ aside }) => {
          aside.store(tile.cast(bf16));
          return round(aside.transpose().load().cast(f32));
        });
      const first = tame(x.load(), random).minimum(8).maximum(-8);
      out.store(
        loop({ to: rounds, carry: first }, (_, tile) =>
          inScope ? scopedRound(tile) : round(tile),
        ),
      );
    },
  );
  return { kernel: traced, dimensions: {} };
}

/** Warps that take parts of a buffer on their own, count what they find, and meet again. */
function warping(random: Random): Program {
  const count = random.pick([4, 4, 2, 8]);
  const rows = count * mostlySmall([1, 2, 4], random);
  const columns = mostlySmall([8, 32, 16, 64], random);
  const rounds = 1 + random.below(3);
  const chosen = random.below(count);
  const part = rows / count;
  const { kernel: traced } = kernel(
    {
      name: "warping",
      warps: count,
      inputs: { x: tensor(f32, [rounds, rows, columns]) },
      outputs: { out: tensor(f32, [rounds, rows, columns]), sums: tensor(f32, [rounds, count]) },
      inouts: { total: tensor(i32, [count]), locks: tensor(i32, [count]) },
      scratch: { buffer: smem(f32, [rows, columns]) },
    },
    ({ x, out, sums, total, locks, buffer }) => {
      loop(rounds, (k) => {
        warps((warp) => {
          const mine = slice(warp.mul(part), part);
          const tile = tame(x.at(k, mine).load(), random);
          buffer.at(mine).store(tile);
          sums.at(k, warp).store(tile.sum());
          total.at(warp).atomic("add", tile.max().cast(i32));
          when(warp.eq(chosen), () => {
            const [expected, given] = [random.below(4), random.below(9)];
            locks.at(warp).compareExchange(expected, given);
            buffer.at(mine).store(polish(buffer.at(mine).load(), random));
          });
        });
        const all = buffer.load();
        out.at(k).store(polish(all.add(all.max({ axis: 0, keepDims: true })), random));
      });
    },
  );
  return { kernel: traced, dimensions: {} };
}

/** Blocks of a cluster that receive the same windows, in rounds. */
function multicasting(random: Random): Program {
  const size = mostlySmall([2, 4], random);
  const [rows, columns] = [mostlySmall([4, 8, 16], random), mostlySmall([8, 16, 32], random)];
  const rounds = 1 + random.below(4);
  const slots = 1 + random.below(2);
  const spread = random.below(2) === 0;
  const { kernel: traced } = kernel(
    {
      name: "multicasting",
      grid: { i: size },
      cluster: { i: size },
      inputs: { x: tensor(f32, [rounds, rows, columns]) },
      outputs: { out: tensor(f32, [size, rows, columns]) },
      scratch: { ring: smem(f32, [slots, rows, columns]), landed: barrier({ count: slots }) },
    },
    ({ i, x, out, ring, landed }) => {
      const rank = clusterRank("i");
      const sum = loop({ to: rounds, carry: zeros(f32, [rows, columns]) }, (k, before) => {
        const slot = k.rem(slots);
        const issuer = spread ? k.rem(size) : k.mul(0);
        when(rank.eq(issuer), () => {
          copyAsync(x.at(k), ring.at(slot), { barrier: landed.at(slot), multicast: ["i"] });
        });
        landed.at(slot).wait();
        const tile = tame(readTurned(ring.at(slot), random), random);
        // Nobody's buffer is filled again before all have read theirs.
        commitShared();
        clusterSync();
        return before.add(tile).add(rank.cast(f32)).minimum(99).maximum(-99);
      });
      out.at(i).store(sum);
    },
  );
  return { kernel: traced, dimensions: {}, targets: ["sm_90a", "sm_100a"] };
}

function readTurned(window: Ref<"f32">, random: Random): Tile<"f32"> {
  return random.below(2) === 0 ? window.load() : window.transpose().load().transpose();
}

export const sharedPrograms = { staging, members, warping, multicasting };
