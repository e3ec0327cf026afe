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
});
