/** Codes of the emulator's asynchronous and collective instructions: TW8050 to TW8080. */
import { registerCodes } from "./entry.ts";

export const emulatorAsyncCodes = registerCodes({
  TW8050: {
    title: "invalid tensor map",
    cause:
      "The driver refuses a tensor map whose address, strides, box or swizzle break its rules; the emulator refuses the same ones.",
    example: "encodeTensorMap({ …, strides: [100] })  // not a multiple of 16",
    remedy: "give the array rows of a multiple of 16 bytes, and a box within the limits",
  },
  TW8051: {
    title: "no tensor map at the address",
    cause: "A tensor copy was given an address whose 128 bytes are no tensor map.",
    example: "cp.async.bulk.tensor.2d… [%rd1, {%r1, %r2}]  // %rd1 points to the array itself",
    remedy: "pass the map as a parameter of 128 bytes and hand over its generic address",
  },
  TW8052: {
    title: "size of a bulk copy",
    cause: "Bulk copies move multiples of 16 bytes.",
    example: "cp.async.bulk… [dst], [src], %r1, [bar]  // %r1 is 24",
    remedy: "round the size to a multiple of 16",
  },
  TW8053: {
    title: "coordinates do not fit the tensor map",
    cause:
      "The instruction's dimension and the number of axes of the map differ, or only one of them is im2col.",
    example: "cp.async.bulk.tensor.2d… with a map of 3 axes",
    remedy: "use the form of the instruction that has the map's dimension",
  },
  TW8054: {
    title: "multicast beyond the cluster",
    cause: "The mask of a multicast names a block that the cluster does not have, or none at all.",
    example: "….multicast::cluster … , 0x10  // the cluster has 4 blocks",
    remedy: "set only bits of ranks below the size of the cluster",
  },
  TW8055: {
    title: "reduction not defined on the type",
    cause: "TMA reduces only some types with each operation.",
    example: "cp.reduce.async.bulk.tensor.2d….min with a map of f32",
    remedy: "use an operation that the type has",
  },
  TW8056: {
    title: "asynchronous operation not awaited",
    cause:
      "The block ended while a copy or wgmma that it issued still used its registers or its shared memory.",
    example: "cp.async.bulk.global.shared::cta…; ret;  // no wait_group.read",
    remedy: "wait for the operation before the end of the kernel",
  },
  TW8057: {
    title: "tensor copy that begins between 16 bytes",
    cause:
      "TMA takes boxes whose innermost coordinate lies at a multiple of 16 bytes; a GPU stops with an illegal instruction elsewhere, though the manual does not say so.",
    example: "cp.async.bulk.tensor.2d … [map, {1, 0}], … // f32",
    remedy: "begin at a multiple of 16 bytes, or copy by loads and stores",
  },
  TW8058: {
    title: "tensor store that begins before the array",
    cause:
      "Loads fill what lies before the array, but a GPU stops with an illegal instruction where a store or a reduction begins there, and where the corners of an im2col map lie outside on either side.",
    example: "cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [map, {-4, 0}], [tile];",
    remedy: "begin stores inside the array; those of boxes may reach past its end",
  },
  TW8059: {
    title: "tensor map written without its fences",
    cause:
      "Copies read tensor maps through a proxy of their own. A map that the kernel writes must be released by its writer and acquired, by its address, before a copy uses it.",
    example: "tensormap.replace… [map], …; cp.async.bulk.tensor.2d… [map, {0, 0}] …",
    remedy:
      "execute fence.proxy.tensormap::generic.release (or tensormap.cp_fenceproxy) behind the writes, and fence.proxy.tensormap::generic.acquire [map], 128 before the copy",
  },
  TW8060: {
    title: "no mbarrier at the address",
    cause:
      "The eight bytes were never initialised as an mbarrier, were invalidated, or were overwritten by an ordinary store.",
    example: "mbarrier.arrive.shared::cta.b64 _, [bar];  // mbarrier.init ran in another block",
    remedy: "initialise the barrier, and let a barrier of the block follow before its first use",
  },
  TW8061: {
    title: "more arrivals than the mbarrier expects",
    cause: "A phase takes exactly as many arrivals as the barrier was initialised with.",
    example: "mbarrier.init… [bar], 1;  // and 32 threads arrive",
    remedy: "let one thread arrive, or initialise the barrier with the number of arrivals",
  },
  TW8062: {
    title: "transaction count out of range",
    cause: "An mbarrier counts outstanding bytes up to 2^20 − 1 either way.",
    example: "mbarrier.expect_tx… [bar], 2097152;",
    remedy: "split the copy over several barriers or phases",
  },
  TW8063: {
    title: "arrival without completion completes the phase",
    cause: "An arrival with .noComplete must not be the last one of its phase.",
    example: "mbarrier.init… [bar], 1; mbarrier.arrive.noComplete… _, [bar], 1;",
    remedy: "use the plain form for the arrival that may be the last",
  },
  TW8064: {
    title: "wait missed its phase",
    cause:
      "While a warp waited for a phase, that phase and the next one ended. The barrier tells only odd from even phases, so the warp goes on waiting.",
    example: "consumers skip an arrival, and the producer runs two phases ahead",
    remedy: "let the waiting side arrive on a second barrier that the other side waits for",
  },
  TW8065: {
    title: "count of an mbarrier out of range",
    cause: "An mbarrier expects 1 to 2^20 − 1 arrivals.",
    example: "mbarrier.init.shared::cta.b64 [bar], 0;",
    remedy: "initialise the barrier with the number of arrivals of a phase",
  },
  TW8066: {
    title: "phases of an mbarrier that nobody waits for",
    cause:
      "A block ended after several phases of its mbarrier had ended since the last wait for it. A wait tells only odd from even phases, so one of those arrivals is too many, or a wait is missing.",
    example: "mbarrier.arrive twice, on a barrier of one arrival, behind the last wait",
    remedy: "wait for each phase but the last, or leave the arrivals out",
  },
  TW8067: {
    title: "arrivals left over on an mbarrier",
    cause:
      "A barrier of a kernel of tilewright ended, with its block or its scope, while a phase had some arrivals but not all. PTX allows that, so it is not looked for in code of other compilers.",
    example: "barrier({ arrivals: 2 })  // and only one arrive()",
    remedy: "let as many arrivals come as the barrier was declared with",
  },
  TW8070: {
    title: "register of a wgmma in flight",
    cause:
      "Accumulators and A registers belong to the tensor core from the wgmma until a wait_group that covers it.",
    example: "wgmma.mma_async… {%f0, …}; add.f32 %f8, %f0, %f1;",
    remedy: "execute wgmma.commit_group and wgmma.wait_group before touching the registers",
  },
  TW8071: {
    title: "wgmma without wgmma.fence",
    cause:
      "Registers that ordinary instructions wrote reach the tensor core only through wgmma.fence.",
    example: "mov.b32 %f0, 0f00000000; wgmma.mma_async… {%f0, …}",
    remedy: "execute wgmma.fence.sync.aligned between the writes and the wgmma",
  },
  TW8072: {
    title: "warps of a warpgroup disagree",
    cause:
      "All four warps of a warpgroup must execute the same wgmma instructions with the same descriptors.",
    example: "@%p0 bra skip; wgmma.mma_async…;  // %p0 differs from warp to warp",
    remedy: "branch around wgmma for whole warpgroups only",
  },
  TW8073: {
    title: "invalid matrix descriptor",
    cause:
      "A descriptor has reserved bits set, or leads to bytes that are not in the block's shared memory.",
    example: "wgmma.mma_async… %rd1, %rd2  // the start address was not shifted right by 4",
    remedy: "build the descriptor from the shared address and the byte offsets, each shifted by 4",
  },
  TW8074: {
    title: "lanes disagree on an operand",
    cause: "This operand must have one value in all lanes of the warp.",
    example: "wgmma.mma_async… %rd1, %rd2  // %rd1 depends on %laneid",
    remedy: "compute the operand from values that all lanes share",
  },
  TW8075: {
    title: "metadata of a sparse product that mean nothing",
    cause:
      "Four bits for each chunk of a sparse A name two different elements; in ascending order for .sp::ordered_metadata, and 0b0100 or 0b1110 for tf32.",
    example: "mma.sp.sync.aligned… {%r0, …}, %r8, 0;  // %r8 = 0: every chunk has element 0 twice",
    remedy: "write the indices of the two elements that the chunk holds, the first in the low bits",
  },
  TW8076: {
    title: "response of cluster launch control that gives no cluster",
    cause:
      "The first block of a request that failed has no meaning, and neither have 128 bits that no request wrote.",
    example:
      "clusterlaunchcontrol.query_cancel.get_first_ctaid::x.b32.b128 %r0, %q0;  // without is_canceled",
    remedy: "wait for the mbarrier, and ask for the block only where is_canceled is true",
  },
  TW8077: {
    title: "request of a cluster after one that failed",
    cause: "Once a request was seen to fail, nothing is left, and asking again is undefined.",
    example:
      "clusterlaunchcontrol.try_cancel.async… in a loop that goes on after is_canceled was false",
    remedy: "leave the loop where is_canceled is false",
  },
  TW8080: {
    title: "cluster barrier out of order",
    cause: "Each thread must arrive once and then wait once, in turns.",
    example: "barrier.cluster.wait;  // without barrier.cluster.arrive",
    remedy: "pair each barrier.cluster.arrive with one barrier.cluster.wait",
  },
});
