/** Mistakes with what runs beside the program: copies, tensor cores, barriers, semaphores. */
import {
  accumulator,
  tensor,
  barrier,
  bf16,
  copyAsync,
  f32,
  gmem,
  i32,
  iota,
  kernel,
  loop,
  prefetch,
  prefetchMaps,
  setRegisters,
  slice,
  smem,
  tf32,
  u16,
  waitGroup,
  wgmma,
  when,
  zeros,
} from "tilewright";
import type { Barrier, Ref } from "tilewright";
import { mistakeTable, program } from "./mistake.ts";

interface Copying {
  readonly x: Ref<"f32">;
  readonly whole: Ref<"i32">;
  readonly out: Ref<"f32">;
  readonly buffer: Ref<"f32">;
  readonly integers: Ref<"i32">;
  readonly scratch: Ref<"f32">;
  readonly ready: Barrier;
}

/** A kernel that copies: windows of one row of 512 on either side. */
function copying(body: (things: Copying) => unknown): unknown {
  return kernel(
    {
      name: "copying",
      grid: { i: 2, j: 4 },
      cluster: { j: 2 },
      inputs: { x: tensor(f32, [4, 512]), whole: tensor(i32, [4, 512]) },
      outputs: { out: tensor(f32, [4, 512]) },
      scratch: {
        buffer: smem(f32, [4, 512]),
        integers: smem(i32, [4, 512]),
        scratch: gmem(f32, [4, 512]),
        ready: barrier(),
      },
    },
    body,
  );
}

interface Multiplying {
  readonly a: Ref<"bf16">;
  readonly b: Ref<"bf16">;
  readonly wide: Ref<"f32">;
  readonly far: Ref<"bf16">;
}

/** A kernel that multiplies: a is [64, 64], b is [64, 128], both in shared memory. */
function multiplying(body: (things: Multiplying) => unknown): unknown {
  return kernel(
    {
      name: "multiplying",
      grid: { i: 2 },
      inputs: { far: tensor(bf16, [64, 128]) },
      scratch: { a: smem(bf16, [64, 64]), b: smem(bf16, [64, 128]), wide: smem(f32, [64, 128]) },
    },
    body,
  );
}

const part = slice(0, 64);

