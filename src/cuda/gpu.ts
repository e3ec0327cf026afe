/**
 * A GPU as the driver describes it, and what follows for the compiler: the target that kernels are compiled
 * for, with this GPU's own limits, and the newest PTX that the driver accepts.
 *
 *   | compute capability | target  |      | driver of CUDA | PTX up to |
 *   |--------------------|---------|      |----------------|-----------|
 *   | 8.6                | sm_86   |      | 12.0           | 8.0       |
 *   | 8.9                | sm_89   |      | 12.8           | 8.7       |
 *   | 9.0                | sm_90a  |      | 13.0           | 9.0       |
 *   | 10.0, 10.3         | sm_100a, sm_103a |      |                |           |
 *   | 12.0, 12.1         | sm_120a, sm_121a |      |                |           |
 *   | 8.0 and all others | sm_80   |      |                |           |
 *
 * PTX for sm_80 runs on every later GPU; a target that ends in "a" runs on its own kind alone.
 */
import { isOlderPtx } from "../ptx/version.ts";
import { TilewrightError } from "../support/diagnostics.ts";
import { targetNames, targets } from "../targets/target.ts";
import type { Target, TargetName } from "../targets/target.ts";

export interface Gpu {
  readonly ordinal: number;
  readonly name: string;
  /** Compute capability. */
  readonly major: number;
  readonly minor: number;
  readonly processors: number;
  readonly sharedMemoryPerBlock: number;
  readonly sharedMemoryPerProcessor: number;
  readonly threadsPerProcessor: number;
  readonly blocksPerProcessor: number;
  readonly memoryPools: boolean;
  /** As cuDriverGetVersion has it: 12080 is CUDA 12.8. */
  readonly driverVersion: number;
}

/** Numbers of CUdevice_attribute. */
export const gpuAttributes = {
  processors: 16,
  threadsPerProcessor: 39,
  major: 75,
  minor: 76,
  sharedMemoryPerProcessor: 81,
  sharedMemoryPerBlock: 97,
  blocksPerProcessor: 106,
  memoryPools: 115,
} as const;

/** The GPUs that a target is for; others run sm_80. */
const capabilities: { readonly [T in TargetName]: string } = {
  sm_80: "8.0",
  sm_86: "8.6",
  sm_89: "8.9",
  sm_90a: "9.0",
  sm_100a: "10.0",
  sm_103a: "10.3",
  sm_120a: "12.0",
  sm_121a: "12.1",
};

/** The target for a GPU, with the GPU's limits where they differ from the usual board's. */
export function targetForGpu(gpu: Gpu): Target {
  if (gpu.major < 8)
    throw new TilewrightError({
      code: "TW4505",
      message: `${gpu.name} runs none of the targets that kernels are compiled for`,
      expected: "compute capability 8.0 or later",
      found: `${gpu.major}.${gpu.minor}`,
    });
  const own = `${gpu.major}.${gpu.minor}`;
  const known = targets[targetNames.find((name) => capabilities[name] === own) ?? "sm_80"];
  const { processors, sharedMemoryPerBlock, sharedMemoryPerProcessor } = gpu;
  const { threadsPerProcessor, blocksPerProcessor } = gpu;
  const limits = {
    processors,
    sharedMemoryPerBlock,
    sharedMemoryPerProcessor,
    threadsPerProcessor,
    blocksPerProcessor,
  };
  const same = Object.entries(limits).every(
    ([name, value]) => known[name as keyof typeof limits] === value,
  );
  return same ? known : Object.freeze({ ...known, ...limits });
}

const oldestDriver = 12000;

const ptxVersions: readonly (readonly [driver: number, ptx: string])[] = [
  [13000, "9.0"],
  [12090, "8.8"],
  [12080, "8.7"],
  [12070, "8.6"],
  [12050, "8.5"],
  [12040, "8.4"],
  [12030, "8.3"],
  [12020, "8.2"],
  [12010, "8.1"],
  [oldestDriver, "8.0"],
];

/** The newest PTX version that a driver is known to accept. */
export function newestPtx(driverVersion: number): string {
  const found = ptxVersions.find(([driver]) => driverVersion >= driver)?.[1];
  if (found !== undefined) return found;
  throw new TilewrightError({
    code: "TW4504",
    message: "the NVIDIA driver is too old",
    expected: `a driver of CUDA ${cudaText(oldestDriver)} (525) or later`,
    found: `a driver of CUDA ${cudaText(driverVersion)}`,
  });
}

/** 12080 as people write it. */
export function cudaText(version: number): string {
  return `${Math.floor(version / 1000)}.${Math.floor((version % 1000) / 10)}`;
}

/** Refuses a kernel whose PTX the driver is too old for. */
export function requirePtx(kernel: string, needed: string, driverVersion: number): void {
  const accepted = newestPtx(driverVersion);
  if (!isOlderPtx(accepted, needed)) return;
  throw new TilewrightError({
    code: "TW4504",
    message: `kernel ${kernel} needs PTX ${needed}, which the driver of CUDA ${cudaText(driverVersion)} does not accept`,
    expected: `PTX ${accepted} or older`,
    found: `PTX ${needed}`,
  });
}
