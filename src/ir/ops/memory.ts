/**
 * Ops that allocate memory, make windows on it, and move data synchronously. An access may pick elements of its
 * window: `indices` are tiles of positions along the axes in `indexed`, whose own axes stand where the first of
 * those stood (`../indexed.ts`), and `where` says which elements are accessed at all. With `inBounds`, whoever wrote it promises that these are all inside. Placed, an access says which index
 * tiles it tests (`guard`) and how much an instruction of it moves (`unit`).
 */
import { memoryOrders, memoryScopes } from "../schema.ts";
import { acts, allocates, computes, defineOps, lanes } from "./define.ts";

/** What is said or decided of an access: that all of it is inside, the index tiles that it tests, and how much an instruction moves. */
const decided = { inBounds: "flag?", guard: "texts?", unit: "text?" } as const;

/** How a load or a store may order what stands around it. */
export const loadOrders = ["relaxed", "acquire"] as const;
export const storeOrders = ["relaxed", "release"] as const;

/** An access that others may make at the same time, and that orders what stands around it as its attributes say. */
const ordered = {
  ...acts,
  synchronizes: "as ordered",
  releases: "as ordered",
  acquires: "as ordered",
} as const;

/** What updates may say of it: relaxed for the device unless they do. */
const statedOrder = {
  order: { optional: memoryOrders },
  scope: { optional: memoryScopes },
} as const;

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
      "A window: `offsets` into each axis, `sizes` elements of it; axes in `dropped` have size 1 and disappear. What lies outside the source is out of bounds. Placed, `guard` names the bounds that an access tests: axis, sides, and how many windows out.",
    operands: { ref: "one", offsets: "many" },
    attributes: { sizes: "sizes", dropped: "integers", guard: "texts?" },
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
    summary:
      "The same shared memory in the cluster's block of rank `rank`. Placed, `guard` says that an access tests the rank.",
    operands: { ref: "one", rank: "one" },
    attributes: { guard: "texts?" },
    regions: {},
    traits: { ...computes, results: { peer: "ref" } },
  },
  select_ref: {
    summary:
      "The array of that index, of several parameters with one type and no strides. Placed, `guard` says that an access tests the index.",
    operands: { refs: "many", index: "one" },
    attributes: { name: "text?", guard: "texts?" },
    regions: {},
    traits: { ...computes, results: { oneOf: "refs" } },
  },
  address_of: {
    summary:
      "The address of the window's one element, for inline PTX: u64 in global memory, u32 in shared.",
    operands: { ref: "one" },
    attributes: { ...decided },
    regions: {},
    traits: computes,
  },
  load: {
    summary:
      'Reads the window, or the elements that `indices` pick along the axes `indexed`, into a tile or scalar; `fill`, or its element there, stands where it is out of bounds or `where` is false. With `evict`, what it reads of gmem is the "first" that the L2 cache drops, or the "last".',
    operands: { ref: "one", indices: "many", where: "optional", fill: "optional" },
    attributes: { indexed: "integers?", evict: "text?", ...decided },
    regions: {},
    traits: { ...computes, accesses: [lanes("read", "ref")], may: "drop" },
  },
  store: {
    summary:
      "Writes a tile or scalar to the window, or to the elements that `indices` pick along the axes `indexed`; what is out of bounds, or where `where` is false, is dropped.",
    operands: { ref: "one", value: "one", indices: "many", where: "optional" },
    attributes: { indexed: "integers?", ...decided },
    regions: {},
    traits: { ...acts, accesses: [lanes("write", "ref")] },
  },
  atomic: {
    summary:
      "Updates each element atomically and gives the old values, relaxed for the device unless `order` and `scope` say otherwise; what is out of bounds, or where `where` is false, is dropped and reads zero. Elements are picked as by `load`.",
    operands: {
      ref: "one",
      value: "one",
      indices: "many",
      where: "optional",
      scratch: "optional",
    },
    attributes: { fn: atomicFunctions, ...statedOrder, indexed: "integers?", ...decided },
    regions: {},
    traits: {
      ...ordered,
      accesses: [lanes("write", "ref")],
      results: "new",
      scratch: "by layout",
    },
  },
  atomic_compare_exchange: {
    summary:
      "Stores `value` where the element equals `expected`, atomically, and gives the old values; elements are picked as by `load`.",
    operands: {
      ref: "one",
      expected: "one",
      value: "one",
      indices: "many",
      where: "optional",
      scratch: "optional",
    },
    attributes: { ...statedOrder, indexed: "integers?", ...decided },
    regions: {},
    traits: {
      ...ordered,
      accesses: [lanes("write", "ref")],
      results: "new",
      scratch: "by layout",
    },
  },
  atomic_load: {
    summary:
      "Reads elements that others may change meanwhile, relaxed or acquiring what whoever wrote them released within `scope`; `fill` stands where there is nothing to read. Elements are picked as by `load`.",
    operands: {
      ref: "one",
      fill: "one",
      indices: "many",
      where: "optional",
      scratch: "optional",
    },
    attributes: { order: loadOrders, scope: memoryScopes, indexed: "integers?", ...decided },
    regions: {},
    traits: {
      ...ordered,
      accesses: [lanes("read", "ref")],
      results: "new",
      scratch: "by layout",
    },
  },
  atomic_store: {
    summary:
      "Writes elements that others may read meanwhile, relaxed or releasing what was done before within `scope`. Elements are picked as by `load`.",
    operands: { ref: "one", value: "one", indices: "many", where: "optional" },
    attributes: { order: storeOrders, scope: memoryScopes, indexed: "integers?", ...decided },
    regions: {},
    traits: { ...ordered, accesses: [lanes("write", "ref")] },
  },
});
