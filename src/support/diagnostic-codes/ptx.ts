/** Codes of PTX emission: TW70xx. */
import { registerCodes } from "./entry.ts";

export const ptxCodes = registerCodes({
  TW7001: {
    title: "target without PTX",
    cause: "PTX is written for GPUs from sm_80 on, by the names that the assembler knows.",
    example: "compile for a target named sm_75",
    remedy: "compile for one of the targets that are listed",
  },
  TW7002: {
    title: "reducing copy into a window that TMA does not bound",
    cause:
      "TMA writes rows to the next 16 bytes and takes no box that begins before the array, and adds f64 only where a window is known to lie inside; copies without a reduction are made by threads there.",
    example: 'copyAsync(buffer, x.at(slice(0, 64)), { reduction: "add" })  // x: f32 [n]',
    remedy:
      "declare the last extent as a multiple of 16 bytes (of the block, for f64), or combine by atomics",
  },
  TW7003: {
    title: "inline PTX that is not instructions on its own registers",
    cause:
      "The code of inlinePtx takes its operands in registers and leaves its results in others: straight on, without labels, memory, barriers or calls, and without changing an operand, which others may read. Registers of its own it declares with .reg.",
    example: "code: ([x], [y]) => `ld.global.f32 ${y}, [${x}];`",
    remedy:
      "write the instructions that compute results from operands, and load and store with tiles",
  },
  TW7004: {
    title: "axis of 2^31 elements or more behind a view that does not lie evenly",
    cause:
      "Elements of a reshaped view are found by their coordinates, which have 32 bits; one that lies evenly in memory is found by its address, which has 64.",
    example: "x.at(rows).reshape([3, 5]).at(ids)  // x: i8 [2 ** 33]",
    remedy: "index the array itself, or declare it with several axes of fewer elements",
  },
});
