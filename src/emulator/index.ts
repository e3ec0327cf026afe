/** Runs PTX modules without a GPU. */
export { emulate } from "./emulate.ts";
export { EmulatedMemory } from "./memory.ts";
export type { Allocation } from "./memory.ts";
export type {
  EmulatedLaunch,
  EmulationCounters,
  EmulationResult,
  EmulatorOptions,
} from "./types.ts";
