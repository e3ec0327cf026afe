/** Codes of the command line and the test helpers: TW5xxx. */
import { registerCodes } from "./entry.ts";

export const toolCodes = registerCodes({
  TW5001: {
    title: "no kernel in the file",
    cause: "The module exports nothing that tilewright can run.",
    example: "tilewright run empty.ts",
    remedy: "export a kernel made with `kernel(...)`",
  },
  TW5002: {
    title: "TypeScript that cannot be erased",
    cause:
      "Types are erased before a file runs. The file has a syntax error, or uses TypeScript syntax that would have to be compiled: an enum, a namespace, a parameter property.",
    example: "enum Mode { fast }",
    remedy: "use syntax that disappears with the types, such as a union of string literals",
  },
});
