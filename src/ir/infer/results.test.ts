import { describe, expect, test } from "vitest";
import {
  barrier,
  infer,
  inflight,
  n,
  ref,
  regionOf,
  scalar,
  semaphore,
  tile,
} from "../../../test/ir-fixtures.ts";
import { memoryResults } from "../../../test/support/memory-results.ts";
import { tensorProductResults } from "../../../test/support/tensor-product-results.ts";
import {
  bf16,
  bool,
  f16,
  f32,
  f4e2m1fn,
  f64,
  f8e4m3fn,
  f8e5m2,
  i32,
  i64,
  i8,
  tf32,
  u16,
  u32,
  u64,
  u8,
} from "../../formats/dtype.ts";
import { opKinds } from "../ops.ts";
import type { OpKind } from "../ops.ts";
import { ceilDivSize, multiplySizes } from "../size.ts";
import { inflightType, scalarType, tileType } from "../types.ts";

const plainCopy = { fill: "zero", multicast: [], reduction: "none" } as const;
const index = scalar(i32);
const flag = scalar(bool);
const sum = tileType(f32, [64]);

/** What each op gives for operands that fit; at least one row for each kind. */
const cases: readonly (readonly [OpKind, readonly string[], readonly string[]])[] = [
  ["constant", infer("constant", {}, { value: 1.5, dtype: f32, shape: [] }), ["f32"]],
  ["constant", infer("constant", {}, { value: -1n, dtype: i64, shape: [4] }), ["tile<i64, [4]>"]],
  ["constant", infer("constant", {}, { value: true, dtype: bool, shape: [] }), ["bool"]],
  ["constant", infer("constant", {}, { value: -128, dtype: i8, shape: [] }), ["i8"]],
  ["constant", infer("constant", {}, { value: 2n ** 64n - 1n, dtype: u64, shape: [] }), ["u64"]],
  [
    "constant",
    infer("constant", {}, { value: -Infinity, dtype: bf16, shape: [2] }),
    ["tile<bf16, [2]>"],
  ],
  ["constant", infer("constant", {}, { value: 0, dtype: f32, shape: [9] }), ["tile<f32, [9]>"]],
  ["block_index", infer("block_index", {}, { axis: "j" }), ["i32"]],
  ["grid_size", infer("grid_size", {}, { axis: "i" }), ["i32"]],
  ["cluster_rank", infer("cluster_rank", {}, { axis: "j" }), ["i32"]],
  ["thread_index", infer("thread_index", {}, {}), ["i32"]],
  ["size", infer("size", {}, { of: n }), ["i32"]],
  ["iota", infer("iota", {}, { dtype: i32, shape: [4, 8], axis: 1 }), ["tile<i32, [4, 8]>"]],
  ["iota", infer("iota", {}, { dtype: i8, shape: [128], axis: 0 }), ["tile<i8, [128]>"]],
  ["unary", infer("unary", { source: tile(f16, 8) }, { fn: "exp" }), ["tile<f16, [8]>"]],
  ["unary", infer("unary", { source: flag }, { fn: "not" }), ["bool"]],
  ["classify", infer("classify", { source: tile(f32, 8) }, { fn: "is_nan" }), ["tile<bool, [8]>"]],
  ["binary", infer("binary", { left: index, right: index }, { fn: "shl" }), ["i32"]],
  [
    "binary",
    infer("binary", { left: tile(bf16, 4), right: tile(bf16, 4) }, { fn: "add" }),
    ["tile<bf16, [4]>"],
  ],
  [
    "compare",
    infer("compare", { left: tile(f32, 4), right: tile(f32, 4) }, { predicate: "lt" }),
    ["tile<bool, [4]>"],
  ],
  ["print_layout", infer("print_layout", { source: tile(f32, 4) }, {}), []],
  ["assume", infer("assume", { source: tile(i32, 4) }, { multipleOf: 8 }), ["tile<i32, [4]>"]],
  ["fma", infer("fma", { a: scalar(f64), b: scalar(f64), c: scalar(f64) }, {}), ["f64"]],
  [
    "select",
    infer("select", { condition: tile(bool, 4), ifTrue: tile(u8, 4), ifFalse: tile(u8, 4) }, {}),
    ["tile<u8, [4]>"],
  ],
  [
    "cast",
    infer("cast", { source: tile(f32, 4) }, { dtype: f8e4m3fn, overflow: "nan" }),
    ["tile<f8e4m3fn, [4]>"],
  ],
  [
    "bitcast_width",
    infer("bitcast_width", { source: tile(f32, 4, 2) }, { dtype: u8 }),
    ["tile<u8, [4, 8]>"],
  ],
  ["bitcast", infer("bitcast", { source: tile(f32, 4) }, { dtype: u32 }), ["tile<u32, [4]>"]],
  [
    "broadcast",
    infer("broadcast", { source: scalar(f32) }, { shape: [4], axes: [] }),
    ["tile<f32, [4]>"],
  ],
  [
    "broadcast",
    infer("broadcast", { source: tile(f32, 1, 8) }, { shape: [4, 2, 8], axes: [0, 2] }),
    ["tile<f32, [4, 2, 8]>"],
  ],
  [
    "reshape",
    infer("reshape", { source: tile(f32, 4, 6) }, { shape: [3, 8] }),
    ["tile<f32, [3, 8]>"],
  ],
  ["reshape", infer("reshape", { source: tile(f32, 1, 1) }, { shape: [] }), ["f32"]],
  [
    "inline_ptx",
    infer(
      "inline_ptx",
      { sources: [tile(f32, 8), tile(i32, 8)], meaning: [tile(i32, 8), tile(f32, 8)] },
      { code: "", types: ["i32", "f32"] },
    ),
    ["tile<i32, [8]>", "tile<f32, [8]>"],
  ],
  [
    "inline_ptx",
    infer(
      "inline_ptx",
      { sources: [tile(f16, 16, 16)], meaning: [] },
      { code: "", types: ["f32[16, 8]"], layouts: ["(L0)", "(L0)"] },
    ),
    ["tile<f32, [16, 8]>"],
  ],
  [
    "layout_cast",
    infer("layout_cast", { source: tile(f32, 8, 4) }, { layout: "(L0 L1)" }),
    ["tile<f32, [8, 4]>"],
  ],
  [
    "convert_layout",
    infer("convert_layout", { source: tile(f32, 8, 4) }, {}),
    ["tile<f32, [8, 4]>"],
  ],
  [
    "alloc_scratch",
    infer("alloc_scratch", {}, { bytes: 512, agents: 4, at: 1024 }),
    ["ref<smem, u8, [4, 512]>"],
  ],
  ["lane_barrier", infer("lane_barrier", {}, { reason: "others may read" }), []],
  ["barriers_ready", infer("barriers_ready", {}, {}), []],
  ["products_wait", infer("products_wait", {}, { pending: 1 }), []],
  ["cluster_barrier", infer("cluster_barrier", {}, { reason: "why" }), []],
  ["copies_read", infer("copies_read", {}, {}), []],
  [
    "transpose",
    infer("transpose", { source: tile(f32, 2, 3, 4) }, { permutation: [2, 0, 1] }),
    ["tile<f32, [4, 2, 3]>"],
  ],
  [
    "slice",
    infer("slice", { source: tile(f32, 8, 4) }, { starts: [6, 0], sizes: [2, 4] }),
    ["tile<f32, [2, 4]>"],
  ],
  [
    "concatenate",
    infer("concatenate", { parts: [tile(f32, 2, 4), tile(f32, 2, 3)] }, { axis: 1 }),
    ["tile<f32, [2, 7]>"],
  ],
  [
    "reduce",
    infer("reduce", { source: tile(f32, 2, 3, 4) }, { fn: "sum", axes: [0, 2] }),
    ["tile<f32, [3]>"],
  ],
  ["reduce", infer("reduce", { source: tile(bool, 2) }, { fn: "or", axes: [0] }), ["bool"]],
  [
    "scan",
    infer("scan", { source: tile(i32, 2, 3) }, { fn: "max", axis: 1, reverse: true }),
    ["tile<i32, [2, 3]>"],
  ],
  [
    "arg_reduce",
    infer("arg_reduce", { source: tile(f32, 2, 3) }, { fn: "argmax", axis: 1 }),
    ["tile<i32, [2]>"],
  ],
  [
    "sort",
    infer(
      "sort",
      { keys: tile(f32, 8), payloads: [tile(i32, 8), tile(bool, 8)] },
      { axis: 0, descending: false },
    ),
    ["tile<f32, [8]>", "tile<i32, [8]>", "tile<bool, [8]>"],
  ],
  [
    "dot",
    infer(
      "dot",
      { left: tile(bf16, 4, 8), right: tile(bf16, 8, 2) },
      { dtype: f32, precision: "native" },
    ),
    ["tile<f32, [4, 2]>"],
  ],
  [
    "dot",
    infer(
      "dot",
      { left: tile(f32, 4, 8), right: tile(f32, 8, 2), accumulator: tile(f32, 4, 2) },
      { dtype: f32, precision: "ieee" },
    ),
    ["tile<f32, [4, 2]>"],
  ],
  [
    "dot",
    infer(
      "dot",
      { left: tile(f32, 4, 8), right: tile(f32, 8, 2) },
      { dtype: f32, precision: "tf32" },
    ),
    ["tile<f32, [4, 2]>"],
  ],
  [
    "dot",
    infer(
      "dot",
      { left: tile(f8e4m3fn, 4, 8), right: tile(f8e5m2, 8, 2) },
      { dtype: f16, precision: "native" },
    ),
    ["tile<f16, [4, 2]>"],
  ],
  [
    "dot",
    infer(
      "dot",
      { left: tile(u8, 4, 8), right: tile(i8, 8, 2) },
      { dtype: i32, precision: "native" },
    ),
    ["tile<i32, [4, 2]>"],
  ],
  [
    "dot",
    infer(
      "dot",
      { left: tile(f64, 4, 8), right: tile(f64, 8, 2) },
      { dtype: f64, precision: "native" },
    ),
    ["tile<f64, [4, 2]>"],
  ],
  [
    "dot",
    infer(
      "dot",
      { left: tile(f4e2m1fn, 4, 8), right: tile(f4e2m1fn, 8, 2) },
      { dtype: f32, precision: "native" },
    ),
    ["tile<f32, [4, 2]>"],
  ],
  [
    "alloc",
    infer("alloc", {}, { space: "smem", dtype: f4e2m1fn, shape: [3, 4] }),
    ["ref<smem, f4e2m1fn, [3, 4]>"],
  ],
  [
    "alloc",
    infer("alloc", {}, { space: "gmem", dtype: f32, shape: [ceilDivSize(n, 128)] }),
    ["ref<gmem, f32, [ceildiv(n, 128)]>"],
  ],
  ["alloc_union", infer("alloc_union", {}, { bytes: 96 }), ["ref<smem, u8, [96]>"]],
  [
    "union_member",
    infer(
      "union_member",
      { union: ref("smem", u8, 96) },
      { group: 1, offset: 64, dtype: f32, shape: [2, 4] },
    ),
    ["ref<smem, f32, [2, 4]>"],
  ],
  [
    "slice_ref",
    infer(
      "slice_ref",
      { ref: ref("gmem", f32, n, 4, 6), offsets: [index, index, index] },
      { sizes: [128, 1, n], dropped: [1] },
    ),
    ["ref<gmem, f32, [128, n]>"],
  ],
  [
    "slice_ref",
    infer(
      "slice_ref",
      { ref: ref("smem", f32, 100), offsets: [index] },
      { sizes: [128], dropped: [] },
    ),
    ["ref<smem, f32, [128]>"],
  ],
  [
    "transpose_ref",
    infer("transpose_ref", { ref: ref("peer", f32, 4, 8) }, { permutation: [1, 0] }),
    ["ref<peer, f32, [8, 4]>"],
  ],
  [
    "reshape_ref",
    infer("reshape_ref", { ref: ref("gmem", f32, n, 8) }, { shape: [4, multiplySizes(2, n)] }),
    ["ref<gmem, f32, [4, 2*n]>"],
  ],
  [
    "peer_ref",
    infer("peer_ref", { ref: ref("smem", f32, 4), rank: index }, {}),
    ["ref<peer, f32, [4]>"],
  ],
  [
    "select_ref",
    infer("select_ref", { refs: [ref("gmem", f32, n)], index }, {}),
    ["ref<gmem, f32, [n]>"],
  ],
  ...memoryResults,
  ["is_simulated", infer("is_simulated", {}, {}), ["bool"]],
  ["address_of", infer("address_of", { ref: ref("gmem", f32) }, {}), ["u64"]],
  ["address_of", infer("address_of", { ref: ref("smem", f32) }, {}), ["u32"]],
  [
    "inline_ptx_memory",
    infer(
      "inline_ptx_memory",
      { sources: [], reads: [ref("smem", f32, 4)], writes: [], meaning: [] },
      { code: "", types: ["f32[4]"], layouts: ["()"] },
    ),
    ["tile<f32, [4]>"],
  ],
  [
    "optimization_barrier",
    infer("optimization_barrier", { values: [index, tile(f16, 4)] }, {}),
    ["i32", "tile<f16, [4]>"],
  ],
  [
    "copy_async",
    infer(
      "copy_async",
      {
        source: ref("gmem", bf16, 128, 64),
        destination: ref("smem", bf16, 128, 64),
        barrier: barrier(2),
        index,
      },
      { fill: "nan", multicast: ["i"], reduction: "none" },
    ),
    [],
  ],
  [
    "copy_async",
    infer(
      "copy_async",
      { source: ref("smem", f32, 256), destination: ref("gmem", f32, 256) },
      { ...plainCopy, reduction: "add" },
    ),
    [],
  ],
  [
    "copy_async",
    infer(
      "copy_async",
      {
        source: ref("gmem", f4e2m1fn, 32),
        destination: ref("smem", f4e2m1fn, 32),
        barrier: barrier(),
      },
      plainCopy,
    ),
    [],
  ],
  ["prefetch", infer("prefetch", { ref: ref("gmem", f32, n) }, {}), []],
  ["prefetch_maps", infer("prefetch_maps", { ref: ref("gmem", f32, n) }, {}), []],
  ["commit_group", infer("commit_group", {}, {}), []],
  ["wait_group", infer("wait_group", {}, { pending: 0, read: true }), []],
  ["proxy_fence", infer("proxy_fence", {}, { space: "smem" }), []],
  [
    "accumulator",
    infer("accumulator", {}, { dtype: f32, shape: [128, 256] }),
    ["inflight<f32, [128, 256]>"],
  ],
  [
    "accumulator",
    infer("accumulator", { initial: tile(i32, 64, 24) }, { dtype: i32, shape: [64, 24] }),
    ["inflight<i32, [64, 24]>"],
  ],
  ...tensorProductResults,
  [
    "wgmma",
    infer(
      "wgmma",
      {
        accumulator: inflight(f32, 64, 8),
        a: ref("smem", bf16, 64, 16),
        b: ref("smem", bf16, 16, 8),
      },
      {},
    ),
    ["inflight<f32, [64, 8]>"],
  ],
  [
    "wgmma",
    infer(
      "wgmma",
      {
        accumulator: inflight(f16, 64, 8),
        a: tile(f8e5m2, 64, 32),
        b: ref("smem", f8e4m3fn, 32, 8),
      },
      {},
    ),
    ["inflight<f16, [64, 8]>"],
  ],
  [
    "wgmma",
    infer(
      "wgmma",
      { accumulator: inflight(i32, 64, 48), a: tile(i8, 64, 64), b: ref("smem", u8, 64, 48) },
      {},
    ),
    ["inflight<i32, [64, 48]>"],
  ],
  [
    "wgmma",
    infer(
      "wgmma",
      { accumulator: inflight(f32, 64, 8), a: tile(tf32, 64, 8), b: ref("smem", tf32, 8, 8) },
      {},
    ),
    ["inflight<f32, [64, 8]>"],
  ],
  [
    "wgmma",
    infer(
      "wgmma",
      {
        accumulator: inflight(f32, 64, 8),
        a: ref("smem", bf16, 64, 64),
        b: ref("smem", bf16, 128, 8),
        metadata: tile(u16, 64, 8),
      },
      {},
    ),
    ["inflight<f32, [64, 8]>"],
  ],
  [
    "wgmma_wait",
    infer("wgmma_wait", { accumulator: inflight(f32, 64, 8) }, { pending: 0, gives: "tile" }),
    ["tile<f32, [64, 8]>"],
  ],
  [
    "wgmma_wait",
    infer(
      "wgmma_wait",
      { accumulator: inflight(f32, 64, 8) },
      { pending: 1, gives: "accumulator" },
    ),
    ["inflight<f32, [64, 8]>"],
  ],
  [
    "alloc_barrier",
    infer("alloc_barrier", {}, { count: 2, arrivals: 2 ** 20 - 1 }),
    ["barrier<2, arrivals=1048575>"],
  ],
  ["linear_index", infer("linear_index", { indices: [] }, { extents: [], strides: [] }), ["i32"]],
  ["barrier_arrive", infer("barrier_arrive", { barrier: barrier(2), index, peer: index }, {}), []],
  ["barrier_wait", infer("barrier_wait", { barrier: barrier(), parity: index }, {}), []],
  ["barrier_test", infer("barrier_test", { barrier: barrier(), parity: index }, {}), ["bool"]],
  ["delay", infer("delay", { nanoseconds: index }, {}), []],
  ["block_sync", infer("block_sync", {}, {}), []],
  ["cluster_arrive", infer("cluster_arrive", {}, {}), []],
  ["cluster_wait", infer("cluster_wait", {}, {}), []],
  ["set_registers", infer("set_registers", {}, { count: 40 }), []],
  ["grid_dependency", infer("grid_dependency", {}, { action: "wait" }), []],
  ["alloc_semaphore", infer("alloc_semaphore", {}, { shape: [n, 2] }), ["semaphore<[n, 2]>"]],
  [
    "semaphore_signal",
    infer("semaphore_signal", { semaphore: semaphore(4), indices: [index], increment: index }, {}),
    [],
  ],
  ["semaphore_read", infer("semaphore_read", { semaphore: semaphore(), indices: [] }, {}), ["i32"]],
  [
    "semaphore_wait",
    infer(
      "semaphore_wait",
      { semaphore: semaphore(), indices: [], value: index },
      { decrement: false },
    ),
    [],
  ],
  [
    "loop",
    infer(
      "loop",
      { lower: index, upper: index, step: index, initial: [tile(f32, 64), inflight(f32, 64, 8)] },
      {},
      {
        body: regionOf(
          [scalarType(i32), sum, inflightType(f32, [64, 8])],
          [sum, inflightType(f32, [64, 8])],
        ),
      },
    ),
    ["tile<f32, [64]>", "inflight<f32, [64, 8]>"],
  ],
  [
    "loop",
    infer(
      "loop",
      { lower: scalar(i64), upper: scalar(i64), step: scalar(i64), initial: [] },
      {},
      { body: regionOf([scalarType(i64)], []) },
    ),
    [],
  ],
  [
    "while",
    infer(
      "while",
      { initial: [index] },
      {},
      {
        condition: regionOf([scalarType(i32)], [scalarType(bool)]),
        body: regionOf([scalarType(i32)], [scalarType(i32)]),
      },
    ),
    ["i32"],
  ],
  [
    "if",
    infer(
      "if",
      { condition: flag },
      {},
      { then: regionOf([], [sum]), otherwise: regionOf([], [sum]) },
    ),
    ["tile<f32, [64]>"],
  ],
  [
    "switch",
    infer("switch", { index }, {}, { cases: [regionOf([], [sum]), regionOf([], [sum])] }),
    ["tile<f32, [64]>"],
  ],
  [
    "scoped",
    infer("scoped", {}, {}, { body: regionOf([], [sum, inflightType(f32, [64, 8])]) }),
    ["tile<f32, [64]>", "inflight<f32, [64, 8]>"],
  ],
  ["on_threads", infer("on_threads", {}, { threads: [1, 0] }, { body: regionOf([], []) }), []],
  ["warps", infer("warps", {}, {}, { body: regionOf([scalarType(i32)], []) }), []],
  ["yield", infer("yield", { values: [index, barrier()] }, {}), []],
  [
    "debug_print",
    infer("debug_print", { values: [index, tile(f32, 4)] }, { format: "{}: {}" }),
    [],
  ],
  ["assert", infer("assert", { condition: tile(bool, 4) }, { message: "in range" }), []],
  ["profile_mark", infer("profile_mark", {}, { edge: "begin", name: "load" }), []],
  ["debug_break", infer("debug_break", { values: [index] }, { names: ["i"] }), []],
];

describe("inference gives the types of", () => {
  for (const [kind, found, wanted] of cases)
    test(`${kind} ${wanted.join(", ")}`, () => expect(found).toEqual(wanted));
});

test("every kind of op has a case", () => {
  const tested = new Set(cases.map(([kind]) => kind));
  const missing = opKinds.filter((kind) => !tested.has(kind));
  expect(missing, "add a case of each to src/ir/infer/results.test.ts").toEqual([]);
});
