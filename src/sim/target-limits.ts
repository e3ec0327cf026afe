/** What a target cannot hold is reported before anything runs. */
import type { Kernel } from "../ir/node.ts";
import { walkOps } from "../ir/traverse.ts";
import { requireFeatures } from "../layout/model/required-features.ts";
import { lanesPerWarp } from "../targets/target.ts";
import type { Target } from "../targets/target.ts";
import { TilewrightError } from "../support/diagnostics.ts";
import { requireSharedMemory } from "./footprint.ts";

/** Throws where a block or cluster of the kernel does not fit the target, or an op needs what it does not have. */
export function requireLimits(kernel: Kernel, target: Target): void {
  requireBlockLimits(kernel, target);
  requireSharedMemory(kernel, target);
  walkOps(kernel.body, (op) => {
    requireFeatures(op, target);
  });
}

/** The same without shared memory, of which placing a kernel takes care. */
export function requireBlockLimits(kernel: Kernel, target: Target): void {
  requireThreads(kernel, target);
  requireClusterSize(kernel, target);
}

function requireThreads({ threads, warps, name, location }: Kernel, target: Target): void {
  const threadsEach = warps * lanesPerWarp;
  const most = Math.floor(target.threadsPerBlock / threadsEach);
  if (threads.length <= most) return;
  throw new TilewrightError({
    code: "TW3016",
    message: `kernel ${name} has more program threads than a block of ${target.name} can run`,
    location,
    expected: `at most ${most}, of ${threadsEach} threads each`,
    found: String(threads.length),
  });
}

function requireClusterSize({ grid, name, location }: Kernel, target: Target): void {
  const size = grid.reduce((total, { cluster }) => total * cluster, 1);
  if (size <= target.nonPortableClusterSize) return;
  throw new TilewrightError({
    code: "TW3017",
    message: target.features.includes("cluster")
      ? `kernel ${name} has larger clusters than ${target.name} can place`
      : `kernel ${name} has clusters, which need barrier.cluster, and ${target.name} does not have it`,
    location,
    expected: `at most ${target.nonPortableClusterSize} blocks`,
    found: `${size} blocks`,
  });
}
