/**
 * Blocks, peers, warps, copies and products that wait for each other, by everything there is to wait by. Each kernel has faults of which one is planted:
 * a wait that is missing, an order the wrong way round, a count that is too large or too small, memory that nobody has written.
 */
import { dtypes } from "../../../src/formats/dtype.ts";
import {
  accumulator,
  tensor,
  barrier,
  bf16,
  clusterArrive,
  clusterRank,
  clusterSync,
  clusterWait,
  commitGlobal,
  commitGroup,
  commitShared,
  copyAsync,
  f32,
  full,
  gmem,
  i32,
  iota,
  kernel,
  loop,
  semaphore,
  slice,
  smem,
  union,
  waitGroup,
  warps,
  wgmma,
  when,
} from "../../../src/index.ts";
import type { KernelDefinition, Ref, Scalar, Semaphore } from "../../../src/index.ts";
import type { Random } from "../../../src/support/random.ts";
import { family, faultyOf } from "./family.ts";
import type { AnyFamily } from "./family.ts";

type Whole = Scalar<"i32">;

/** Blocks in a chain, each of which goes on from what the one before has left in memory of the grid. */
function chain(random: Random): AnyFamily {
  const [blocks, columns] = [3 + random.below(3), random.pick([1, 8, 33])];
  const isScratch = random.below(2) === 0;
  const restores = random.below(2) === 0;
  const rows = { rows: tensor(i32, [blocks, columns]) };
  return family({
    name: `a chain of ${blocks} blocks`,
    make: (is) =>
      kernel(
        {
          name: "chain",
          grid: { i: blocks },
          outputs: { out: tensor(i32, [blocks, columns]), ...(isScratch ? {} : rows) },
          scratch: {
            turn: semaphore([blocks], { restored: restores }),
            ...(isScratch && { rows: gmem(i32, [blocks, columns]) }),
          },
        } as never,
        (given: { readonly [name: string]: unknown }) => {
          const [i, turn] = [given["i"] as Whole, given["turn"] as Semaphore];
          const [out, own] = [given["out"] as Ref<"i32">, given["rows"] as Ref<"i32">];
          const from = is("a block waits for the next")
            ? i.add(1).rem(blocks)
            : i.sub(1).maximum(0);
          const value = is("a signal too many is waited for") ? 2 : 1;
          when(i.gt(0), () => {
            if (!is("nobody waits")) turn.at(from).wait(value, { decrement: restores });
          });
          const before = own.at(i.sub(1).maximum(0));
          const signal = (): void =>
            when(i.lt(blocks - (is("a counter is left") ? 0 : 1)), () => turn.at(i).signal(1));
          if (is("told before it is written")) signal();
          own.at(i).store(full(i32, [columns], 1).add(i));
          if (!is("told before it is written") && !is("nobody is told")) signal();
          when(
            i.gt(0),
            () => out.at(i).store(before.load()),
            () => out.at(i).store(0),
          );
        },
      ) as unknown as KernelDefinition,
    faults: {
      "nobody waits": ["TW3001", "TW3002", "TW3025"],
      "a block waits for the next": ["TW3001", "TW3002", "TW3011"],
      "a signal too many is waited for": ["TW3011"],
      "told before it is written": ["TW3001", "TW3002"],
      "nobody is told": ["TW3011"],
      ...(restores && { "a counter is left": ["TW3025"] }),
    },
  });
}

