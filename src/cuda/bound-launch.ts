/**
 * Launches that are prepared once. A bound launch owns its parameters, its scratch memory and its ring, so
 * that issuing it is one call of the driver. A recording is a CUDA graph: the bound launches are captured
 * from the stream once and replayed with one call.
 */
import type { BackendStream, Repeatable } from "../device/backend.ts";
import type { CudaContext } from "./context.ts";
import { dataView, readAddress } from "./driver.ts";
import type { Ring, MessageRings } from "./message-rings.ts";
import { success } from "./results.ts";
import { CudaStream, MemoryRecord } from "./streams.ts";
import type { MemoryUses, Streams } from "./streams.ts";

/** Scratch memory of a launch. */
export interface Scratch {
  readonly name: string;
  readonly address: number;
  readonly bytes: number;
  /** Whether it must be zero when the kernel starts: "once" where the kernel leaves it so. */
  readonly zeroed: boolean | "once";
}

/** Clears scratch memory that the kernel counts on. */
export function clearScratch(
  context: CudaContext,
  scratch: readonly Scratch[],
  stream = context.stream,
): void {
  for (const { address, bytes, zeroed } of scratch) {
    if (zeroed === false || bytes === 0) continue;
    const { driver } = context;
    const result = driver.calls.cuMemsetD8Async(address, 0, bytes, stream);
    context.check(result, "cuMemsetD8Async", "clear scratch memory");
  }
}

export interface BoundParts {
  readonly name: string;
  /** Issues the work itself. */
  readonly issue: (stream: number) => void;
  readonly scratch: readonly Scratch[];
  readonly ring: Ring | undefined;
  /** The memory of others that it uses. */
  readonly uses: MemoryUses;
  /** Gives back what it is made of. */
  readonly release: () => void;
}

/** What the back end does around the issuing of work. */
export interface BoundHost {
  readonly context: CudaContext;
  readonly rings: MessageRings;
  readonly streams: Streams;
  /** Issues `work` in its turn. */
  readonly pass: (work: () => void) => void;
  readonly releaseScratch: (scratch: readonly Scratch[]) => void;
}

/** The stream of this back end that is meant. */
export function cudaStream(stream: BackendStream | undefined): CudaStream | undefined {
  if (stream === undefined || stream instanceof CudaStream) return stream;
  throw new Error("the stream is another back end's");
}

/** What recordings consist of. */
export interface CudaPart {
  readonly kernel: string;
  readonly uses: MemoryUses;
  /** Its messages are to be read at the next wait. */
  mark(): void;
  /** Puts the work on a stream, or into what is being recorded from it. */
  put(stream: number): void;
}

export class CudaBound implements Repeatable, CudaPart {
  readonly #host: BoundHost;
  readonly #parts: BoundParts;
  /** Its memory as launches on several streams meet it: its own is theirs in turn. */
  readonly uses: MemoryUses;
  readonly #issue: () => void;

  /** What is cleared before each launch. */
  readonly #cleared: readonly Scratch[];

  constructor(host: BoundHost, parts: BoundParts) {
    this.#host = host;
    this.#parts = parts;
    const memory = new MemoryRecord();
    const own = [memory, ...(parts.ring === undefined ? [] : [host.rings.record])];
    this.uses = { ...parts.uses, writes: [...(parts.uses.writes ?? []), ...own] };
    this.#cleared = parts.scratch.filter(({ zeroed }) => zeroed === true);
    const restored = parts.scratch.filter(({ zeroed }) => zeroed === "once");
    if (restored.length > 0)
      host.pass(() => {
        host.context.enter();
        host.streams.before({ writes: [memory] }, undefined);
        clearScratch(host.context, restored);
      });
    // Made once, so that a launch allocates nothing.
    this.#issue = () => {
      this.#issueOn(undefined);
    };
  }

  get kernel(): string {
    return this.#parts.name;
  }

  launch(stream?: BackendStream): void {
    const on = cudaStream(stream);
    this.#host.pass(
      on === undefined
        ? this.#issue
        : () => {
            this.#issueOn(on);
          },
    );
  }

  #issueOn(stream: CudaStream | undefined): void {
    this.#host.context.enter();
    this.#host.streams.before(this.uses, stream);
    this.mark();
    this.put(stream?.handle);
  }

  /** Puts the work on a stream, or into what is being recorded from it. */
  put(stream = this.#host.context.stream): void {
    clearScratch(this.#host.context, this.#cleared, stream);
    this.#parts.issue(stream);
  }

  /** Its messages are to be read at the next wait. */
  mark(): void {
    if (this.#parts.ring !== undefined) this.#host.rings.mark(this.#parts.ring);
  }

  dispose(): void {
    // In its turn: launches that were called before may still have to be issued.
    this.#host.pass(() => {
      this.#parts.release();
      if (this.#parts.ring !== undefined) this.#host.rings.give(this.#parts.ring);
      if (this.#parts.scratch.length === 0) return;
      this.#host.streams.before(this.uses, undefined);
      this.#host.releaseScratch(this.#parts.scratch);
    });
  }
}

const captureThreadLocal = 1;

export class CudaRecording implements Repeatable {
  readonly #host: BoundHost;
  readonly #parts: readonly CudaPart[];
  readonly #graph: number;

  constructor(host: BoundHost, parts: readonly CudaPart[]) {
    this.#host = host;
    this.#parts = parts;
    this.#graph = capture(host.context, parts);
  }

  get parts(): readonly CudaPart[] {
    return this.#parts;
  }

  launch(stream?: BackendStream): void {
    const on = cudaStream(stream);
    this.#host.pass(() => {
      this.#issueOn(on);
    });
  }

  #issueOn(stream: CudaStream | undefined): void {
    const { context, streams } = this.#host;
    context.enter();
    for (const part of this.#parts) {
      streams.before(part.uses, stream);
      part.mark();
      context.noteLaunch(part.kernel);
    }
    const handle = stream?.handle ?? context.stream;
    const result = context.driver.calls.cuGraphLaunch(this.#graph, handle);
    context.check(result, "cuGraphLaunch", "replay a recording");
  }

  dispose(): void {
    this.#host.pass(() => {
      this.#host.context.driver.calls.cuGraphExecDestroy(this.#graph);
    });
  }
}

/** The works as an instantiated graph. */
function capture(context: CudaContext, works: readonly CudaPart[]): number {
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
      for (const work of works) work.put(stream);
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
