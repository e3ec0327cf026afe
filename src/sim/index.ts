/** The tile simulator: what a kernel means, and what is wrong with it. */
export { simulate } from "./simulate.ts";
export type {
  SimulatedBuffer,
  SimulationArguments,
  SimulationOptions,
  SimulationResult,
} from "./simulate.ts";
export type { ScheduleName } from "./scheduler.ts";
export type { Statistics } from "./machine.ts";
export { sharedFootprint } from "./footprint.ts";
