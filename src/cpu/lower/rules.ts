/** How each op becomes loops: a rule a kind, and none knows of the others. */
import { asynchronousRules, placedRules } from "./async-rules.ts";
import { controlRules } from "./control-rules.ts";
import { memoryRules } from "./memory-rules.ts";
import type { LoweringRules } from "./regions.ts";
import { synchronizationRules } from "./sync-rules.ts";
import { tensorMemoryRules } from "./tensor-memory-rules.ts";
import { tileRules } from "./tile-rules.ts";
import { valueRules } from "./value-rules.ts";

export const loweringRules: LoweringRules = {
  ...valueRules,
  ...tileRules,
  ...memoryRules,
  ...asynchronousRules,
  ...synchronizationRules,
  ...controlRules,
  ...placedRules,
  ...tensorMemoryRules,
};
