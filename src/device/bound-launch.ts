/**
 * Launches prepared once and repeated: arguments are checked and bound when they are made, so that
 * issuing one costs the host next to nothing. A recording is several of them as one piece.
 *
 *   const step = device.bind(axpy, { x, y, out });      const round = device.record([step, other]);
 *   for (const batch of batches) step.launch();         round.launch();
 */
import { runEach } from "../support/run-all.ts";
import { madeBy, thisCopy } from "../support/duplicate-library.ts";
import { TilewrightError } from "../support/diagnostics.ts";
import type { LimitedProgram } from "../support/run-limits.ts";
import type { BackendStream, Repeatable } from "./backend.ts";
import { disposeSymbol } from "./device-array.ts";
import type { ArrayRegistry, DeviceArray } from "./device-array.ts";
import type { Stream } from "./stream.ts";

/** What a bound launch needs from its device. */
export interface BoundOwner {
  readonly arrays: ArrayRegistry;
  readonly requireOpen: () => void;
  readonly forget: (bound: BoundLaunch) => void;
  readonly streamHandle: (stream: Stream) => BackendStream;
}

/** A launch with its arguments fixed, which can be run again and again at little cost. */
export class BoundLaunch {
  /** The kernels that it runs, in order. */
  readonly kernels: readonly string[];
  readonly #owner: BoundOwner;
  readonly #arrays: readonly DeviceArray[];
  readonly #giveBack: () => void;
  #work: Repeatable | undefined;

  /** @internal */
  constructor(
    owner: BoundOwner,
    kernels: readonly string[],
    arrays: readonly DeviceArray[],
    work: Repeatable,
    giveBack: () => void = () => undefined,
  ) {
    this.kernels = kernels;
    this.#owner = owner;
    this.#arrays = arrays;
    this.#work = work;
    this.#giveBack = giveBack;
  }

  /** @internal */
  get [madeBy](): object {
    return thisCopy;
  }

  /**
   * Issues the work, after everything issued before it, or on a stream; `synchronize` tells what went wrong in it.
   */
  launch(stream?: Stream): void {
    const work = this.workFor(this.#owner);
    if (stream === undefined) work.launch();
    else work.launch(this.#owner.streamHandle(stream));
  }

  /** @internal Issues it as a part of a program, which ends it where the device stops kernels. */
  launchWith(limited: LimitedProgram): void {
    this.workFor(this.#owner).launch(undefined, limited);
  }

  /** Gives back what it holds. Doing it twice is harmless. */
  dispose(): void {
    const work = this.#work;
    this.#work = undefined;
    this.#owner.forget(this);
    if (work === undefined) return;
    runEach([
      () => {
        work.dispose();
      },
      this.#giveBack,
    ]);
  }

  [disposeSymbol](): void {
    this.dispose();
  }

  /** @internal The arrays it works on. */
  get arrays(): readonly DeviceArray[] {
    return this.#arrays;
  }

  /** @internal The prepared work, with everything it needs still there. */
  workFor(owner: BoundOwner): Repeatable {
    this.#owner.requireOpen();
    if (this.#work === undefined)
      throw new TilewrightError({
        code: "TW4017",
        message: `the bound launch of ${this.kernels.join(", ")} was disposed of before this use`,
        expected: "a bound launch that is kept until its last use",
        found: "one that was disposed of",
      });
    if (owner !== this.#owner)
      throw new TilewrightError({
        code: "TW4018",
        message: `the bound launch of ${this.kernels.join(", ")} belongs to another device`,
        expected: "a bound launch that this device made",
        found: "one of another device",
      });
    for (const array of this.#arrays) array.allocationFor(this.#owner.arrays);
    return this.#work;
  }
}
