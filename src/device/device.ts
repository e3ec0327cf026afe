/**
 * A device: where kernels run, whichever back end is behind it. This class does once what every back end
 * needs: it checks and binds arguments (mistakes are thrown at the call), compiles a kernel the first
 * time it is launched, and remembers what has not been given back. The back end keeps work in order.
 *
 *   launch(axpy, { x, y, out })
 *     check names, formats, shapes ──▶ bind dimensions ──▶ compile, once ──▶ back end
 */
import type { DType, DTypeName, HostValue } from "../formats/dtype.ts";
import { elementCount } from "../formats/shape.ts";
import { requireDType } from "../formats/kinds.ts";
import { toLanes } from "../formats/hostarray.ts";
import type { GivenArray, HostArray } from "../formats/hostarray.ts";
import { readLane } from "../formats/values.ts";
import type { KernelInterface } from "../ir/node.ts";
import type { KernelDefinition } from "../lang/index.ts";
import { CompiledKernel } from "../ptx/compiled-kernel.ts";
import { takeAllSteps } from "../support/all-steps.ts";
import { warn } from "../support/console.ts";
import { TilewrightError } from "../support/diagnostics.ts";
import { captureLocation } from "../support/location.ts";
import type { Location } from "../support/location.ts";
import type { Target } from "../targets/target.ts";
import { collectArguments, collectInputs } from "./arguments.ts";
import type { ArgumentValue, CollectedInputs } from "./arguments.ts";
import type { Allocation, Backend, Launch } from "./backend.ts";
import { arrayParameters, outputShape } from "./binding.ts";
import {
  fillPattern,
  flatIndex,
  requirePointer,
  requireSameElements,
  requireValue,
  sharedTensor,
  withoutAddresses,
  zeroPattern,
} from "./array-access.ts";
import type { SharedTensor } from "./array-access.ts";
import { BoundLaunch } from "./bound-launch.ts";
import type { BoundOwner } from "./bound-launch.ts";
import type { PerformanceNote } from "../ptx/notes/note.ts";
import { CompilationCache } from "./compilation.ts";
import type { CompilationRecord } from "./compilation.ts";
import {
  ArrayRegistry,
  DeviceArray,
  describeLargest,
  disposeAll,
  disposeSymbol,
  formatLeaks,
} from "./device-array.ts";
import type { Leak } from "./device-array.ts";
import { isOperation } from "./operation.ts";
import type { Operation } from "./operation.ts";
import { boundTogether, plannedCalls } from "./planned-calls.ts";
import {
  requireArguments,
  requireBoundLaunches,
  requireDeviceArray,
  requireHostArray,
  requireKernel,
  requireWork,
} from "./kinds.ts";
import { NoteTeller } from "./note-teller.ts";
import type { DeviceArguments, HostResults, RunArguments } from "./types.ts";
import {
  isGivenUp,
  requireLaunchOptions,
  requireNotAborted,
  requireWaitLimits,
  waitWithin,
} from "./waiting.ts";
import type { LaunchOptions, WaitLimits } from "./waiting.ts";

/** What a device runs. */
export type Launchable = KernelDefinition | CompiledKernel | Operation;

/** Launches to be issued one after the other, and arrays that they alone use. */
interface PreparedWork {
  readonly launches: readonly Launch[];
  readonly scratch: readonly DeviceArray[];
}

/** What calls without options share, so that the usual launch has nothing to check. */
const noOptions: LaunchOptions = Object.freeze({});

export interface DeviceOptions {
  /** Hears of arrays that were never disposed of; by default they are written to the console. */
  readonly onLeak?: (leaks: readonly Leak[]) => void;
  /** Hears of every compilation, with its reason. */
  readonly onCompile?: (record: CompilationRecord) => void;
  /** Hears what makes a kernel slow, once; by default it is written to the console where kernels are assembled. */
  readonly onNotes?: (kernel: string, notes: readonly PerformanceNote[]) => void;
}

