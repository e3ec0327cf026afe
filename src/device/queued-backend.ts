/**
 * Back ends on the host, whose work runs piece by piece in the order in which it was issued. They differ in
 * how they keep memory and in what running a kernel means.
 */
import type {
  Allocation,
  Backend,
  BackendStream,
  Compiled,
  Launch,
  Repeatable,
  TimeUnit,
} from "./backend.ts";
import type { CodeBackend } from "./foreign-code.ts";
import { MemoryAccount } from "./memory-account.ts";
import type { MemoryUse } from "./memory-account.ts";
import { ownReport, requireNotAborted } from "./wait-limits.ts";
import { WorkQueue } from "./work-queue.ts";
import type { DType, DTypeName } from "../formats/dtype.ts";
import type { HostArray } from "../formats/hostarray.ts";
import type { Kernel } from "../ir/node.ts";
import type { CompiledKernel } from "../ptx/compiled-kernel.ts";
import type { LaunchLimits } from "../support/run-limits.ts";
import type { Target } from "../targets/target.ts";

export abstract class QueuedBackend<A extends Allocation, P> implements Backend<A, P> {
  abstract readonly name: string;
  abstract readonly target: Target;
  abstract readonly sourceLines: "all" | "messages";
  abstract readonly timeUnit: TimeUnit;
  readonly stopsKernels = true;
  readonly code: CodeBackend<A> | undefined = undefined;
  protected readonly queue = new WorkQueue();
  protected readonly account: MemoryAccount;

  /** With the bytes that arrays may have at once, where there is a limit. */
  constructor(memoryLimit?: number) {
    this.account = new MemoryAccount(memoryLimit);
  }

  get memory(): MemoryUse {
    return this.account.use();
  }

  trim(): void {
    // Nothing is kept for later that could be given back.
  }

  /** All work is done in one order, which every stream is content with. */
  stream(): BackendStream {
    return { dispose: () => undefined };
  }

  abstract compile(kernel: Kernel, text: string): Compiled<P>;
  abstract load(kernel: CompiledKernel): Compiled<P>;
  abstract allocate(dtype: DType, shape: readonly number[]): A;
  abstract view(allocation: A, offset: number, dtype: DType, shape: readonly number[]): A;
  abstract fill(allocation: A, pattern: Uint8Array): Promise<void>;
  abstract copy(from: A, to: A): Promise<void>;
  abstract release(allocation: A): void;
  abstract upload(array: HostArray, allocation: A): Promise<void>;
  abstract receive(values: Promise<HostArray>, allocation: A): Promise<void>;
  abstract download<N extends DTypeName>(
    dtype: DType<N>,
    shape: readonly number[],
    allocation: A,
  ): Promise<HostArray<N>>;
  abstract dispose(): void;

  /** What lies in memory of the host has no address that others could use. */
  addressOf(): undefined {
    return undefined;
  }

  wrap(): undefined {
    return undefined;
  }

  forget(): void {
    // The garbage collector takes programs back.
  }

  /** Runs a launch whose turn has come. */
  protected abstract execute(launch: Launch<A, P>): Promise<void>;

  /** The limits of the launch that runs, and when it began. */
  #running: { readonly limits: LaunchLimits; readonly begin: number } | undefined;

  get isStopping(): boolean {
    if (this.#running === undefined) return false;
    const { limits, begin } = this.#running;
    const isAborted = [limits.signal, limits.stop].some((signal) => signal?.aborted === true);
    return isAborted || performance.now() - begin + ownReport >= (limits.timeLimit ?? Infinity);
  }

  /** Runs a launch whose turn has come; one that was aborted meanwhile is not even prepared. */
  protected async executeInTurn(launch: Launch<A, P>): Promise<void> {
    const { limits } = launch;
    for (const signal of [limits?.signal, limits?.stop])
      if (signal !== undefined)
        requireNotAborted(`the launch of ${launch.kernel.name}`, { signal });
    this.#running = limits && { limits, begin: performance.now() };
    try {
      await this.execute(launch);
    } finally {
      this.#running = undefined;
    }
  }

  launch(launch: Launch<A, P>): void {
    this.queue.launch(() => this.executeInTurn(launch));
  }

  run(launch: Launch<A, P>): Promise<void> {
    return this.queue.run(() => this.executeInTurn(launch));
  }

  bind(launch: Launch<A, P>): Repeatable {
    return {
      launch: (_, limited) => {
        if (limited?.stop === undefined) this.launch(launch);
        else
          this.queue.launch(() =>
            limited.launch((stop) =>
              this.executeInTurn({ ...launch, limits: { ...launch.limits, stop } }),
            ),
          );
      },
      dispose: () => undefined,
    };
  }

  record(works: readonly Repeatable[]): Repeatable {
    return {
      launch: (stream, limited) => {
        for (const work of works) work.launch(stream, limited);
      },
      dispose: () => undefined,
    };
  }

  caughtUp(): Promise<void> {
    return this.queue.run(async () => undefined);
  }

  synchronize(): Promise<void> {
    return this.queue.synchronize();
  }

  async time(work: () => void): Promise<number> {
    let start = 0;
    const begun = this.queue.run(async () => {
      start = performance.now();
    });
    work();
    await begun;
    return this.queue.run(async () => performance.now() - start);
  }
}
