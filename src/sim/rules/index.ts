/**
 * The simulation rules: one an op kind, so that an op without one does not compile.
 *
 *   fma(op, code)      emits a step: take the elements of a, b and c, compute, leave the result in the op's slot
 */
import type { SimulationRules } from "../program.ts";
import { asynchronousRules } from "./asynchronous.ts";
import { controlRules } from "./control.ts";
import { launchControlRules } from "./launch-control.ts";
import { memoryRules } from "./memory.ts";
import { placedRules } from "./placed.ts";
import { synchronizationRules } from "./synchronization.ts";
import { tensorMemoryRules } from "./tensor-memory.ts";
import { tileRules } from "./tiles.ts";
import { valueRules } from "./values.ts";

export const simulationRules: SimulationRules = Object.freeze({
  ...valueRules,
  ...tileRules,
  ...memoryRules,
  ...asynchronousRules,
  ...launchControlRules,
  ...tensorMemoryRules,
  ...synchronizationRules,
  ...controlRules,
  ...placedRules,
});
