/** The simulator as a device: memory is host memory, and a launch is a simulated run with all checks. */
import type { Allocation, Compiled, Launch } from "../device/backend.ts";
import { packedBytes } from "../formats/dtype.ts";
import type { DType, DTypeName } from "../formats/dtype.ts";
import { elementCount } from "../formats/shape.ts";
import { hostArray, storageBytes, viewStorage } from "../formats/hostarray.ts";
import type { HostArray, Storage } from "../formats/hostarray.ts";
import type { Kernel, KernelInterface } from "../ir/node.ts";
import { refusalOf } from "../lower/refusals.ts";
import { simplify } from "../lower/simplify.ts";
import { unloadable } from "../ptx/compiled-kernel.ts";
import type { CompiledKernel } from "../ptx/compiled-kernel.ts";
import { refusalNote } from "../ptx/notes/note.ts";
import { simulate } from "../sim/index.ts";
import type { RunTimeline, ScheduleName, SimulatedBuffer, WaitGraph } from "../sim/index.ts";
import { printLine } from "../support/console.ts";
import { repeatBytes } from "../support/repeat-bytes.ts";
import type { TilewrightError } from "../support/diagnostics.ts";
import { defaultTarget } from "../targets/target.ts";
import type { Target } from "../targets/target.ts";
import { combineFindings } from "./findings.ts";
import { QueuedBackend } from "../device/queued-backend.ts";

/** Options of the simulator: how threads take turns, and what is checked. */
export interface SimulatorOptions {
  /** The GPU whose limits hold; sm_90a unless given. */
  readonly target?: Target;
  /** How threads and asynchronous operations take turns; "fixed" unless given. */
  readonly schedule?: ScheduleName;
  /** Decides the turns of the "random" and "adversarial" schedules; 0 unless given. */
  readonly seed?: number;
  /** Look for races, reads of uninitialised memory and the rest; true unless given. */
  readonly checks?: boolean;
  /** Takes what `debugPrint` prints; the console unless given. */
  readonly onPrint?: (line: string) => void;
  /** Hears of everything that a launch found, before the launch fails with the first of it. */
  readonly onFindings?: (findings: readonly TilewrightError[]) => void;
  /** Bytes that arrays may have at once; as many as the host has unless given. */
  readonly memoryLimit?: number;
}

/** For tools that show a run: what happens in it, besides what it finds. */
export interface SimulatorHooks {
  /** Gives what records a launch, when its turn has come. */
  readonly timelineOf?: (kernel: KernelInterface) => RunTimeline;
  /** Hears who waits for whom in a deadlock. */
  readonly onDeadlock?: (waits: WaitGraph) => void;
}

interface SimulatorAllocation extends Allocation {
  readonly dtype: DType;
  readonly data: Storage;
  /** Whether its contents are known; views of one allocation share this. */
  readonly contents: { known: boolean };
}

type SimulatorLaunch = Launch<SimulatorAllocation, Kernel>;

/** A kernel that is checked runs on many devices, one for each schedule, and is the same on all of them. */
const simplified = new WeakMap<Kernel, Kernel>();

export class SimulatorBackend extends QueuedBackend<SimulatorAllocation, Kernel> {
  readonly name = "simulator";
  readonly target: Target;
  readonly sourceLines = "all";
  readonly timeUnit = "steps";
  readonly #options: SimulatorOptions & SimulatorHooks;

  constructor(options: SimulatorOptions & SimulatorHooks = {}) {
    super(options.memoryLimit);
    this.target = options.target ?? defaultTarget;
    this.#options = options;
  }

  compile(kernel: Kernel): Compiled<Kernel> {
    const program = simplified.get(kernel) ?? simplify(kernel);
    simplified.set(kernel, program);
    const refusal = refusalOf(kernel, this.target);
    const notes = refusal === undefined ? [] : [refusalNote(refusal, this.target)];
    return { program, cached: false, notes };
  }

  load(kernel: CompiledKernel): never {
    throw unloadable(
      kernel,
      "a kernel of this process: the simulator runs its tiles, not its code",
    );
  }

  allocate(dtype: DType, shape: readonly number[]): SimulatorAllocation {
    const bytes = packedBytes(dtype, elementCount(shape));
    return this.account.take(bytes, () => {
      const { data } = hostArray(dtype, shape);
      return { bytes, dtype, data, contents: { known: false } };
    });
  }

  view(
    { data, contents }: SimulatorAllocation,
    offset: number,
    dtype: DType,
    shape: readonly number[],
  ): SimulatorAllocation {
    const bytes = packedBytes(dtype, elementCount(shape));
    const part = viewStorage(dtype, data, offset, bytes);
    return { bytes, dtype, data: part, contents };
  }

  fill({ data, contents }: SimulatorAllocation, pattern: Uint8Array): Promise<void> {
    return this.queue.run(async () => {
      repeatBytes(storageBytes(data), pattern);
      contents.known = true;
    });
  }

  copy(from: SimulatorAllocation, to: SimulatorAllocation): Promise<void> {
    return this.queue.run(async () => {
      storageBytes(to.data).set(storageBytes(from.data));
      to.contents.known = from.contents.known;
    });
  }

  release({ bytes }: SimulatorAllocation): void {
    // The garbage collector takes host memory back.
    this.account.give(bytes);
  }

  upload(array: HostArray, allocation: SimulatorAllocation): Promise<void> {
    const data = array.data.slice() as Storage;
    return this.receive(Promise.resolve({ ...array, data }), allocation);
  }

  receive(values: Promise<HostArray>, allocation: SimulatorAllocation): Promise<void> {
    return this.queue.run(async () => {
      storageBytes(allocation.data).set(storageBytes((await values).data));
      allocation.contents.known = true;
    });
  }

  download<N extends DTypeName>(
    dtype: DType<N>,
    shape: readonly number[],
    allocation: SimulatorAllocation,
  ): Promise<HostArray<N>> {
    return this.queue.run(async () => {
      const array = hostArray(dtype, shape);
      storageBytes(array.data).set(storageBytes(allocation.data));
      return array;
    });
  }

  protected override async execute({
    kernel,
    program,
    arrays,
    scalars,
    dimensions,
    limits,
  }: SimulatorLaunch): Promise<void> {
    const buffers = new Map(
      [...arrays].map(([name, { dtype, data, contents }]): [string, SimulatedBuffer] => [
        name,
        { dtype, data, initialised: contents.known },
      ]),
    );
    const { findings } = await simulate(
      program,
      { arrays: buffers, scalars, dimensions },
      {
        ...this.#options,
        target: this.target,
        onPrint: this.#options.onPrint ?? printLine,
        timeline: this.#options.timelineOf?.(kernel),
        limits,
      },
    );
    const [first, ...others] = findings;
    if (first !== undefined) {
      this.#options.onFindings?.(findings);
      throw combineFindings(first, others);
    }
    // Without checks, parts that the kernel did not write keep the zeros they were allocated with.
    for (const { name, role } of kernel.parameters) {
      const allocation = arrays.get(name);
      if (allocation !== undefined && role !== "input") allocation.contents.known = true;
    }
  }

  dispose(): void {
    // Nothing is held besides host memory.
  }
}
