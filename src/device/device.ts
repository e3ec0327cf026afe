/**
 * A device: where kernels run, whichever back end is behind it. It checks and binds arguments (mistakes are thrown at
 * the call), compiles a kernel at its first launch, and tracks what was not released. The back end keeps work in order.
 *
 *   launch(axpy, { x, y, out })
 *     check names, formats, shapes ──▶ bind dimensions ──▶ compile, once ──▶ back end
 *
 * What it does to whole arrays is in `array-operations.ts`, code of other compilers in `foreign-code.ts`.
 */
import type { DType, DTypeName, HostValue } from "../formats/dtype.ts";
import { elementCount } from "../formats/shape.ts";
import { requireDType } from "../formats/argument-checks.ts";
import type { TensorMapSettings } from "../emulator/api/tensor-map-value.ts";
import type { GivenArray, HostArray } from "../formats/hostarray.ts";
import type { Kernel } from "../ir/node.ts";
import { runEach } from "../support/run-all.ts";
import { warn } from "../support/console.ts";
import { TilewrightError, placedAt } from "../support/diagnostics.ts";
import { captureLocation } from "../support/location.ts";
import type { Location } from "../support/location.ts";
import { isRecord } from "../support/options.ts";
import { LimitClock } from "../support/run-limits.ts";
import type { Target } from "../targets/target.ts";
import { collectInputs } from "./arguments.ts";
import type { Backend, GpuDescription } from "./backend.ts";
import { mapControl, worksOf } from "./control-flow.ts";
import type { Control } from "./control-flow.ts";
import type { SharedTensor } from "./array-access.ts";
import { ArrayOperations } from "./array-operations.ts";
import type { DeviceOptions } from "./device-options.ts";
import { BoundLaunch } from "./bound-launch.ts";
import type { BoundOwner } from "./bound-launch.ts";
import { LaunchPreparation } from "./launch-preparation.ts";
import type { PreparedWork } from "./launch-preparation.ts";
import { Profiler } from "./profile/profiler.ts";
import { CompilationCache } from "./compilation.ts";
import type { CompilationRecord } from "./compilation.ts";
import { ArrayRegistry, disposeAll, disposeSymbol, formatLeaks } from "./device-array.ts";
import type { DeviceArray, Leak } from "./device-array.ts";
import { DeviceModule, ForeignCode } from "./foreign-code.ts";
import type { CodeSettings, DeviceTensorMap } from "./foreign-code.ts";
import { boundTogether } from "./bind-plan.ts";
import {
  arraysAmong,
  requireArguments,
  requireBoundLaunches,
  requireDeviceArray,
  requireHostArray,
  requireKernel,
  requireStream,
  requireWork,
} from "./argument-checks.ts";
import type { MemoryUse } from "./memory-account.ts";
import { NoteReporter } from "./note-reporter.ts";
import { Stream } from "./stream.ts";
import { deviceTuning } from "./tuning/advice.ts";
import type { DeviceTuning } from "./tuning/advice.ts";
import type { StreamOwner } from "./stream.ts";
import type { DeviceArguments, HostResults, Launchable, RunArguments } from "./types.ts";
import {
  isGivenUp,
  requireLaunchOptions,
  requireNotAborted,
  requireWaitLimits,
  waitWithin,
} from "./wait-limits.ts";
import type { LaunchOptions, WaitLimits } from "./wait-limits.ts";

/** What calls without options share, so that the usual launch has nothing to check. */
const noOptions: LaunchOptions = Object.freeze({});

/** Something that runs kernels: a GPU, the simulator or the emulator. `open` gives one. */
export class Device {
  readonly #backend: Backend;
  readonly #arrays: ArrayRegistry;
  readonly #compilations: CompilationCache;
  readonly #preparation: LaunchPreparation;
  /** Profiles that are still to be told. */
  readonly #profiles = new Set<Promise<void>>();
  readonly #onLeak: (leaks: readonly Leak[]) => void;
  readonly #operations: ArrayOperations;
  readonly #foreign: ForeignCode;
  /** What plans of operations on this device know from measurements. */
  readonly tuning: DeviceTuning;
  readonly #bound = new Set<BoundLaunch>();
  readonly #streams = new Set<Stream>();
  readonly #owner: BoundOwner;
  readonly #streamOwner: StreamOwner;
  /** A failure that came after its waiting was given up. */
  #unheard: { readonly reason: unknown } | undefined;
  #disposed = false;

