/** Ops by which program threads and blocks order themselves. */
import { defineOps } from "./define.ts";

export const synchronizationOps = defineOps({
  alloc_barrier: {
    summary: "An array of `count` barriers whose phases complete after `arrivals` arrivals.",
    operands: {},
    attributes: { count: "integer", arrivals: "integer", name: "text?" },
    regions: {},
    effect: "allocate",
  },
  barrier_arrive: {
    summary: "Arrives once on a barrier, of the cluster's block `peer` where given.",
    operands: { barrier: "one", index: "optional", peer: "optional" },
    attributes: {},
    regions: {},
    effect: "order",
  },
  barrier_wait: {
    summary:
      "Waits for the next phase this thread has not yet seen, or for the phase of the given parity.",
    operands: { barrier: "one", index: "optional", parity: "optional" },
    attributes: {},
    regions: {},
    effect: "order",
  },
  block_sync: {
    summary: "All program threads of the block meet.",
    operands: {},
    attributes: {},
    regions: {},
    effect: "order",
  },
  cluster_arrive: {
    summary: "Arrives on the cluster's barrier without waiting.",
    operands: {},
    attributes: {},
    regions: {},
    effect: "order",
  },
  cluster_wait: {
    summary: "Waits until every program thread of the cluster has arrived.",
    operands: {},
    attributes: {},
    regions: {},
    effect: "order",
  },
  set_registers: {
    summary:
      "This program thread keeps `count` registers a lane from here on; what one gives up another may take.",
    operands: {},
    attributes: { count: "integer" },
    regions: {},
    effect: "order",
  },
  grid_dependency: {
    summary:
      "Waits for the kernel launched before this one, or lets the kernel launched after it start.",
    operands: {},
    attributes: { action: ["wait", "launch"] },
    regions: {},
    effect: "order",
  },
  alloc_semaphore: {
    summary: "Counters in global memory shared by the grid, zero at launch.",
    operands: {},
    attributes: { shape: "sizes", name: "text?" },
    regions: {},
    effect: "allocate",
  },
  semaphore_signal: {
    summary: "Adds to a counter, releasing what this thread did before.",
    operands: { semaphore: "one", indices: "many", increment: "one" },
    attributes: {},
    regions: {},
    effect: "order",
  },
  semaphore_wait: {
    summary:
      "Waits until a counter is at least `value`, acquiring what the signallers did; with `decrement`, subtracts it.",
    operands: { semaphore: "one", indices: "many", value: "one" },
    attributes: { decrement: "flag" },
    regions: {},
    effect: "order",
  },
});
