/**
 * The emulator as a device: kernels are compiled to PTX text as for a GPU, and the text is executed lane by
 * lane. Global memory is the emulator's heap; a launch's parameters are the bytes that a driver would copy.
 *
 *   kernel ──▶ passes, placement, emission ──▶ PTX text ──▶ parser ──▶ emulateWith(pool, module, launch, memory)
 */
import type { Compiled, Launch } from "../device/backend.ts";
import type { MemoryUse } from "../device/memory-account.ts";
import { WorkerPool, EmulatedMemory, emulateWith } from "../emulator/index.ts";
import type { WorkerPoolOptions } from "../emulator/index.ts";
import { globalBase } from "../emulator/addresses.ts";
import { byteStates } from "../emulator/memory.ts";
import type { LaunchNames, NamedArray } from "../emulator/naming.ts";
import { parsePtx } from "../ptx/parser/index.ts";
import { encodeTensorMap, nowhere, tensorMapTypeOf } from "../emulator/tensor-map.ts";
import { packedBytes, u32 } from "../formats/dtype.ts";
import type { DType, DTypeName } from "../formats/dtype.ts";
import { hostArray, storageBytes } from "../formats/hostarray.ts";
import { coordinatesOf, elementCount, rowMajorStrides } from "../formats/shape.ts";
import type { HostArray, Storage } from "../formats/hostarray.ts";
import { valueBytes } from "../formats/values.ts";
import { evaluateIndexSize, evaluateSize } from "../ir/size.ts";
import type { DimensionValues } from "../ir/size.ts";
import type { Kernel } from "../ir/node.ts";
import { lowerWithNotes } from "../lower/stages.ts";
import { brokenPromise } from "../sim/print-messages.ts";
import { requireCodeFor, unloadable } from "../ptx/compiled-kernel.ts";
import type { CompiledKernel } from "../ptx/compiled-kernel.ts";
import type { Executable, LaunchParameter, TensorMapPlan } from "../ptx/executable.ts";
import { readMessages, ringFailureWord, ringHeader } from "../ptx/print-ring.ts";
import { printPtx } from "../ptx/printer.ts";
import { tensorMapShape } from "../ptx/tensor-map-shape.ts";
import { UnwrittenElements, unwrittenReport } from "../sim/outputs.ts";
import { unrestoredReport } from "../sim/semaphores.ts";
import { printLine } from "../support/console.ts";
import { TilewrightError } from "../support/diagnostics.ts";
import { defaultTarget, lanesPerWarp } from "../targets/target.ts";
import type { Target } from "../targets/target.ts";
import { EmulatedCodeBackend } from "./emulated-code.ts";
import type { EmulatorAllocation } from "./emulated-code.ts";
import { combineFindings } from "./findings.ts";
import { QueuedBackend } from "../device/queued-backend.ts";

export interface EmulatorDeviceOptions {
  /** The GPU that kernels are compiled for; sm_90a unless given. */
  readonly target?: Target;
  /** Decides the turns of warps and when asynchronous operations complete; 0 unless given. */
  readonly seed?: number;
  /** Look for races, uninitialised values and the rest; true unless given. */
  readonly checks?: boolean;
  /** Threads that run the blocks of long launches; 1 for none but the calling one. */
  readonly threads?: number;
  readonly onPrint?: (line: string) => void;
  readonly onFindings?: (findings: readonly TilewrightError[]) => void;
  /** Bytes that arrays may have at once; 4 GiB unless given. */
  readonly memoryLimit?: number;
}

/** For tests, which choose the threads and what is handed over to them. */
export interface EmulatorHooks {
  readonly pool?: WorkerPoolOptions;
}

type EmulatorLaunch = Launch<EmulatorAllocation, Executable>;

const ringWords = 2 ** 16;

/** As on the simulator: one kernel runs on many devices, one for each schedule. */
const lowered = new WeakMap<Kernel, Map<Target, Compiled<Executable>>>();

function lowerAndPrint(kernel: Kernel, target: Target): Compiled<Executable> {
  const { executable, notes } = lowerWithNotes(kernel, target, { checkPromises: true });
  // What runs is the text, so that the printer is part of what is tried.
  const program = { ...executable, module: parsePtx(printPtx(executable.module)) };
  return { program, cached: false, notes };
}

