/** Codes of the command line and the test helpers: TW5xxx. */
import { registerCodes } from "./entry.ts";

export const toolCodes = registerCodes({
  TW5001: {
    title: "no kernel in the file",
    cause: "The module exports nothing that tilewright can run.",
    example: "tilewright run empty.ts",
    remedy: "export a kernel made with `kernel(...)`",
  },
});