export class Device {
  readonly #backend: Backend;
  readonly #arrays: ArrayRegistry;
  readonly #compilations: CompilationCache;
  readonly #onLeak: (leaks: readonly Leak[]) => void;
  readonly #bound = new Set<BoundLaunch>();
  readonly #owner: BoundOwner;
  /** A failure that came after its waiting was given up. */
  #unheard: { readonly reason: unknown } | undefined;
  #disposed = false;

  constructor(backend: Backend, options: DeviceOptions = {}) {
    this.#backend = backend;
    this.#arrays = new ArrayRegistry(
      (allocation) => {
        backend.release(allocation);
      },
      (...values) => backend.view(...values),
    );
    const teller = new NoteTeller(options.onNotes);
    this.#compilations = new CompilationCache(backend, (record) => {
      teller.tell(record);
      options.onCompile?.(record);
    });
    this.#onLeak = options.onLeak ?? ((leaks) => warn(formatLeaks(leaks)));
    this.#owner = {
      arrays: this.#arrays,
      requireOpen: () => {
        this.#requireOpen();
      },
      forget: (bound) => this.#bound.delete(bound),
    };
  }

  get name(): string {
    return this.#backend.name;
  }

  get target(): Target {
    return this.#backend.target;
  }

  /** What was compiled on this device, and why. */
  get compilations(): readonly CompilationRecord[] {
    return this.#compilations.records;
  }

  /** Arrays made on this device and not yet disposed of. */
  get leaks(): readonly Leak[] {
    return this.#arrays.leaks();
  }

  /** An uninitialised array. */
  allocate<N extends DTypeName>(dtype: DType<N>, shape: readonly number[]): DeviceArray<N> {
    this.#requireOpen();
    requireDType(dtype);
    elementCount(shape);
    const allocation = this.#explainingMemory(() => this.#backend.allocate(dtype, shape));
    return this.#arrays.add(dtype, shape, allocation);
  }

  /** An array of zeros. */
  async zeros<N extends DTypeName>(
    dtype: DType<N>,
    shape: readonly number[],
  ): Promise<DeviceArray<N>> {
    const array = this.allocate(dtype, shape);
    try {
      await this.#filled(array, zeroPattern(dtype));
      return array;
    } catch (error) {
      array.dispose();
      throw error;
    }
  }

  /** Writes one value to every element, after all work launched so far. */
  async fill<N extends DTypeName>(array: DeviceArray<N>, value: HostValue<N>): Promise<void> {
    this.#requireOpen();
    requireDeviceArray("fill", array);
    requireValue(array.dtype, value);
    await this.#filled(array, fillPattern(array.dtype, value));
  }

  #filled(array: DeviceArray, pattern: Uint8Array): Promise<void> {
    return this.#backend.fill(array.allocationFor(this.#arrays), pattern);
  }

  /** Writes a host array over an array of the device, or over a view of one, after all work launched so far. */
  async write<N extends DTypeName>(array: DeviceArray<N>, values: GivenArray<N>): Promise<void> {
    this.#requireOpen();
    requireDeviceArray("write", array);
    const checked = requireHostArray("write", values);
    requireSameElements("write", array, checked);
    await this.#backend.upload(checked, array.allocationFor(this.#arrays));
  }

  /** Copies an array, or a view of one, over another of the same format and shape. */
  async copy<N extends DTypeName>(from: DeviceArray<N>, to: DeviceArray<N>): Promise<void> {
    this.#requireOpen();
    requireDeviceArray("copy", from);
    requireDeviceArray("copy", to);
    requireSameElements("copy", to, from);
    const [source, target] = [from, to].map((array) => array.allocationFor(this.#arrays));
    if (source !== undefined && target !== undefined) await this.#backend.copy(source, target);
  }

  /** One element, after all work launched so far. */
  async element<N extends DTypeName>(
    array: DeviceArray<N>,
    ...index: readonly number[]
  ): Promise<HostValue<N>> {
    this.#requireOpen();
    requireDeviceArray("element", array);
    const position = flatIndex(array.shape, index);
    const flat = array.reshape([elementCount(array.shape)]);
    // Two elements of 4 bits share a byte, so the pair is fetched.
    const start = array.dtype.bits === 4 ? position - (position % 2) : position;
    const part = flat.slice(start, Math.min(flat.shape[0] ?? 0, start + (position - start) + 1));
    const lanes = toLanes(await this.download(part));
    return readLane(array.dtype, lanes, position - start);
  }

  /**
   * Where an array lies, in the fields of DLPack, for other libraries of this process that use the same GPU. It
   * stays this device's to give back, and work on it is not ordered with theirs: synchronize before.
   */
  share(array: DeviceArray): SharedTensor {
    this.#requireOpen();
    requireDeviceArray("share", array);
    const memory = this.#backend.addressOf(array.allocationFor(this.#arrays));
    if (memory === undefined) throw withoutAddresses("share", this.name);
    return sharedTensor(array, memory);
  }

  /** An array over memory of another library, by its address on this device's GPU. Disposing of it frees nothing. */
  wrap<N extends DTypeName>(
    pointer: bigint | number,
    dtype: DType<N>,
    shape: readonly number[],
  ): DeviceArray<N> {
    this.#requireOpen();
    requireDType(dtype);
    elementCount(shape);
    const allocation = this.#backend.wrap(requirePointer(pointer), dtype, shape);
    if (allocation === undefined) throw withoutAddresses("wrap", this.name);
    return new DeviceArray(this.#arrays, dtype, shape, allocation);
  }

  /** A copy of a host array on the device, as it is at the time of the call. */
  async upload<N extends DTypeName>(array: GivenArray<N>): Promise<DeviceArray<N>> {
    const checked = requireHostArray("upload", array);
    const uploaded = this.allocate(checked.dtype, checked.shape);
    try {
      const allocation = uploaded.allocationFor(this.#arrays);
      await this.#backend.upload(checked, allocation);
    } catch (error) {
      uploaded.dispose();
      throw error;
    }
    return uploaded;
  }

  /** A copy of a device array on the host, after all work launched so far; `synchronize` tells whether that succeeded. */
  async download<N extends DTypeName>(array: DeviceArray<N>): Promise<HostArray<N>> {
    this.#requireOpen();
    requireDeviceArray("download", array);
    const allocation = array.allocationFor(this.#arrays);
    return this.#backend.download(array.dtype, array.shape, allocation);
  }

  /** Issues a kernel on arrays of this device. Outputs are given like inputs. */
  launch<K extends Launchable>(
    definition: K,
    args: DeviceArguments<K>,
    options: LaunchOptions = noOptions,
  ): void {
    this.#requireOpen();
    requireKernel("launch", definition);
    requireArguments("launch", args);
    if (options !== noOptions) this.#requireOptions("launch", options, captureLocation());
    const { launches, scratch } = this.#prepare(definition, args, options);
    try {
      this.#explainingMemory(() => {
        for (const launch of launches) this.#backend.launch(launch);
      });
    } finally {
      // The back end keeps the memory for as long as what was issued needs it.
      disposeAll(scratch);
    }
  }

  /** A launch with everything prepared, for issuing it many times. Dispose of it when done. */
  bind<K extends Launchable>(
    definition: K,
    args: DeviceArguments<K>,
    options: LaunchOptions = noOptions,
  ): BoundLaunch {
    this.#requireOpen();
    requireKernel("bind", definition);
    requireArguments("bind", args);
    if (options !== noOptions) this.#requireOptions("bind", options, captureLocation());
    const { launches, scratch } = this.#prepare(definition, args, options);
    const { work, giveBack } = boundTogether(this.#backend, scratch, (bound) => {
      for (const launch of launches)
        bound.push(this.#explainingMemory(() => this.#backend.bind(launch)));
    });
    const arrays = Object.values(args).filter((value) => value instanceof DeviceArray);
    return this.#keep(
      new BoundLaunch(this.#owner, [definition.kernel.name], arrays, work, giveBack),
    );
  }

  /** Bound launches, one after the other, as one piece of work. Dispose of it before them. */
  record(launches: readonly BoundLaunch[]): BoundLaunch {
    this.#requireOpen();
    requireBoundLaunches(launches);
    const work = this.#backend.record(launches.map((bound) => bound.workFor(this.#owner)));
    const kernels = launches.flatMap((bound) => bound.kernels);
    const arrays = [...new Set(launches.flatMap((bound) => bound.arrays))];
    return this.#keep(new BoundLaunch(this.#owner, kernels, arrays, work));
  }

  /**
   * Waits for all work, or as long as the limits allow; rejects with the first failure of a launch since the last
   * call.
   */
  async synchronize(limits: WaitLimits = noOptions): Promise<void> {
    this.#requireOpen();
    const location = captureLocation();
    requireWaitLimits("synchronize", limits, location);
    const work = this.#backend.synchronize();
    try {
      await this.#waiting(work, limits, location);
    } catch (error) {
      // What goes wrong while nobody waits is told to the next who does.
      if (isGivenUp(error)) work.catch((reason: unknown) => (this.#unheard ??= { reason }));
      throw error;
    }
    const unheard = this.#unheard;
    this.#unheard = undefined;
    if (unheard !== undefined) throw unheard.reason;
  }

  /** Milliseconds that the device spends on what `work` launches. */
  async time(work: () => void): Promise<number> {
    this.#requireOpen();
    requireWork(work);
    return this.#backend.time(work);
  }

  /**
   * Uploads the inputs, runs the kernel, and downloads its outputs and in-out arrays. Arrays already on
   * the device are used as they are. Everything is read before the call returns, and issued before
   * anything is waited for: the device is never idle in between.
   */
  async run<K extends Launchable>(
    definition: K,
    inputs: RunArguments<K>,
    options: LaunchOptions = noOptions,
  ): Promise<HostResults<K>> {
    this.#requireOpen();
    requireKernel("run", definition);
    requireArguments("run", inputs);
    const { kernel } = definition;
    const location = captureLocation();
    this.#requireOptions("run", options, location);
    requireNotAborted("the run", options);
    const collected = collectInputs(kernel, inputs, options.dimensions ?? {});
    const temporary: DeviceArray[] = [];
    const pending: Promise<unknown>[] = [];
    try {
      const args = this.#materialize(kernel, collected, temporary, pending);
      const { launches, scratch } = this.#prepare(definition, args, options);
      temporary.push(...scratch);
      for (const launch of launches)
        pending.push(this.#explainingMemory(() => this.#backend.run(launch)));
      const results = this.#results(kernel, args);
      const settled = Promise.allSettled([...pending, results]);
      for (const outcome of await this.#waiting(settled, options, location))
        if (outcome.status === "rejected") throw outcome.reason;
      return (await results) as HostResults<K>;
    } finally {
      // What was begun before a mistake was found ends before its memory is given back.
      void Promise.allSettled(pending);
      disposeAll(temporary);
    }
  }

  /**
   * Gives everything back and reports what was forgotten. Where something cannot be given back, the rest is, and
   * the first failure is thrown then. Doing it twice is harmless.
   */
  dispose(): void {
    if (this.#disposed) return;
    this.#disposed = true;
    const leaks = this.#arrays.leaks();
    takeAllSteps([
      () => {
        if (leaks.length > 0) this.#onLeak(leaks);
      },
      ...[...this.#bound].reverse().map((bound) => () => {
        bound.dispose();
      }),
      () => {
        this.#arrays.disposeAll();
      },
      () => {
        this.#backend.dispose();
      },
    ]);
  }

  [disposeSymbol](): void {
    this.dispose();
  }

  #requireOpen(): void {
    if (!this.#disposed) return;
    throw new TilewrightError({
      code: "TW4001",
      message: `the device ${this.name} was disposed of before this use`,
    });
  }

  #requireOptions(what: "run" | "launch" | "bind", options: LaunchOptions, at: Location): void {
    requireLaunchOptions(what, options, this.#backend.stopsKernels, at);
  }

  #waiting<T>(work: Promise<T>, limits: WaitLimits, location: Location): Promise<T> {
    return waitWithin(work, limits, { stopsKernels: this.#backend.stopsKernels, location });
  }

  #keep(bound: BoundLaunch): BoundLaunch {
    this.#bound.add(bound);
    return bound;
  }

  /** Runs `work`; where memory runs out, the report says which arrays hold it. */
  #explainingMemory<T>(work: () => T): T {
    try {
      return work();
    } catch (error) {
      if (!(error instanceof TilewrightError) || error.code !== "TW4510") throw error;
      throw error.withNotes(describeLargest(this.#arrays.leaks()));
    }
  }

  #prepare(
    definition: Launchable,
    args: { readonly [name: string]: ArgumentValue },
    options: LaunchOptions,
  ): PreparedWork {
    if (isOperation(definition)) return this.#prepareOperation(definition, args, options);
    return { launches: [this.#prepareLaunch(definition, args, options)], scratch: [] };
  }

  /** The launches of an operation's plan, over the arrays that it is given and fresh ones for its scratch. */
  #prepareOperation(
    operation: Operation,
    args: { readonly [name: string]: ArgumentValue },
    options: LaunchOptions,
  ): PreparedWork {
    const collected = collectArguments(operation.kernel, args, options.dimensions ?? {});
    const plan = operation.planFor(collected.dimensions, this.target);
    const { calls, scratch } = plannedCalls(plan, collected, (...of) => this.allocate(...of));
    try {
      const launches = calls.map((call) =>
        this.#prepareLaunch(call.kernel, call.args, { ...options, dimensions: call.dimensions }),
      );
      return { launches, scratch };
    } catch (error) {
      disposeAll(scratch);
      throw error;
    }
  }

  #prepareLaunch(
    definition: KernelDefinition | CompiledKernel,
    args: { readonly [name: string]: ArgumentValue },
    options: LaunchOptions,
  ): Launch {
    const { kernel } = definition;
    const collected = collectArguments(kernel, args, options.dimensions ?? {});
    const arrays = new Map<string, Allocation>(
      [...collected.arrays].map(([name, array]) => [name, array.allocationFor(this.#arrays)]),
    );
    const { scalars, dimensions } = collected;
    const program =
      definition instanceof CompiledKernel
        ? this.#compilations.load(definition)
        : this.#compilations.compile(definition.kernel);
    return { kernel, program, arrays, scalars, dimensions, limits: options };
  }

  /** Device arrays for host arrays among the inputs, being uploaded, and fresh ones for the outputs. */
  #materialize(
    kernel: KernelInterface,
    { hostArrays, others, dimensions }: CollectedInputs,
    temporary: DeviceArray[],
    pending: Promise<unknown>[],
  ): { readonly [name: string]: ArgumentValue } {
    const args = new Map<string, ArgumentValue>(others);
    const allocate = (name: string, dtype: DType, shape: readonly number[]): Allocation => {
      const array = this.allocate(dtype, shape);
      temporary.push(array);
      args.set(name, array);
      return array.allocationFor(this.#arrays);
    };
    for (const [name, array] of hostArrays) {
      const allocation = allocate(name, array.dtype, array.shape);
      pending.push(this.#backend.upload(array, allocation));
    }
    for (const parameter of arrayParameters(kernel))
      if (parameter.role === "output")
        allocate(parameter.name, parameter.type.dtype, outputShape(parameter, dimensions));
    return Object.fromEntries(args);
  }

  async #results(
    kernel: KernelInterface,
    args: { readonly [name: string]: ArgumentValue },
  ): Promise<{ readonly [name: string]: HostArray }> {
    const downloads: Promise<readonly [string, HostArray]>[] = [];
    for (const { name, role } of kernel.parameters) {
      const array = args[name];
      if ((role === "output" || role === "inout") && array instanceof DeviceArray)
        downloads.push(this.download(array).then((result) => [name, result] as const));
    }
    return Object.fromEntries(await Promise.all(downloads));
  }
}
