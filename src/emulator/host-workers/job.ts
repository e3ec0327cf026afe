/**
 * What a thread is asked to do, and its answer, as they travel between threads. All threads of a launch get
 * the same but for their marks, and take clusters from one counter:
 *
 *   control[next]   7      the cluster that whoever asks next gets, with some behind it
 *   control[stop]   0      1 once a thread has met something that only the calling thread can report
 */
import type { PtxModule } from "../../ptx/module.ts";
import type { Allocation } from "../memory.ts";
import type { EmulatedLaunch, EmulationCounters, EmulatorOptions } from "../types.ts";

export const control = Object.freeze({ next: 0, stop: 1, words: 2 });

/** A module, sent once; later jobs name its number alone. */
export interface SentModule {
  readonly number: number;
  readonly content?: PtxModule | undefined;
}

/** Modules that a thread keeps. */
const keptModules = 32;

/** Drops the oldest modules; both sides do so, and agree on which are left. */
export function keepNewest(modules: {
  readonly size: number;
  keys(): Iterable<number>;
  delete(number: number): void;
}): void {
  for (const oldest of modules.keys()) {
    if (modules.size <= keptModules) return;
    modules.delete(oldest);
  }
}

/** A heap that threads share: a copy of the memory's. */
export interface SharedHeap {
  readonly bytes: SharedArrayBuffer;
  readonly states: SharedArrayBuffer;
  /** How much of both is used. */
  readonly size: number;
}

export interface Job {
  /** Which of the tasks of a thread this is. */
  readonly task: "emulation";
  readonly module: SentModule;
  readonly launch: EmulatedLaunch;
  /** Addresses of the module's variables. */
  readonly symbols: Float64Array;
  readonly options: EmulatorOptions;
  readonly heap: SharedHeap;
  readonly allocations: readonly Allocation[];
  readonly marks: SharedArrayBuffer;
  readonly control: SharedArrayBuffer;
  /** The cluster behind the last, and how many a thread takes at a time. */
  readonly end: number;
  readonly stride: number;
}

/** Undefined where the thread met something that only the calling thread can report. */
export type Answer = EmulationCounters | undefined;
