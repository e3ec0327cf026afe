/**
 * What a copy by tensor map, or a load, tells the L2 cache of the lines that it moves; copies by lanes go without. A policy is
 * made in a register and handed to the instruction:
 *
 *   createpolicy.fractional.L2::evict_first.b64 %d7;
 *   cp.async.bulk.tensor … .L2::cache_hint [tile], [map, {…}], [barrier], %d7;
 *   ld.global.nc.L2::cache_hint.v4.b32 {…}, [%d4], %d7;
 */
import type { Op } from "../../../ir/node.ts";
import type { Operand } from "../../module.ts";
import type { EmitContext } from "../context.ts";

export interface CachePolicy {
  /** What stands in the opcode. */
  readonly suffix: "" | ".L2::cache_hint";
  /** What stands after the other operands. */
  readonly operands: readonly Operand[];
}

export const noPolicy: CachePolicy = { suffix: "", operands: [] };

export function cachePolicy(
  { code }: EmitContext,
  { attributes: { evict } }: Op<"copy_async"> | Op<"load">,
): CachePolicy {
  if (evict === undefined) return noPolicy;
  const policy = code.make("b64", `createpolicy.fractional.L2::evict_${evict}.b64`);
  return { suffix: ".L2::cache_hint", operands: [policy] };
}