/** Blocks of a cluster that read what another has written. */
function cluster(random: Random): AnyFamily {
  const size = random.pick([2, 4]);
  const [rounds, length] = [1 + random.below(3), random.pick([4, 16, 40])];
  const splits = random.below(2) === 0;
  const stores = random.below(2) === 0;
  return family({
    name: `a cluster of ${size}`,
    targets: ["sm_90a", "sm_100a"],
    make: (is) =>
      kernel(
        {
          name: "cluster",
          grid: { i: 2 * size },
          cluster: { i: size },
          outputs: { out: tensor(i32, [2 * size, length]) },
          scratch: { own: smem(i32, [length]) },
        },
        ({ i, out, own }) => {
          const rank = clusterRank("i");
          const meet = (): void => {
            if (splits) {
              if (!is("a wait without an arrival")) clusterArrive();
              if (!is("an arrival without a wait")) clusterWait();
            } else clusterSync();
          };
          if (stores) meet();
          loop(rounds, (round) => {
            const to = is("two blocks store to one") ? rank.mul(0) : rank.add(1).rem(size);
            if (stores) own.peer(to).store(full(i32, [length], 1).add(round));
            else own.store(full(i32, [length], 1).add(rank));
            if (is("a block does not come")) when(rank.ne(0), meet);
            else if (!is("nobody meets before it is read")) meet();
            const other = stores ? own : own.peer(rank.add(1).rem(size));
            out.at(i).store(other.load());
            if (!is("nobody meets before it is written again")) meet();
          });
        },
      ) as unknown as KernelDefinition,
    faults: {
      "nobody meets before it is read": ["TW3001", "TW3002"],
      ...((rounds > 1 || !stores) && {
        "nobody meets before it is written again": ["TW3001", "TW3010"],
      }),
      "a block does not come": ["TW3001", "TW3002", "TW3010", "TW3011", "TW3018"],
      ...(stores && { "two blocks store to one": ["TW3001", "TW3002"] }),
      ...(splits && {
        "a wait without an arrival": ["TW3018"],
        "an arrival without a wait": ["TW3001", "TW3002", "TW3018"],
      }),
    },
  });
}

/** Warps on their own, with rows of a buffer. */
function ofWarps(random: Random): AnyFamily {
  const count = random.pick([2, 4, 8]);
  const columns = random.pick([8, 32, 33]);
  const isShared = random.below(2) === 0;
  return family({
    name: `${count} warps`,
    make: (is) =>
      kernel(
        {
          name: "of_warps",
          warps: count,
          outputs: { out: tensor(i32, [count, columns]), rest: tensor(i32, [count, columns]) },
          scratch: {
            rows: isShared ? smem(i32, [count, columns]) : gmem(i32, [count, columns]),
            met: barrier({ arrivals: count }),
            counted: barrier({ arrivals: 1 }),
          },
        },
        ({ out, rest, rows, met, counted }) => {
          const own = rows as Ref<"i32">;
          warps((warp) => {
            own
              .at(is("warps store to one row") ? warp.div(2) : warp)
              .store(full(i32, [columns], 1).add(warp));
            const read = is("a warp reads the row of another") ? warp.add(1).rem(count) : warp;
            if (!is("warps store to one row")) out.at(warp).store(own.at(read).load());
            const arrives = (): void => met.arrive();
            if (is("a warp does not arrive")) when(warp.ne(1), arrives);
            else arrives();
            met.wait();
            if (is("a warp waits once more")) when(warp.eq(0), () => counted.wait());
          });
          counted.arrive();
          counted.wait();
          rest.store(own.load());
        },
      ) as unknown as KernelDefinition,
    faults: {
      "warps store to one row": ["TW3001"],
      "a warp reads the row of another": ["TW3001", "TW3002"],
      "a warp does not arrive": ["TW3011"],
      "a warp waits once more": ["TW3011", "TW3021"],
    },
  });
}

/** Tiles that are sent out of shared memory, in groups of copies. */
function sending(random: Random): AnyFamily {
  const [tiles, slots, length] = [4 + random.below(3), 2 + random.below(2), random.pick([16, 32])];
  const reads = random.below(2) === 0;
  return family({
    name: `${tiles} tiles sent through ${slots} slots`,
    make: (is) =>
      kernel(
        {
          name: "sending",
          outputs: { out: tensor(i32, [tiles, length]), back: tensor(i32, [length]) },
          scratch: { ring: smem(i32, [slots, length]) },
        },
        ({ out, back, ring }) => {
          loop(tiles, (k) => {
            const slot = ring.at(k.rem(slots));
            const pending = is("a slot is overwritten too early") ? slots : slots - 1;
            waitGroup(pending, reads ? { read: true } : {});
            slot.store(full(i32, [length], 1).add(k));
            if (!is("not committed to the engine")) commitShared();
            copyAsync(slot, out.at(k));
            if (!is("in no group")) commitGroup();
          });
          if (is("only read is waited for")) waitGroup(0, { read: true });
          else if (!is("nobody waits")) waitGroup();
          back.store(out.at(0).load());
        },
      ) as unknown as KernelDefinition,
    faults: {
      "a slot is overwritten too early": ["TW3001"],
      "not committed to the engine": ["TW3001"],
      "in no group": ["TW3001"],
      // The others' first tile has arrived before.
      ...(reads && { "only read is waited for": ["TW3001"] }),
      ...(reads && { "nobody waits": ["TW3001"] }),
    },
  });
}

