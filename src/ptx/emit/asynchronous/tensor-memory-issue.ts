/** What all instructions of tcgen05 that one lane starts have in common: the lane, and what their descriptors say. */
import type { Register } from "../../module.ts";
import { discard, integer, pair } from "../../operands.ts";
import type { EmitContext } from "../context.ts";

/** The lane whose products a commit is told of: always the same one of an agent. */
export function issuingLane({ code, numbers, scope }: EmitContext): Register {
  if (scope.warps > 1) return numbers.elected;
  const elected = code.register("pred");
  code.emit("elect.sync", [pair(discard, elected), integer(-1)]);
  return elected;
}

/** What descriptors of tcgen05 have besides those of wgmma. */
export const descriptorVersion = 1n << 46n;
