/**
 * Kernels that hold the claims of traits against the emulator. Lanes write `own`, ops do what they do, and lanes read
 * what other warps have written:
 *
 *   own.store(…)           warp w writes elements 64 w … 64 w + 63
 *   the ops
 *   own.at(64 …).load()    all warps read elements 64 … 127
 *
 * Where an op's traits claim a meeting, the compiler puts no barrier of its own there, and a claim that does not hold is a
 * race. Where they claim none the compiler's barrier stands there, and without it there must be a race, else the op meets.
 */
import { bf16, f32, i32, u16, u32 } from "../../src/formats/dtype.ts";
import type { OpKind } from "../../src/ir/ops.ts";
import {
  accumulator,
  assumeBetween,
  tensor,
  tensors,
  barrier,
  blockSync,
  clusterArrive,
  clusterRank,
  clusterSync,
  clusterWait,
  delay,
  commitGroup,
  commitShared,
  concatenate,
  debugBreak,
  full,
  inlinePtx,
  iota,
  kernel,
  launchNextKernel,
  loop,
  optimizationBarrier,
  prefetch,
  prefetchMaps,
  printLayout,
  scoped,
  semaphore,
  slice,
  smem,
  switchCase,
  waitGroup,
  warps,
  wgmma,
  when,
  whileLoop,
} from "../../src/lang/index.ts";
import type {
  Barrier,
  KernelDefinition,
  Ref,
  Scalar,
  Semaphore,
  TensorList,
  Tile,
} from "../../src/lang/index.ts";

export const length = 256;

interface Parts {
  readonly x: Ref<"f32">;
  readonly list: TensorList<"f32">;
  readonly tile: Tile<"f32">;
  readonly index: Scalar<"i32">;
  /** What is stored at the end, so that nothing of it is dropped. */
  readonly keep: (Tile<"f32"> | Scalar<"f32">)[];
  readonly other: Ref<"f32">;
  readonly sink: Ref<"f32">;
  readonly marks: Ref<"i32">;
  readonly told: Barrier;
  readonly several: Barrier;
  readonly count: Semaphore;
  readonly a: Ref<"bf16">;
  readonly b: Ref<"bf16">;
}

export interface Group {
  /** What the group is about; the traits of each say whether it meets. */
  readonly kinds: readonly OpKind[];
  readonly body: (parts: Parts) => void;
}

/** Kinds without a meeting, several in a kernel: one that met would hide the race of all. */
export const quiet: { readonly [name: string]: Group } = {
  values: {
    kinds: [
      ...(["constant", "cluster_rank", "iota", "unary"] as const),
      ...([
        "assume",
        "print_layout",
        "classify",
        "binary",
        "compare",
        "fma",
        "select",
        "cast",
        "bitcast",
      ] as const),
      ...(["bitcast_width", "inline_ptx", "optimization_barrier"] as const),
    ],
    body({ tile, index, keep }) {
      printLayout(tile, "tile");
      const grown = tile.exp().fma(2, tile);
      keep.push(tile.isNan().select(grown, tile.gt(grown).select(tile, grown)));
      keep.push(iota(f32, [length], { axis: 0 }).add(tile));
      keep.push(tile.bitcast(u32).cast(f32));
      // Its words lie in the lanes that they lay in.
      keep.push(tile.bitcast(u16).add(1).bitcast(f32));
      const [negated] = inlinePtx({
        operands: [tile],
        results: [f32],
        code: ([from], [to]) => `neg.f32 ${to}, ${from};`,
        meaning: (from) => [from.neg()],
      });
      keep.push(optimizationBarrier(negated));
      keep.push(
        assumeBetween(index, -(2 ** 31), 2 ** 31)
          .add(clusterRank("i"))
          .cast(f32),
      );
    },
  },
  tiles: {
    kinds: [
      ...(["broadcast", "reshape", "transpose", "layout_cast", "reduce", "scan"] as const),
      ...(["arg_reduce", "sort", "slice", "concatenate"] as const),
    ],
    body({ tile, keep }) {
      // Four neighbours lie in one lane, so that nothing of this leaves its lane.
      const rows = tile.reshape([64, 4]).layoutCast("(L0 L1 L2 L3 L4 W0 | R0 R1)");
      const sorted = rows
        .sort({ axis: 1 })
        .add(rows.cumsum({ axis: 1 }))
        .transpose();
      const joined = concatenate([sorted.slice([2, 0], [2, 64]), sorted.slice([0, 0], [2, 64])], {
        axis: 0,
      });
      keep.push(
        joined
          .transpose()
          .sub(rows.max({ axis: 1 }).expand({ axis: 1 }))
          .reshape([length]),
      );
      keep.push(
        rows
          .argmax({ axis: 1 })
          .cast(f32)
          .expand({ axis: 1 })
          .broadcastTo([64, 4])
          .reshape([length]),
      );
    },
  },
  memory: {
    kinds: [
      ...(["slice_ref", "transpose_ref", "reshape_ref", "peer_ref", "select_ref"] as const),
      ...(["load", "store"] as const),
      ...(["atomic", "atomic_compare_exchange", "prefetch", "prefetch_maps"] as const),
    ],
    body({ x, list, tile, index, keep, other, sink, marks }) {
      other
        .peer(clusterRank("i").xor(1))
        .reshape([16, 16])
        .transpose()
        .store(tile.reshape([16, 16]));
      sink.at(6).atomicAdd(tile);
      marks.compareExchange(tile.cast(i32), index);
      keep.push(x.at(slice(index, length)).load());
      keep.push(list.at(index.and(1)).load());
      keep.push(x.at(tile.cast(i32)).load({ where: tile.gt(0) }));
      prefetch(x);
      prefetchMaps(x);
    },
  },
  relaxed: {
    kinds: ["atomic_load", "atomic_store"],
    body({ x, tile, index, keep, marks }) {
      marks.store(tile.cast(i32), { memoryOrder: "relaxed" });
      keep.push(x.at(slice(index, length)).load({ memoryOrder: "relaxed" }));
    },
  },
  ordering: {
    kinds: [
      ...(["commit_group", "proxy_fence", "grid_dependency", "debug_break"] as const),
      ...(["barrier_arrive", "barrier_wait", "linear_index", "delay"] as const),
    ],
    body({ told, several, index }) {
      commitGroup();
      commitShared();
      launchNextKernel();
      debugBreak({ index });
      delay(100);
      told.arrive();
      when(index.gt(1000), () => told.wait());
      several.at(index, 1).arrive();
    },
  },
  control: {
    kinds: ["loop", "while", "if", "switch", "yield"],
    body({ index, keep, tile }) {
      const counted = loop({ to: index.add(2), carry: tile }, (step, sum) =>
        sum.add(step.cast(f32)),
      );
      const grown = whileLoop(
        index.cast(f32),
        (size) => size.lt(9),
        (size) => size.add(1),
      );
      const chosen = when(
        index.gt(3),
        () => counted,
        () => tile,
      );
      keep.push(switchCase(index, [() => chosen, () => tile.neg()]).add(grown));
    },
  },
  products: {
    kinds: ["accumulator", "wgmma", "wgmma_wait"],
    body({ a, b, sink }) {
      sink
        .at(slice(0, 4))
        .reshape([64, 16])
        .store(wgmma(accumulator(f32, [64, 16]), a, b).wait());
    },
  },
};

