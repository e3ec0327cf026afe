/**
 * A GPU's context and its one stream, on which everything that tilewright does to the GPU happens in
 * order. This is also where the driver's answers are looked at: a fault of a kernel shows up at some
 * later call, ends the context, and is remembered, so that each use after it says what happened.
 *
 *   launch a ── launch b ── wait ✗ 700       lost: "one of the kernels a, b …"
 *                            │
 *                            └─ everything from here on fails with that report
 */
import { TilewrightError } from "../support/diagnostics.ts";
import type { Target } from "../targets/target.ts";
import { dataView, readAddress } from "./driver.ts";
import type { Driver, HostMemory } from "./driver.ts";
import { answerText, brokenProcess, lostDevice, refusedCall, useAfterLoss } from "./errors.ts";
import type { DriverArguments, FunctionName } from "./functions.ts";
import { gpuAttributes, newestPtx, targetForGpu } from "./gpu.ts";
import type { Gpu } from "./gpu.ts";
import { faultText, noDevice, success } from "./results.ts";

const streamNonBlocking = 1;
const nameBytes = 256;

/** The context that each driver's calls go to from this thread. */
const currentContexts = new WeakMap<Driver, number>();

/** The arguments of a function after the first, which says where its result goes. */
type OtherArguments<N extends FunctionName> =
  DriverArguments<N> extends [number, ...infer Others extends number[]] ? Others : never;

export class CudaContext {
  readonly driver: Driver;
  readonly gpu: Gpu;
  readonly target: Target;
  /** The driver's number of the GPU. */
  readonly device: number;
  readonly stream: number;
  readonly #handle: number;
  readonly #result: HostMemory;
  readonly #resultView: DataView;
  /** Kernels that may still be running, with the number of their latest launch. */
  readonly #launched = new Map<string, number>();
  readonly #name: string = "GPU";
  #sequence = 0;
  #loss: TilewrightError | undefined;

