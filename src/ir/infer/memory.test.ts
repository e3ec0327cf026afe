import { describe, expect, test } from "vitest";
import {
  barrier,
  infer,
  n,
  ref,
  scalar,
  single,
  testMistakes,
  tile,
} from "../../../test/ir-fixtures.ts";
import type { Mistake } from "../../../test/ir-fixtures.ts";
import { bf16, bool, f16, f32, i32, i8, u8 } from "../../formats/dtype.ts";
import { memoryCodes } from "../../support/diagnostic-codes/ir/memory.ts";
import { dimension } from "../size.ts";

const index = scalar(i32);
const union = ref("smem", u8, 128);

const mistakes: readonly Mistake[] = [
  {
    name: "index tile of floats",
    code: "TW2053",
    make: () =>
      infer("load", { ref: ref("gmem", f32, n), indices: [tile(f32, 8)] }, { indexed: [0] }),
    message: "load is indexed by a tile of f32",
    found: "f32",
  },
  {
    name: "scalar among index tiles",
    code: "TW2002",
    make: () =>
      infer("load", { ref: ref("gmem", f32, n), indices: [scalar(i32)] }, { indexed: [0] }),
    message: "an index of load must be a tile",
  },
  {
    name: "index tiles that do not fit together",
    code: "TW2004",
    make: () =>
      infer(
        "load",
        { ref: ref("gmem", f32, n, n), indices: [tile(i32, 8), tile(i32, 4)] },
        { indexed: [0, 1] },
      ),
    message: "index tiles of load do not fit together",
  },
  {
    name: "fewer axes than index tiles",
    code: "TW2001",
    make: () =>
      infer("load", { ref: ref("gmem", f32, n, n), indices: [tile(i32, 8)] }, { indexed: [] }),
    message: "load needs one index tile for each indexed axis, in order",
  },
  {
    name: "mask that does not repeat to the tile",
    code: "TW2054",
    make: () => infer("load", { ref: ref("gmem", f32, 8), indices: [], where: tile(bool, 4) }, {}),
    message: "the mask of load does not fit what is accessed",
    found: "[4]",
  },
  {
    name: "mask of numbers",
    code: "TW2006",
    make: () =>
      infer(
        "store",
        { ref: ref("gmem", f32, 8), value: tile(f32, 8), indices: [], where: tile(i32, 8) },
        {},
      ),
    message: "where of store must be bool",
  },
  {
    name: "load of a whole array of run-time extent",
    code: "TW2040",
    make: () => infer("load", { indices: [], ref: ref("gmem", f32, n, 64) }, {}),
    message: "load needs static extents, and n is known at launch",
    found: "ref<gmem, f32, [n, 64]>",
    remedy: "x.at(slice(start, 128))",
  },
  {
    name: "store to a whole array of run-time extent",
    code: "TW2040",
    make: () => infer("store", { indices: [], ref: ref("gmem", f32, n), value: tile(f32, 64) }, {}),
    message: "store needs static extents, and n is known at launch",
  },
  {
    name: "shared memory of run-time extent",
    code: "TW2041",
    make: () => infer("alloc", {}, { space: "smem", dtype: f32, shape: [4, n] }),
    message: "shared memory cannot have extent n, known at launch",
    found: "[4, n]",
  },
  {
    name: "allocation by a dimension that the kernel lacks",
    code: "TW2011",
    make: () => infer("alloc", {}, { space: "gmem", dtype: f32, shape: [dimension("k")] }),
    message: "the kernel has no dimension k",
  },
  {
    name: "allocation of extent zero",
    code: "TW2008",
    make: () => infer("alloc", {}, { space: "smem", dtype: f32, shape: [4, 0] }),
    message: "extents must be positive integers, not [4, 0]",
  },
  {
    name: "union of no bytes",
    code: "TW2008",
    make: () => infer("alloc_union", {}, { bytes: 0 }),
    message: "extents must be positive integers, not [0]",
  },
  {
    name: "store of another format",
    code: "TW2042",
    make: () =>
      infer("store", { indices: [], ref: ref("gmem", bf16, 64), value: tile(f32, 64) }, {}),
    message: "store of f32 into memory of bf16",
    expected: "bf16",
    found: "f32",
    remedy: ".cast(bf16)",
  },
  {
    name: "store of another shape",
    code: "TW2043",
    make: () =>
      infer("store", { indices: [], ref: ref("gmem", f32, 64), value: tile(f32, 128) }, {}),
    message: "store of a value of another shape than the window",
    expected: "[64]",
    found: "[128]",
  },
  {
    name: "store of a scalar to a window",
    code: "TW2043",
    make: () => infer("store", { indices: [], ref: ref("gmem", f32, 64), value: scalar(f32) }, {}),
    message: "store of a value of another shape than the window",
    found: "[]",
  },
  {
    name: "expected value of another shape",
    code: "TW2043",
    make: () =>
      infer(
        "atomic_compare_exchange",
        { indices: [], ref: ref("gmem", i32, 4), expected: scalar(i32), value: tile(i32, 4) },
        {},
      ),
    message: "compareExchange of a value of another shape than the window",
  },
  {
    name: "fill value of another format",
    code: "TW2044",
    make: () => infer("load", { indices: [], ref: ref("gmem", i32, 64), fill: scalar(f32) }, {}),
    message: "the fill value of a load of i32 is f32",
  },
  {
    name: "fill of another shape",
    code: "TW2044",
    make: () => infer("load", { indices: [], ref: ref("gmem", i32, 64), fill: tile(i32, 32) }, {}),
    message: "the fill value of a load has another shape than what is loaded",
    expected: "[64], or what repeats to it",
    found: "[32]",
  },
  {
    name: "load with a hint that the cache does not know",
    code: "TW2079",
    make: () => infer("load", { indices: [], ref: ref("gmem", f32, 64) }, { evict: "never" }),
    message: 'the cache cannot evict "never"',
    expected: '"first" or "last"',
  },
  {
    name: "hint to the cache of a load that goes through none",
    code: "TW2079",
    make: () => infer("load", { indices: [], ref: ref("smem", f32, 64) }, { evict: "last" }),
    message: "a load of smem goes through no cache",
    expected: "a window of gmem",
  },
  {
    name: "load of a window too large for a tile",
    code: "TW2009",
    make: () => infer("load", { indices: [], ref: ref("gmem", f32, 2048, 1024) }, {}),
    message: "a tile of shape [2048, 1024] is too large",
  },
  ...(
    [
      ["add", i8],
      ["max", u8],
      ["and", f32],
      ["exchange", f16],
      ["xor", u8],
    ] as const
  ).map(([fn, dtype]): Mistake => ({
    name: `atomic ${fn} of ${dtype.name}`,
    code: "TW2045",
    make: () =>
      infer("atomic", { indices: [], ref: ref("gmem", dtype, 4), value: tile(dtype, 4) }, { fn }),
    message: `there is no atomic ${fn} on ${dtype.name}`,
    found: dtype.name,
  })),
  {
    name: "atomic compare and exchange of floats of 16 bits",
    code: "TW2045",
    make: () =>
      infer(
        "atomic_compare_exchange",
        { indices: [], ref: ref("gmem", f16), expected: scalar(f16), value: scalar(f16) },
        {},
      ),
    message: "there is no compareExchange on f16",
  },
  {
    name: "window with too few indices",
    code: "TW2046",
    make: () =>
      infer(
        "slice_ref",
        { ref: ref("gmem", f32, n, 64), offsets: [index] },
        { sizes: [8], dropped: [] },
      ),
    message: "a window on ref<gmem, f32, [n, 64]> needs one index or slice for each axis",
    expected: "2 offsets and sizes",
    found: "1 offsets and 1 sizes",
  },
  {
    name: "window of size zero",
    code: "TW2008",
    make: () =>
      infer(
        "slice_ref",
        { ref: ref("gmem", f32, n), offsets: [index] },
        { sizes: [0], dropped: [] },
      ),
    message: "extents must be positive integers, not [0]",
  },
  {
    name: "dropped axis of several elements",
    code: "TW2047",
    make: () =>
      infer(
        "slice_ref",
        { ref: ref("gmem", f32, n), offsets: [index] },
        { sizes: [2], dropped: [0] },
      ),
    message: "axis 0 cannot be dropped from the window",
    expected: "size 1",
    found: "size 2",
  },
  {
    name: "dropped axis that does not exist",
    code: "TW2020",
    make: () =>
      infer(
        "slice_ref",
        { ref: ref("gmem", f32, n), offsets: [index] },
        { sizes: [1], dropped: [1] },
      ),
    message: "at has no axis 1",
  },
  {
    name: "reshape of a window to other elements",
    code: "TW2024",
    make: () => infer("reshape_ref", { ref: ref("gmem", f32, n, 4) }, { shape: [n, 2, 4] }),
    message: "reshape of ref<gmem, f32, [n, 4]> to [n, 2, 4] changes the number of elements",
    expected: "4*n elements",
    found: "8*n elements",
  },
  {
    name: "peer of global memory",
    code: "TW2049",
    make: () => infer("peer_ref", { ref: ref("gmem", f32, 4), rank: index }, {}),
    message: "the window of peer must lie in smem",
    found: "ref<gmem, f32, [4]>",
  },
  {
    name: "prefetch of shared memory",
    code: "TW2049",
    make: () => infer("prefetch", { ref: ref("smem", f32, 4) }, {}),
    message: "the window of prefetch must lie in gmem",
  },
  {
    name: "peer in a kernel without clusters",
    code: "TW2050",
    make: () => infer("peer_ref", { ref: ref("smem", f32, 4), rank: index }, {}, {}, single),
    message: "peer addresses a peer, and the kernel has no cluster",
    remedy: "cluster",
  },
  {
    name: "arrival at a peer in a kernel without clusters",
    code: "TW2050",
    make: () => infer("barrier_arrive", { barrier: barrier(), peer: index }, {}, {}, single),
    message: "Barrier.arrive addresses a peer, and the kernel has no cluster",
  },
  {
    name: "scope of a cluster in a kernel without one",
    code: "TW2058",
    make: () =>
      infer(
        "atomic_store",
        { indices: [], ref: ref("gmem", f32), value: scalar(f32) },
        { order: "release", scope: "cluster" },
        {},
        single,
      ),
    message: "store has the scope of a cluster, and the kernel has none",
    remedy: "cluster",
  },
  {
    name: "memory order of a bool",
    code: "TW2045",
    make: () =>
      infer(
        "atomic_load",
        { indices: [], ref: ref("gmem", bool), fill: scalar(bool) },
        { order: "acquire", scope: "device" },
      ),
    message: "load with a memory order takes no bool",
    remedy: "i32",
  },
  {
    name: "member beyond the end of its union",
    code: "TW2051",
    make: () => infer("union_member", { union }, { group: 0, offset: 64, dtype: f32, shape: [17] }),
    message: "the member lies outside its union",
    expected: "bytes from 0 to 128",
    found: "bytes from 64 to 132",
  },
  {
    name: "member at an odd byte",
    code: "TW2052",
    make: () => infer("union_member", { union }, { group: 0, offset: 2, dtype: f32, shape: [4] }),
    message: "a member of f32 starts at byte 2 of its union",
    expected: "a multiple of 4",
  },
  {
    name: "member of something else than a union",
    code: "TW2001",
    make: () =>
      infer(
        "union_member",
        { union: ref("smem", f32, 128) },
        { group: 0, offset: 0, dtype: f32, shape: [4] },
      ),
    message: "union_member needs a union and a group from 0",
  },
];

describe("memory", () => testMistakes(mistakes));

test("every code of memory has a test", () => {
  const tested = new Set<string>(mistakes.map(({ code }) => code));
  expect(Object.keys(memoryCodes).filter((code) => !tested.has(code))).toEqual([]);
});
