/**
 * A GPU as a device. All work goes to the main stream at once, in the order of the calls, or to another where that
 * is asked for (streams.ts); the host waits only for what comes back.
 *
 *   compile    cache ─or─▶ passes ▶ placement ▶ PTX ▶ assembler      (compiler.ts)
 *   launch     parameters into a block of host memory, one call       (launch-block.ts)
 *   download   through pinned memory, awaited on a worker thread      (transfers.ts, completion.ts)
 */
import type {
  Backend,
  BackendStream,
  Compiled,
  GpuDescription,
  ForeignMemory,
  KeptPlans,
  KernelToCompile,
  Launch,
  Repeatable,
} from "../device/backend.ts";
import { mapControl } from "../device/control-flow.ts";
import type { Control } from "../device/control-flow.ts";
import type { MemoryUse } from "../device/memory-account.ts";
import { packedBytes } from "../formats/dtype.ts";
import type { DType, DTypeName } from "../formats/dtype.ts";
import { hostArray, storageBytes } from "../formats/hostarray.ts";
import { elementCount } from "../formats/shape.ts";
import type { HostArray } from "../formats/hostarray.ts";
import type { Kernel } from "../ir/node.ts";
import { evaluateSize } from "../ir/size.ts";
import { runEach } from "../support/run-all.ts";
import { printLine } from "../support/console.ts";
import type { CompiledKernel } from "../ptx/compiled-kernel.ts";
import type { Target } from "../targets/target.ts";
import { CudaBound, CudaRecording, clearScratch, cudaStream } from "./bound-launch.ts";
import type { BoundHost, Scratch, CudaPart } from "./bound-launch.ts";
import { ConditionalNodes, CudaControl } from "./conditional-nodes.ts";
import type { KernelLoader } from "./compiler.ts";
import { compileInBackground } from "./background-compile.ts";
import { Completion } from "./completion.ts";
import type { CudaContext } from "./context.ts";
import { CudaCode } from "./foreign-code.ts";
import type { CudaAllocation } from "./foreign-code.ts";
import { IssueQueue, handled } from "./issue-queue.ts";
import type { Begun } from "./issue-queue.ts";
import { cudaText } from "./gpu.ts";
import type { Gpu } from "./gpu.ts";
import { LaunchBlock } from "./launch-block.ts";
import type { LaunchNumbers } from "./launch-block.ts";
import { DeviceMemory } from "./memory.ts";
import type { Program } from "./program.ts";
import { MessageRings } from "./message-rings.ts";
import type { Ring } from "./message-rings.ts";
import { Staging } from "./staging.ts";
import { MemoryRecord, Streams } from "./streams.ts";
import type { CudaStream, MemoryUses } from "./streams.ts";
import { TensorMapEncoder } from "./tensor-map.ts";
import { Timer } from "./timer.ts";
import { Transfers } from "./transfers.ts";

export interface CudaOptions {
  /** Takes what `debugPrint` prints; the console unless given. */
  readonly onPrint?: (line: string) => void;
  /** Bytes that may be in use at once; as many as the GPU has unless given. */
  readonly memoryLimit?: number;
}

/** A loaded program, and the memory in which its next launch is written down. */
interface CudaProgram {
  readonly program: Program;
  readonly block: LaunchBlock;
  /** Bound launches that go on using it. */
  users: number;
  /** Whether nothing else will. */
  isForgotten: boolean;
}

/** Fewer kernels than these are compiled sooner than helpers are started. */
const worthHelpers = 12;

type CudaLaunch = Launch<CudaAllocation, CudaProgram>;

export class CudaBackend implements Backend<CudaAllocation, CudaProgram> {
  readonly name = "gpu";
  readonly stopsKernels = false;
  readonly sourceLines = "messages";
  readonly timeUnit = "cycles";
  readonly #context: CudaContext;
  readonly #loader: KernelLoader;
  readonly #completion: Completion;
  readonly #memory: DeviceMemory;
  readonly #staging: Staging;
  readonly #transfers: Transfers;
  readonly #rings: MessageRings;
  readonly #maps: TensorMapEncoder;
  readonly #streams: Streams;
  readonly code: CudaCode;
  /** Memory of others, which may be wrapped twice, is one piece to streams. */
  readonly #foreign = new MemoryRecord();
  readonly #queue = new IssueQueue();
  readonly #programs = new Set<CudaProgram>();
  readonly #host: BoundHost;
  #failure: { readonly error: unknown } | undefined;
  /** Looked for when they are first asked for. */
  #conditionalNodes: { readonly loaded: ConditionalNodes | undefined } | undefined;