/** Products in flight of tiles that are refilled. */
function products(random: Random): AnyFamily {
  const steps = 2 + random.below(3);
  const [m, n, k] = [64, random.pick([8, 16]), random.pick([16, 32])];
  const slots = 2;
  return family({
    name: `${steps} products through ${slots} slots`,
    targets: ["sm_90a"],
    make: (is) =>
      kernel(
        {
          name: "products",
          outputs: { out: tensor(f32, [m, n]) },
          scratch: { left: smem(bf16, [slots, m, k]), right: smem(bf16, [slots, k, n]) },
        },
        ({ out, left, right }) => {
          const sums = loop({ to: steps, carry: accumulator(f32, [m, n]) }, (step, sum) => {
            const slot = step.rem(slots);
            left.at(slot).store(full(bf16, [m, k], 1));
            right.at(slot).store(full(bf16, [k, n], 1).mul(step.cast(bf16)));
            if (!is("not committed to the tensor cores")) commitShared();
            const running = wgmma(sum, left.at(slot), right.at(slot));
            return running.waitPending(
              is("operands are overwritten too early") ? slots : slots - 1,
            );
          });
          out.store(sums.wait());
        },
      ) as unknown as KernelDefinition,
    faults: {
      "not committed to the tensor cores": ["TW3001"],
      ...(steps > slots && { "operands are overwritten too early": ["TW3001"] }),
    },
  });
}

/** Memory that is written in part, by other names, or by several at once. */
function contents(random: Random): AnyFamily {
  const [blocks, length] = [2 + random.below(2), random.pick([8, 16, 33])];
  const dtype = random.pick([dtypes.i32, dtypes.f32, dtypes.i8, dtypes.f16, dtypes.i4]);
  const part = 1 + random.below(length - 1);
  return family({
    name: `contents of ${dtype.name} [${length}]`,
    make: (is) =>
      kernel(
        {
          name: "contents",
          grid: { i: blocks },
          outputs: { out: tensor(dtype, [blocks * length + 1]), sums: tensor(i32, [2]) },
          scratch: {
            own: smem(dtype, [length]),
            pool: union({ a: smem(i32, [8]) }, { b: smem(f32, [8]) }),
            note: gmem(i32, [4]),
          },
        },
        ({ i, out, sums, own, pool, note }) => {
          if (is("written in part")) own.at(slice(0, part)).store(1 as never);
          else own.store(1 as never);
          const size = is("blocks overlap") ? length + 1 : length;
          if (!is("a block writes nothing") || size !== length)
            out.at(slice(i.mul(length), length)).store(own.load() as never);
          else when(i.ne(0), () => out.at(slice(i.mul(length), length)).store(own.load() as never));
          if (is("blocks overlap")) out.at(i.mul(length).add(length)).store(1 as never);
          else when(i.eq(0), () => out.at(blocks * length).store(1 as never));
          pool.a.store(3);
          const read = is("read by another name") ? pool.b.load().cast(i32) : pool.a.load();
          when(i.eq(0), () => {
            const places = iota(i32, [4], { axis: 0 }).div(
              is("one place is written twice") ? 2 : 1,
            );
            note.at(places).store(1);
            commitGlobal();
            sums.at(0).store(read.sum());
            sums.at(1).store(note.load().sum());
          });
          if (is("updated beside a plain store")) note.at(0).atomicAdd(1);
        },
      ) as unknown as KernelDefinition,
    faults: {
      "written in part": ["TW3002"],
      "blocks overlap": ["TW3001"],
      "a block writes nothing": ["TW3020"],
      "read by another name": ["TW3003"],
      "one place is written twice": ["TW3023"],
      "updated beside a plain store": ["TW3001", "TW3002"],
    },
  });
}

export const meetings = faultyOf([chain, cluster, ofWarps, sending, products, contents]);
