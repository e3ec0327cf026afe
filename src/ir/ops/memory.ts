/** Ops that allocate memory, make windows on it, and move data synchronously. */
import { acts, allocates, computes, defineOps, lanes } from "./define.ts";

/** Combinations an atomic update can make. */
export const atomicFunctions = ["add", "min", "max", "and", "or", "xor", "exchange"] as const;

export const memoryOps = defineOps({
  alloc: {
    summary:
      "Uninitialised memory: smem for the block, or gmem shared by the grid. Reports call it by its name; `layout` states how smem is stored, `at` from which byte on.",
    operands: {},
    attributes: {
      space: ["smem", "gmem"],
      dtype: "dtype",
      shape: "sizes",
      name: "text?",
      layout: "text?",
      at: "integer?",
    },
    regions: {},
    traits: allocates,
  },
  alloc_union: {
    summary: "Shared-memory bytes that the members of a union share.",
    operands: {},
    attributes: { bytes: "integer", name: "text?", at: "integer?" },
    regions: {},
    traits: allocates,
  },
  union_member: {
    summary:
      "One member of a union: its bytes from `offset`, as elements. Members of one group lie side by side; groups overlap.",
    operands: { union: "one" },
    attributes: {
      group: "integer",
      offset: "integer",
      dtype: "dtype",
      shape: "integers",
      name: "text?",
      layout: "text?",
    },
    regions: {},
    traits: { ...computes, results: { window: "union" } },
  },
  slice_ref: {
    summary:
      "A window: `offsets` into each axis, `sizes` elements of it; axes in `dropped` have size 1 and disappear. What lies outside the source is out of bounds.",
    operands: { ref: "one", offsets: "many" },
    attributes: { sizes: "sizes", dropped: "integers" },
    regions: {},
    traits: { ...computes, results: { window: "ref" } },
  },
  transpose_ref: {
    summary: "The window with its axes permuted.",
    operands: { ref: "one" },
    attributes: { permutation: "integers" },
    regions: {},
    traits: { ...computes, results: { window: "ref" } },
  },
  reshape_ref: {
    summary: "The window under another shape, in row-major order.",
    operands: { ref: "one" },
    attributes: { shape: "sizes" },
    regions: {},
    traits: { ...computes, results: { window: "ref" } },
  },
  peer_ref: {
    summary: "The same shared memory in the cluster's block of rank `rank`.",
    operands: { ref: "one", rank: "one" },
    attributes: {},
    regions: {},
    traits: { ...computes, results: { peer: "ref" } },
  },
  load: {
    summary: "Reads the window into a tile or scalar; `fill` stands where it is out of bounds.",
    operands: { ref: "one", fill: "optional" },
    attributes: {},
    regions: {},
    traits: { ...computes, accesses: [lanes("read", "ref")], may: "drop" },
  },
  store: {
    summary: "Writes a tile or scalar to the window; what is out of bounds is dropped.",
    operands: { ref: "one", value: "one" },
    attributes: {},
    regions: {},
    traits: { ...acts, accesses: [lanes("write", "ref")] },
  },
  atomic: {
    summary:
      "Updates each element atomically, relaxed, and gives the old values; out of bounds is dropped and reads zero.",
    operands: { ref: "one", value: "one", scratch: "optional" },
    attributes: { fn: atomicFunctions },
    regions: {},
    traits: {
      ...acts,
      accesses: [lanes("write", "ref")],
      results: "new",
      scratch: "by layout",
    },
  },
  atomic_compare_exchange: {
    summary:
      "Stores `value` where the element equals `expected`, atomically, and gives the old values.",
    operands: { ref: "one", expected: "one", value: "one", scratch: "optional" },
    attributes: {},
    regions: {},
    traits: {
      ...acts,
      accesses: [lanes("write", "ref")],
      results: "new",
      scratch: "by layout",
    },
  },
});
