/** Codes of memory, windows, loads and stores: TW204x and TW205x. */
import { registerCodes } from "../entry.ts";

export const memoryCodes = registerCodes({
  TW2040: {
    title: "window of run-time extent",
    cause:
      "Tile shapes are static, so a window that is read, written or copied has numbers for extents.",
    example: "x.load()  // x has shape [n]",
    remedy: "take a window of static size first, for example x.at(slice(start, 128))",
  },
  TW2041: {
    title: "shared memory of run-time extent",
    cause: "Shared memory is laid out when the kernel is compiled.",
    example: "scratch: { buffer: smem(f32, [n]) }",
    remedy: "give a number, and loop over the dimension",
  },
  TW2042: {
    title: "store of another dtype",
    cause: "Stores do not convert; the value has the dtype of the memory.",
    example: "out.at(here).store(sum)  // sum is f32, out is bf16",
    remedy: "cast the value to the memory's dtype",
  },
  TW2043: {
    title: "store of another shape",
    cause: "The value has exactly the shape of the window it is written to.",
    example: "out.at(slice(i, 64)).store(x)  // x has shape [128]",
    remedy: "reshape or broadcast the value, or take another window",
  },
  TW2044: {
    title: "fill value of another dtype",
    cause: "What stands for elements out of bounds has the dtype of the memory.",
    example: "x.at(here).load({ fill })  // fill is f32, x is i32",
    remedy: "cast the fill value",
  },
  TW2045: {
    title: "no such atomic update",
    cause:
      "The hardware adds 32- and 64-bit numbers and 16-bit floats, takes minima and maxima of integers, those of floats by comparing and exchanging, combines bits of integers, exchanges 32 and 64 bits and compares integers.",
    example: "counts.atomicAdd(x)  // i8",
    remedy: "use memory of a dtype that has the update",
  },
  TW2046: {
    title: "window of another rank",
    cause: "A window has one index or slice for each axis of what it is taken from.",
    example: "%2 = slice_ref %0, %1 {sizes = [1], dropped = [0]}  // %0 has two axes",
    remedy: "give one index or slice for each axis",
  },
  TW2047: {
    title: "dropped axis is not of size 1",
    cause: "Only an axis of which the window has one element can disappear.",
    example: "%1 = slice_ref %0, %i {sizes = [2], dropped = [0]}",
    remedy: "index the axis instead of slicing it",
  },
  TW2049: {
    title: "memory of another space",
    cause:
      "The operation works on one kind of memory only: peers and wgmma on shared memory, prefetches on global memory.",
    example: "wgmma(accumulator, a, b)  // b is in global memory",
    remedy: "copy to the memory the operation works on",
  },
  TW2050: {
    title: "peer without a cluster",
    cause: "Only blocks of one cluster see each other's shared memory and barriers.",
    example: "buffer.peer(1)  // cluster: none",
    remedy: "give a grid axis a cluster in the kernel's options",
  },
  TW2051: {
    title: "union member outside the union",
    cause:
      "Every member lies within the bytes, or the columns of tensor memory, that the union was allocated with.",
    example:
      "%1 = union_member %0 {group = 0, offset = 0, dtype = f32, shape = [64]}  // of 128 bytes",
    remedy: "allocate the union as large as its largest group",
  },
  TW2052: {
    title: "union member not aligned",
    cause: "An element starts at a multiple of its own size.",
    example: "%1 = union_member %0 {group = 0, offset = 2, dtype = f32, shape = [4]}",
    remedy: "round the offset up to the size of an element",
  },
  TW2053: {
    title: "index tile of another format",
    cause: "Positions along an axis are whole numbers with a sign: i32, or i64.",
    example: "table.at(ids).load()  // ids: tile<f32, [64]>",
    remedy: "convert the indices with .cast(i32)",
  },
  TW2054: {
    title: "mask does not fit what is accessed",
    cause:
      "`where` has one bool for each element that is loaded, stored or updated; an extent of 1 and missing leading axes repeat.",
    example: "x.at(slice(0, 64)).load({ where: mask })  // mask: tile<bool, [32]>",
    remedy: "give a mask of the shape of the tile",
  },
  TW2058: {
    title: "scope of a cluster without one",
    cause:
      "An access orders what threads of its block, its cluster, the device or the system do; a kernel without a cluster has nobody in that scope but the block.",
    example: 'flag.store(1, { memoryOrder: "release", scope: "cluster" })  // cluster: none',
    remedy: 'write scope: "block" or scope: "device", or give a grid axis a cluster',
  },
});
