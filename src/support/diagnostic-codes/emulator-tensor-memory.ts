/** Codes of tensor memory and tcgen05 on the emulator: TW8081 to TW8099. */
import { registerCodes } from "./entry.ts";

export const emulatorTensorMemoryCodes = registerCodes({
  TW8081: {
    title: "tensor memory that is not allocated",
    cause:
      "The instruction touches columns that its block has not allocated, that belong to two allocations, or that lie beyond the 512 there are.",
    example: "tcgen05.ld… [%r1+128]; // of an allocation of 128 columns",
    remedy: "stay within the columns of one tcgen05.alloc, before its tcgen05.dealloc",
  },
  TW8082: {
    title: "illegal allocation of tensor memory",
    cause:
      "tcgen05.alloc takes a power of two from 32 to 512 columns, never more than the allocation before it, and nothing after tcgen05.relinquish_alloc_permit; tcgen05.dealloc takes back what an allocation gave, with its size.",
    example: "tcgen05.alloc… [place], 48;",
    remedy: "round the columns up to a power of two, and allocate the largest part first",
  },
  TW8083: {
    title: "tensor memory not given back",
    cause:
      "A block ends while columns of tensor memory are allocated. Blocks that come after it on the processor would wait for them forever.",
    example: "tcgen05.alloc…; …; ret; // without tcgen05.dealloc",
    remedy: "end every allocation with tcgen05.dealloc, in the warp that made it",
  },
  TW8084: {
    title: "lanes of tensor memory that the instruction cannot begin at",
    cause:
      "A warp's loads and stores reach the 32 lanes of its own quarter, by its number modulo 4. Products, copies and shifts begin at lane 0, products with 64 spread rows also at lane 16, each with all its operands alike.",
    example: "tcgen05.ld.sync.aligned.32x32b… [%r1]; // %r1 names lane 64, in warp 0",
    remedy: "put the lanes of the own quarter, or 0, into the upper half of the address",
  },
  TW8085: {
    title: "race in tensor memory",
    cause:
      "Two instructions touch the same cells, at least one of them writes, and nothing says that the first is over. Loads and stores are over at tcgen05.wait::ld and ::st, products, copies and shifts once tcgen05.commit has arrived on an mbarrier that somebody waits for.",
    example: "tcgen05.mma… [%r1]…; tcgen05.ld… [%r1]; // without commit and wait",
    remedy:
      "wait for the first instruction, and let its warp and that of the second one synchronise",
  },
  TW8086: {
    title: "missing tcgen05.fence",
    cause:
      "Two accesses to tensor memory are ordered by a barrier, but not for tcgen05: the one side lacks fence::before_thread_sync, or the other one fence::after_thread_sync. In kernels of other compilers it is a note, since several leave the fences out.",
    example: "tcgen05.wait::st…; bar.sync 0; tcgen05.mma… // in another warp",
    remedy:
      "put tcgen05.fence::before_thread_sync before the synchronisation and tcgen05.fence::after_thread_sync behind it",
  },
  TW8087: {
    title: "tensor memory read before it was written",
    cause:
      "A product reads cells that hold nothing defined: fresh columns, the upper halves of an accumulator in f16, or what a store of undefined registers left.",
    example: "tcgen05.mma… [%r1], …, 1; // adds to an accumulator that nothing has written",
    remedy: "let the first product of a sum ignore what is there, or store zeros before it",
  },
  TW8088: {
    title: "invalid instruction descriptor",
    cause:
      "The 32 bits that describe a product set bits that mean nothing, name formats that the kind has not, or a shape that there is no product of.",
    example: "tcgen05.mma….kind::f16… with M 96",
    remedy: "compute the descriptor from the kind, the formats and M and N of the instruction",
  },
  TW8090: {
    title: "scales or metadata that mean nothing",
    cause:
      "The copies of a scale in the quarters of the lanes differ, or between both blocks of a pair; metadata begin at an odd column, or name elements that no group has.",
    example: "tcgen05.mma.sp… with metadata of zeros",
    remedy:
      "copy scales with tcgen05.cp.32x128b.warpx4, in pairs in both blocks; write two ascending indices for each group",
  },
  TW8091: {
    title: "collector buffer that does not hold the matrix",
    cause:
      "A product says that its matrix is in a collector buffer, and no product has filled it with that matrix, or one since has discarded it.",
    example: "tcgen05.mma….collector::a::use… // first",
    remedy: "fill the buffer with collector::a::fill in the product before",
  },
  TW8092: {
    title: "tcgen05 issued by several lanes",
    cause:
      "Products, copies and commits are issued once for each lane that runs the instruction. A commit by several lanes is a note: its mbarrier may count all of them.",
    example: "tcgen05.mma… // by all 32 lanes of a warp: 32 products",
    remedy: "choose one lane by elect.sync before it",
  },
  TW8093: {
    title: "no other block of the pair",
    cause:
      "An instruction of cta_group::2 needs both blocks of its pair, ranks 2i and 2i + 1 of a cluster, and the other one is missing or has ended.",
    example: "tcgen05.alloc.cta_group::2… // launched without clusters",
    remedy:
      "launch with clusters of an even number of blocks, and end both blocks behind a cluster barrier",
  },
  TW8094: {
    title: "copy that would tell a barrier it does not reach",
    cause:
      "A copy of cta_group::1 tells an mbarrier of the block that it writes to, one of cta_group::2 that of either block of the pair.",
    example: "cp.async.bulk.tensor….cta_group::1 [own], …, [leader's mbarrier]",
    remedy: "name a barrier of the same block, or of its pair with cta_group::2",
  },
});
