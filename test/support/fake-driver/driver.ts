/**
 * A driver without a GPU, for tests: it keeps memory, streams and handles as `libcuda` does, runs kernels
 * that are given as JavaScript, fails where it is told to, and counts what is not given back.
 *
 *   const driver = new FakeDriver({ kernels: { axpy: { sizes: [8, 8, 4], run: … } } });
 *   driver.fail("cuMemAllocAsync", 2);        // the next call of it answers out of memory
 */
import type { AsideName, Driver, HostMemory } from "../../../src/cuda/driver.ts";
import { functionNames } from "../../../src/cuda/functions.ts";
import type { DriverArguments, DriverCalls, FunctionName } from "../../../src/cuda/functions.ts";
import { invalidContext, success } from "../../../src/cuda/results.ts";
import { FakeFault, FakeMemory } from "./memory.ts";
import { FakeConditions } from "./conditions.ts";
import { fakeFunctions } from "./functions.ts";
import type { FakeStream } from "./stream.ts";

export interface FakeGpu {
  readonly name: string;
  readonly attributes: { readonly [attribute: number]: number };
}

/** What a kernel of the fake driver sees of its launch. */
export interface FakeLaunch {
  readonly grid: number;
  readonly lanes: number;
  readonly cluster: number;
  readonly sharedBytes: number;
  readonly programmaticLaunch: boolean;
  /** The parameters' bytes. */
  readonly parameters: readonly DataView[];
  readonly memory: FakeMemory;
}

export interface FakeKernel {
  /** Bytes of each parameter. */
  readonly sizes: readonly number[];
  readonly run: (launch: FakeLaunch) => void;
}

export interface FakeOptions {
  readonly gpus?: readonly FakeGpu[];
  readonly driverVersion?: number;
  readonly memoryBytes?: number;
  readonly kernels?: { readonly [entry: string]: FakeKernel };
  /** PTX that the driver has assembled before, in this process or another. */
  readonly assembled?: Set<string>;
}

/** An H200 as its driver describes it. */
export const fakeHopper: FakeGpu = {
  name: "Fake H200",
  attributes: {
    16: 132,
    39: 2048,
    75: 9,
    76: 0,
    81: 228 * 1024,
    97: 227 * 1024,
    106: 32,
    115: 1,
  },
};

export interface FakeEvent {
  stream: FakeStream | undefined;
  position: number;
  recordedAt: number;
}

/** Objects that a program must give back. */
export type ObjectKind = "context" | "stream" | "event" | "module" | "graph" | "executable";

interface FakeObject {
  readonly kind: ObjectKind;
  readonly value: unknown;
}

/** Functions that need no current context. */
const withoutContext: ReadonlySet<FunctionName> = new Set([
  "cuInit",
  "cuDriverGetVersion",
  "cuDeviceGetCount",
  "cuDeviceGet",
  "cuDeviceGetName",
  "cuDeviceGetAttribute",
  "cuDeviceGetDefaultMemPool",
  "cuDevicePrimaryCtxRetain",
  "cuDevicePrimaryCtxRelease",
  "cuDevicePrimaryCtxReset",
  "cuCtxSetCurrent",
  "cuEventSynchronize",
]);

const givingBack = /Destroy|Unload|Free|Release|Reset/;

export class FakeDriver implements Driver {
  readonly calls: DriverCalls;
  readonly memory = new FakeMemory();
  readonly gpus: readonly FakeGpu[];
  readonly driverVersion: number;
  readonly memoryBytes: number;
  readonly kernels: { readonly [entry: string]: FakeKernel };
  /** Every call, in order. */
  readonly log: FunctionName[] = [];
  /** What no program should do: handles that are none, memory given back twice. */
  readonly misuses: string[] = [];
  readonly assembled: Set<string>;
  /** Functions that may have clusters of more than 8 blocks. */
  readonly nonPortable = new Set<number>();
  /** How often the assembler has run. */
  assemblies = 0;
  /** The most waits that were under way at once. */
  mostWaits = 0;
  /** Waits hang until this is called, where it is set. */
  hold: Promise<void> | undefined;
  current = 0;
  /** The fault that ended the context. */
  sticky = success;
  clock = 0;
  readonly conditions = new FakeConditions();
  readonly #objects = new Map<number, FakeObject>();
  readonly #failures: { name: FunctionName; result: number; after: number; forGood: boolean }[] =
    [];
  #nextHandle = 1;
  #waits = 0;

