/**
 * The public names of pipelines.
 *
 *   fill stage 0, fill stage 1 …                      copies, ahead of the work
 *   wait full 0, work, arrive empty 0, wait full 1 …   the work
 */
export type { BlockMap } from "./blocks.ts";
export type { Settled } from "./carries.ts";
export type { InputOptions, OutputOptions } from "./options.ts";
export { pipeline } from "./pipeline.ts";
export type { CarryingPipeline, PipelineOptions } from "./pipeline.ts";
export { ring, pingPong } from "./ring.ts";
export type { Ring, RingPosition, PingPong, PingPongOptions } from "./ring.ts";
export type { RegisterShares } from "./registers.ts";
export { warpSpecialized } from "./warp-specialized.ts";
export type {
  RunSteps,
  SpecializedOptions,
  SpecializedStep,
  SpecializedTile,
} from "./warp-specialized-options.ts";
export { storeThrough } from "./store-through.ts";
export { tiles } from "./tiles.ts";
export type { TileOptions, Tiles } from "./tiles.ts";
