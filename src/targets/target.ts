/**
 * What a GPU has, as data. Every limit and every gate in tilewright reads a description, so that both
 * sides of each can be tested on any machine.
 */

/** Instructions that only some targets have. */
export type Feature =
  | "wgmma"
  | "tma"
  | "cluster"
  | "cp.async"
  | "mbarrier"
  | "tcgen05"
  | "tcgen05.i8"
  | "mma.block_scale"
  | "clusterlaunchcontrol"
  | "setmaxnreg";

/** A GPU architecture with its limits. */
export interface Target {
  /** Its name, such as `"sm_90a"`. */
  readonly name: string;
  /** The GPU architecture whose general instructions it has, as a number: 80 of sm_80, 120 of sm_120a; 0 of the CPU. */
  readonly architecture: 0 | 80 | 86 | 89 | 90 | 100 | 103 | 120 | 121;
  /** Shared memory one block may use, in bytes, dynamic opt-in included. */
  readonly sharedMemoryPerBlock: number;
  /** Bytes of shared memory of a multiprocessor. */
  readonly sharedMemoryPerProcessor: number;
  /** Columns of tensor memory of a multiprocessor, each of 128 words; 0 where there is none. */
  readonly tensorMemoryColumns: number;
  /** The most threads of a block. */
  readonly threadsPerBlock: number;
  /** The most threads of a multiprocessor. */
  readonly threadsPerProcessor: number;
  /** The most blocks of a multiprocessor. */
  readonly blocksPerProcessor: number;
  /** Streaming multiprocessors of the usual board; bounds how many blocks run at once. */
  readonly processors: number;
  /** Blocks of a cluster that every such GPU can place. */
  readonly clusterSize: number;
  /** The most blocks of a cluster: more than `clusterSize` are asked for at launch, and not every such GPU may have room for them. */
  readonly nonPortableClusterSize: number;
  /** The instructions that it has beyond those of all targets. */
  readonly features: readonly Feature[];
  /** Of a CPU: what tiles are sized by. */
  readonly caches?: Caches | undefined;
}

/** The caches of a core, in bytes, and the bytes of a vector. */
export interface Caches {
  readonly first: number;
  readonly second: number;
  readonly vector: number;
}

const kibibyte = 1024;

const hopper: Omit<Target, "name" | "architecture" | "features"> = {
  sharedMemoryPerBlock: 227 * kibibyte,
  sharedMemoryPerProcessor: 228 * kibibyte,
  tensorMemoryColumns: 0,
  threadsPerBlock: 1024,
  threadsPerProcessor: 2048,
  blocksPerProcessor: 32,
  processors: 132,
  clusterSize: 8,
  nonPortableClusterSize: 16,
};

/** What consumer boards have in common. */
const consumer: Omit<Target, "name" | "architecture" | "features" | "processors"> = {
  sharedMemoryPerBlock: 99 * kibibyte,
  sharedMemoryPerProcessor: 100 * kibibyte,
  tensorMemoryColumns: 0,
  threadsPerBlock: 1024,
  threadsPerProcessor: 1536,
  blocksPerProcessor: 24,
  clusterSize: 1,
  nonPortableClusterSize: 1,
};

/** What the Blackwells of data centres have in common. */
const blackwell: Omit<Target, "name" | "architecture"> = {
  ...hopper,
  processors: 148,
  tensorMemoryColumns: 512,
  features: [
    ...(["cp.async", "mbarrier", "tma", "cluster", "setmaxnreg"] as const),
    ...(["tcgen05", "clusterlaunchcontrol"] as const),
  ],
};

/** What those for desktops have in common. */
const consumerBlackwell: Omit<Target, "name" | "architecture" | "processors"> = {
  ...consumer,
  clusterSize: 8,
  nonPortableClusterSize: 8,
  features: [
    ...(["cp.async", "mbarrier", "tma", "cluster", "setmaxnreg"] as const),
    ...(["mma.block_scale", "clusterlaunchcontrol"] as const),
  ],
};

function describe(target: Target): Target {
  return Object.freeze({ ...target, features: Object.freeze([...target.features]) });
}

/** The GPU architectures that kernels are compiled for, by name. */
export const targets = Object.freeze({
  /** Ampere: the A100 and its relatives. */
  sm_80: describe({
    ...hopper,
    name: "sm_80",
    architecture: 80,
    sharedMemoryPerBlock: 163 * kibibyte,
    sharedMemoryPerProcessor: 164 * kibibyte,
    processors: 108,
    clusterSize: 1,
    nonPortableClusterSize: 1,
    features: ["cp.async", "mbarrier"],
  }),
  /** Ampere for desktops: the RTX 3090, the A10, the A40 and their relatives. */
  sm_86: describe({
    ...consumer,
    name: "sm_86",
    architecture: 86,
    blocksPerProcessor: 16,
    processors: 82,
    features: ["cp.async", "mbarrier"],
  }),
  /** Ada: the RTX 4090, the L4, the L40S and their relatives. */
  sm_89: describe({
    ...consumer,
    name: "sm_89",
    architecture: 89,
    processors: 128,
    features: ["cp.async", "mbarrier"],
  }),
  /** Hopper: the H100, the H200 and their relatives. */
  sm_90a: describe({
    ...hopper,
    name: "sm_90a",
    architecture: 90,
    features: ["cp.async", "mbarrier", "tma", "cluster", "setmaxnreg", "wgmma"],
  }),
  /** Blackwell: the B200 and its relatives. */
  sm_100a: describe({
    ...blackwell,
    name: "sm_100a",
    architecture: 100,
    features: [...blackwell.features, "tcgen05.i8"],
  }),
  /** Blackwell Ultra: the B300 and its relatives. */
  sm_103a: describe({ ...blackwell, name: "sm_103a", architecture: 103 }),
  /** Blackwell for desktops: the RTX 5090, the RTX PRO 6000 and their relatives. */
  sm_120a: describe({
    ...consumerBlackwell,
    name: "sm_120a",
    architecture: 120,
    processors: 170,
  }),
  /** Blackwell for small computers: the GB10 of a DGX Spark. */
  sm_121a: describe({
    ...consumerBlackwell,
    name: "sm_121a",
    architecture: 121,
    processors: 48,
  }),
});

