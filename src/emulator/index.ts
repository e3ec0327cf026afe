/** Runs PTX modules without a GPU. */
export { emulate, emulateWith } from "./emulate.ts";
export { EmulatedMemory } from "./memory.ts";
export type { Allocation } from "./memory.ts";
export { Crew } from "./threads/crew.ts";
export type { CrewOptions } from "./threads/crew.ts";
export type {
  EmulatedLaunch,
  EmulationCounters,
  EmulationResult,
  EmulatorOptions,
} from "./types.ts";
