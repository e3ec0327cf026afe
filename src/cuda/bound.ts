/**
 * Launches that are prepared once. A bound launch owns its parameters, its scratch memory and its ring, so
 * that issuing it is one call of the driver. A recording is a CUDA graph: the bound launches are captured
 * from the stream once and replayed with one call.
 */
import type { Repeatable } from "../device/backend.ts";
import type { LaunchPlan } from "../ptx/executable.ts";
import type { CudaContext } from "./context.ts";
import { dataView, readAddress } from "./driver.ts";
import type { LaunchBlock } from "./launch-block.ts";
import type { Ring, Rings } from "./rings.ts";
import { success } from "./results.ts";

/** Scratch memory of a launch. */
export interface Scratch {
  readonly name: string;
  readonly address: number;
  readonly bytes: number;
  /** Whether it must be zero when the kernel starts. */
  readonly zeroed: boolean;
}

/** Scratch memory is cleared each time where the kernel counts on it. */
export function clearScratch(context: CudaContext, scratch: readonly Scratch[]): void {
  for (const { address, bytes, zeroed } of scratch) {
    if (!zeroed || bytes === 0) continue;
    const { driver, stream } = context;
    const result = driver.calls.cuMemsetD8Async(address, 0, bytes, stream);
    context.check(result, "cuMemsetD8Async", "clear scratch memory");
  }
}

export interface BoundParts {
  readonly plan: LaunchPlan;
  readonly block: LaunchBlock;
  readonly scratch: readonly Scratch[];
  readonly ring: Ring | undefined;
  /** Lets go of the program. */
  readonly release: () => void;
}

/** What the back end does around the issuing of work. */
export interface BoundHost {
  readonly context: CudaContext;
  readonly rings: Rings;
  /** Issues `work` in its turn. */
  readonly pass: (work: () => void) => void;
  readonly releaseScratch: (scratch: readonly Scratch[]) => void;
}

export class CudaBound implements Repeatable {
  readonly #host: BoundHost;
  readonly #parts: BoundParts;
  readonly #issue: () => void;

  constructor(host: BoundHost, parts: BoundParts) {
    this.#host = host;
    this.#parts = parts;
    // Made once, so that a launch allocates nothing.
    this.#issue = () => {
      host.context.enter();
      this.mark();
      this.put();
    };
  }

  get kernel(): string {
    return this.#parts.plan.name;
  }

  launch(): void {
    this.#host.pass(this.#issue);
  }

  /** Puts the work on the stream, or into what is being recorded from it. */
  put(): void {
    clearScratch(this.#host.context, this.#parts.scratch);
    this.#parts.block.issue();
  }

  /** Its messages are to be read at the next wait. */
  mark(): void {
    if (this.#parts.ring !== undefined) this.#host.rings.mark(this.#parts.ring);
  }

  dispose(): void {
    // In its turn: launches that were called before may still have to be issued.
    this.#host.pass(() => {
      this.#parts.block.dispose();
      this.#parts.release();
      if (this.#parts.ring !== undefined) this.#host.rings.give(this.#parts.ring);
      this.#host.releaseScratch(this.#parts.scratch);
    });
  }
}

const captureThreadLocal = 1;

export class CudaRecording implements Repeatable {
  readonly #host: BoundHost;
  readonly #parts: readonly CudaBound[];
  readonly #graph: number;
  readonly #issue: () => void;

  constructor(host: BoundHost, parts: readonly CudaBound[]) {
    this.#host = host;
    this.#parts = parts;
    this.#graph = capture(host.context, parts);
    this.#issue = () => {
      const { context } = host;
      context.enter();
      for (const part of parts) {
        part.mark();
        context.noteLaunch(part.kernel);
      }
      const result = context.driver.calls.cuGraphLaunch(this.#graph, context.stream);
      context.check(result, "cuGraphLaunch", "replay a recording");
    };
  }

  get parts(): readonly CudaBound[] {
    return this.#parts;
  }

  launch(): void {
    this.#host.pass(this.#issue);
  }

  dispose(): void {
    this.#host.pass(() => {
      this.#host.context.driver.calls.cuGraphExecDestroy(this.#graph);
    });
  }
}

/** The works as an instantiated graph. */
function capture(context: CudaContext, works: readonly CudaBound[]): number {
  context.enter();
  const { driver, stream } = context;
  const { calls } = driver;
  const begun = calls.cuStreamBeginCapture(stream, captureThreadLocal);
  context.check(begun, "cuStreamBeginCapture", "record launches");
  const result = driver.allocateHost(8);
  let graph = 0;
  try {
    let failure: { readonly error: unknown } | undefined;
    try {
      for (const work of works) work.put();
    } catch (error) {
      failure = { error };
    }
    // The stream must leave its recording state, whatever happened meanwhile.
    const ended = calls.cuStreamEndCapture(stream, result.address);
    if (ended === success) graph = readAddress(dataView(result), 0);
    if (failure !== undefined) throw failure.error;
    context.check(ended, "cuStreamEndCapture", "record launches");
    return context.make("cuGraphInstantiate", "make a recording", graph, 0);
  } finally {
    if (graph !== 0) calls.cuGraphDestroy(graph);
    driver.freeHost(result);
  }
}
