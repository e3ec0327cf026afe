/** Codes of asynchronous operations and synchronization: TW206x to TW208x. */
import { registerCodes } from "../entry.ts";

export const asynchronousCodes = registerCodes({
  TW2060: {
    title: "copy between other memories",
    cause: "TMA moves data between global memory and the block's own shared memory.",
    example: "copyAsync(a, b, { barrier })  // both in shared memory",
    remedy: "load and store instead",
  },
  TW2061: {
    title: "copy that would convert",
    cause:
      "TMA moves bytes as they are; from global into shared memory it also rounds f32 to tf32.",
    example: "copyAsync(x.at(here), buffer, { barrier })  // x is f32, buffer is bf16",
    remedy: "copy into memory of the same dtype and cast after loading",
  },
  TW2062: {
    title: "copy between different shapes",
    cause: "Source and destination of a copy have the same extents.",
    example: "copyAsync(x.at(slice(i, 64)), buffer, { barrier })  // buffer has shape [128]",
    remedy: "take windows of one shape",
  },
  TW2063: {
    title: "copy of a window without axes",
    cause: "Copies move whole pieces of 16 bytes, and a window of all indices is one element.",
    example: "copyAsync(x.at(i, 0), buffer.at(0, 0), { barrier })",
    remedy: "take a slice along one axis, or load and store the element",
  },
  TW2064: {
    title: "unaligned copy",
    cause: "TMA moves whole pieces of 16 bytes.",
    example: "copyAsync(x.at(slice(i, 3)), buffer, { barrier })  // 3 f32 are 12 bytes",
    remedy: "make the window a multiple of 16 bytes, or load and store instead",
  },
  TW2066: {
    title: "copy without a barrier",
    cause: "A copy into shared memory tells that it has landed by arriving on a barrier.",
    example: "copyAsync(x.at(here), buffer)",
    remedy: "pass a barrier and wait on it before reading",
  },
  TW2067: {
    title: "copy into global memory with a barrier",
    cause: "Copies out of shared memory are awaited as groups; they arrive on no barrier.",
    example: "copyAsync(buffer, out.at(here), { barrier })",
    remedy: "leave the barrier out and wait with waitGroup",
  },
  TW2068: {
    title: "multicast into global memory",
    cause: "Multicast writes the shared memory of several blocks at once.",
    example: 'copyAsync(buffer, out.at(here), { multicast: ["i"] })',
    remedy: "leave multicast out",
  },
  TW2069: {
    title: "multicast along an axis without a cluster",
    cause:
      "Multicast reaches the blocks of one cluster along the named axes; a collective copy is shared by them, and needs some.",
    example: 'copyAsync(x, buffer, { barrier, multicast: ["i"] })  // no cluster along i',
    remedy: "give the axis a cluster in the kernel's options, or leave multicast out",
  },
  TW2070: {
    title: "reduction into shared memory",
    cause: "Only copies into global memory can combine with what is there.",
    example: 'copyAsync(x, buffer, { barrier, reduction: "add" })',
    remedy: "copy, wait, and combine after loading",
  },
  TW2071: {
    title: "reduction of this dtype",
    cause:
      "Copies add f16, bf16, f32, f64 and 32- and 64-bit integers, take minima and maxima of f16, bf16 and these integers and their bits (and, or, xor), and count in u32 (inc, dec).",
    example: 'copyAsync(buffer, out, { reduction: "max" })  // f32',
    remedy: "use another dtype, or an atomic update",
  },
  TW2072: {
    title: "fill that the copy does not have",
    cause:
      "Elements out of bounds can be filled with NaN where the dtype is a float and the copy is into shared memory.",
    example: 'copyAsync(x, buffer, { barrier, fill: "nan" })  // i32',
    remedy: "fill with zero",
  },
  TW2073: {
    title: "negative number of pending operations",
    cause: "A wait names how many operations may remain unfinished: none, or a positive number.",
    example: "waitGroup(-1)",
    remedy: "give 0 to wait for all",
  },
  TW2074: {
    title: "accumulator shape that wgmma does not have",
    cause:
      "wgmma computes 64 rows by 8 to 256 columns, in steps of 8; with integers in steps of 16 above 32. Each warpgroup of a program thread makes 64 rows of its own.",
    example: "accumulator(f32, [64, 512])",
    remedy: "split the product into accumulators of allowed shapes",
  },
  TW2075: {
    title: "accumulator dtype that wgmma does not have",
    cause:
      "wgmma accumulates floats in f32 (f16 and 8-bit floats also in f16) and integers in i32.",
    example: "accumulator(bf16, [64, 128])",
    remedy: "accumulate in f32 or i32 and cast the result",
  },
  TW2076: {
    title: "shapes of wgmma do not fit together",
    cause:
      "An accumulator of [m, n] takes a of [m, k] and b of [k, n]; a sparse a is [m, k / 2], half of b's rows.",
    example: "wgmma(accumulator, a, b)  // b is [n, k]",
    remedy: "transpose the window, or take another one",
  },
  TW2077: {
    title: "dtypes that wgmma does not multiply",
    cause:
      "wgmma multiplies f16, bf16 or tf32 by the same, and 8-bit floats or integers by each other.",
    example: "wgmma(accumulator, a, b)  // both f32",
    remedy: "store both operands in one format that wgmma multiplies, such as bf16",
  },
  TW2078: {
    title: "inner extent that wgmma does not have",
    cause:
      "One wgmma sums over 32 bytes of each row; a sparse product sums over 64 elements at a time, or 32 of tf32.",
    example: "wgmma(accumulator, a, b)  // bf16, k = 24",
    remedy: "make k a multiple of 32 bytes",
  },
  TW2079: {
    title: "hint to the cache that there is not",
    cause:
      "A copy, or a load of gmem, may say that what it moves is the first that the L2 cache drops, or the last; the hint changes no result.",
    example: 'copyAsync(x, buffer, { barrier, evict: "never" })',
    remedy: 'write evict: "first" or evict: "last", or leave it out',
  },
  TW2080: {
    title: "barrier array without an index",
    cause: "An array holds several barriers; an operation is on one of them.",
    example: "barriers.wait()  // an array of 2",
    remedy: "pick one, for example barriers.at(i)",
  },
  TW2082: {
    title: "impossible barrier",
    cause: "An array has at least one barrier, and the hardware counts up to 1048575 arrivals.",
    example: "barrier({ arrivals: 2 ** 20 })",
    remedy: "give a count and arrivals of at least 1",
  },
  TW2084: {
    title: "impossible number of registers",
    cause: "The hardware gives out registers in steps of 8, from 24 to 256 a thread.",
    example: "setRegisters(20)",
    remedy: "round to a multiple of 8 within the range",
  },
  TW2085: {
    title: "warpgroup of fewer than four warps",
    cause:
      "wgmma and setRegisters take the four warps of a warpgroup together; a program thread of one or two warps has none.",
    example:
      "kernel({ name: 'small', warps: 2 }, () => { const sum = accumulator(f32, [64, 64]); … })",
    remedy: "give the kernel 4 warps or more, or multiply by dot",
  },
  TW2086: {
    title: "metadata that do not fit a sparse product",
    cause:
      "Metadata are a tile of u16 with a row for each row of a, and an element for 16 of k (8 of tf32): four bits for each chunk of four.",
    example: "wgmma(accumulator, a, b, { sparse: metadata })  // k is 64, metadata are [64, 8]",
    remedy: "load one u16 for every 16 elements of k",
  },
  TW2083: {
    title: "semaphore indices",
    cause: "One counter of a semaphore array is named by one index an axis.",
    example: "semaphore.signal()  // of shape [4]",
    remedy: "give one index for each axis",
  },
});
