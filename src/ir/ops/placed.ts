/**
 * Ops of placed kernels: what the compiler has decided beyond what was traced. Traced kernels have none of
 * them, and a placed kernel without them computes the same.
 */
import { acts, allocates, computesEach, defineOps } from "./define.ts";

export const placedOps = defineOps({
  convert_layout: {
    summary:
      "The same elements, held by other threads and registers, as the type of the result says; `scratch` is what they move through.",
    operands: { source: "one", scratch: "optional" },
    attributes: {},
    regions: {},
    traits: { ...computesEach, scratch: "by layout" },
  },
  alloc_scratch: {
    summary:
      "Shared memory for ops that need some while they run: `bytes` for each of the `agents` that run them side by side; once allocated, from byte `at` on.",
    operands: {},
    attributes: { bytes: "integer", agents: "integer", at: "integer?", name: "text?" },
    regions: {},
    traits: { ...allocates, stands: "anywhere" },
  },
  lane_barrier: {
    summary:
      "A barrier of all threads of the program thread, or of the warp inside `warps`, because of `reason`.",
    operands: {},
    attributes: { reason: "text" },
    regions: {},
    traits: { ...acts, synchronizes: [{ who: "thread", part: "whole", at: "before" }] },
  },
  barriers_ready: {
    summary: "The barriers allocated just before are there for everybody who may use them.",
    operands: {},
    attributes: {},
    regions: {},
    traits: { ...acts, synchronizes: [{ who: "thread", part: "whole", at: "before" }] },
  },
  products_wait: {
    summary:
      "Waits until at most `pending` of the thread's wgmma are unfinished, because others have a use for registers that one of them reads or writes. It leaves so many `groups` of the hardware's.",
    operands: {},
    attributes: { pending: "integer", groups: "integer?" },
    regions: {},
    traits: acts,
  },
  cluster_barrier: {
    summary: "A barrier of all threads of the cluster's blocks, because of `reason`.",
    operands: {},
    attributes: { reason: "text" },
    regions: {},
    traits: {
      ...acts,
      synchronizes: [{ who: "thread", part: "whole", at: "before" }],
      stands: "all threads",
    },
  },
  copies_read: {
    summary:
      "Waits until the copies out of shared memory that this thread has issued have read it: it ends with the block.",
    operands: {},
    attributes: {},
    regions: {},
    traits: acts,
  },
});
