/**
 * `tilewright/distributed`: the same program on several ranks.
 *
 *   import { makeMesh, P, psum, shardMap } from "tilewright/distributed";
 *   const mesh = makeMesh({ d: 4 });
 *   const total = jit(shardMap((x) => psum(sum(x), "d"), { mesh, inSpecs: [P("d")], outSpecs: P() }));
 */
export {
  allGather,
  allToAll,
  axisIndex,
  axisSize,
  pmax,
  pmean,
  pmin,
  ppermute,
  psum,
  psumScatter,
} from "./collectives.ts";
export type { AxisNames, ExchangeOptions, GatherOptions, ScatterOptions } from "./collectives.ts";
export { devicePut } from "./device-put.ts";
export { initialize, processCount, processIndex } from "./initialize.ts";
export type { InitializeOptions } from "./initialize.ts";
export { flightRecord, shutdown } from "./world.ts";
export { makeMesh, Mesh, NamedSharding, P, PartitionSpec } from "./mesh.ts";
export type { AxisSpec, MeshOptions } from "./mesh.ts";
export { shardMap } from "./shard-map.ts";
export type { ShardMapOptions, Specs } from "./shard-map.ts";
export { TilewrightError } from "../support/diagnostics.ts";
