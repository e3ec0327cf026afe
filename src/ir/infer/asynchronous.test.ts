import { describe, expect, test } from "vitest";
import {
  barrier,
  context,
  infer,
  inflight,
  n,
  ref,
  scalar,
  semaphore,
  testMistakes,
  tile,
} from "../../../test/ir-fixtures.ts";
import type { Mistake } from "../../../test/ir-fixtures.ts";
import {
  bf16,
  bool,
  f16,
  f32,
  f4e2m1fn,
  f64,
  i32,
  i4,
  i64,
  tf32,
  u16,
  u8,
} from "../../formats/dtype.ts";
import { asynchronousCodes } from "../../support/diagnostic-codes/ir/asynchronous.ts";
import type { OpAttributes, OpOperands } from "../ops.ts";

const index = scalar(i32);
const global = ref("gmem", f32, 64, 64);
const shared = ref("smem", f32, 64, 64);

/** A copy of a 64 by 64 window, into shared memory by default. */
function copy(
  operands: Partial<OpOperands<"copy_async">>,
  attributes: Partial<OpAttributes<"copy_async">> = {},
): unknown {
  return infer(
    "copy_async",
    { source: global, destination: shared, barrier: barrier(), ...operands },
    { fill: "zero", multicast: [], reduction: "none", ...attributes },
  );
}

/** A copy from and to windows of one shape. */
function copyShape(dtype: typeof f32, ...shape: readonly number[]): unknown {
  return copy({ source: ref("gmem", dtype, ...shape), destination: ref("smem", dtype, ...shape) });
}

const outward = { source: shared, destination: global, barrier: undefined };

const copyMistakes: readonly Mistake[] = [
  {
    name: "copy within shared memory",
    code: "TW2060",
    make: () => copy({ source: shared }),
    message: "copyAsync does not copy from smem to smem",
  },
  {
    name: "copy into a peer's shared memory",
    code: "TW2060",
    make: () => copy({ destination: ref("peer", f32, 64, 64) }),
    message: "copyAsync does not copy from gmem to peer",
  },
  {
    name: "copy that would convert",
    code: "TW2061",
    make: () => copy({ destination: ref("smem", bf16, 64, 64) }),
    message: "an asynchronous copy cannot convert",
    expected: "bf16",
    found: "f32",
  },
  {
    name: "copy that would convert tf32 back",
    code: "TW2061",
    make: () => copy({ source: ref("gmem", tf32, 64, 64) }),
    message: "an asynchronous copy cannot convert",
    expected: "f32",
    found: "tf32",
  },
  {
    name: "copy that would round on its way out",
    code: "TW2061",
    make: () => copy({ ...outward, destination: ref("gmem", tf32, 64, 64) }),
    message: "an asynchronous copy cannot convert",
    expected: "tf32",
    found: "f32",
  },
  {
    name: "copy of another shape",
    code: "TW2062",
    make: () => copy({ destination: ref("smem", f32, 64, 32) }),
    message: "source and destination of copyAsync have different shapes",
    expected: "[64, 64]",
    found: "[64, 32]",
  },
  {
    name: "copy of a window of run-time extent",
    code: "TW2040",
    make: () => copy({ source: ref("gmem", f32, n, 64) }),
    message: "copyAsync needs static extents, and n is known at launch",
  },
  {
    name: "copy of one element without axes",
    code: "TW2063",
    make: () => copyShape(f32),
    message: "copyAsync of a window with 0 axes",
  },
  {
    name: "unaligned copy",
    code: "TW2064",
    make: () => copyShape(f32, 7, 6),
    message: "unaligned copy: the window takes 168 bytes",
    expected: "a multiple of 16 bytes",
    found: "[7, 6] of f32, 168 bytes",
  },
  {
    name: "copy into shared memory without a barrier",
    code: "TW2066",
    make: () => copy({ barrier: undefined }),
    message: "copyAsync into shared memory needs a barrier to arrive on",
  },
  {
    name: "copy into global memory with a barrier",
    code: "TW2067",
    make: () => copy({ ...outward, barrier: barrier() }),
    message: "copyAsync into global memory arrives on no barrier",
    remedy: "waitGroup",
  },
  {
    name: "multicast into global memory",
    code: "TW2068",
    make: () => copy(outward, { multicast: ["i"] }),
    message: "multicast copies into shared memory only",
  },
  {
    name: "multicast along an axis without a cluster",
    code: "TW2069",
    make: () => copy({}, { multicast: ["i", "j"] }),
    message: "multicast along j, which has no cluster",
  },
  {
    name: "parts that are not one for each block",
    code: "TW2001",
    make: () => copy({}, { multicast: ["i"], parts: 4 }),
    message: "a multicast to 2 blocks in 4 parts",
  },
  {
    name: "a hint that the cache does not know",
    code: "TW2079",
    make: () => copy({}, { evict: "never" }),
    message: 'the cache cannot evict "never"',
    expected: '"first" or "last"',
  },
  {
    name: "reduction into shared memory",
    code: "TW2070",
    make: () => copy({}, { reduction: "add" }),
    message: 'copyAsync with reduction "add" into shared memory',
  },
  {
    name: "maximum of f32 by a copy",
    code: "TW2071",
    make: () => copy(outward, { reduction: "max" }),
    message: 'copyAsync has no reduction "max" of f32',
    expected: "one of f16, bf16, i32, u32, i64, u64",
  },
  {
    name: "bits of f64 by a copy",
    code: "TW2071",
    make: () =>
      copy(
        { source: ref("smem", f64, 8), destination: ref("gmem", f64, 8), barrier: undefined },
        { reduction: "xor" },
      ),
    message: 'copyAsync has no reduction "xor" of f64',
    expected: "one of i32, u32, i64, u64",
  },
  {
    name: "integers filled with NaN",
    code: "TW2072",
    make: () =>
      copy({ source: ref("gmem", i32, 8), destination: ref("smem", i32, 8) }, { fill: "nan" }),
    message: "i32 has no NaN to fill with",
  },
  {
    name: "a format without NaN filled with it",
    code: "TW2072",
    make: () =>
      copy(
        { source: ref("gmem", f4e2m1fn, 32), destination: ref("smem", f4e2m1fn, 32) },
        { fill: "nan" },
      ),
    message: "f4e2m1fn has no NaN to fill with",
  },
  {
    name: "fill of a copy into global memory",
    code: "TW2072",
    make: () => copy(outward, { fill: "nan" }),
    message: "a copy into global memory fills nothing: what is outside is dropped",
  },
  {
    name: "negative number of pending groups",
    code: "TW2073",
    make: () => infer("wait_group", {}, { pending: -1, read: false }),
    message: "waitGroup cannot leave -1 unfinished",
  },
  {
    name: "negative number of pending products",
    code: "TW2073",
    make: () =>
      infer(
        "wgmma_wait",
        { accumulator: inflight(f32, 64, 8) },
        { pending: -2, gives: "accumulator" },
      ),
    message: "Accumulator.waitPending cannot leave -2 unfinished",
  },
];

