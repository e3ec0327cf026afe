/** The rules of all asynchronous and collective instructions, by the root of the opcode. */
import { mbarrier } from "./barriers/rules.ts";
import { clusterBarrier } from "./barriers/cluster.ts";
import type { CollectiveRules } from "./collective.ts";
import { clusterLaunchControl } from "./copies/cluster-launch-control.ts";
import { tensormap } from "./copies/map-changes.ts";
import { asyncReduction, asyncStore } from "./copies/remote.ts";
import { cp } from "./copies/rules.ts";
import { matrixRules } from "./tensor-cores/matrices.ts";
import { mma } from "./tensor-cores/mma.ts";
import { wgmma } from "./tensor-cores/wgmma.ts";
import { wmma } from "./tensor-cores/wmma.ts";
import { tcgen05 } from "./tensor-memory/rules.ts";

export const collectiveRules: CollectiveRules = {
  mbarrier,
  cp,
  tensormap,
  clusterlaunchcontrol: clusterLaunchControl,
  st: asyncStore,
  red: asyncReduction,
  barrier: clusterBarrier,
  ...matrixRules,
  mma,
  wgmma,
  wmma,
  tcgen05,
};
