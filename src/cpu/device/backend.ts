/**
 * The CPU as a device: kernels are compiled to WebAssembly, and their blocks run on this thread and on those of the pool.
 *
 *   kernel ──▶ compiled-kernel.ts: bytes, and what the argument block holds ──▶ range pool: run(argument block, begin, end, scratch)
 *
 * Launches run in the order of the calls. Those that were recorded together run one after the other without a turn of the queue
 * between them, and loops and branches among them look at memory themselves.
 */
import type { BackendStream, Compiled, Launch, Repeatable } from "../../device/backend.ts";
import { mapControl } from "../../device/control-flow.ts";
import type { Control } from "../../device/control-flow.ts";
import type { MemoryUse } from "../../device/memory-account.ts";
import { QueuedBackend } from "../../device/queued-backend.ts";
import { packedBytes } from "../../formats/dtype.ts";
import type { DType, DTypeName } from "../../formats/dtype.ts";
import { hostArray, storageBytes } from "../../formats/hostarray.ts";
import type { HostArray, Storage } from "../../formats/hostarray.ts";
import { elementCount } from "../../formats/shape.ts";
import type { Kernel } from "../../ir/node.ts";
import { unloadable } from "../../ptx/compiled-kernel.ts";
import type { CompiledKernel } from "../../ptx/compiled-kernel.ts";
import { EventLoopYield } from "../../support/event-loop-yield.ts";
import { repeatBytes } from "../../support/repeat-bytes.ts";
import { LimitWatch } from "../../support/run-limits.ts";
import type { LaunchLimits, LimitedProgram } from "../../support/run-limits.ts";
import type { Target } from "../../targets/target.ts";
import type { CpuFeatures } from "../compiled-kernel.ts";
import { RangePool } from "../pool/range-pool.ts";
import type { RangeHost } from "../pool/range-pool.ts";
import { ArgumentRoom, BoundKernel, Programs } from "./programs.ts";
import type { CompileKernel, CpuProgram } from "./programs.ts";
import { CpuMemory } from "./memory.ts";
import type { CpuAllocation } from "./memory.ts";
import { stoppedAt } from "./reports.ts";

export interface CpuOptions {
  readonly target: Target;
  /** Threads that blocks run on, this one among them; as many as there are processors unless given. */
  readonly threads?: number | undefined;
  /** Takes what `debugPrint` prints; the console unless given. */
  readonly onPrint?: ((line: string) => void) | undefined;
  /** Bytes that arrays may have at once. */
  readonly memoryLimit?: number | undefined;
}

/** The compiler, and what tests put in its place and in that of threads. */
export interface CpuParts {
  readonly compile: CompileKernel;
  readonly features: CpuFeatures;
  readonly host?: RangeHost | undefined;
}

type CpuLaunch = Launch<CpuAllocation, CpuProgram>;

/** A part of a recording. */
type Step =
  | { readonly kind: "launch"; readonly bound: BoundKernel; readonly limits: LaunchLimits }
  | { readonly kind: "control"; readonly control: Control<CpuWork, CpuAllocation> };

/** Work that was prepared once. */
class CpuWork implements Repeatable {
  readonly steps: readonly Step[];
  readonly #backend: { issue(steps: readonly Step[], limited: LimitedProgram | undefined): void };

  constructor(steps: readonly Step[], backend: CpuBackend) {
    this.steps = steps;
    this.#backend = backend;
  }

  launch(_?: BackendStream, limited?: LimitedProgram): void {
    this.#backend.issue(this.steps, limited);
  }

  dispose(): void {
    // Nothing is held but what kernels and arrays hold.
  }
}

function ownWork(work: Repeatable): CpuWork {
  if (work instanceof CpuWork) return work;
  throw new Error("the work was bound by another device");
}

export class CpuBackend extends QueuedBackend<CpuAllocation, CpuProgram> {
  readonly name = "cpu";
  readonly target: Target;
  readonly sourceLines = "messages";
  readonly timeUnit = "steps";
  readonly decides = true;
  readonly #memory = new CpuMemory();
  readonly #pool: RangePool;
  readonly #programs: Programs;
  readonly #room: ArgumentRoom;
  readonly #onPrint: CpuOptions["onPrint"];
  #yields = new EventLoopYield();
  /** Pieces of work that were issued and have not ended. */
  #pending = 0;
  #scratch = { address: 0, bytes: 0 };