  constructor(driver: Driver, ordinal: number) {
    this.driver = driver;
    this.#result = driver.allocateHost(nameBytes);
    this.#resultView = dataView(this.#result);
    try {
      requireGpu(this, ordinal);
      this.device = this.number32("cuDeviceGet", "find the GPU", ordinal);
      this.gpu = this.#describe(ordinal);
      this.#name = this.gpu.name;
      newestPtx(this.gpu.driverVersion);
      this.target = targetForGpu(this.gpu);
      this.#handle = this.make("cuDevicePrimaryCtxRetain", "open the GPU", this.device);
    } catch (error) {
      driver.freeHost(this.#result);
      throw error;
    }
    try {
      this.enter();
      this.#requireRecovered();
      this.stream = this.make("cuStreamCreate", "make a stream", streamNonBlocking);
    } catch (error) {
      this.#close();
      throw error;
    }
  }

  /** The driver's own. */
  get handle(): number {
    return this.#handle;
  }

  /** The number of the latest launch. */
  get sequence(): number {
    return this.#sequence;
  }

  get loss(): TilewrightError | undefined {
    return this.#loss;
  }

  /** Makes the context the one that calls go to; to be called before any other use. */
  enter(): void {
    if (this.#loss !== undefined) throw useAfterLoss(this.#loss);
    if (currentContexts.get(this.driver) === this.#handle) return;
    this.check(
      this.driver.calls.cuCtxSetCurrent(this.#handle),
      "cuCtxSetCurrent",
      "turn to the GPU",
    );
    currentContexts.set(this.driver, this.#handle);
  }

  /** Refuses every answer but success. */
  check(result: number, call: FunctionName, doing: string): void {
    if (result !== success) throw this.failure(result, call, doing);
  }

  /** The report of an answer; one that ends the context is remembered. */
  failure(result: number, call: FunctionName, doing: string): TilewrightError {
    const fault = faultText(result);
    if (fault === undefined) return refusedCall(call, result, doing);
    this.#loss ??= lostDevice(
      this.#name,
      [...this.#launched.keys()],
      fault,
      answerText(call, result),
    );
    return this.#loss;
  }

  /** Calls a function that answers through its first argument, and gives that handle or address. */
  make<N extends FunctionName>(call: N, doing: string, ...others: OtherArguments<N>): number {
    this.#resultView.setBigUint64(0, 0n, true);
    this.#ask(call, doing, others);
    return readAddress(this.#resultView, 0);
  }

  /** As `make`, for functions that give an int. */
  number32<N extends FunctionName>(call: N, doing: string, ...others: OtherArguments<N>): number {
    this.#ask(call, doing, others);
    return this.#resultView.getInt32(0, true);
  }

  /** As `make`, for functions that give a float. */
  float32<N extends FunctionName>(call: N, doing: string, ...others: OtherArguments<N>): number {
    this.#ask(call, doing, others);
    return this.#resultView.getFloat32(0, true);
  }

  #ask(call: FunctionName, doing: string, others: readonly number[]): void {
    const calls: { readonly [name: string]: (...values: readonly number[]) => number } =
      this.driver.calls;
    this.check(calls[call]?.(this.#result.address, ...others) ?? -1, call, doing);
  }

  /** Remembers a launch until it is known to have ended. */
  noteLaunch(kernel: string): void {
    this.#sequence += 1;
    this.#launched.set(kernel, this.#sequence);
  }

  /** Everything up to this launch has ended well. */
  noteCompletion(sequence: number): void {
    for (const [kernel, latest] of this.#launched)
      if (latest <= sequence) this.#launched.delete(kernel);
  }

  /** Free and all bytes of the GPU's memory; undefined where the driver does not say. */
  memory(): { readonly free: number; readonly total: number } | undefined {
    const { address } = this.#result;
    if (this.driver.calls.cuMemGetInfo(address, address + 8) !== success) return undefined;
    return { free: readAddress(this.#resultView, 0), total: readAddress(this.#resultView, 8) };
  }

  dispose(): void {
    // What the driver answers no longer matters: a lost context refuses everything.
    this.driver.calls.cuStreamDestroy(this.stream);
    if (this.#loss !== undefined) this.driver.calls.cuDevicePrimaryCtxReset(this.device);
    this.#close();
  }

  #close(): void {
    this.driver.calls.cuDevicePrimaryCtxRelease(this.device);
    if (currentContexts.get(this.driver) === this.#handle) currentContexts.delete(this.driver);
    this.driver.freeHost(this.#result);
  }

  /** A fault of an earlier context can outlive it; the driver then refuses all work of this process. */
  #requireRecovered(): void {
    const result = this.driver.calls.cuCtxSynchronize();
    if (result === success) return;
    throw brokenProcess(this.gpu.name, answerText("cuCtxSynchronize", result));
  }

  #describe(ordinal: number): Gpu {
    const attribute = (name: keyof typeof gpuAttributes): number =>
      this.number32("cuDeviceGetAttribute", "describe the GPU", gpuAttributes[name], this.device);
    const driverVersion = this.number32("cuDriverGetVersion", "say its version");
    this.#result.bytes.fill(0);
    this.#ask("cuDeviceGetName", "name the GPU", [nameBytes, this.device]);
    const end = this.#result.bytes.indexOf(0);
    return {
      ordinal,
      name: new TextDecoder().decode(this.#result.bytes.slice(0, Math.max(end, 0))),
      driverVersion,
      major: attribute("major"),
      minor: attribute("minor"),
      processors: attribute("processors"),
      sharedMemoryPerBlock: attribute("sharedMemoryPerBlock"),
      sharedMemoryPerProcessor: attribute("sharedMemoryPerProcessor"),
      threadsPerProcessor: attribute("threadsPerProcessor"),
      blocksPerProcessor: attribute("blocksPerProcessor"),
      memoryPools: attribute("memoryPools") !== 0,
    };
  }
}

/** Starts the driver and refuses where it has no GPU of that number. */
function requireGpu(context: CudaContext, ordinal: number): void {
  const started = context.driver.calls.cuInit(0);
  const count =
    started === noDevice
      ? 0
      : started === success
        ? context.number32("cuDeviceGetCount", "count the GPUs")
        : undefined;
  if (count === undefined) throw refusedCall("cuInit", started, "start");
  if (count === 0)
    throw new TilewrightError({
      code: "TW4502",
      message: "the NVIDIA driver shows no GPU to this process",
      expected: "at least one GPU",
      found: started === noDevice ? answerText("cuInit", started) : "none",
    });
  if (ordinal < count) return;
  throw new TilewrightError({
    code: "TW4513",
    message: `there is no GPU ${ordinal}`,
    expected: count === 1 ? "0, the only one" : `0 to ${count - 1}`,
    found: String(ordinal),
  });
}
