/**
 * Brings ops into one form: fewer of them, constants to the right, nothing that provably does nothing.
 * Rules are grouped by what they look at, a file a group.
 *
 *   add 2, %x     ──▶ add %x, 2
 *   mul %x, 1     ──▶ %x
 */
import type { Kernel } from "../../ir/node.ts";
import { rewriteKernel } from "../../ir/rewrite/engine.ts";
import type { Settled } from "../../ir/rewrite/engine.ts";
import { binaryRules, unaryRules } from "./arithmetic.ts";
import { castRules, compareRules, selectRules } from "./choice.ts";
import { controlRules } from "./control.ts";
import { tileRules, windowRules } from "./views.ts";

export const canonicalizationRules = Object.freeze([
  ...binaryRules,
  ...unaryRules,
  ...compareRules,
  ...selectRules,
  ...castRules,
  ...tileRules,
  ...windowRules,
  ...controlRules,
]);

export function canonicalize(kernel: Kernel, settled?: Settled): Kernel {
  return rewriteKernel(kernel, canonicalizationRules, settled);
}
