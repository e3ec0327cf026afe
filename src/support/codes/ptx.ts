/** Codes of PTX emission: TW70xx. */
import { registerCodes } from "./entry.ts";

export const ptxCodes = registerCodes({
  TW7001: {
    title: "target without PTX",
    cause: "PTX is written for GPUs from sm_80 on, by the names that the assembler knows.",
    example: "compile for a target named sm_75",
    remedy: "compile for one of the targets that are listed",
  },
});
