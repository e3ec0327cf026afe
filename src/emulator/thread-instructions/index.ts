/**
 * All instructions that each lane runs for itself, by the root of their opcode.
 *
 *   add.rn.f32 %f2, %f0, %f1;      rule "add" looks at types and rounding once, and gives JavaScript for one lane
 */
import { addressRules } from "./addresses.ts";
import { compareRules } from "./compare.ts";
import { convertRules } from "./convert.ts";
import { floatForm, floatRules } from "./float.ts";
import { integerRules } from "./integer.ts";
import { logicRules } from "./logic.ts";
import { loadRule, storeRule } from "./memory.ts";
import type { PlaceOf } from "./memory.ts";
import type { LaneInstruction, LaneRule, LaneRules } from "./rule.ts";
import { stackRules } from "./stack.ts";
import { videoRules } from "./video.ts";

/** The rule of an instruction; undefined where lanes do not run it alone. */
export function laneRule(instruction: LaneInstruction, placeOf: PlaceOf): LaneRule | undefined {
  const { root } = instruction;
  if (root === "ld" || root === "ldu") return loadRule(placeOf);
  if (root === "st" && !instruction.has("async")) return storeRule(placeOf);
  const float = Object.hasOwn(floatRules, root) ? floatRules[root] : undefined;
  if (float !== undefined && instruction.types.length > 0 && floatForm(instruction) !== undefined)
    return float;
  return Object.hasOwn(plainRules, root) ? plainRules[root] : undefined;
}

const plainRules: LaneRules = {
  ...integerRules,
  ...logicRules,
  ...compareRules,
  ...convertRules,
  ...addressRules,
  ...stackRules,
  ...videoRules,
};

/** The roots of all opcodes that lanes run for themselves. */
export const laneRoots: readonly string[] = [
  ...new Set([...Object.keys(plainRules), ...Object.keys(floatRules), "ld", "ldu", "st"]),
];