export class EmulatorBackend extends QueuedBackend<EmulatorAllocation, Executable> {
  readonly name = "emulator";
  readonly target: Target;
  readonly sourceLines = "all";
  readonly timeUnit = "instructions";
  readonly #options: EmulatorDeviceOptions;
  readonly #memory = new EmulatedMemory();
  readonly #pool: WorkerPool;
  override readonly code: EmulatedCodeBackend;

  constructor(options: EmulatorDeviceOptions & EmulatorHooks = {}) {
    super(options.memoryLimit);
    this.target = options.target ?? defaultTarget;
    this.#options = options;
    this.#pool = new WorkerPool({ threads: options.threads, ...options.pool });
    const { seed, checks, onFindings } = options;
    this.code = new EmulatedCodeBackend({
      memory: this.#memory,
      pool: this.#pool,
      queue: this.queue,
      options: { target: this.target, seed, checks },
      onFindings,
    });
  }

  compile(kernel: Kernel): Compiled<Executable> {
    const known = lowered.get(kernel) ?? new Map<Target, Compiled<Executable>>();
    lowered.set(kernel, known);
    const compiled = known.get(this.target) ?? lowerAndPrint(kernel, this.target);
    known.set(this.target, compiled);
    return compiled;
  }

  load(kernel: CompiledKernel): Compiled<Executable> {
    const { plan, code } = kernel;
    if (typeof code !== "string") throw unloadable(kernel, "PTX, which is what the emulator runs");
    requireCodeFor(kernel, this.target);
    return { program: { ...plan, module: parsePtx(code) }, cached: true, notes: [] };
  }

  allocate(dtype: DType, shape: readonly number[]): EmulatorAllocation {
    const bytes = packedBytes(dtype, elementCount(shape));
    // As on a GPU, where lone 4-bit elements are updated with the whole word around them.
    const whole = Math.ceil(Math.max(1, bytes) / 16) * 16;
    return this.account.take(bytes, () => {
      const address = this.#memory.allocate(whole);
      return { bytes, dtype, shape, address };
    });
  }

  view(
    { address }: EmulatorAllocation,
    offset: number,
    dtype: DType,
    shape: readonly number[],
  ): EmulatorAllocation {
    const bytes = packedBytes(dtype, elementCount(shape));
    return { bytes, dtype, shape, address: address + offset };
  }

  fill({ address, bytes }: EmulatorAllocation, pattern: Uint8Array): Promise<void> {
    return this.queue.run(async () => {
      this.#memory.fill(address, bytes, pattern);
    });
  }

  copy(from: EmulatorAllocation, to: EmulatorAllocation): Promise<void> {
    return this.queue.run(async () => {
      this.#memory.copy(from.address, to.address, to.bytes);
    });
  }