  constructor(options: FakeOptions = {}) {
    this.gpus = options.gpus ?? [fakeHopper];
    this.driverVersion = options.driverVersion ?? 13000;
    this.memoryBytes = options.memoryBytes ?? 2 ** 30;
    this.kernels = { ...options.kernels, set_condition: this.conditions.tell };
    this.assembled = options.assembled ?? new Set();
    const functions = fakeFunctions(this);
    this.calls = Object.fromEntries(
      functionNames.map((name) => [
        name,
        (...values: readonly number[]) =>
          this.#call(name, () => {
            const call: (...numbers: readonly number[]) => number = functions[name];
            return call(...values);
          }),
      ]),
    ) as DriverCalls;
  }

  /** Makes a call of `name` answer `result`: the next one, or one after so many others, or all from there on. */
  fail(name: FunctionName, result: number, after = 0, forGood = false): void {
    this.#failures.push({ name, result, after, forGood });
  }

  async waitForEvent(event: number): Promise<number> {
    this.#waits += 1;
    this.mostWaits = Math.max(this.mostWaits, this.#waits);
    await this.hold;
    await new Promise((resolve) => setImmediate(resolve));
    this.#waits -= 1;
    return this.calls.cuEventSynchronize(event);
  }

  async callAside<N extends AsideName>(name: N, ...values: DriverArguments<N>): Promise<number> {
    await new Promise((resolve) => setImmediate(resolve));
    const call: (...numbers: readonly number[]) => number = this.calls[name];
    return call(...values);
  }

  allocateHost(bytes: number): HostMemory {
    const address = this.memory.allocate("host", bytes);
    return { address, bytes: this.memory.view("host", address, bytes).fill(0) };
  }

  freeHost({ address }: HostMemory): void {
    if (!this.memory.free("host", address)) this.misuses.push(`host memory ${address} freed twice`);
  }

  viewHost(address: number, bytes: number): Uint8Array {
    return this.memory.view("host", address, bytes);
  }

  add(kind: ObjectKind, value: unknown): number {
    const handle = this.#nextHandle;
    this.#nextHandle += 1;
    this.#objects.set(handle, { kind, value });
    return handle;
  }

  /** What a handle stands for; undefined, and remembered, where it stands for nothing of that kind. */
  find<T>(kind: ObjectKind, handle: number): T | undefined {
    const object = this.#objects.get(handle);
    if (object?.kind === kind) return object.value as T;
    this.misuses.push(`${handle} is no ${kind}`);
    return undefined;
  }

  remove(kind: ObjectKind, handle: number): void {
    if (this.find(kind, handle) !== undefined) this.#objects.delete(handle);
  }

  /** What has not been given back, by kind. */
  get live(): { readonly [kind: string]: number } {
    const counts: { [kind: string]: number } = {};
    for (const { kind } of this.#objects.values()) counts[kind] = (counts[kind] ?? 0) + 1;
    for (const kind of ["host", "pinned", "device"] as const) {
      const count = this.memory.count(kind);
      if (count > 0) counts[kind] = count;
    }
    return counts;
  }

  /** Ends everything that lives in the context, and its fault. */
  reset(): void {
    this.sticky = success;
    this.memory.freeAll(["device", "pinned"]);
    for (const [handle, { kind }] of this.#objects)
      if (kind !== "context") this.#objects.delete(handle);
  }

  /** Does everything that all streams still have to do. */
  finish(): void {
    for (const { kind, value } of this.#objects.values()) {
      if (kind !== "stream") continue;
      const stream = value as FakeStream;
      this.attempt(() => {
        stream.advance(stream.position);
      });
    }
  }

  /** Runs work of the GPU; a fault in it ends the context. */
  attempt(work: () => void): void {
    try {
      work();
    } catch (error) {
      if (!(error instanceof FakeFault)) throw error;
      this.sticky = error.result;
    }
  }

  #call(name: FunctionName, work: () => number): number {
    this.log.push(name);
    const injected = this.#injected(name);
    if (injected !== undefined) {
      // What cannot be given back properly is gone all the same, and a recording over.
      if (givingBack.test(name)) work();
      if (name === "cuStreamEndCapture") this.#abandonCapture();
      return injected;
    }
    if (!withoutContext.has(name)) {
      if (this.current === 0) return invalidContext;
      if (this.sticky !== success) return this.sticky;
    }
    return work();
  }

  #abandonCapture(): void {
    for (const { kind, value } of this.#objects.values())
      if (kind === "stream") (value as FakeStream).endCapture();
  }

  #injected(name: FunctionName): number | undefined {
    const failure = this.#failures.find((each) => each.name === name);
    if (failure === undefined) return undefined;
    if (failure.after > 0) {
      failure.after -= 1;
      return undefined;
    }
    if (!failure.forGood) this.#failures.splice(this.#failures.indexOf(failure), 1);
    return failure.result;
  }
}
