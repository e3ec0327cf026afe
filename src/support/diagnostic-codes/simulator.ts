/** Codes of the simulator: TW3xxx. */
import { registerCodes } from "./entry.ts";

export const simulatorCodes = registerCodes({
  TW3001: {
    title: "data race",
    cause:
      "Two accesses to the same bytes, at least one of them a write, are not ordered by any barrier, wait or fence.",
    example: "buffer.store(tile);  // another thread loads buffer without waiting",
    remedy: "order the two accesses with a barrier",
  },
  TW3002: {
    title: "read of uninitialised memory",
    cause: "Scratch memory and outputs hold nothing sensible until the kernel has written them.",
    example: "buffer.load();  // nobody has stored to buffer",
    remedy: "store to the memory, or copy into it and wait, before it is read",
  },
  TW3003: {
    title: "read through another member of a union",
    cause:
      "The groups of a union share bytes. What was written through one member means nothing through another.",
    example: "a.store(tile); b.load();  // union({ a }, { b })",
    remedy: "read through the member that was written last",
  },
  TW3004: {
    title: "window reaches outside shared memory",
    cause: "Windows on global arrays may overhang; those on shared memory may not.",
    example: "buffer.at(slice(i.mul(64), 128)).load()  // buffer has 128 elements, i is 1",
    remedy: "keep the window inside the buffer",
  },
  TW3005: {
    title: "index out of bounds",
    cause:
      "An index that drops an axis, and each index of a tile, must name an element that exists, in any memory.",
    example: "x.at(i.add(1)).loadScalar()  // in the last block i + 1 is the extent",
    remedy: "guard the access with `when`, or use a slice, which may overhang",
  },
  TW3006: {
    title: "barrier index out of range",
    cause: "An array of barriers was indexed beyond its count.",
    example: "barrier.at(i).wait()  // count is 2, i is 2",
    remedy: "take the index modulo the number of barriers",
  },
  TW3007: {
    title: "barrier phase overrun",
    cause:
      "A barrier remembers one bit of its phase. A thread that waits for a phase must have passed before the next one completes, or it may miss it and wait for ever.",
    example: "loop(8, () => { full.arrive(); });  // the waiter is not waited for in turn",
    remedy: "let the waiter arrive on a second barrier that the other side waits for",
  },
  TW3008: {
    title: "arrivals left over",
    cause:
      "A block ended while a phase of its barrier had some arrivals but not all, or after several phases had completed that nobody waited for.",
    example: "barrier({ arrivals: 2 })  // and only one arrive()",
    remedy: "let as many arrivals come as the barrier was declared with",
  },
  TW3009: {
    title: "asynchronous operation not awaited",
    cause:
      "A copy or wgmma can still be under way when the block or scope that owns its memory ends. Only copies into gmem are waited for by the end of the kernel itself.",
    example: "copyAsync(x.at(here), buffer, { barrier: landed });  // no landed.wait()",
    remedy:
      "wait for it: the barrier of a copy into smem, waitGroup() for one out of a scope, wait() for wgmma, the barrier of tcgen05Commit for tcgen05Mma",
  },
  TW3010: {
    title: "block ends while peers can use its shared memory",
    cause:
      "Another block of the cluster accesses this block's shared memory, and nothing orders that before this block's end.",
    example: "buffer.peer(1).load();  // block 1 may have ended",
    remedy: "end with clusterSync() in all blocks of the cluster",
  },
  TW3011: {
    title: "deadlock",
    cause: "Every program thread that has not ended waits for something that nobody is left to do.",
    example: "barrier.wait();  // nobody arrives",
    remedy: "make sure that each wait has its arrivals, in an order that all sides share",
  },
  TW3012: {
    title: "assertion failed",
    cause: "The condition of an assert() is false.",
    example: 'assert(x.gt(0), "x is positive")',
    remedy: "look at the values with debugPrint or debugBreak before the assertion",
  },
  TW3013: {
    title: "too much shared memory",
    cause: "The shared memory of a block is more than the target has for one.",
    example: "smem(f32, [256, 256])  // 256 KiB",
    remedy:
      "use smaller tiles or fewer buffers, or let buffers share bytes with a union or scoped()",
  },
  TW3014: {
    title: "loop step is not positive",
    cause: "Loops count upwards; a step of zero or less would never end.",
    example: "loop({ to: 8, step: n }, …)  // n is 0",
    remedy: "give a step of at least 1",
  },
  TW3015: {
    title: "grid is not made of whole clusters",
    cause: "The number of blocks along each axis must be a multiple of the cluster's along it.",
    example: "kernel({ grid: { i: n }, cluster: { i: 2 } }, …)  // n is 3",
    remedy: "round the grid up to whole clusters and let the blocks at the end do nothing",
  },
  TW3016: {
    title: "too many program threads",
    cause:
      "A program thread has 128 threads, or 32 for each of its `warps`, and a block can run only so many.",
    example: 'kernel({ threads: ["a", "b", "c", "d", "e", "f", "g", "h", "i"] }, …)',
    remedy: "use fewer program threads",
  },
  TW3017: {
    title: "cluster too large",
    cause: "GPUs of the target do not place clusters of this many blocks.",
    example: "kernel({ grid: { i: 32 }, cluster: { i: 16 } }, …)  // on sm_120a",
    remedy: "use smaller clusters",
  },
  TW3018: {
    title: "arrivals and waits do not pair",
    cause:
      "Each program thread arrives once and then waits once at a barrier of the block or cluster.",
    example: "clusterWait();  // without clusterArrive()",
    remedy: "pair each clusterArrive() with one clusterWait(), outside warps()",
  },
  TW3019: {
    title: "no such block in the cluster",
    cause: "A rank names a block of the cluster, from 0 to its number of blocks less one.",
    example: "buffer.peer(2)  // the cluster has 2 blocks",
    remedy: "take the rank modulo the cluster's size",
  },
  TW3020: {
    title: "elements of an output never written",
    cause: "An output holds nothing sensible where the kernel has not written it.",
    example:
      "kernel({ grid: { i: 1 }, … }, … out.at(slice(i.mul(4), 4)).store(…))  // out has 8 elements",
    remedy: "cover the output with the grid, or declare it under inouts if it is updated in part",
  },
  TW3021: {
    title: "warps have waited unequally often",
    cause:
      "A program thread follows the phases of a barrier by their parity, so its warps must agree on how many they have waited for before it waits again.",
    example:
      "warps((warp) => loop({ to: warp.add(1) }, () => ready.wait()));\nready.wait();  // for which phase?",
    remedy: "let each warp that waits wait equally often, or name the phase with wait({ parity })",
  },
  TW3022: {
    title: "a run was stopped",
    cause:
      "A run on the simulator, the emulator or the evaluator was aborted by its signal, or took more time or more steps than its limits allow. The notes say where it was.",
    example:
      "whileLoop(constant(i32, 1), (v) => v.ne(0), (v) => v.mul(3))  // run with { timeLimit: 1000 }",
    remedy: "let every loop come to an end, or allow the run more",
  },
  TW3023: {
    title: "a store writes an element twice",
    cause:
      "Tiles of indices, or strides by which an array overlaps itself, lead to one element for several of the values that are stored. Threads write at the same time, so nothing says which of the values stays.",
    example: "out.at(ids).store(values)  // ids holds 3 twice",
    remedy: "leave all but one out with { where }, or combine them with atomic",
  },
  TW3024: {
    title: "metadata of a sparse product that mean nothing",
    cause:
      "Four bits for each chunk of a sparse left factor name two different elements of four; 0b0100 or 0b1110 for tf32, which holds one of two. PTX says nothing of the result for others.",
    example: "wgmma(sum, a, b, { sparse: zeros(u16, [64, 4]) })",
    remedy: "make the metadata with compress24, or name two different elements",
  },
  TW3025: {
    title: "a semaphore is not left at 0",
    cause:
      "Counters that a kernel restores are cleared once for many launches, so each of these finds what the one before has left.",
    example: "scratch: { told: semaphore([4], { restored: true }) }, … told.at(i).signal()",
    remedy: "wait for every signal with { decrement: true }, or leave out restored",
  },
  TW3026: {
    title: "a promise that does not hold",
    cause:
      "A number is not what `assumeMultipleOf`, `assumeBetween` or `assumeBelow` promises of it, or an access with `inBounds: true` is not in bounds. Compiled kernels rely on promises without testing them, so that a GPU may read and write anywhere then.",
    example: "assumeMultipleOf(starts.at(group).loadScalar(), 16)  // it is 8",
    remedy: "promise what holds of every number and access, or leave the promise out",
  },
  TW3027: {
    title: "blocks of a pair have different scales",
    cause:
      "Each block of a pair multiplies its own rows of a by all columns of b, with the scales of b that lie in its own tensor memory.",
    example:
      "tcgen05Copy(half, bScales, { pair: true })  // each block has the scales of its half of b",
    remedy: "copy the scales of all columns into both blocks, with a multicast",
  },
});