  override get memory(): MemoryUse {
    return this.account.use(this.#memory.capacity);
  }

  release({ address, bytes }: EmulatorAllocation): void {
    this.account.give(bytes);
    void this.queue.run(async () => {
      this.#memory.free(address);
    });
  }

  upload(array: HostArray, allocation: EmulatorAllocation): Promise<void> {
    const data = array.data.slice() as Storage;
    return this.receive(Promise.resolve({ ...array, data }), allocation);
  }

  receive(values: Promise<HostArray>, { address }: EmulatorAllocation): Promise<void> {
    return this.queue.run(async () => {
      this.#memory.write(address, storageBytes((await values).data));
    });
  }

  download<N extends DTypeName>(
    dtype: DType<N>,
    shape: readonly number[],
    { address }: EmulatorAllocation,
  ): Promise<HostArray<N>> {
    return this.queue.run(async () => {
      const array = hostArray(dtype, shape);
      this.#memory.readInto(address, storageBytes(array.data));
      return array;
    });
  }

  protected override async execute(launch: EmulatorLaunch): Promise<void> {
    const { program, dimensions } = launch;
    const blocks = evaluateSize(program.blocks, dimensions);
    if (blocks === 0) return;
    const lent = new LentMemory(this.#memory, launch);
    try {
      const { findings } = await emulateWith(
        this.#pool,
        program.module,
        {
          entry: program.entry,
          blocks: [blocks, 1, 1],
          threads: [program.threadsPerBlock, 1, 1],
          cluster: program.cluster,
          sharedBytes: program.sharedBytes,
          parameters: program.parameters.map((each) => lent.bytesOf(each)),
          isOwn: true,
          names: namesOf(launch, lent.counters),
        },
        this.#memory,
        {
          target: this.target,
          seed: this.#options.seed,
          checks: this.#options.checks,
          limits: launch.limits,
          isOver: () => this.#hasFailed(lent.ring),
        },
      );
      const failure = this.#readMessages(program, lent.ring, dimensions);
      const checked = this.#options.checks ?? true;
      const left =
        checked && failure === undefined
          ? [...this.#unwrittenOutputs(launch), ...this.#unrestored(launch, lent.restored)]
          : [];
      const all = [...(failure === undefined ? [] : [failure]), ...findings, ...left];
      const [first, ...others] = all;
      if (first === undefined) return;
      this.#options.onFindings?.(all);
      throw combineFindings(first, others);
    } catch (error) {
      throw brokenPromiseOf(program, error) ?? error;
    } finally {
      lent.giveBack();
    }
  }

  /** Outputs that the launch has left in part as they were. */
  #unwrittenOutputs({ kernel, arrays, dimensions }: EmulatorLaunch): readonly TilewrightError[] {
    const { states } = this.#memory.views;
    return kernel.parameters.flatMap(({ name, role, value: { type }, strides }) => {
      const allocation = arrays.get(name);
      if (role !== "output" || allocation === undefined || type.kind !== "ref") return [];
      const { address, bytes, dtype } = allocation;
      if (bytes === 0 || this.#memory.unwritten(address, bytes) === 0) return [];
      const shape = type.shape.map((size) => evaluateSize(size, dimensions));
      const steps =
        strides?.map((size) => evaluateSize(size, dimensions)) ?? rowMajorStrides(shape);
      const unwritten = new UnwrittenElements();
      const count = elementCount(shape);
      for (let element = 0; element < count; element++) {
        const place = coordinatesOf(element, shape).reduce(
          (sum, index, axis) => sum + index * (steps[axis] ?? 0),
          0,
        );
        // Stores are whole, so that the first byte of an element tells of all.
        const byte = address - globalBase + Math.floor((place * dtype.bits) / 8);
        if (states[byte] === byteStates.unwritten) unwritten.add(element);
      }
      if (unwritten.count === 0) return [];
      return [new TilewrightError(unwrittenReport(kernel, name, shape, unwritten))];
    });
  }

  /** Counters that the kernel was to leave at 0, and has not. */
  #unrestored(
    { kernel: { location } }: EmulatorLaunch,
    restored: LaunchNames["arrays"],
  ): readonly TilewrightError[] {
    return [...restored].flatMap(([address, { name, shape }]) => {
      const counters = new Int32Array(elementCount(shape));
      this.#memory.readInto(address, new Uint8Array(counters.buffer));
      const left = [...counters].flatMap((value, index) =>
        value === 0 ? [] : [{ name: `${name}[${index}]`, value }],
      );
      const report = unrestoredReport(left, location);
      return report === undefined ? [] : [new TilewrightError(report)];
    });
  }

  /** Whether an assertion has failed: that ends a launch, here as on the simulator. */
  #hasFailed(ring: number | undefined): boolean {
    if (ring === undefined) return false;
    return this.#memory.views.words[(ring - globalBase) / 4 + ringFailureWord] !== 0;
  }

  /** Prints what the kernel printed; gives the assertion that failed. */
  #readMessages(
    program: Executable,
    ring: number | undefined,
    dimensions: DimensionValues,
  ): TilewrightError | undefined {
    if (ring === undefined) return undefined;
    const words = new Uint32Array(ringWords);
    this.#memory.readInto(ring, new Uint8Array(words.buffer));
    const { lines, failure } = readMessages(words, program, dimensions);
    for (const line of lines) (this.#options.onPrint ?? printLine)(line);
    return failure;
  }

  /** Threads end in their turn, as memory is given back in its own: once what was issued has run. */
  dispose(): void {
    void this.queue.run(async () => {
      this.#pool.dispose();
    });
  }
}

/** The promise that a trap tells of, by the line that made it. */
function brokenPromiseOf({ messages }: Executable, error: unknown): TilewrightError | undefined {
  if (!(error instanceof TilewrightError) || error.code !== "TW8016") return undefined;
  const { position } = error;
  const promise = messages.find(
    (site) =>
      site.kind === "promise" &&
      site.position?.file === position?.file &&
      site.position?.line === position?.line &&
      site.position?.column === position?.column,
  );
  return promise && new TilewrightError(brokenPromise(promise.text, { position }, error.summary));
}

/** What the user calls the parts of a launch. */
function namesOf(
  { program, arrays, dimensions }: EmulatorLaunch,
  counters: LaunchNames["arrays"],
): LaunchNames {
  const { buffers, threads, threadsPerBlock: lanes, grid } = program;
  return {
    arrays: new Map([
      ...[...arrays].map(
        ([name, { address, dtype, shape }]) => [address, { name, dtype, shape }] as const,
      ),
      ...counters,
    ]),
    buffers,
    program: {
      threads,
      warps: lanes / lanesPerWarp / threads.length,
      axes: grid.map(({ name, extent, cluster }) => ({
        name,
        extent: evaluateSize(extent, dimensions),
        cluster,
      })),
    },
  };
}

/** Memory that a launch has for its own time, and the bytes of its parameters. */
class LentMemory {
  readonly #memory: EmulatedMemory;
  readonly #launch: EmulatorLaunch;
  readonly #scratch = new Map<string, number>();
  /** Semaphores, by their address. */
  readonly counters = new Map<number, NamedArray>();
  /** Those that the kernel leaves at 0. */
  readonly restored = new Map<number, NamedArray>();
  ring: number | undefined;