/** A wgmma of bf16, 64 by 32 by 16, with operands replaced. */
function multiply(operands: Partial<OpOperands<"wgmma">>): unknown {
  const usual = {
    accumulator: inflight(f32, 64, 32),
    a: ref("smem", bf16, 64, 16),
    b: ref("smem", bf16, 16, 32),
  };
  return infer("wgmma", { ...usual, ...operands }, {});
}

/** A sparse product: metadata for k = 64, and factors that fit them. */
const words = tile(u16, 64, 4);
const half = { a: tile(bf16, 64, 32), b: ref("smem", bf16, 64, 32) };

function accumulate(dtype: typeof f32 | typeof bf16 | typeof i32, ...shape: number[]): unknown {
  return infer("accumulator", {}, { dtype, shape });
}

const productMistakes: readonly Mistake[] = [
  {
    name: "accumulator of two warps",
    code: "TW2085",
    make: () =>
      infer("accumulator", {}, { dtype: f32, shape: [64, 64] }, undefined, {
        ...context,
        warps: 2,
      }),
    message: "wgmma takes a warpgroup, and the kernel's threads have 2 warps",
    expected: "4 warps or more",
    found: "2",
  },
  {
    name: "accumulator of too many columns",
    code: "TW2074",
    make: () => accumulate(f32, 64, 264),
    message: "wgmma cannot accumulate a tile of shape [64, 264]",
    expected: "[m, n] with m a multiple of 64, n a multiple of 8 from 8 to 256",
    remedy: "split the columns over several accumulators",
  },
  {
    name: "accumulator of 32 rows",
    code: "TW2074",
    make: () => accumulate(f32, 32, 64),
    message: "wgmma cannot accumulate a tile of shape [32, 64]",
  },
  {
    name: "accumulator of 12 columns",
    code: "TW2074",
    make: () => accumulate(f32, 64, 12),
    message: "wgmma cannot accumulate a tile of shape [64, 12]",
  },
  {
    name: "accumulator of three axes",
    code: "TW2074",
    make: () => accumulate(f32, 64, 64, 8),
    message: "wgmma cannot accumulate a tile of shape [64, 64, 8]",
  },
  {
    name: "integer accumulator of 40 columns",
    code: "TW2074",
    make: () => accumulate(i32, 64, 40),
    message: "wgmma cannot accumulate a tile of shape [64, 40]",
    expected: "[m, n] with m a multiple of 64, n 8, 24 or a multiple of 16 to 256",
  },
  {
    name: "accumulator of bf16",
    code: "TW2075",
    make: () => accumulate(bf16, 64, 64),
    message: "wgmma does not accumulate in bf16",
  },
  {
    name: "bf16 accumulated in f16",
    code: "TW2075",
    make: () => multiply({ accumulator: inflight(f16, 64, 32) }),
    message: "wgmma of bf16 does not accumulate in f16",
    expected: "f32",
  },
  {
    name: "accumulator that begins with another type",
    code: "TW2034",
    make: () =>
      infer("accumulator", { initial: tile(f16, 64, 64) }, { dtype: f32, shape: [64, 64] }),
    message: "what accumulator begins with has another type than the result",
  },
  {
    name: "operand that is not transposed",
    code: "TW2076",
    make: () => multiply({ b: ref("smem", bf16, 32, 16) }),
    message: "shapes of wgmma do not fit together",
    expected: "[64, k] by [k, 32] for an accumulator of [64, 32]",
    found: "[64, 16] by [32, 16]",
  },
  {
    name: "operand of other rows",
    code: "TW2076",
    make: () => multiply({ a: tile(bf16, 128, 16) }),
    message: "shapes of wgmma do not fit together",
  },
  {
    name: "wgmma of f32",
    code: "TW2077",
    make: () => multiply({ a: ref("smem", f32, 64, 16), b: ref("smem", f32, 16, 32) }),
    message: "wgmma does not multiply f32 by f32",
    remedy: "tf32",
  },
  {
    name: "wgmma of two formats",
    code: "TW2077",
    make: () => multiply({ a: tile(tf32, 64, 16) }),
    message: "wgmma does not multiply tf32 by bf16",
  },
  {
    name: "wgmma of a format that only dot has",
    code: "TW2077",
    make: () =>
      multiply({
        accumulator: inflight(i32, 64, 32),
        a: tile(i4, 64, 64),
        b: ref("smem", i4, 64, 32),
      }),
    message: "wgmma does not multiply i4 by i4",
  },
  {
    name: "inner extent of 24 bf16",
    code: "TW2078",
    make: () => multiply({ a: ref("smem", bf16, 64, 24), b: ref("smem", bf16, 24, 32) }),
    message: "wgmma of bf16 cannot sum over 24 elements",
    expected: "k a multiple of 16",
  },
  {
    name: "a sparse factor that is not half as wide",
    code: "TW2076",
    make: () => multiply({ a: tile(bf16, 64, 64), b: ref("smem", bf16, 64, 32), metadata: words }),
    message: "shapes of wgmma do not fit together",
    expected: "[64, k / 2] by [k, 32] for an accumulator of [64, 32]",
    found: "[64, 64] by [64, 32]",
  },
  {
    name: "inner extent of 32 in a sparse product",
    code: "TW2078",
    make: () => multiply({ a: tile(bf16, 64, 16), b: ref("smem", bf16, 32, 32), metadata: words }),
    message: "wgmma of bf16 cannot sum over 32 elements",
    expected: "k a multiple of 64",
  },
  {
    name: "metadata of another extent",
    code: "TW2086",
    make: () => multiply({ ...half, metadata: tile(u16, 64, 8) }),
    message: "the metadata of wgmma do not fit its left factor",
    expected: "a tile of u16, [64, 4]",
    found: "tile<u16, [64, 8]>",
  },
  {
    name: "metadata of another format",
    code: "TW2086",
    make: () => multiply({ ...half, metadata: tile(u8, 64, 4) }),
    message: "the metadata of wgmma do not fit its left factor",
  },
  {
    name: "metadata of tf32 as if of bf16",
    code: "TW2086",
    make: () => multiply({ a: tile(tf32, 64, 32), b: ref("smem", tf32, 64, 32), metadata: words }),
    message: "the metadata of wgmma do not fit its left factor",
    expected: "a tile of u16, [64, 8]",
  },
  {
    name: "wgmma that adds by a number",
    code: "TW2006",
    make: () => multiply({ adds: scalar(i32) }),
    message: "adds of wgmma must be bool",
    expected: "bool",
    found: "i32",
  },
  {
    name: "wgmma that adds by a tile",
    code: "TW2002",
    make: () => multiply({ adds: tile(bool, 64, 32) }),
    message: "adds of wgmma must be a scalar",
  },
  {
    name: "wgmma of global memory",
    code: "TW2049",
    make: () => multiply({ b: ref("gmem", bf16, 16, 32) }),
    message: "the right factor of wgmma must lie in smem",
  },
  {
    name: "wgmma of a peer's memory",
    code: "TW2049",
    make: () => multiply({ a: ref("peer", bf16, 64, 16) }),
    message: "the left factor of wgmma must lie in smem",
  },
  {
    name: "wgmma onto a tile",
    code: "TW2002",
    make: () => multiply({ accumulator: tile(f32, 64, 32) }),
    message: "the accumulator of wgmma must be an in-flight accumulator",
  },
];

