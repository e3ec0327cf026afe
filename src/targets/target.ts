/**
 * What a GPU has, as data. Every limit and every gate in tilewright reads a description, so that both
 * sides of each can be tested on any machine.
 */

/** Instructions that only some targets have. */
export type Feature = "wgmma" | "tma" | "cluster" | "cp.async" | "mbarrier" | "tcgen05";

export interface Target {
  readonly name: string;
  /** The first GPU architecture with all of its general instructions: sm_80, sm_90 or sm_100. */
  readonly architecture: 80 | 90 | 100;
  /** Shared memory one block may use, in bytes, dynamic opt-in included. */
  readonly sharedMemoryPerBlock: number;
  readonly sharedMemoryPerProcessor: number;
  readonly lanesPerBlock: number;
  readonly lanesPerProcessor: number;
  readonly blocksPerProcessor: number;
  /** Streaming multiprocessors of the usual board; bounds how many blocks run at once. */
  readonly processors: number;
  /** Blocks of a cluster that every such GPU can place. */
  readonly clusterSize: number;
  readonly features: readonly Feature[];
}

const kibibyte = 1024;

const hopper: Omit<Target, "name" | "architecture" | "features"> = {
  sharedMemoryPerBlock: 227 * kibibyte,
  sharedMemoryPerProcessor: 228 * kibibyte,
  lanesPerBlock: 1024,
  lanesPerProcessor: 2048,
  blocksPerProcessor: 32,
  processors: 132,
  clusterSize: 8,
};

function describe(target: Target): Target {
  return Object.freeze({ ...target, features: Object.freeze([...target.features]) });
}

export const targets = Object.freeze({
  sm_80: describe({
    ...hopper,
    name: "sm_80",
    architecture: 80,
    sharedMemoryPerBlock: 163 * kibibyte,
    sharedMemoryPerProcessor: 164 * kibibyte,
    processors: 108,
    clusterSize: 1,
    features: ["cp.async", "mbarrier"],
  }),
  sm_90a: describe({
    ...hopper,
    name: "sm_90a",
    architecture: 90,
    features: ["cp.async", "mbarrier", "tma", "cluster", "wgmma"],
  }),
  sm_100a: describe({
    ...hopper,
    name: "sm_100a",
    architecture: 100,
    processors: 148,
    features: ["cp.async", "mbarrier", "tma", "cluster", "tcgen05"],
  }),
});

export type TargetName = keyof typeof targets;

/** The target that kernels are checked for when none is named. */
export const defaultTarget: Target = targets.sm_90a;

/** Lanes of one program thread: a warpgroup. */
export const lanesPerThread = 128;
export const warpsPerThread = 4;

/** How many blocks with these needs run at the same time on the whole GPU. */
export function residentBlocks(target: Target, threads: number, sharedBytes: number): number {
  // The hardware keeps 1 KiB of every block's shared memory for itself.
  const reserved = sharedBytes + kibibyte;
  const perProcessor = Math.min(
    target.blocksPerProcessor,
    Math.floor(target.lanesPerProcessor / (threads * lanesPerThread)),
    Math.floor(target.sharedMemoryPerProcessor / reserved),
  );
  return Math.max(1, perProcessor) * target.processors;
}
