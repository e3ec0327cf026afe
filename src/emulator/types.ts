/** What a launch on the emulator takes and gives back. */
import type { TilewrightError } from "../support/diagnostics.ts";
import type { LaunchNames } from "./naming.ts";
import type { RunLimits } from "../support/run-limits.ts";
import type { Target } from "../targets/target.ts";

export interface EmulatedLaunch {
  /** The name of the `.entry` in the module. */
  readonly entry: string;
  readonly blocks: readonly [number, number, number];
  readonly threads: readonly [number, number, number];
  /** Blocks of a cluster, along x; 1 where there are none. */
  readonly cluster?: number | undefined;
  /** Dynamic shared memory. */
  readonly sharedBytes: number;
  /** The bytes of each `.param`, in order. */
  readonly parameters: readonly Uint8Array[];
  /** Whether it is a kernel of ours, which promises more than PTX demands and is held to it. */
  readonly isOwn?: boolean | undefined;
  /** What reports call its parts, besides what the module tells. */
  readonly names?: LaunchNames | undefined;
}

export interface EmulatorOptions {
  readonly target: Target;
  /** Of the schedule, and of the order in which asynchronous operations complete. */
  readonly seed?: number | undefined;
  /** Whether to look for races, uninitialised values and the like; on by default. */
  readonly checks?: boolean | undefined;
  /** When to stop a run that has not come to its end. */
  readonly limits?: RunLimits | undefined;
  /** Asked between turns of warps: true ends the launch soon, wherever it is. */
  readonly isOver?: (() => boolean) | undefined;
}

/** What a launch did, in numbers. */
export interface EmulationCounters {
  /** Instructions times the lanes that ran them. */
  readonly laneInstructions: number;
  /** Instructions times the warps that ran them. */
  readonly warpInstructions: number;
}

/** What a launch gave: findings, printed text and counters. */
export interface EmulationResult {
  /** What the checks found, in the order of finding; the launch went on behind each. */
  readonly findings: readonly TilewrightError[];
  /**
   * What is no finding in a kernel of another compiler, and would be one in ours: `tcgen05.fence` and `fence.proxy.async`
   * before tensor cores read shared memory that compilers in the field leave out.
   */
  readonly notes: readonly TilewrightError[];
  /** What lanes printed, one text a call. */
  readonly printed: readonly string[];
  /** What the launch did, in numbers. */
  readonly counters: EmulationCounters;
}