  constructor(
    { target, threads, onPrint, memoryLimit }: CpuOptions,
    { compile, features, host }: CpuParts,
  ) {
    super(memoryLimit);
    this.target = target;
    this.#onPrint = onPrint;
    this.#programs = new Programs(this.#memory, compile, features);
    this.#room = new ArgumentRoom(this.#memory);
    this.#pool = new RangePool({
      threads,
      memory: this.#memory.memory,
      scratchFor: (count, bytes) => this.#scratchFor(count * bytes),
      host,
    });
  }

  compile(kernel: Kernel, text: string): Compiled<CpuProgram> {
    return this.#programs.compile(kernel, text);
  }

  load(kernel: CompiledKernel): never {
    throw unloadable(
      kernel,
      "a kernel of this process: the CPU runs WebAssembly, which it is compiled to here",
    );
  }

  override forget(program?: CpuProgram): void {
    if (program === undefined) return;
    void this.queue.run(async () => {
      program.dispose();
    });
  }

  allocate(dtype: DType, shape: readonly number[]): CpuAllocation {
    const bytes = packedBytes(dtype, elementCount(shape));
    return this.account.take(bytes, () => ({ bytes, address: this.#memory.allocate(bytes) }));
  }

  view(
    { address }: CpuAllocation,
    offset: number,
    dtype: DType,
    shape: readonly number[],
  ): CpuAllocation {
    return { bytes: packedBytes(dtype, elementCount(shape)), address: address + offset };
  }

  override get memory(): MemoryUse {
    return this.account.use(this.#memory.capacity);
  }

  release({ address, bytes }: CpuAllocation): void {
    this.account.give(bytes);
    void this.queue.run(async () => {
      this.#memory.free(address, bytes);
    });
  }

  fill(allocation: CpuAllocation, pattern: Uint8Array): Promise<void> {
    return this.queue.run(async () => {
      repeatBytes(this.#view(allocation), pattern);
    });
  }

  copy(from: CpuAllocation, to: CpuAllocation): Promise<void> {
    return this.queue.run(async () => {
      this.#memory.bytes.copyWithin(to.address, from.address, from.address + to.bytes);
    });
  }

  upload(array: HostArray, allocation: CpuAllocation): Promise<void> {
    const data = array.data.slice() as Storage;
    return this.receive(Promise.resolve({ ...array, data }), allocation);
  }

  receive(values: Promise<HostArray>, allocation: CpuAllocation): Promise<void> {
    return this.queue.run(async () => {
      const bytes = storageBytes((await values).data);
      this.#view(allocation).set(bytes);
    });
  }

  download<N extends DTypeName>(
    dtype: DType<N>,
    shape: readonly number[],
    allocation: CpuAllocation,
  ): Promise<HostArray<N>> {
    return this.queue.run(async () => {
      const array = hostArray(dtype, shape);
      storageBytes(array.data).set(this.#view(allocation));
      return array;
    });
  }

  #view({ address, bytes }: CpuAllocation): Uint8Array {
    return this.#memory.view(address, bytes);
  }

  protected override async execute(launch: CpuLaunch): Promise<void> {
    const bound = new BoundKernel(launch, this.#memory);
    await this.#runBound(bound, launch.limits ?? {});
  }

  override bind(launch: CpuLaunch): CpuWork {
    const bound = new BoundKernel(launch, this.#memory);
    return new CpuWork([{ kind: "launch", bound, limits: launch.limits ?? {} }], this);
  }

  override record(works: readonly Repeatable[]): CpuWork {
    return new CpuWork(
      works.flatMap((work) => ownWork(work).steps),
      this,
    );
  }

  control(control: Control<Repeatable, CpuAllocation>): CpuWork {
    const own = mapControl(control, control.selector, (works) => works.map(ownWork));
    return new CpuWork([{ kind: "control", control: own }], this);
  }

  /** Has steps run in their turn. */
  issue(steps: readonly Step[], limited: LimitedProgram | undefined): void {
    if (this.#pending === 0) this.#yields = new EventLoopYield();
    this.#pending += 1;
    this.queue.launch(async () => {
      try {
        if (limited?.stop === undefined) await this.#runSteps(steps, undefined);
        else await limited.launch((stop) => this.#runSteps(steps, stop));
      } finally {
        this.#pending -= 1;
      }
    });
  }

  async #runSteps(steps: readonly Step[], stop: AbortSignal | undefined): Promise<void> {
    for (const step of steps) {
      if (step.kind === "control") {
        await this.#decide(step.control, stop);
        continue;
      }
      const limits = stop === undefined ? step.limits : { ...step.limits, stop };
      const running = this.#runBound(step.bound, limits);
      if (running !== undefined) await running;
      if (this.#yields.isDue) await this.#yields.giveWay();
    }
  }

  async #decide(
    control: Control<CpuWork, CpuAllocation>,
    stop: AbortSignal | undefined,
  ): Promise<void> {
    if (control.kind === "branch") {
      const chosen = control.branches[this.#selected(control)] ?? control.branches.at(-1) ?? [];
      for (const { steps } of chosen) await this.#runSteps(steps, stop);
      return;
    }
    const watch = new LimitWatch({ stop });
    for (;;) {
      for (const { steps } of control.condition) await this.#runSteps(steps, stop);
      if (this.#selected(control) === (control.isBool ? 1 : 0)) return;
      for (const { steps } of control.body) await this.#runSteps(steps, stop);
      if (this.#yields.isDue) await this.#yields.giveWay();
      // Also where no kernel has a block that would look.
      stoppedAt(watch, 0, "a loop of the program");
    }
  }

  /** The branch that memory says: of a byte, the first for true. */
  #selected({ selector, isBool }: Control<CpuWork, CpuAllocation>): number {
    const { address } = selector;
    if (isBool) return 1 - Math.min(1, this.#memory.bytes[address] ?? 0);
    return new DataView(this.#memory.memory.buffer).getInt32(address, true);
  }

  /** Runs a kernel with its arguments; undefined where it has already ended. */
  #runBound(bound: BoundKernel, limits: LaunchLimits): Promise<void> | undefined {
    const { signal, stop, timeLimit, stepLimit } = limits;
    const isLimited = (signal ?? stop ?? timeLimit ?? stepLimit) !== undefined;
    const watch = isLimited ? new LimitWatch(limits) : undefined;
    const check = watch && ((blocks: number) => stoppedAt(watch, blocks, bound.name));
    check?.(0);
    return bound.run(this.#pool, this.#room, { check, onPrint: this.#onPrint });
  }

  #scratchFor(bytes: number): number {
    if (bytes <= this.#scratch.bytes) return this.#scratch.address;
    const before = this.#scratch;
    this.#scratch = { address: this.#memory.allocate(bytes), bytes };
    if (before.bytes > 0) this.#memory.free(before.address, before.bytes);
    return this.#scratch.address;
  }

  /** Threads end in their turn, and memory is left to the next device: once what was issued has run. */
  dispose(): void {
    void this.queue.run(async () => {
      this.#pool.dispose();
      this.#memory.dispose();
    });
  }
}
