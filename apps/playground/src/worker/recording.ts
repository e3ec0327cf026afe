/** What the devices of a run leave behind: launches with their arrays, findings, timelines. `recorded-device.ts` fills it. */
import type { HostValue } from "../../../../src/formats/dtype.ts";
import type { HostArray } from "../../../../src/formats/hostarray.ts";
import type { Kernel, KernelInterface } from "../../../../src/ir/node.ts";
import type { RunTimeline, WaitGraph } from "../../../../src/sim/index.ts";
import type { TilewrightError } from "../../../../src/support/diagnostics.ts";

export interface RecordedArray {
  readonly name: string;
  readonly role: string;
  readonly value: HostArray;
}

export interface RecordedLaunch {
  readonly kernel: KernelInterface;
  readonly device: string;
  readonly dimensions: ReadonlyMap<string, number>;
  readonly scalars: ReadonlyMap<string, HostValue>;
  readonly arrays: readonly RecordedArray[];
  readonly milliseconds: number;
  /** Undefined on the emulator. */
  readonly timeline: RunTimeline | undefined;
}

/** Everything that the devices of a run leave behind. */
export class Recording {
  readonly launches: RecordedLaunch[] = [];
  readonly findings: TilewrightError[] = [];
  readonly timelines: RunTimeline[] = [];
  /** Kernels that were compiled, as they were traced. */
  readonly compiled: Kernel[] = [];
  deadlock: WaitGraph | undefined;
  readonly #pending: Promise<void>[] = [];

  /** Keeps what a launch leaves, once it is known. */
  keep(work: Promise<void>): void {
    this.#pending.push(work);
  }

  async settled(): Promise<void> {
    await Promise.allSettled(this.#pending);
  }
}