  constructor(memory: EmulatedMemory, launch: EmulatorLaunch) {
    this.#memory = memory;
    this.#launch = launch;
  }

  bytesOf(parameter: LaunchParameter): Uint8Array {
    const { scalars, dimensions } = this.#launch;
    switch (parameter.kind) {
      case "array":
      case "scratch":
        return addressBytes(this.#address(parameter));
      case "scalar":
        return valueBytes(parameter.dtype, known(scalars, parameter.name));
      case "size": {
        const evaluate = parameter.bits === 32 ? evaluateIndexSize : evaluateSize;
        const value = BigInt(evaluate(parameter.size, dimensions));
        const bytes = new Uint8Array(BigUint64Array.of(value).buffer);
        return bytes.subarray(0, parameter.bits / 8);
      }
      case "tensorMap":
        return mapBytes(parameter.map, this.#arrayAddress(parameter.map.array), dimensions);
      case "messages":
        return addressBytes((this.ring ??= this.#makeRing()));
    }
  }

  giveBack(): void {
    for (const address of this.#scratch.values()) this.#memory.free(address);
    if (this.ring !== undefined) this.#memory.free(this.ring);
  }

  #address(parameter: Extract<LaunchParameter, { readonly kind: "array" | "scratch" }>): number {
    if (parameter.kind === "array") return this.#arrayAddress(parameter.name);
    const bytes = evaluateSize(parameter.bytes, this.#launch.dimensions);
    const address = this.#memory.allocate(Math.max(1, bytes), parameter.name);
    this.#scratch.set(parameter.name, address);
    if (parameter.zeroed !== false) {
      this.#memory.fill(address, bytes, Uint8Array.of(0));
      // The plan numbers them, so that two of a name differ.
      const name = `semaphore ${parameter.name.replace(/ \d+$/, "")}`;
      const counters = { name, dtype: u32, shape: [bytes / 4] };
      this.counters.set(address, counters);
      if (parameter.zeroed === "once") this.restored.set(address, counters);
    }
    return address;
  }

  #arrayAddress(name: string): number {
    return this.#launch.arrays.get(name)?.address ?? known(this.#scratch, name);
  }

  #makeRing(): number {
    const ring = this.#memory.allocate(4 * ringWords, "messages");
    const words = new Uint32Array(ringWords);
    words.set(ringHeader(ringWords));
    this.#memory.write(ring, new Uint8Array(words.buffer));
    return ring;
  }
}

function known<T>(values: ReadonlyMap<string, T>, name: string): T {
  const value = values.get(name);
  if (value === undefined) throw new Error(`the launch has nothing called ${name}`);
  return value;
}

function addressBytes(address: number): Uint8Array {
  return new Uint8Array(BigUint64Array.of(BigInt(address)).buffer);
}

function mapBytes(plan: TensorMapPlan, address: number, dimensions: DimensionValues): Uint8Array {
  const { dtype, box, swizzle, fill } = plan;
  const { extents, strides, isEmpty } = tensorMapShape(plan, dimensions);
  return encodeTensorMap({
    type: tensorMapTypeOf[dtype.name],
    address: isEmpty ? nowhere : address,
    extents,
    strides,
    box,
    swizzle,
    fill,
  });
}
