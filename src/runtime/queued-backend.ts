/**
 * Back ends on the host, whose work runs piece by piece in the order in which it was issued. They differ in
 * how they keep memory and in what running a kernel means.
 */
import type { Allocation, Backend, Compiled, Launch, Repeatable } from "../device/backend.ts";
import { WorkQueue } from "../device/work-queue.ts";
import type { DType, DTypeName } from "../formats/dtype.ts";
import type { HostArray } from "../formats/hostarray.ts";
import type { Kernel } from "../ir/node.ts";
import type { CompiledKernel } from "../ptx/compiled-kernel.ts";
import type { Target } from "../targets/target.ts";

export abstract class QueuedBackend<A extends Allocation, P> implements Backend<A, P> {
  abstract readonly name: string;
  abstract readonly target: Target;
  abstract readonly sourceLines: "all" | "messages";
  readonly stopsKernels = true;
  protected readonly queue = new WorkQueue();

  abstract compile(kernel: Kernel): Compiled<P>;
  abstract load(kernel: CompiledKernel): Compiled<P>;
  abstract allocate(dtype: DType, shape: readonly number[]): A;
  abstract release(allocation: A): void;
  abstract upload(array: HostArray, allocation: A): Promise<void>;
  abstract download<N extends DTypeName>(
    dtype: DType<N>,
    shape: readonly number[],
    allocation: A,
  ): Promise<HostArray<N>>;
  abstract dispose(): void;

  forget(): void {
    // The garbage collector takes programs back.
  }

  /** Runs a launch whose turn has come. */
  protected abstract execute(launch: Launch<A, P>): Promise<void>;

  launch(launch: Launch<A, P>): void {
    this.queue.launch(() => this.execute(launch));
  }

  run(launch: Launch<A, P>): Promise<void> {
    return this.queue.run(() => this.execute(launch));
  }

  bind(launch: Launch<A, P>): Repeatable {
    return {
      launch: () => {
        this.launch(launch);
      },
      dispose: () => undefined,
    };
  }

  record(works: readonly Repeatable[]): Repeatable {
    return {
      launch: () => {
        for (const work of works) work.launch();
      },
      dispose: () => undefined,
    };
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
