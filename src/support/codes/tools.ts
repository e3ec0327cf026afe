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
  TW5101: {
    title: "result differs from its reference",
    cause: "Elements lie further from the reference than the arithmetic allows.",
    example: "compareWithReference(out, (index) => ({ value: wanted[index], bound: 0 }))",
    remedy:
      "look at the worst elements first: whole rows or tiles point at indexing, scattered ones at rounding",
  },
  TW5102: {
    title: "result depends on the schedule",
    cause:
      "Two interleavings of the same kernel gave different bits although no race was found, as atomic updates of floats do.",
    example: "out.atomicAdd(partial); // floats added in the order the blocks arrive",
    remedy: "order the updates, or pass { deterministic: false } and compare within a bound",
  },
});
