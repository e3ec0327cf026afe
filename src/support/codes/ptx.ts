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
    title: "reducing copy into a window that the copy engine does not bound",
    cause:
      "The copy engine writes rows to the next 16 bytes and takes no box that begins before the array; copies without a reduction are made by lanes there.",
    example: 'copyAsync(buffer, x.at(slice(0, 64)), { reduction: "add" })  // x: f32 [n]',
    remedy: "declare the last extent as a multiple of 16 bytes, or combine by atomics",
  },
});
