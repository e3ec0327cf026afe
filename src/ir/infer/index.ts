/**
 * Type inference: the one place where the shapes, number formats and ranks of a program are checked.
 * While a kernel is traced each op passes through here as it is added, with the user's line in
 * `draft.location`, so what a rule throws is what the user reads; the verifier runs the same rules
 * over finished kernels.
 *
 *   binary add  tile<f32, [4]>, tile<f32, [4]>   ->  tile<f32, [4]>
 *   binary add  tile<f32, [4]>, tile<f32, [8]>   ->  TW2004: operands of add have different shapes
 *
 * A rule sees types, attributes and what its regions yield, never the ops that made its operands;
 * what depends on a value's history (linear use, visibility) is the verifier's.
 */
import type { OpKind } from "../ops.ts";
import type { Type } from "../types.ts";
import { asynchronousRules } from "./asynchronous.ts";
import { controlRules } from "./control.ts";
import type { Draft, InferContext, InferRules } from "./inference-input.ts";
import { memoryRules } from "./memory.ts";
import { placedRules } from "./placed.ts";
import { synchronizationRules } from "./synchronization.ts";
import { tensorMemoryRules } from "./tensor-memory.ts";
import { tileRules } from "./tiles.ts";
import { valueRules } from "./values.ts";

export type { Draft, InferContext } from "./inference-input.ts";

const inferRules: InferRules = Object.freeze({
  ...valueRules,
  ...tileRules,
  ...memoryRules,
  ...asynchronousRules,
  ...tensorMemoryRules,
  ...synchronizationRules,
  ...controlRules,
  ...placedRules,
});

/** The types of the op's results; throws where the op is not well formed. */
export function inferResults<K extends OpKind>(
  draft: Draft<K>,
  context: InferContext,
): readonly Type[] {
  return inferRules[draft.kind](draft, context);
}