/**
 * The CPU that kernels are compiled for as WebAssembly. What a block shares lies in memory, so that there is as much of it as on the largest GPU;
 * blocks run one after another on each thread, so that none may wait for one that comes later: a processor that holds one block.
 */
export const cpuTarget: Target = describe({
  ...hopper,
  name: "cpu",
  architecture: 0,
  processors: 1,
  blocksPerProcessor: 1,
  clusterSize: 1,
  nonPortableClusterSize: 1,
  features: [],
  caches: Object.freeze({ first: 32 * kibibyte, second: 1024 * kibibyte, vector: 16 }),
});

/** The name of a GPU architecture, such as `"sm_90a"`. */
export type TargetName = keyof typeof targets;

/** The target that kernels are checked for when none is named. */
export const defaultTarget: Target = targets.sm_90a;

export const targetNames = Object.freeze(Object.keys(targets)) as readonly TargetName[];

/** The description that is meant: itself, or the known one of that name. */
export function targetNamed(target: unknown): Target | undefined {
  if (isTarget(target)) return target;
  const named = targetNames.find((name) => name === target);
  return named === undefined ? undefined : targets[named];
}

/** A description has everything that the known ones have. */
function isTarget(target: unknown): target is Target {
  if (typeof target !== "object" || target === null) return false;
  const found = new Map<string, unknown>(Object.entries(target));
  return Object.entries(defaultTarget).every(
    ([name, value]) => typeof found.get(name) === typeof value,
  );
}

/** Lanes of a warp, on every target. */
export const lanesPerWarp = 32;

/** Warps of a warpgroup: what a program thread is unless its kernel says otherwise, and what `wgmma` takes together. */
export const warpsPerGroup = 4;

/** How many warps a program thread can have. */
export const warpCounts: readonly number[] = Object.freeze([1, 2, 4, 8, 16, 32]);

/** Warps of a block, on every target. */
const warpsPerBlock = 32;
/** Hardware has 16 barriers, one of which is the block's. */
const mostProgramThreads = 8;

/** How many program threads of so many warps a block can have. */
export function mostThreads(warps: number): number {
  return Math.min(mostProgramThreads, warpsPerBlock / warps);
}

/** What one block takes of a processor. */
export interface BlockNeeds {
  readonly threads: number;
  readonly sharedBytes: number;
  /** Of each lane; left out where they are not known. */
  readonly registers?: number | undefined;
}

export interface Occupancy {
  /** Blocks that run on a processor at the same time. */
  readonly blocks: number;
  /** What there would have to be more of for another one. */
  readonly limit: "blocks" | "threads" | "shared memory" | "registers";
}

/** The same on every target: four partitions of a processor, and how warps are given registers of one. */
const partitions = 4;
const registersPerPartition = 16384;
const registerUnit = 256;
export function occupancy(
  target: Target,
  { threads, sharedBytes, registers }: BlockNeeds,
): Occupancy {
  // The hardware keeps 1 KiB of every block's shared memory for itself.
  const reserved = sharedBytes + kibibyte;
  const limits: readonly (readonly [Occupancy["limit"], number])[] = [
    ["threads", Math.floor(target.threadsPerProcessor / threads)],
    ["shared memory", Math.floor(target.sharedMemoryPerProcessor / reserved)],
    ["registers", blocksByRegisters(threads, registers ?? 0)],
    ["blocks", target.blocksPerProcessor],
  ];
  const [limit, blocks] = limits.reduce((least, each) => (each[1] < least[1] ? each : least));
  return { blocks, limit };
}

function blocksByRegisters(threads: number, registers: number): number {
  if (registers === 0) return Infinity;
  const ofWarp = Math.ceil((registers * lanesPerWarp) / registerUnit) * registerUnit;
  const warps = Math.floor(registersPerPartition / ofWarp) * partitions;
  return Math.floor((warps * lanesPerWarp) / threads);
}

/** How many blocks with these needs run at the same time on the whole GPU. */
export function residentBlocks(target: Target, threads: number, sharedBytes: number): number {
  const { blocks } = occupancy(target, { threads, sharedBytes });
  return Math.max(1, blocks) * target.processors;
}
