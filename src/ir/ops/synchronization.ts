/** Ops by which program threads and blocks order themselves. */
import { memoryScopes } from "../schema.ts";
import { acts, allocates, defineOps, lanes } from "./define.ts";

/** An op that is over once others have acted. */
const waits = { ...acts, ends: "perhaps never", unrolls: "never" } as const;

/** What a test reads. */
const readsPhase = lanes("read", "barrier");

/** Whose ops on a counter meet; the device's unless it says otherwise. */
const scope = { optional: memoryScopes } as const;

export const synchronizationOps = defineOps({
  alloc_barrier: {
    summary:
      "An array of `count` barriers, of the axes `shape` where there are several, whose phases complete after `arrivals` arrivals. Placed, `scale` is how many of the hardware each of them is.",
    operands: {},
    attributes: {
      count: "integer",
      shape: "integers?",
      arrivals: "integer",
      name: "text?",
      at: "integer?",
      scale: "integer?",
    },
    regions: {},
    traits: allocates,
  },
  linear_index: {
    summary:
      "Where barriers of several axes lie in their array: each index, which must be below its extent, times its stride. Placed, `guard` says which indices lanes test.",
    operands: { indices: "many" },
    attributes: { extents: "integers", strides: "integers", guard: "texts?" },
    regions: {},
    traits: { ...acts, results: "new" },
  },
  barrier_arrive: {
    summary:
      "Arrives once on a barrier, of the cluster's block `peer` where given. Placed, `scope` says whom it tells of ordinary accesses, the block or the cluster, and `guard` that lanes test the index or the peer.",
    operands: { barrier: "one", index: "optional", peer: "optional" },
    attributes: { scope: "text?", guard: "texts?" },
    regions: {},
    traits: {
      ...acts,
      synchronizes: [{ who: "warp", part: "whole", at: "before" }],
      releases: { with: "peer", scope: "cluster", otherwise: "block" },
      unrolls: "never",
    },
  },
  barrier_wait: {
    summary:
      "Waits for the next phase this thread has not yet seen, or for the phase of the given parity. Placed, `scope` says whose arrivals it hears, and `guard` that lanes test the index.",
    operands: { barrier: "one", index: "optional", parity: "optional" },
    attributes: { scope: "text?", guard: "texts?" },
    regions: {},
    traits: {
      ...waits,
      accesses: [lanes("read", "barrier")],
      synchronizes: [{ who: "warp", part: "whole", at: "after" }],
      acquires: "cluster",
    },
  },
  barrier_test: {
    summary:
      "Whether a phase of the given parity is complete, without waiting; if so, as if waited for. Placed, `scope` says whose arrivals it hears, and `guard` that lanes test the index.",
    operands: { barrier: "one", index: "optional", parity: "one" },
    attributes: { scope: "text?", guard: "texts?" },
    regions: {},
    traits: {
      ...acts,
      results: "new",
      accesses: [readsPhase],
      synchronizes: [{ who: "thread", at: "after", part: "whole" }],
      acquires: "cluster",
      unrolls: "never",
    },
  },
  delay: {
    summary: "About as many nanoseconds pass.",
    operands: { nanoseconds: "one" },
    attributes: {},
    regions: {},
    traits: acts,
  },
  block_sync: {
    summary: "All program threads of the block meet.",
    operands: {},
    attributes: {},
    regions: {},
    traits: {
      ...acts,
      synchronizes: [{ who: "block", part: "whole", at: "before" }],
      releases: "block",
      acquires: "block",
      stands: "all threads",
      unrolls: "never",
    },
  },
  cluster_arrive: {
    summary: "Arrives on the cluster's barrier without waiting.",
    operands: {},
    attributes: {},
    regions: {},
    traits: {
      ...acts,
      synchronizes: [{ who: "cluster", part: "arrive", at: "before" }],
      releases: "cluster",
      stands: "all threads",
    },
  },
  cluster_wait: {
    summary: "Waits until every program thread of the cluster has arrived.",
    operands: {},
    attributes: {},
    regions: {},
    traits: {
      ...acts,
      synchronizes: [{ who: "cluster", part: "wait", at: "after" }],
      acquires: "cluster",
      stands: "all threads",
    },
  },
  set_registers: {
    summary:
      "This program thread keeps `count` registers a thread from here on; what one gives up another may take.",
    operands: {},
    attributes: { count: "integer" },
    regions: {},
    traits: acts,
  },
  grid_dependency: {
    summary:
      "Waits for the kernel launched before this one, or lets the kernel launched after it start. Inputs that are `settled` may be read before the wait.",
    operands: {},
    attributes: { action: ["wait", "launch"], settled: "texts?" },
    regions: {},
    traits: { ...acts, acquires: "grid" },
  },
  alloc_semaphore: {
    summary:
      "Counters in global memory shared by the grid, zero at launch; `restored` where they are zero at the end, too.",
    operands: {},
    attributes: { shape: "sizes", name: "text?", restored: "flag?" },
    regions: {},
    traits: allocates,
  },
  semaphore_signal: {
    summary:
      "Adds to a counter, releasing what this thread did before to those in `scope`, the device unless given. Placed, `guard` says which indices threads test.",
    operands: { semaphore: "one", indices: "many", increment: "one" },
    attributes: { scope, guard: "texts?" },
    regions: {},
    traits: {
      ...acts,
      synchronizes: [{ who: "thread", part: "whole", at: "before" }],
      releases: "grid",
    },
  },
  semaphore_wait: {
    summary:
      "Waits until a counter is at least `value`, acquiring what the signallers in `scope` did; with `decrement`, subtracts it. Placed, `guard` says which indices threads test.",
    operands: { semaphore: "one", indices: "many", value: "one" },
    attributes: { decrement: "flag", scope, guard: "texts?" },
    regions: {},
    traits: {
      ...waits,
      synchronizes: [{ who: "thread", part: "whole", at: "after" }],
      acquires: "grid",
    },
  },
  semaphore_read: {
    summary:
      "What a counter is at, without waiting, acquiring what the signallers in `scope` did up to there. Placed, `guard` says which indices threads test.",
    operands: { semaphore: "one", indices: "many", scratch: "optional" },
    attributes: { scope, guard: "texts?" },
    regions: {},
    traits: {
      ...acts,
      results: "new",
      acquires: "grid",
      scratch: "by layout",
      unrolls: "never",
    },
  },
});