export const asynchronousMistakes = mistakeTable(import.meta.url, [
  {
    name: "copy without a barrier",
    code: "TW2066",
    make: () =>
      copying(({ x, buffer }) => {
        copyAsync(x.at(0, part), buffer.at(0, part)); // <- copy without a barrier
      }),
    message: "copyAsync into shared memory needs a barrier to arrive on",
    remedy: "pass a barrier and wait on it",
  },
  {
    name: "copy out with a barrier",
    code: "TW2067",
    make: () =>
      copying(({ out, buffer, ready: at }) => {
        copyAsync(buffer.at(0, part), out.at(0, part), { barrier: at }); // <- copy out with a barrier
      }),
    remedy: "waitGroup",
  },
  {
    name: "copy of 12 bytes",
    code: "TW2064",
    make: () =>
      copying(({ x, buffer, ready: at }) => {
        const three = slice(0, 3);
        copyAsync(x.at(0, three), buffer.at(0, three), { barrier: at }); // <- copy of 12 bytes
      }),
    message: "unaligned copy: the window takes 12 bytes",
    expected: "a multiple of 16 bytes",
    found: "[3] of f32, 12 bytes",
    remedy: "load and store instead",
  },
  {
    name: "copy between unequal windows",
    code: "TW2062",
    make: () =>
      copying(({ x, buffer, ready: at }) => {
        copyAsync(x.at(0, part), buffer.at(0), { barrier: at }); // <- copy between unequal windows
      }),
    message: "source and destination of copyAsync have different shapes",
    expected: "[64]",
    found: "[512]",
  },
  {
    name: "copy that converts",
    code: "TW2061",
    make: () =>
      copying(({ x, integers, ready: at }) => {
        // @ts-expect-error the dtypes differ
        copyAsync(x.at(0, part), integers.at(0, part), { barrier: at }); // <- copy that converts
      }),
    expected: "i32",
    found: "f32",
    remedy: "cast after loading",
  },
  {
    name: "copy within global memory",
    code: "TW2060",
    make: () =>
      copying(({ x, out }) => {
        copyAsync(x.at(0, part), out.at(0, part)); // <- copy within global memory
      }),
    message: "copyAsync does not copy from gmem to gmem",
    remedy: "load and store",
  },
  {
    name: "copy of a single element",
    code: "TW2063",
    make: () =>
      copying(({ x, buffer, ready: at }) => {
        copyAsync(x.at(0, 0), buffer.at(0, 0), { barrier: at }); // <- copy of a single element
      }),
    message: "copyAsync of a window with 0 axes",
    expected: "1 axis or more",
  },
  {
    name: "copy of a run-time extent",
    code: "TW2040",
    make: () =>
      program(({ list, shared, ready }) => {
        copyAsync(list, shared.at(0), { barrier: ready }); // <- copy of a run-time extent
      }),
    message: "copyAsync needs static extents",
  },
  {
    name: "multicast without a cluster",
    code: "TW2069",
    make: () =>
      copying(({ x, buffer, ready: at }) => {
        const options = { barrier: at, multicast: ["i"] };
        copyAsync(x.at(0, part), buffer.at(0, part), options); // <- multicast without a cluster
      }),
    message: "multicast along i, which has no cluster",
  },
  {
    name: "collective copy without multicast",
    code: "TW2069",
    make: () =>
      copying(({ x, buffer, ready: at }) => {
        const options = { barrier: at, collective: true };
        copyAsync(x.at(0, part), buffer.at(0, part), options); // <- collective copy without multicast
      }),
    message: "a collective copy without blocks that share it",
    remedy: "along which axes of the cluster",
  },
  {
    name: "multicast along a number",
    code: "TW1008",
    make: () =>
      copying(({ x, buffer, ready: at }) => {
        const options = { barrier: at, multicast: 1 as never };
        copyAsync(x.at(0, part), buffer.at(0, part), options); // <- multicast along a number
      }),
    message: "multicast must be an axis of the cluster",
  },
  {
    name: "multicast into global memory",
    code: "TW2068",
    make: () =>
      copying(({ out, buffer }) => {
        copyAsync(buffer.at(0, part), out.at(0, part), { multicast: ["j"] }); // <- multicast into global memory
      }),
    expected: "a destination in smem",
  },
  {
    name: "reduction into shared memory",
    code: "TW2070",
    make: () =>
      copying(({ x, buffer, ready: at }) => {
        const options = { barrier: at, reduction: "add" } as const;
        copyAsync(x.at(0, part), buffer.at(0, part), options); // <- reduction into shared memory
      }),
    message: 'copyAsync with reduction "add" into shared memory',
  },
  {
    name: "reduction to the maximum of floats",
    code: "TW2071",
    make: () =>
      copying(({ out, buffer }) => {
        copyAsync(buffer.at(0, part), out.at(0, part), { reduction: "max" }); // <- reduction to the maximum of floats
      }),
    message: 'copyAsync has no reduction "max" of f32',
    expected: "one of f16",
  },
  {
    name: "NaN among integers",
    code: "TW2072",
    make: () =>
      copying(({ whole, integers, ready: at }) => {
        const options = { barrier: at, fill: "nan" } as const;
        copyAsync(whole.at(0, part), integers.at(0, part), options); // <- NaN among integers
      }),
    message: "i32 has no NaN to fill with",
    remedy: "fill with zero",
  },
  {
    name: "tile for a copy's source",
    code: "TW1008",
    make: () =>
      copying(({ x, buffer, ready: at }) => {
        // @ts-expect-error copies move memory
        copyAsync(x.at(0, part).load(), buffer.at(0, part), { barrier: at }); // <- tile for a copy's source
      }),
    message: "the source of a copy must be a window",
    found: "tile<f32, [64]>",
  },
  {
    name: "copy of what index tiles pick",
    code: "TW1008",
    make: () =>
      copying(({ x, buffer, ready: at }) => {
        const rows = x.at(iota(i32, [4], { axis: 0 }));
        // @ts-expect-error copies move windows
        copyAsync(rows, buffer, { barrier: at }); // <- copy of what index tiles pick
      }),
    message: "the source of a copy must be a window",
    remedy: "what index tiles pick is loaded and stored by threads",
  },
  {
    name: "prefetch of shared memory",
    code: "TW2049",
    make: () =>
      copying(({ buffer }) => {
        prefetch(buffer); // <- prefetch of shared memory
      }),
    message: "the window of prefetch must lie in gmem",
  },
  {
    name: "prefetch of maps of shared memory",
    code: "TW2049",
    make: () =>
      copying(({ buffer }) => {
        prefetchMaps(buffer); // <- prefetch of maps of shared memory
      }),
    message: "the window of prefetchMaps must lie in gmem",
  },
  {
    name: "wait for fewer than no groups",
    code: "TW2073",
    make: () =>
      copying(() => {
        waitGroup(-1); // <- wait for fewer than no groups
      }),
    message: "waitGroup cannot leave -1 unfinished",
    remedy: "give 0 to wait for all",
  },
  {
    name: "array of barriers without an index",
    code: "TW2080",
    make: () =>
      program(({ ring }) => {
        ring.wait(); // <- array of barriers without an index
      }),
    message: "Barrier.wait on an array of 2 barriers needs an index",
    remedy: "barriers.at(i)",
  },
  {
    name: "barrier that is not there",
    code: "TW1016",
    make: () =>
      program(({ ring }) => {
        ring.at(2).wait(); // <- barrier that is not there
      }),
    message: "barrier<2, arrivals=1> has no element 2",
    expected: "0 to 1",
  },
  {
    name: "barrier without arrivals",
    code: "TW1008",
    make: () => barrier({ arrivals: 0 }), // <- barrier without arrivals
    message: "arrivals of a barrier must be a positive whole number",
    found: "0",
  },
  {
    name: "too many arrivals",
    code: "TW2082",
    make: () =>
      kernel(
        {
          name: "crowded",
          scratch: { ready: barrier({ arrivals: 2 ** 20 }) }, // <- too many arrivals
        },
        () => undefined,
      ),
    message: "there is no barrier array of 1 with 1048576 arrivals",
  },
  {
    name: "arrival at a peer without a cluster",
    code: "TW2050",
    make: () =>
      program(({ ready }) => {
        ready.arrive({ peer: 1 }); // <- arrival at a peer without a cluster
      }),
    message: "Barrier.arrive addresses a peer",
  },
  {
    name: "registers by the handful",
    code: "TW2084",
    make: () =>
      program(() => {
        setRegisters(100); // <- registers by the handful
      }),
    message: "a thread cannot keep 100 registers",
    expected: "a multiple of 8 from 24 to 256",
    found: "100",
  },
  {
    name: "semaphores without an index",
    code: "TW2083",
    make: () =>
      program(({ done }) => {
        done.signal(); // <- semaphores without an index
      }),
    message: "Semaphore.signal names one counter of semaphore<[4]>",
    expected: "1 index",
    found: "0",
  },
  {
    name: "semaphore that is not there",
    code: "TW1016",
    make: () =>
      program(({ done }) => {
        done.at(4).wait(1); // <- semaphore that is not there
      }),
    message: "axis 0 of semaphore<[4]> has no element 4",
  },
  {
    name: "wgmma of two warps",
    code: "TW2085",
    make: () =>
      kernel({ name: "small", warps: 2 }, () => {
        accumulator(f32, [64, 64]); // <- wgmma of two warps
      }),
    message: "wgmma takes a warpgroup, and the kernel's threads have 2 warps",
    expected: "4 warps or more",
  },
  {
    name: "registers of one warp",
    code: "TW2085",
    make: () =>
      kernel({ name: "alone", warps: 1 }, () => {
        setRegisters(40); // <- registers of one warp
      }),
    expected: "4 warps or more",
  },
  {
    name: "64 rows for two warpgroups",
    code: "TW2074",
    make: () =>
      kernel({ name: "two", warps: 8 }, () => {
        accumulator(f32, [64, 64]); // <- 64 rows for two warpgroups
      }),
    expected: "[m, n] with m a multiple of 128",
  },
  {
    name: "accumulator of 512 columns",
    code: "TW2074",
    make: () =>
      multiplying(() => {
        accumulator(f32, [64, 512]); // <- accumulator of 512 columns
      }),
    message: "wgmma cannot accumulate a tile of shape [64, 512]",
    remedy: "split the columns",
  },
  {
    name: "accumulator of bf16",
    code: "TW2075",
    make: () =>
      multiplying(() => {
        accumulator(bf16, [64, 128]); // <- accumulator of bf16
      }),
    message: "wgmma does not accumulate in bf16",
    expected: "f32, f16, i32",
  },
  {
    name: "factors the wrong way round",
    code: "TW2076",
    make: () =>
      multiplying(({ a, b }) => {
        wgmma(accumulator(f32, [64, 128]), a, b.transpose()); // <- factors the wrong way round
      }),
    message: "shapes of wgmma do not fit together",
    expected: "[64, k] by [k, 128]",
    found: "[64, 64] by [128, 64]",
    remedy: "transpose the window",
  },
  {
    name: "wgmma of f32",
    code: "TW2077",
    make: () =>
      multiplying(({ wide }) => {
        wgmma(accumulator(f32, [64, 128]), wide, wide); // <- wgmma of f32
      }),
    message: "wgmma does not multiply f32 by f32",
    remedy: "tf32",
  },
  {
    name: "wgmma over 24 elements",
    code: "TW2078",
    make: () =>
      multiplying(({ a, b }) => {
        const inner = slice(0, 24);
        const rows = slice(0, 64);
        wgmma(accumulator(f32, [64, 128]), a.at(rows, inner), b.at(inner)); // <- wgmma over 24 elements
      }),
    message: "wgmma of bf16 cannot sum over 24 elements",
    expected: "k a multiple of 16",
  },
  {
    name: "metadata for twice as much",
    code: "TW2086",
    make: () =>
      multiplying(({ a, b }) => {
        const held = a.at(slice(0, 64), slice(0, 32));
        const sparse = zeros(u16, [64, 8]);
        wgmma(accumulator(f32, [64, 128]), held, b, { sparse }); // <- metadata for twice as much
      }),
    message: "the metadata of wgmma do not fit its left factor",
    expected: "a tile of u16, [64, 4]",
    found: "tile<u16, [64, 8]>",
    remedy: "one u16 for every 16 elements of k",
  },
  {
    name: "wgmma on global memory",
    code: "TW2049",
    make: () =>
      multiplying(({ a, far }) => {
        wgmma(accumulator(f32, [64, 128]), a, far); // <- wgmma on global memory
      }),
    message: "the right factor of wgmma must lie in smem",
    remedy: "copy to the memory",
  },
  {
    name: "right factor in registers",
    code: "TW1008",
    make: () =>
      multiplying(({ a, b }) => {
        // @ts-expect-error the right factor lies in shared memory
        wgmma(accumulator(f32, [64, 128]), a, b.load()); // <- right factor in registers
      }),
    message: "the right factor of wgmma must be a ref",
  },
  {
    name: "wgmma that sums tf32 in i32",
    code: "TW2075",
    make: () =>
      multiplying(({ b }) => {
        wgmma(accumulator(i32, [64, 128]), zeros(tf32, [64, 64]).cast(bf16), b); // <- wgmma that sums tf32 in i32
      }),
    message: "wgmma of bf16 does not accumulate in i32",
    expected: "f32",
  },
  {
    name: "accumulator begun with another shape",
    code: "TW2034",
    make: () =>
      multiplying(() => {
        accumulator(f32, [64, 128], zeros(f32, [64, 64])); // <- accumulator begun with another shape
      }),
    message: "what accumulator begins with has another type than the result",
    found: "tile<f32, [64, 64]>",
  },
  {
    name: "accumulator used twice",
    code: "TW1011",
    make: () =>
      multiplying(({ a, b }) => {
        const sum = accumulator(f32, [64, 128]);
        wgmma(sum, a, b);
        sum.wait(); // <- accumulator used twice
      }),
    message: "inflight<f32, [64, 128]> was used twice",
    remedy: "go on with the accumulator that the first use returned",
    notes: ["the first use is here", "the accumulator is made here"],
  },
  {
    name: "accumulator never waited for",
    code: "TW2206",
    make: () =>
      multiplying(({ a, b }) => {
        wgmma(accumulator(f32, [64, 128]), a, b); // <- accumulator never waited for
      }),
    message: "is never waited for",
    remedy: "wait for the result of the last wgmma",
  },
  {
    name: "accumulator through a branch",
    code: "TW2096",
    make: () =>
      kernel({ name: "branching", grid: { i: 2 } }, ({ i }) => {
        const sum = accumulator(f32, [64, 8]);
        const wait = () => void sum.wait();
        when(i.eq(0), wait); // <- accumulator through a branch
      }),
    message: "one branch of when consumes an accumulator that another leaves",
    remedy: "give the accumulator on from the other branch",
  },
  {
    name: "accumulator from outside a loop",
    code: "TW2208",
    make: () =>
      multiplying(() => {
        const sum = accumulator(f32, [64, 128]);
        loop(4, () => {
          sum.wait(); // <- accumulator from outside a loop
        });
      }),
    message: "Accumulator.wait consumes inflight<f32, [64, 128]> of a region around it",
    remedy: "carry the accumulator through the loop",
  },
  {
    name: "accumulator used as a tile",
    code: "TW1008",
    make: () =>
      multiplying(({ a, b }) => {
        const sum = wgmma(accumulator(f32, [64, 128]), a, b);
        // @ts-expect-error the sums are still in flight
        zeros(f32, [64, 128]).add(sum); // <- accumulator used as a tile
      }),
    found: "inflight<f32, [64, 128]>",
    remedy: ".wait()",
  },
  {
    name: "waitPending of nothing",
    code: "TW1019",
    make: () =>
      multiplying(({ a, b }) => {
        wgmma(accumulator(f32, [64, 128]), a, b).waitPending(0); // <- waitPending of nothing
      }),
    remedy: "write wait()",
  },
  {
    name: "wait that leaves half a product running",
    code: "TW1019",
    make: () =>
      multiplying(({ a, b }) => {
        wgmma(accumulator(f32, [64, 128]), a, b).wait({ pending: 0.5 }); // <- wait that leaves half a product running
      }),
    message: "wait cannot leave 0.5 unfinished",
  },
  {
    name: "tile of a product that may still run",
    code: "TW2222",
    make: () =>
      multiplying(({ a, b }) => {
        const first = wgmma(accumulator(f32, [64, 128]), a, b);
        const second = wgmma(accumulator(f32, [64, 128]), a, b);
        second.wait({ pending: 1 }); // <- tile of a product that may still run
        first.wait();
      }),
    message: "the tile may still be written",
    remedy: "wait() waits for all",
  },
]);
