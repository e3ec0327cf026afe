/**
 * Runs PTX modules without a GPU.
 *
 *   text ──parse──▶ module ──load──▶ functions of JavaScript ──launch──▶ warps in seeded turns, every access checked
 */
export { emulate, emulateWith } from "./emulate.ts";
export { EmulatedMemory } from "./memory.ts";
export type { Allocation } from "./memory.ts";
export { WorkerPool } from "./host-workers/worker-pool.ts";
export type { WorkerPoolOptions } from "./host-workers/worker-pool.ts";
export type {
  EmulatedLaunch,
  EmulationCounters,
  EmulationResult,
  EmulatorOptions,
} from "./types.ts";
