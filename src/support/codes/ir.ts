/** Codes of the tile IR: TW2xxx. */
import { registerCodes } from "./entry.ts";

export const irCodes = registerCodes({
  TW2001: {
    title: "malformed operation",
    cause: "An operation's operands, attributes or regions break the rules of its kind.",
    example: "%1 = binary %0, %0 {fn = frobnicate}",
    remedy: "see the operation's entry in docs/operations.md",
  },
});