  constructor(backend: Backend, options: DeviceOptions = {}) {
    this.#backend = backend;
    this.tuning = deviceTuning(backend, options);
    this.#arrays = new ArrayRegistry({
      release: (allocation) => {
        backend.release(allocation);
      },
      viewOf: (...values) => backend.view(...values),
      fetch: (array) => this.download(array),
    });
    this.#operations = new ArrayOperations(backend, this.#arrays);
    this.#foreign = new ForeignCode(backend.code, this.#arrays, backend);
    const noteReporter = new NoteReporter(options.onNotes);
    this.#compilations = new CompilationCache(backend, (record) => {
      noteReporter.report(record);
      options.onCompile?.(record);
    });
    this.#preparation = new LaunchPreparation({
      backend,
      arrays: this.#arrays,
      compilations: this.#compilations,
      limits: options.limits,
      tuning: this.tuning,
      profiler: options.onProfile && new Profiler(backend, this.#operations, options.onProfile),
      allocate: (...of) => this.allocate(...of),
    });
    this.#onLeak = options.onLeak ?? ((leaks) => warn(formatLeaks(leaks)));
    this.#owner = {
      arrays: this.#arrays,
      requireOpen: () => {
        this.#requireOpen();
      },
      forget: (bound) => this.#bound.delete(bound),
      streamHandle: (stream) => {
        requireStream("launch", stream);
        return stream.handleFor(this.#streamOwner);
      },
    };
    this.#streamOwner = {
      launch: (values, stream) => {
        const [first, second, options] = values;
        this.#issue(first, second, options as LaunchOptions | undefined, stream);
      },
      forget: (stream) => this.#streams.delete(stream),
    };
  }

  /** What runs the kernels: `"gpu"`, `"cpu"`, `"simulator"` or `"emulator"`. */
  get name(): string {
    return this.#backend.name;
  }

  /** What kernels are compiled for. */
  get target(): Target {
    return this.#backend.target;
  }

  /** The GPU and its driver; undefined on devices that have none. */
  get gpu(): GpuDescription | undefined {
    return this.#backend.board;
  }

  /** What was compiled on this device, and why. */
  get compilations(): readonly CompilationRecord[] {
    return this.#compilations.records;
  }

  /** Arrays made on this device and not yet disposed of, but those that the library gives back by itself, such as results of compiled functions. */
  get leaks(): readonly Leak[] {
    return this.#arrays.leaks();
  }

  /** Whether it ends a run that reaches a limit; on others only the waiting ends. */
  get stopsKernels(): boolean {
    return this.#backend.stopsKernels;
  }

  /** @internal Whether what runs may be about to end by a limit of its own. */
  get isStopping(): boolean {
    return this.#backend.isStopping === true;
  }

  /** What this device's memory is used for. */
  get memory(): MemoryUse {
    return this.#backend.memory;
  }

  /** Gives memory back to the system that is kept for the next arrays. */
  trim(): void {
    this.#requireOpen();
    this.#backend.trim();
  }

  /** An uninitialised array. */
  allocate<N extends DTypeName>(dtype: DType<N>, shape: readonly number[]): DeviceArray<N> {
    this.#requireOpen();
    requireDType(dtype);
    elementCount(shape);
    return this.#arrays.allocate(dtype, shape, () => this.#backend.allocate(dtype, shape));
  }

  /** @internal */
  get arrays(): ArrayRegistry {
    return this.#arrays;
  }

  /** An array of zeros. */
  async zeros<N extends DTypeName>(
    dtype: DType<N>,
    shape: readonly number[],
    limits: WaitLimits = noOptions,
  ): Promise<DeviceArray<N>> {
    return this.#limited("zeros", limits, async () => {
      const array = this.allocate(dtype, shape);
      await this.#operations.zeros(array);
      return array;
    });
  }

  /** Writes one value to every element, after all work launched so far. */
  async fill<N extends DTypeName>(
    array: DeviceArray<N>,
    value: HostValue<N>,
    limits: WaitLimits = noOptions,
  ): Promise<void> {
    return this.#limited("fill", limits, () => this.#operations.fill(array, value));
  }

  /** Writes a host array over an array of the device, or over a view of one, after all work launched so far. */
  async write<N extends DTypeName>(
    array: DeviceArray<N>,
    values: GivenArray<N>,
    limits: WaitLimits = noOptions,
  ): Promise<void> {
    return this.#limited("write", limits, () => this.#operations.write(array, values));
  }

  /**
   * Copies an array, or a view of one, over another of the same format and shape. The other is this device's; the
   * first may be another's.
   */
  async copy<N extends DTypeName>(
    from: DeviceArray<N>,
    to: DeviceArray<N>,
    limits: WaitLimits = noOptions,
  ): Promise<void> {
    return this.#limited("copy", limits, () => this.#operations.copy(from, to));
  }

  /** One element, by an index for each axis, after all work launched so far. Limits come last. */
  async element<N extends DTypeName>(
    array: DeviceArray<N>,
    ...index: readonly number[] | readonly [...index: number[], limits: WaitLimits]
  ): Promise<HostValue<N>> {
    const last = index.at(-1);
    const [indices, limits] = isRecord(last) ? [index.slice(0, -1), last] : [index, noOptions];
    return this.#limited("element", limits, () =>
      this.#operations.element(array, indices as readonly number[]),
    );
  }

  /**
   * Where an array lies, in the fields of DLPack, for other libraries of this process that use the same GPU. It
   * stays this device's to give back, and work on it is not ordered with theirs: synchronize before.
   */
  share(array: DeviceArray): SharedTensor {
    this.#requireOpen();
    return this.#operations.share(array);
  }

  /** An array over memory of another library, by its address on this device's GPU. Disposing of it frees nothing. */
  wrap<N extends DTypeName>(
    pointer: bigint | number,
    dtype: DType<N>,
    shape: readonly number[],
  ): DeviceArray<N> {
    this.#requireOpen();
    return this.#operations.wrap(pointer, dtype, shape);
  }

  /** A copy of a host array on the device, as it is at the time of the call. */
  async upload<N extends DTypeName>(
    array: GivenArray<N>,
    limits: WaitLimits = noOptions,
  ): Promise<DeviceArray<N>> {
    return this.#limited("upload", limits, async () => {
      const checked = requireHostArray("upload", array);
      const uploaded = this.allocate(checked.dtype, checked.shape);
      await this.#operations.upload(uploaded, checked);
      return uploaded;
    });
  }

  /** A copy of a device array on the host, after all work launched so far; `synchronize` tells whether that succeeded. */
  async download<N extends DTypeName>(
    array: DeviceArray<N>,
    limits: WaitLimits = noOptions,
  ): Promise<HostArray<N>> {
    return this.#limited("download", limits, () => {
      requireDeviceArray("download", array);
      return this.#operations.download(array);
    });
  }

  /** PTX of any compiler as text, or a cubin, made ready to be launched. `file` is its name in reports. */
  load(code: string | Uint8Array, file = "<ptx>"): DeviceModule {
    this.#requireOpen();
    return this.#foreign.load(code, file);
  }

  /** A tensor map of an array, as a parameter of such code. */
  tensorMap(array: DeviceArray, settings: TensorMapSettings): DeviceTensorMap {
    this.#requireOpen();
    return this.#foreign.tensorMap(array, settings);
  }

  /** A line of work beside the device's own, for launches that may run at the same time. Dispose of it when done. */
  stream(): Stream {
    this.#requireOpen();
    const stream = new Stream(this.#streamOwner, this.#backend.stream());
    this.#streams.add(stream);
    return stream;
  }

  /** Issues a kernel on arrays of this device. Outputs are given like inputs. */
  launch<K extends Launchable>(
    definition: K,
    args: DeviceArguments<K>,
    options?: LaunchOptions,
  ): void;
  /** Issues an entry of a module, by the words of `tilewright/emulator`. */
  launch(module: DeviceModule, settings: CodeSettings): void;
  launch(what: unknown, args: unknown, options?: LaunchOptions): void {
    this.#issue(what, args, options, undefined);
  }

  #issue(
    what: unknown,
    args: unknown,
    options: LaunchOptions = noOptions,
    on: Stream | undefined,
  ): void {
    this.#requireOpen();
    const stream = on?.handleFor(this.#streamOwner);
    if (what instanceof DeviceModule) {
      const { work } = this.#foreign.bind("launch", what, args as CodeSettings);
      try {
        work.launch(stream);
      } finally {
        work.dispose();
      }
      return;
    }
    const { launches, scratch, begun, then } = this.#checkedWork("launch", what, args, options);
    try {
      this.#arrays.explainingMemory(() => {
        for (const launch of launches) this.#backend.launch(launch, stream);
      });
      for (const told of [...begun, ...then.map((tell) => tell())]) this.#awaitProfile(told);
    } finally {
      // The back end keeps the memory for as long as what was issued needs it.
      disposeAll(scratch);
    }
  }

  #checkedWork(
    call: "launch" | "bind",
    definition: unknown,
    args: unknown,
    options: LaunchOptions,
  ): PreparedWork & { readonly name: string } {
    requireKernel(call, definition);
    requireArguments(call, args);
    if (options !== noOptions) this.#requireOptions(call, options, captureLocation());
    // What is bound runs again and again: there each launch has its own time.
    const limits = call === "launch" ? { ...options, clock: new LimitClock() } : options;
    const work = this.#preparation.prepare(definition, args, limits, call === "bind");
    return { ...work, name: definition.kernel.name };
  }

  /** @internal Has kernels compiled many at a time before they are bound, where this device can. */
  async compileInBackground(kernels: readonly Kernel[]): Promise<void> {
    this.#requireOpen();
    await this.#compilations.compileInBackground(kernels);
  }

  /** A launch with everything prepared, for issuing it many times. Dispose of it when done. */
  bind<K extends Launchable>(
    definition: K,
    args: DeviceArguments<K>,
    options?: LaunchOptions,
  ): BoundLaunch;
  bind(module: DeviceModule, settings: CodeSettings): BoundLaunch;
  bind(what: unknown, args: unknown, options: LaunchOptions = noOptions): BoundLaunch {
    this.#requireOpen();
    if (what instanceof DeviceModule) {
      const { name, arrays, work } = this.#foreign.bind("bind", what, args as CodeSettings);
      return this.#keep(new BoundLaunch(this.#owner, [name], arrays, work));
    }
    const { launches, scratch, name } = this.#checkedWork("bind", what, args, options);
    const { work, giveBack } = boundTogether(this.#backend, scratch, (bound) => {
      for (const launch of launches)
        bound.push(this.#arrays.explainingMemory(() => this.#backend.bind(launch)));
    });
    return this.#keep(new BoundLaunch(this.#owner, [name], arraysAmong(args), work, giveBack));
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

  /** @internal Whether it decides loops and branches by itself. */
  get decides(): boolean {
    return this.#backend.decides === true;
  }

  /** @internal A loop or a branch over bound launches that the device decides; it runs as a part of a recording. */
  control(control: Control<BoundLaunch, DeviceArray>): BoundLaunch {
    this.#requireOpen();
    const selector = control.selector.allocationFor(this.#owner.arrays);
    const work = this.#backend.control?.(
      mapControl(control, selector, (works) => works.map((bound) => bound.workFor(this.#owner))),
    );
    if (work === undefined) throw new Error("the device leaves loops and branches to the host");
    const parts = worksOf(control);
    const kernels = parts.flatMap((bound) => bound.kernels);
    const arrays = [...new Set([control.selector, ...parts.flatMap((bound) => bound.arrays)])];
    return this.#keep(new BoundLaunch(this.#owner, kernels, arrays, work));
  }

  /**
   * Waits for all work, or as long as the limits allow; rejects with the first failure of a launch since the last
   * call.
   */
  async synchronize(limits: WaitLimits = noOptions): Promise<void> {
    this.#requireOpen();
    // Where nothing can end the waiting, nobody asks where it began.
    const location = limits === noOptions ? undefined : captureLocation();
    if (location !== undefined) requireWaitLimits("synchronize", limits, location);
    const work = this.#allWork();
    try {
      await (location === undefined ? work : this.#waiting(work, limits, location));
    } catch (error) {
      // What goes wrong while nobody waits is told to the next who does.
      if (isGivenUp(error)) work.catch((reason: unknown) => (this.#unheard ??= { reason }));
      throw error;
    }
    const unheard = this.#unheard;
    this.#unheard = undefined;
    if (unheard !== undefined) throw unheard.reason;
  }

  /** @internal Waits for all work as `synchronize`, but leaves failures to that where the host does the work. */
  async caughtUp(limits: WaitLimits = noOptions): Promise<void> {
    this.#requireOpen();
    await (this.#backend.caughtUp?.() ?? this.synchronize(limits));
  }

  /** Milliseconds that the device spends on what `work` launches. */
  async time(work: () => void, limits: WaitLimits = noOptions): Promise<number> {
    return this.#limited("time", limits, () => {
      requireWork(work);
      return this.#backend.time(work);
    });
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
    const collected = collectInputs(kernel, inputs, options.dimensions ?? {}, this.target);
    const temporary: DeviceArray[] = [];
    const pending: Promise<unknown>[] = [];
    // A run that is no longer waited for does not begin when its turn comes.
    const givenUp = new AbortController();
    const allocate = (dtype: DType, shape: readonly number[]): DeviceArray => {
      const array = this.allocate(dtype, shape);
      temporary.push(array);
      return array;
    };
    try {
      const args = this.#operations.materialize(kernel, collected, { allocate, pending });
      const limits = { ...options, clock: new LimitClock(), stop: givenUp.signal };
      const work = this.#preparation.prepare(definition, args, limits);
      const { launches, scratch, begun, then } = work;
      temporary.push(...scratch);
      pending.push(...begun);
      for (const launch of launches)
        pending.push(this.#arrays.explainingMemory(() => this.#backend.run(launch)));
      pending.push(...then.map((tell) => tell()));
      const results = this.#operations.results(kernel, args);
      const settled = Promise.allSettled([...pending, results]);
      for (const outcome of await this.#waiting(settled, options, location))
        if (outcome.status === "rejected") throw placedAt(location, outcome.reason);
      return (await results) as HostResults<K>;
    } catch (error) {
      if (isGivenUp(error)) givenUp.abort("nobody waits for it any more");
      throw error;
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
    runEach([
      () => {
        if (leaks.length > 0) this.#onLeak(leaks);
      },
      ...[...this.#bound].reverse().map((bound) => () => {
        bound.dispose();
      }),
      ...[...this.#streams, ...this.#foreign.modules].map((each) => () => {
        each.dispose();
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
      expected: "a device that is kept until its last use",
      found: "one that was disposed of",
    });
  }

  #requireOptions(what: "run" | "launch" | "bind", options: LaunchOptions, at: Location): void {
    requireLaunchOptions(what, options, this.#backend.stopsKernels, at);
  }

  /** Begins `work` and waits for it as long as the limits allow. */
  #limited<T>(what: string, limits: WaitLimits, work: () => Promise<T>): Promise<T> {
    this.#requireOpen();
    if (limits === noOptions) return work();
    const location = captureLocation();
    requireWaitLimits(what, limits, location);
    requireNotAborted(what, limits);
    return this.#waiting(work(), limits, location);
  }

  #waiting<T>(work: Promise<T>, limits: WaitLimits, location: Location): Promise<T> {
    return waitWithin(work, limits, this.#backend, location);
  }

  /** All work, and the profiles that it leaves behind. */
  async #allWork(): Promise<void> {
    const profiles = [...this.#profiles];
    await this.#backend.synchronize();
    await Promise.all(profiles);
  }

  #awaitProfile(told: Promise<void>): void {
    this.#profiles.add(told);
    const forget = (): boolean => this.#profiles.delete(told);
    told.then(forget, forget);
  }

  #keep(bound: BoundLaunch): BoundLaunch {
    this.#bound.add(bound);
    return bound;
  }
}
