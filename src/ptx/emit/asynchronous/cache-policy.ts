/**
 * What a copy by tensor map tells the L2 cache of the lines that it moves; copies by lanes go without. A policy is made in a
 * register and handed to the copy:
 *
 *   createpolicy.fractional.L2::evict_first.b64 %d7;
 *   cp.async.bulk.tensor … .L2::cache_hint [tile], [map, {…}], [barrier], %d7;
 */
import type { Op } from "../../../ir/node.ts";
import type { Operand } from "../../module.ts";
import type { EmitContext } from "../context.ts";

export interface CachePolicy {
  /** What the opcode of the copy ends with. */
  readonly suffix: "" | ".L2::cache_hint";
  /** What stands after the copy's other operands. */
  readonly operands: readonly Operand[];
}

export function cachePolicy(
  { code }: EmitContext,
  { attributes: { evict } }: Op<"copy_async">,
): CachePolicy {
  if (evict === undefined) return { suffix: "", operands: [] };
  const policy = code.make("b64", `createpolicy.fractional.L2::evict_${evict}.b64`);
  return { suffix: ".L2::cache_hint", operands: [policy] };
}