/** Kinds with a meeting, each in a kernel of its own. */
export const meeting: { readonly [name: string]: Group } = {
  blockSync: { kinds: ["block_sync"], body: () => blockSync() },
  "a cluster's barrier": {
    kinds: ["cluster_arrive", "cluster_wait"],
    body() {
      clusterArrive();
      clusterWait();
    },
  },
  waitGroup: { kinds: ["wait_group"], body: () => waitGroup(0) },
  "Barrier.test": {
    kinds: ["barrier_test"],
    body: ({ told, keep }) => keep.push(told.test(0).cast(f32)),
  },
  "Semaphore.signal": {
    kinds: ["semaphore_signal"],
    body: ({ count }) => count.signal(),
  },
  "Semaphore.wait": {
    kinds: ["semaphore_wait"],
    body: ({ count }) => count.wait(0),
  },
  scoped: {
    kinds: ["scoped", "alloc"],
    body: ({ tile }) => {
      scoped({ inner: smem(f32, [length]) }, ({ inner }) => inner.store(tile));
    },
  },
  warps: {
    kinds: ["warps"],
    body: ({ sink }) => {
      warps((warp) => sink.at(0, warp).store(1));
    },
  },
};

/** The kernel of a group: the ops between what lanes write and what others read of it. */
export function between({ body }: Group): KernelDefinition {
  return kernel(
    {
      name: "between",
      grid: { i: 2 },
      cluster: { i: 2 },
      inputs: { x: tensor(f32, [length]), list: tensors(2, f32, [length]) },
      outputs: {
        out: tensor(f32, [2, 64]),
        sink: tensor(f32, [2, 8, length]),
        marks: tensor(i32, [2, length]),
      },
      scratch: {
        own: smem(f32, [length]),
        other: smem(f32, [length]),
        told: barrier(),
        several: barrier({ count: [2, 2] }),
        count: semaphore([1]),
        a: smem(bf16, [64, 16]),
        b: smem(bf16, [16, 16]),
      },
    },
    ({ i, x, list, out, sink, marks, own, other, told, several, count, a, b }) => {
      const tile = x.load();
      const index = x.at(0).loadScalar().cast(i32);
      const keep: Parts["keep"] = [];
      a.store(full(bf16, [64, 16], 1));
      b.store(full(bf16, [16, 16], 1));
      commitShared();
      blockSync();
      own.store(tile);
      body({
        x,
        list,
        tile,
        index,
        keep,
        other,
        sink: sink.at(i),
        marks: marks.at(i),
        told,
        several,
        count: count.at(0),
        a,
        b,
      });
      out.at(i).store(own.at(slice(64, 64)).load());
      keep.forEach((value, row) => sink.at(i, row).store(value));
      clusterSync();
    },
  );
}
