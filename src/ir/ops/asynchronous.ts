/** Ops that copy or multiply asynchronously, and the ones that wait for them or order them. */
import { acts, computes, defineOps, lanes } from "./define.ts";
import type { Access } from "../schema.ts";

/** Combinations an asynchronous copy into global memory can make. */
export const copyReductions = [
  ...(["none", "add", "min", "max", "inc", "dec", "and", "or", "xor"] as const),
] as const;

/** What a copy tells the L2 cache of the lines that it moves: to drop them first, or to keep them longest. */
export const evictions = ["first", "last"] as const;

/** One lane starts what TMA does. */
const byEngine = <const O extends string>(mode: Access["mode"], of: O) =>
  ({ of, mode, actor: "one thread", proxy: "async", done: "copy" }) as const;

/** What the tensor cores do for all warps of the thread until it is waited for. */
const inFlight = <const O extends string>(mode: Access["mode"], of: O) =>
  ({ of, mode, actor: "threads", proxy: "async", done: "products" }) as const;

/** What TMA does for a copy, whichever of its instructions is taken. */
const engineCopies = [
  byEngine("read", "source"),
  byEngine("write", "destination"),
  byEngine("write", "barrier"),
] as const;

/** Whether TMA makes a placed copy. */
export function isEngineCopy({ by }: { readonly by?: string | undefined }): boolean {
  return by === "tensor" || by === "bulk";
}

export const asynchronousOps = defineOps({
  take_block: {
    summary:
      "Asks for the work of a block of the grid that has not begun, which then never begins: 16 bytes are written to `response` in shared memory, and `barrier` has one arrival when they are there.",
    operands: { response: "one", barrier: "one", index: "optional" },
    attributes: {},
    regions: {},
    traits: {
      ...acts,
      accesses: [
        { of: "response", mode: "write", actor: "one thread", proxy: "async", done: "copy" },
      ],
      unrolls: "never",
    },
  },
  taken_block: {
    summary:
      "The number of the block whose work `response` gives; -1 where none was left, after which nobody of the block may ask again.",
    operands: { response: "one" },
    attributes: {},
    regions: {},
    traits: { ...computes, accesses: [lanes("read", "response")], may: "drop" },
  },
  copy_async: {
    summary:
      'Starts a copy between gmem and smem. Into smem it arrives once on `barrier` when it has landed (in every block along the `multicast` axes); with `parts`, each of those blocks copies one of so many parts for all, and a barrier has one arrival for all of them; with `pair`, the barrier is that of the leader of each pair of blocks, and has one arrival for what lands in both; into gmem it joins the thread\'s open copy group. Placed, `by` says how it is made, `unit` what lanes move at once on both sides, `scope` how far its arrivals elsewhere reach, and `guard` that lanes test the barrier\'s index. With `evict`, what it moves is the "first" that the L2 cache drops, or the "last".',
    operands: { source: "one", destination: "one", barrier: "optional", index: "optional" },
    attributes: {
      fill: ["zero", "nan"],
      multicast: "texts",
      parts: "integer?",
      pair: "flag?",
      reduction: copyReductions,
      inBounds: "flag?",
      evict: "text?",
      by: "text?",
      unit: "text?",
      scope: "text?",
      map: "text?",
      guard: "texts?",
    },
    regions: {},
    traits: {
      ...acts,
      accesses: {
        by: {
          tensor: engineCopies,
          bulk: engineCopies,
          "cp.async": [
            { ...lanes("read", "source"), done: "copy" },
            { ...lanes("write", "destination"), done: "copy" },
          ],
          plain: [lanes("read", "source"), lanes("write", "destination")],
        },
      },
      releases: { with: "multicast", scope: "cluster", otherwise: "nobody" },
      unrolls: "never",
    },
  },
  prefetch: {
    summary:
      "Asks for a global window to be brought into the L2 cache. Placed, `unit` is what a thread asks for.",
    operands: { ref: "one" },
    attributes: { unit: "text?" },
    regions: {},
    traits: acts,
  },
  prefetch_maps: {
    summary:
      "Asks for the tensor maps by which the kernel copies from or into the array of a window, before a copy needs them. Placed, `maps` says which.",
    operands: { ref: "one" },
    attributes: { maps: "texts?" },
    regions: {},
    traits: acts,
  },
  commit_group: {
    summary: "Closes the thread's open group of copies into gmem.",
    operands: {},
    attributes: {},
    regions: {},
    traits: acts,
  },
  wait_group: {
    summary:
      "Waits until at most `pending` of the thread's copy groups are unfinished, where that is 0 also for copies in no group; with `read`, until their sources may be overwritten.",
    operands: {},
    attributes: { pending: "integer", read: "flag" },
    regions: {},
    traits: { ...acts, synchronizes: [{ who: "thread", part: "whole", at: "after" }] },
  },
  proxy_fence: {
    summary:
      "Makes this thread's own accesses to smem or gmem visible to asynchronous copies and wgmma issued later. One that the compiler adds says for what `reason`.",
    operands: {},
    attributes: { space: ["smem", "gmem"], reason: "text?" },
    regions: {},
    traits: acts,
  },
  accumulator: {
    summary:
      "A wgmma accumulator: zero, from a tile, or, with `anything`, whatever its registers hold until a product that does not add.",
    operands: { initial: "optional" },
    attributes: { dtype: "dtype", shape: "integers", anything: "flag?" },
    regions: {},
    traits: { ...computes, stands: "whole thread", may: "drop" },
  },
  wgmma: {
    summary:
      "Starts accumulator + a * b; a is a shared-memory window or a tile [m, k], b a shared-memory window [k, n]. With `metadata`, a tile of u16, a is [m, k / 2]: what a sparse matrix holds, of which the metadata say where it belongs. Where `adds` is false, the product takes the place of what is in the accumulator. `rolled`: its instructions may be a loop of one. Placed, `groups` says how many groups it closes: one, or, of a loop, one for each of its instructions.",
    operands: { accumulator: "one", a: "one", b: "one", metadata: "optional", adds: "optional" },
    attributes: { rolled: "flag?", groups: "integer?" },
    regions: {},
    traits: {
      ...acts,
      accesses: [inFlight("read", "a"), inFlight("read", "b"), inFlight("write", "accumulator")],
      results: { same: "accumulator" },
      stands: "whole thread",
      unrolls: "never",
    },
  },
  wgmma_wait: {
    summary:
      "Waits until at most `pending` of the thread's wgmma are unfinished, and gives the accumulator on, or its tile where none of those is its own. Placed, it leaves so many `groups` of the hardware's.",
    operands: { accumulator: "one" },
    attributes: { pending: "integer", gives: ["tile", "accumulator"], groups: "integer?" },
    regions: {},
    traits: {
      ...acts,
      results: { same: "accumulator" },
      stands: "whole thread",
      unrolls: "never",
    },
  },
});
