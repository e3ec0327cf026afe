/** The simulator as a device: memory is host memory, and a launch is a simulated run with all checks. */
import type { Allocation, Backend, Compiled, Launch, Repeatable } from "../device/backend.ts";
import { WorkQueue } from "../device/work-queue.ts";
import type { DType, DTypeName } from "../formats/dtype.ts";
import { hostArray } from "../formats/hostarray.ts";
import type { HostArray, Storage } from "../formats/hostarray.ts";
import type { Kernel } from "../ir/node.ts";
import { runPasses } from "../passes/pipeline.ts";
import { simulate } from "../sim/index.ts";
import type { ScheduleName, SimulatedBuffer } from "../sim/index.ts";
import { printLine } from "../support/console.ts";
import type { TilewrightError } from "../support/diagnostics.ts";
import { defaultTarget } from "../targets/target.ts";
import type { Target } from "../targets/target.ts";

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
}

interface SimulatorAllocation extends Allocation {
  /** Replaced once its contents are known. */
  buffer: SimulatedBuffer;
}

type SimulatorLaunch = Launch<SimulatorAllocation, Kernel>;

export class SimulatorBackend implements Backend<SimulatorAllocation, Kernel> {
  readonly name = "simulator";
  readonly target: Target;
  readonly sourceLines = "all";
  readonly #options: SimulatorOptions;
  readonly #queue = new WorkQueue();

  constructor(options: SimulatorOptions = {}) {
    this.target = options.target ?? defaultTarget;
    this.#options = options;
  }

  compile(kernel: Kernel): Compiled<Kernel> {
    return { program: runPasses(kernel), cached: false, warnings: [] };
  }

  allocate(dtype: DType, shape: readonly number[]): SimulatorAllocation {
    const { data } = hostArray(dtype, shape);
    return { bytes: data.byteLength, buffer: { dtype, data, initialised: false } };
  }

  release(): void {
    // The garbage collector takes host memory back.
  }

  upload(array: HostArray, allocation: SimulatorAllocation): Promise<void> {
    return this.#queue.run(async () => {
      copyStorage(array.data, allocation.buffer.data);
      allocation.buffer = { ...allocation.buffer, initialised: true };
    });
  }

  download<N extends DTypeName>(
    dtype: DType<N>,
    shape: readonly number[],
    allocation: SimulatorAllocation,
  ): Promise<HostArray<N>> {
    return this.#queue.run(async () => {
      const array = hostArray(dtype, shape);
      copyStorage(allocation.buffer.data, array.data);
      return array;
    });
  }

  launch(launch: SimulatorLaunch): void {
    this.#queue.launch(() => this.#simulate(launch));
  }

  run(launch: SimulatorLaunch): Promise<void> {
    return this.#queue.run(() => this.#simulate(launch));
  }

  bind(launch: SimulatorLaunch): Repeatable {
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
    return this.#queue.synchronize();
  }

  async time(work: () => void): Promise<number> {
    let start = 0;
    const begun = this.#queue.run(async () => {
      start = performance.now();
    });
    work();
    await begun;
    return this.#queue.run(async () => performance.now() - start);
  }

  async #simulate({
    kernel,
    program,
    arrays,
    scalars,
    dimensions,
  }: SimulatorLaunch): Promise<void> {
    const buffers = new Map([...arrays].map(([name, { buffer }]) => [name, buffer]));
    const { findings } = await simulate(
      program,
      { arrays: buffers, scalars, dimensions },
      { ...this.#options, target: this.target, onPrint: this.#options.onPrint ?? printLine },
    );
    const [first, ...others] = findings;
    if (first !== undefined) {
      this.#options.onFindings?.(findings);
      throw combine(first, others);
    }
    // Without checks, parts that the kernel did not write keep the zeros they were allocated with.
    for (const { name, role } of kernel.parameters) {
      const allocation = arrays.get(name);
      if (allocation !== undefined && role !== "input")
        allocation.buffer = { ...allocation.buffer, initialised: true };
    }
  }

  dispose(): void {
    // Nothing is held besides host memory.
  }
}

function copyStorage(source: Storage, target: Storage): void {
  const bytes = (array: Storage): Uint8Array =>
    new Uint8Array(array.buffer, array.byteOffset, array.byteLength);
  bytes(target).set(bytes(source));
}

/** One error that stands for all findings of a launch: the first, with a note for each other one. */
function combine(first: TilewrightError, others: readonly TilewrightError[]): TilewrightError {
  const alike = new Map<string, { readonly finding: TilewrightError; times: number }>();
  for (const finding of others) {
    const { code, summary, position } = finding;
    const key = `${position?.file}:${position?.line} ${code} ${summary}`;
    const known = alike.get(key);
    if (known === undefined) alike.set(key, { finding, times: 1 });
    else known.times += 1;
  }
  return first.withNotes(
    [...alike.values()].map(({ finding, times }) => ({
      message: `also ${finding.code}: ${finding.summary}${times === 1 ? "" : `, ${times} times`}`,
      location: finding,
    })),
  );
}
