/** A block: shared memory, warps, barriers, and the registers that its warps share among them. */
import type { Knowledge } from "../../happens-before/knowledge.ts";
import { WarpTimeline } from "../checks/warp-timeline.ts";
import { byteStates, memoryOf } from "../memory.ts";
import type { MemoryViews } from "../memory.ts";
import type { Program } from "../program/program.ts";
import { warpLanes } from "../program/registers.ts";
import { uniformSpecials } from "../program/symbols.ts";
import type { UniformSpecial } from "../program/symbols.ts";
import type { EmulatedLaunch } from "../types.ts";
import { BlockBarriers } from "./named-barriers.ts";
import type { ClusterState } from "./cluster.ts";
import { RegisterBudget } from "./register-pool.ts";
import { WarpState } from "./warp.ts";
import type { BlockState, WarpHost } from "./warp.ts";

type Triple = readonly [number, number, number];

/** What warps know when they begin, and where their numbers come from. */
export interface StartingOrder {
  readonly newAgent: () => number;
  readonly newRound: () => number;
  readonly start: Knowledge;
}

export interface BlockOptions {
  readonly index: number;
  readonly rank: number;
  readonly cluster: ClusterState;
  readonly launch: EmulatedLaunch;
  readonly program: Program;
  readonly host: WarpHost;
  /** What the launch's blocks know from the start; undefined without checks. */
  readonly order: StartingOrder | undefined;
}

function coordinates(index: number, [x, y]: Triple): Triple {
  return [index % x, Math.floor(index / x) % y, Math.floor(index / (x * y))];
}

export class Block implements BlockState {
  readonly index: number;
  readonly rank: number;
  readonly cluster: readonly BlockState[];
  readonly warps: readonly WarpState[];
  readonly shared: MemoryViews;
  readonly barriers = new BlockBarriers();
  readonly budget: RegisterBudget;

  constructor(options: BlockOptions) {
    const { index, rank, cluster, launch, program, host, order } = options;
    this.index = index;
    this.rank = rank;
    this.cluster = cluster.blocks;
    const sharedBytes = program.staticSharedBytes + launch.sharedBytes;
    this.shared = memoryOf(16 * Math.ceil(sharedBytes / 16));
    this.shared.states.fill(byteStates.unwritten);
    const [x, y, z] = launch.threads;
    const lanes = x * y * z;
    const { directives } = program.entry.declaration;
    this.budget = new RegisterBudget(Math.ceil(lanes / warpLanes), directives);
    const specials = specialsOf(options, sharedBytes);
    this.warps = Array.from({ length: Math.ceil(lanes / warpLanes) }, (_, warpIndex) => {
      const first = warpIndex * warpLanes;
      const count = Math.min(warpLanes, lanes - first);
      const own = specials.slice();
      own[uniformSpecials.indexOf("%warpid")] = warpIndex;
      const warp = new WarpState({
        index: warpIndex,
        block: this,
        cluster,
        host,
        entry: program.entry,
        live: count === warpLanes ? -1 : (1 << count) - 1,
        specials: own,
        timeline: order && new WarpTimeline(order.newAgent, order.start, order.newRound),
      });
      for (let lane = 0; lane < warpLanes; lane++) {
        const [laneX, laneY, laneZ] = coordinates(first + lane, launch.threads);
        warp.lanesX[lane] = laneX;
        warp.lanesY[lane] = laneY;
        warp.lanesZ[lane] = laneZ;
      }
      return warp;
    });
  }
}

function specialsOf({ index, rank, launch }: BlockOptions, sharedBytes: number): Int32Array {
  const [x, y, z] = launch.blocks;
  const [blockX, blockY, blockZ] = coordinates(index, launch.blocks);
  const [lanesX, lanesY, lanesZ] = launch.threads;
  const size = launch.cluster ?? 1;
  const values: { readonly [S in UniformSpecial]: number } = {
    "%ntid.x": lanesX,
    "%ntid.y": lanesY,
    "%ntid.z": lanesZ,
    "%ctaid.x": blockX,
    "%ctaid.y": blockY,
    "%ctaid.z": blockZ,
    "%nctaid.x": x,
    "%nctaid.y": y,
    "%nctaid.z": z,
    "%warpid": 0,
    "%nwarpid": Math.ceil((lanesX * lanesY * lanesZ) / warpLanes),
    "%smid": 0,
    "%nsmid": 1,
    "%gridid": 0,
    "%clusterid.x": Math.floor(blockX / size),
    "%clusterid.y": blockY,
    "%clusterid.z": blockZ,
    "%nclusterid.x": Math.floor(x / size),
    "%nclusterid.y": y,
    "%nclusterid.z": z,
    "%cluster_ctaid.x": rank,
    "%cluster_ctaid.y": 0,
    "%cluster_ctaid.z": 0,
    "%cluster_nctaid.x": size,
    "%cluster_nctaid.y": 1,
    "%cluster_nctaid.z": 1,
    "%cluster_ctarank": rank,
    "%cluster_nctarank": size,
    "%is_explicit_cluster": size > 1 ? 1 : 0,
    "%dynamic_smem_size": launch.sharedBytes,
    "%total_smem_size": sharedBytes,
    "%aggr_smem_size": sharedBytes,
  };
  return Int32Array.from(uniformSpecials, (name) => values[name]);
}