  /** Takes the context over: it is disposed of with the back end. */
  constructor(context: CudaContext, loader: KernelLoader, options: CudaOptions = {}) {
    this.#context = context;
    this.#loader = loader;
    this.#memory = new DeviceMemory(context, options.memoryLimit);
    this.#streams = new Streams(context, (stream) => {
      this.#host.pass(() => {
        this.#streams.close(stream);
      });
    });
    this.#completion = new Completion(
      context,
      () => (this.#streams.isAhead ? 0 : context.sequence),
      // Behind whoever has waited for a result.
      () => {
        setImmediate(this.keepCompiled);
      },
    );
    this.#staging = new Staging(context);
    this.#transfers = new Transfers(context, this.#completion, this.#staging);
    const print = options.onPrint ?? printLine;
    this.#rings = new MessageRings(context, this.#memory, this.#transfers, print);
    this.#maps = new TensorMapEncoder(context);
    const failed = (error: unknown): void => {
      this.#failure ??= { error };
    };
    this.#host = {
      context,
      rings: this.#rings,
      streams: this.#streams,
      pass: (work) => {
        this.#queue.pass(work, failed);
      },
      releaseScratch: (scratch) => {
        this.#releaseScratch(scratch);
      },
    };
    this.code = new CudaCode(this.#host, this.#maps, (unload) => {
      this.#afterAll(unload);
    });
  }

  /** The driver makes its pools with the first allocation of each kind: here, not in a first launch. */
  prepareMemory(): void {
    this.#memory.give(this.#memory.take(1));
    const buffer = this.#staging.take(1);
    if (buffer !== undefined) this.#staging.give(buffer);
  }

  get board(): GpuDescription {
    const { name, driverVersion } = this.#context.gpu;
    return { name, driver: `CUDA ${cudaText(driverVersion)}` };
  }

  get target(): Target {
    return this.#context.target;
  }

  /** The GPU behind this device. */
  get gpu(): Gpu {
    return this.#context.gpu;
  }

  compile(kernel: Kernel, text: string): Compiled<CudaProgram> {
    return this.#loaded(this.#loader.compile(this.#context, kernel, text));
  }

  /** Puts what was compiled into files; otherwise that is done when the program has waited for something, or at the end. */
  readonly keepCompiled = (): void => {
    this.#loader.keepAll();
  };

  async compileInBackground(kernels: readonly KernelToCompile[]): Promise<void> {
    const missing = kernels.filter(({ text }) => !this.#loader.isKept(this.#context, text));
    if (missing.length >= worthHelpers)
      await compileInBackground(missing.map(({ located }) => located));
  }

  get keptPlans(): KeptPlans<CudaProgram> {
    return this.#loader.keptPlans(this.#context, (loaded) => this.#loaded(loaded));
  }

  load(kernel: CompiledKernel): Compiled<CudaProgram> {
    return this.#loaded(this.#loader.load(this.#context, kernel));
  }

  #loaded({ program, ...about }: Compiled<Program>): Compiled<CudaProgram> {
    const block = new LaunchBlock(this.#context, program);
    const loaded = { program, block, users: 0, isForgotten: false };
    this.#programs.add(loaded);
    return { program: loaded, ...about };
  }

  forget(program: CudaProgram): void {
    program.isForgotten = true;
    if (program.users === 0) this.#unloadLater(program);
  }

  /** Unloads a program when launches of it that were issued have ended. */
  #unloadLater(program: CudaProgram): void {
    this.#afterAll(() => {
      if (!this.#programs.delete(program)) return;
      program.block.dispose();
      program.program.unload();
    });
  }

  /** Has `work` done when everything issued so far has ended, on all streams. */
  #afterAll(work: () => void): void {
    if (this.#context.loss === undefined) {
      this.#context.enter();
      this.#streams.join();
    }
    this.#completion.later(work);
  }

  get memory(): MemoryUse {
    if (this.#context.loss === undefined) this.#context.enter();
    return this.#memory.use;
  }

  trim(): void {
    this.#context.enter();
    this.#memory.trim();
  }

  stream(): CudaStream {
    return this.#streams.open();
  }

  allocate(dtype: DType, shape: readonly number[]): CudaAllocation {
    this.#context.enter();
    const bytes = packedBytes(dtype, elementCount(shape));
    // Lone 4-bit elements are updated with the whole word around them.
    const address = this.#memory.take(Math.ceil(bytes / 16) * 16);
    const record = new MemoryRecord();
    this.#streams.before({ writes: [record] }, undefined);
    return { bytes, address, record };
  }

  view(
    { address, record }: CudaAllocation,
    offset: number,
    dtype: DType,
    shape: readonly number[],
  ): CudaAllocation {
    return { bytes: packedBytes(dtype, elementCount(shape)), address: address + offset, record };
  }

  async fill({ address, bytes, record }: CudaAllocation, pattern: Uint8Array): Promise<void> {
    if (bytes === 0) return;
    await this.#queue.begin(() => {
      this.#use({ writes: [record] });
      return this.#transfers.fill(address, bytes, pattern);
    });
  }

  async copy(from: CudaAllocation, to: CudaAllocation): Promise<void> {
    if (to.bytes === 0) return;
    await this.#queue.begin(() => {
      this.#use({ reads: [from.record], writes: [to.record] });
      this.#transfers.move(from.address, to.address, to.bytes);
      return { issued: undefined, result: Promise.resolve() };
    });
  }

  addressOf({ address }: CudaAllocation): ForeignMemory {
    return { address: BigInt(address), gpu: this.#context.gpu.ordinal };
  }

  wrap(address: number, dtype: DType, shape: readonly number[]): CudaAllocation {
    const record = this.#foreign;
    return { bytes: packedBytes(dtype, elementCount(shape)), address, record };
  }

  release({ address, record }: CudaAllocation): void {
    this.#host.pass(() => {
      if (this.#context.loss !== undefined) return;
      this.#use({ writes: [record] });
      this.#memory.give(address);
    });
  }

  upload({ data }: HostArray, { address, record }: CudaAllocation): Promise<void> {
    const own = storageBytes(data);
    // What cannot begin now must not see what becomes of the array meanwhile.
    const bytes = this.#queue.closed === undefined ? own : own.slice();
    return this.#queue.begin(() => {
      this.#use({ writes: [record] });
      return this.#transfers.upload(bytes, address);
    });
  }

  receive(values: Promise<HostArray>, { address, record }: CudaAllocation): Promise<void> {
    return this.#queue.begin(() => {
      const arrived = async (): Promise<void> => {
        const { data } = await values;
        this.#use({ writes: [record] });
        await this.#transfers.upload(storageBytes(data), address).issued;
      };
      const issued = handled(arrived());
      return { issued, result: issued };
    });
  }

  /** Turns to the GPU, and has the main stream wait for what others do with the memory. */
  #use(uses: MemoryUses): void {
    this.#context.enter();
    this.#streams.before(uses, undefined);
  }

  download<N extends DTypeName>(
    dtype: DType<N>,
    shape: readonly number[],
    { address, record }: CudaAllocation,
  ): Promise<HostArray<N>> {
    return this.#queue.begin(() => {
      this.#use({ reads: [record] });
      const array = hostArray(dtype, shape);
      const copied = this.#transfers.download(address, storageBytes(array.data));
      const said = this.#readMessages(undefined);
      const issued = Promise.all([copied.issued, said.issued]).then(() => undefined);
      const result = Promise.all([copied.result, said.result]).then(() => array);
      const atOnce = copied.issued === undefined && said.issued === undefined;
      return { issued: atOnce ? undefined : issued, result };
    });
  }

  launch(launch: CudaLaunch, stream?: BackendStream): void {
    const on = cudaStream(stream);
    this.#host.pass(() => {
      const { plan } = launch.program.program;
      const silent = plan.messages.length === 0;
      this.#context.enter();
      this.#issue(launch, silent ? undefined : this.#rings.share(plan, launch.dimensions), on);
    });
  }

  run(launch: CudaLaunch): Promise<void> {
    return this.#queue.begin(() => {
      const { plan } = launch.program.program;
      this.#context.enter();
      const ring =
        plan.messages.length === 0 ? undefined : this.#rings.take(plan, launch.dimensions);
      try {
        if (ring !== undefined) this.#rings.mark(ring);
        this.#issue(launch, ring, undefined);
      } finally {
        if (ring !== undefined) this.#rings.give(ring);
      }
      return this.#settled(ring);
    });
  }

  bind(launch: CudaLaunch): Repeatable {
    this.#context.enter();
    const { program } = launch.program;
    const { plan } = program;
    const scratch = this.#takeScratch(launch);
    const block = new LaunchBlock(this.#context, program);
    let ring: Ring | undefined;
    try {
      if (plan.messages.length > 0) ring = this.#rings.take(plan, launch.dimensions);
      block.fill(launchNumbers(launch, scratch, ring), this.#maps);
      launch.program.users += 1;
      const release = (): void => {
        block.dispose();
        launch.program.users -= 1;
        if (launch.program.users === 0 && launch.program.isForgotten)
          this.#unloadLater(launch.program);
      };
      const issue = (stream: number): void => {
        block.issue(stream);
      };
      const { name } = plan;
      const uses = usesOf(launch);
      return new CudaBound(this.#host, { name, issue, scratch, ring, uses, release });
    } catch (error) {
      block.dispose();
      if (ring !== undefined) this.#rings.give(ring);
      this.#releaseScratch(scratch);
      throw error;
    }
  }

  record(works: readonly Repeatable[]): Repeatable {
    return new CudaRecording(this.#host, partsOf(works));
  }

  get decides(): boolean {
    this.#conditionalNodes ??= { loaded: tryConditionalNodes(this.#host) };
    return this.#conditionalNodes.loaded !== undefined;
  }

  control(control: Control<Repeatable, CudaAllocation>): Repeatable {
    const conditions = this.decides ? this.#conditionalNodes?.loaded : undefined;
    if (conditions === undefined) throw new Error("this driver has no conditional nodes");
    return new CudaControl(this.#host, conditions, mapControl(control, control.selector, partsOf));
  }

  async synchronize(): Promise<void> {
    await this.#queue.begin(() => {
      this.#context.enter();
      this.#streams.join();
      return this.#settled(undefined);
    });
    const failure = this.#failure;
    this.#failure = undefined;
    if (failure !== undefined) throw failure.error;
  }

  async time(work: () => void): Promise<number> {
    for (let closed = this.#queue.closed; closed !== undefined; closed = this.#queue.closed)
      await closed;
    this.#context.enter();
    const timer = new Timer(this.#context);
    try {
      timer.start();
      this.#streams.fork();
      work();
      this.#streams.join();
      timer.stop();
      await this.#completion.wait();
      return timer.milliseconds();
    } finally {
      timer.dispose();
    }
  }

  dispose(): void {
    void this.#close();
  }

  /** Gives everything back: at once where nothing is under way, else when it has ended. */
  async #close(): Promise<void> {
    for (let pending = this.#pending(); pending !== undefined; pending = this.#pending())
      await pending;
    const blocks = [...this.#programs].map(({ block }) => block);
    const steps = [
      this.keepCompiled,
      () => {
        if (this.#context.loss !== undefined) return;
        this.#context.enter();
        // Nothing runs any more; tools that watch the driver report what they found, and need the programs for that.
        this.#context.driver.calls.cuCtxSynchronize();
      },
      ...[this.#streams, this.code, this.#rings, this.#maps, ...blocks],
      ...[...this.#programs].map(({ program }) => () => {
        program.unload();
      }),
      () => {
        this.#conditionalNodes?.loaded?.dispose();
      },
      ...[this.#staging, this.#completion, this.#memory, this.#context],
    ];
    const all = steps.map((step) => () => {
      if (typeof step === "function") step();
      else step.dispose();
    });
    try {
      runEach(all);
    } catch {
      // What the driver answers while its context ends helps nobody: everything goes with the context.
    }
  }

  /** What must end before anything can be given back. */
  #pending(): Promise<void> | undefined {
    const pending = this.#queue.closed ?? this.#completion.idle ?? this.#transfers.idle;
    if (pending !== undefined || !(this.#completion.owes || this.#streams.isAhead)) return pending;
    try {
      this.#context.enter();
      this.#streams.join();
      return this.#completion.wait().catch(() => undefined);
    } catch {
      return undefined; // Nothing runs any more on a device that is lost.
    }
  }

  #issue(launch: CudaLaunch, ring: Ring | undefined, stream: CudaStream | undefined): void {
    const handle = stream?.handle;
    const scratch = this.#takeScratch(launch, handle);
    try {
      const { block } = launch.program;
      block.fill(launchNumbers(launch, scratch, ring), this.#maps);
      if (!this.#streams.isSingle) {
        const { reads, writes } = usesOf(launch);
        const told = ring === undefined ? [] : [this.#rings.record];
        this.#streams.before({ reads, writes: [...writes, ...told] }, stream);
      }
      clearScratch(this.#context, scratch, handle);
      block.issue(handle);
    } finally {
      this.#releaseScratch(scratch, handle);
    }
  }

  #takeScratch({ program, dimensions }: CudaLaunch, stream?: number): readonly Scratch[] {
    const taken: Scratch[] = [];
    try {
      for (const parameter of program.program.plan.parameters) {
        if (parameter.kind !== "scratch") continue;
        const bytes = evaluateSize(parameter.bytes, dimensions);
        const { name, zeroed } = parameter;
        taken.push({ name, zeroed, bytes, address: this.#memory.take(bytes, stream) });
      }
      return taken;
    } catch (error) {
      this.#releaseScratch(taken, stream);
      throw error;
    }
  }

  #releaseScratch(scratch: readonly Scratch[], stream?: number): void {
    runEach(
      scratch.map(({ address }) => () => {
        if (this.#context.loss === undefined) this.#context.enter();
        this.#memory.give(address, stream);
      }),
    );
  }

  /** Everything issued so far has ended, and what kernels had to say is told. */
  #settled(own: Ring | undefined): Begun<void> {
    this.#context.enter();
    const { issued, result } = this.#readMessages(own);
    const waited = this.#completion.wait();
    return { issued, result: Promise.all([waited, result]).then(() => undefined) };
  }

  /** Prints messages; fails with the failure of `own`, and keeps those of other launches for later. */
  #readMessages(own: Ring | undefined): Begun<void> {
    if (this.#rings.isMarked) this.#streams.before({ writes: [this.#rings.record] }, undefined);
    const { issued, result } = this.#rings.read();
    const told = async (): Promise<void> => {
      for (const [ring, error] of await result) {
        if (ring === own) throw error;
        this.#failure ??= { error };
      }
    };
    return { issued, result: handled(told()) };
  }
}

/** The arrays that a launch reads, and those that it writes. */
/** What sets conditions, once a loop that is never launched could be recorded with it. */
function tryConditionalNodes(host: BoundHost): ConditionalNodes | undefined {
  const loaded = ConditionalNodes.load(host.context);
  if (loaded === undefined) return undefined;
  const selector = { address: 0, record: new MemoryRecord() };
  const trial = { kind: "while", selector, isBool: true, condition: [], body: [] } as const;
  try {
    new CudaRecording(host, [new CudaControl(host, loaded, trial)]).dispose();
    return loaded;
  } catch (error) {
    loaded.dispose();
    if (host.context.loss !== undefined) throw error;
    return undefined;
  }
}

/** The parts of works, those of recordings one by one. */
function partsOf(works: readonly Repeatable[]): readonly CudaPart[] {
  return works.flatMap((work) => {
    if (work instanceof CudaBound || work instanceof CudaControl) return [work];
    if (work instanceof CudaRecording) return work.parts;
    throw new Error("the work was bound by another back end");
  });
}

function usesOf({ kernel, arrays }: CudaLaunch): Required<MemoryUses> {
  const reads: MemoryRecord[] = [];
  const writes: MemoryRecord[] = [];
  for (const { name, role } of kernel.parameters) {
    const record = arrays.get(name)?.record;
    if (record !== undefined) (role === "input" ? reads : writes).push(record);
  }
  return { reads, writes };
}

function launchNumbers(
  { arrays, scalars, dimensions, follows = false }: CudaLaunch,
  scratch: readonly Scratch[],
  ring: Ring | undefined,
): LaunchNumbers {
  const addresses = new Map<string, number>();
  for (const [name, { address }] of arrays) addresses.set(name, address);
  for (const { name, address } of scratch) addresses.set(name, address);
  return { addresses, scalars, dimensions, ring: ring?.address ?? 0, follows };
}
