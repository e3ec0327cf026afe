/** What a device is made with, whichever back end is behind it. */
import type { PerformanceNote } from "../ptx/notes/note.ts";
import type { RunLimits } from "../support/run-limits.ts";
import type { CompilationRecord } from "./compilation.ts";
import type { Leak } from "./device-array.ts";
import type { KernelProfile } from "./profile/kernel-profile.ts";
import type { TuningOptions } from "./tuning/advice.ts";

/** Options that `open` takes for every device. */
export interface DeviceOptions extends TuningOptions {
  /** Of every launch that has none of its own, on devices that stop kernels. */
  readonly limits?: RunLimits;
  /** Hears of arrays that were never disposed of; by default they are written to the console. */
  readonly onLeak?: (leaks: readonly Leak[]) => void;
  /** Hears of every compilation, with its reason. */
  readonly onCompile?: (record: CompilationRecord) => void;
  /** Hears what makes a kernel slow, once; by default it is written to the console where kernels are assembled. */
  readonly onNotes?: (kernel: string, notes: readonly PerformanceNote[]) => void;
  /**
   * Hears how long scopes of `profile` took, once a launch has run. Without it the scopes are not there; what is
   * bound, compiled ahead of time or of another compiler has none either.
   */
  readonly onProfile?: (profile: KernelProfile) => void;
}
