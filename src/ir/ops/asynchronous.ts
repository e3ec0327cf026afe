/** Ops that copy or multiply asynchronously, and the ones that wait for them or order them. */
import { defineOps } from "./define.ts";

/** Combinations an asynchronous copy into global memory can make. */
export const copyReductions = ["none", "add", "min", "max"] as const;

export const asynchronousOps = defineOps({
  copy_async: {
    summary:
      "Starts a copy between gmem and smem. Into smem it arrives once on `barrier` when it has landed (in every block along the `multicast` axes); into gmem it joins the thread's open copy group.",
    operands: { source: "one", destination: "one", barrier: "optional", index: "optional" },
    attributes: { fill: ["zero", "nan"], multicast: "texts", reduction: copyReductions },
    regions: {},
    effect: "write",
  },
  prefetch: {
    summary: "Asks for a global window to be brought into the L2 cache.",
    operands: { ref: "one" },
    attributes: {},
    regions: {},
    effect: "order",
  },
  commit_group: {
    summary: "Closes the thread's open group of copies into gmem.",
    operands: {},
    attributes: {},
    regions: {},
    effect: "order",
  },
  wait_group: {
    summary:
      "Waits until at most `pending` of the thread's copy groups are unfinished; with `read`, until their sources may be overwritten.",
    operands: {},
    attributes: { pending: "integer", read: "flag" },
    regions: {},
    effect: "order",
  },
  proxy_fence: {
    summary:
      "Makes this thread's own accesses to smem or gmem visible to asynchronous copies and wgmma issued later.",
    operands: {},
    attributes: { space: ["smem", "gmem"] },
    regions: {},
    effect: "order",
  },
  accumulator: {
    summary: "A wgmma accumulator, zero or from a tile.",
    operands: { initial: "optional" },
    attributes: { dtype: "dtype", shape: "integers" },
    regions: {},
    effect: "none",
  },
  wgmma: {
    summary:
      "Starts accumulator + a * b; a is a shared-memory window or a tile [m, k], b a shared-memory window [k, n].",
    operands: { accumulator: "one", a: "one", b: "one" },
    attributes: {},
    regions: {},
    effect: "order",
  },
  wgmma_wait: {
    summary:
      "Waits until at most `pending` of the thread's wgmma are unfinished; with 0 the accumulator becomes a tile.",
    operands: { accumulator: "one" },
    attributes: { pending: "integer" },
    regions: {},
    effect: "order",
  },
});