const synchronizationMistakes: readonly Mistake[] = [
  {
    name: "array of barriers without an index",
    code: "TW2080",
    make: () => infer("barrier_wait", { barrier: barrier(2) }, {}),
    message: "Barrier.wait on an array of 2 barriers needs an index",
  },
  {
    name: "copy that arrives on an array of barriers",
    code: "TW2080",
    make: () => copy({ barrier: barrier(4) }),
    message: "copyAsync on an array of 4 barriers needs an index",
  },
  {
    name: "barrier without arrivals",
    code: "TW2082",
    make: () => infer("alloc_barrier", {}, { count: 1, arrivals: 0 }),
    message: "there is no barrier array of 1 with 0 arrivals",
  },
  {
    name: "barrier of too many arrivals",
    code: "TW2082",
    make: () => infer("alloc_barrier", {}, { count: 1, arrivals: 2 ** 20 }),
    message: "there is no barrier array of 1 with 1048576 arrivals",
    expected: "a count of at least 1 and arrivals from 1 to 1048575",
  },
  {
    name: "empty array of barriers",
    code: "TW2082",
    make: () => infer("alloc_barrier", {}, { count: 0, arrivals: 1 }),
    message: "there is no barrier array of 0 with 1 arrivals",
  },
  {
    name: "fewer registers than the hardware keeps",
    code: "TW2084",
    make: () => infer("set_registers", {}, { count: 16 }),
    message: "a thread cannot keep 16 registers",
    expected: "a multiple of 8 from 24 to 256",
  },
  {
    name: "semaphore array without an index",
    code: "TW2083",
    make: () =>
      infer("semaphore_signal", { semaphore: semaphore(4), indices: [], increment: index }, {}),
    message: "Semaphore.signal names one counter of semaphore<[4]>",
    expected: "1 index",
    found: "0",
  },
  {
    name: "semaphore that waits for an i64",
    code: "TW2014",
    make: () =>
      infer(
        "semaphore_wait",
        { semaphore: semaphore(), indices: [], value: scalar(i64) },
        { decrement: true },
      ),
    message: "the value of Semaphore.wait must be an i32 scalar",
  },
  {
    name: "parity of another type",
    code: "TW2014",
    make: () => infer("barrier_wait", { barrier: barrier(), parity: scalar(u8) }, {}),
    message: "the parity of Barrier.wait must be an i32 scalar",
    found: "u8",
  },
  {
    name: "wait on a ref",
    code: "TW2002",
    make: () => infer("barrier_wait", { barrier: shared }, {}),
    message: "the barrier of Barrier.wait must be a barrier",
  },
];

describe("asynchronous copies", () => testMistakes(copyMistakes));
describe("wgmma", () => testMistakes(productMistakes));
describe("synchronization", () => testMistakes(synchronizationMistakes));

test("every code of asynchronous operations and synchronization has a test", () => {
  const all = [...copyMistakes, ...productMistakes, ...synchronizationMistakes];
  const tested = new Set<string>(all.map(({ code }) => code));
  expect(Object.keys(asynchronousCodes).filter((code) => !tested.has(code))).toEqual([]);
});
