/**
 * Kernels compiled for the CPU, and launches of them with everything written down but where their memory lies for the moment.
 *
 *   compile   kernel ──▶ bytes ──▶ module ──▶ instance over the device's memory
 *   bind      fields of the argument block: addresses of arrays, numbers, sizes
 *   run       the block is written, blocks run, what went wrong is told
 */
import type { Compiled, Launch } from "../../device/backend.ts";
import type { HostValue } from "../../formats/dtype.ts";
import { valueBytes } from "../../formats/values.ts";
import type { Kernel } from "../../ir/node.ts";
import { evaluateIndexSize, evaluateSize } from "../../ir/size.ts";
import { printLine } from "../../support/console.ts";
import { LruCache } from "../../support/lru-cache.ts";
import { stopped } from "../compiled-kernel.ts";
import type { ArgumentField, CpuFeatures, CpuKernel } from "../compiled-kernel.ts";
import { runHostCall } from "../lower/host-calls.ts";
import type { RunBlocks } from "../pool/control.ts";
import type { RangeFailure, RangeModule, RangePool } from "../pool/range-pool.ts";
import type { CpuAllocation, CpuMemory } from "./memory.ts";
import { faultError, printedLine } from "./messages.ts";
import type { Speaker } from "./messages.ts";
import { brokenOff } from "./reports.ts";

/** Compiles a kernel; throws the coded error of one that cannot be. */
export type CompileKernel = (kernel: Kernel, features: CpuFeatures) => CpuKernel;

/** A kernel on a device. */
export class CpuProgram implements RangeModule {
  readonly kernel: CpuKernel;
  readonly number: number;
  readonly run: RunBlocks;
  readonly scratchBytes: number;
  readonly isSequential: boolean;
  pace: number | undefined;
  /** The launch that runs, for what it prints. */
  speaker: (Speaker & { readonly onPrint: (line: string) => void }) | undefined;
  readonly #memory: CpuMemory;
  #placed: number | undefined;

  constructor(kernel: CpuKernel, module: WebAssembly.Module, number: number, memory: CpuMemory) {
    this.kernel = kernel;
    this.number = number;
    this.#memory = memory;
    this.scratchBytes = 64 * Math.ceil(kernel.scratchBytes / 64);
    // What is printed is heard by this thread alone, and what the host computes is computed here.
    this.isSequential =
      kernel.blocks === "in order" || kernel.prints.length > 0 || kernel.hostCalls.length > 0;
    this.run = instanceOf(module, memory, {
      call: (number, addresses) => {
        const call = kernel.hostCalls[number];
        if (call === undefined) throw new Error(`the kernel has no call ${number}`);
        runHostCall(call, memory.memory.buffer, addresses);
      },
      message: (site, values, block) => {
        const print = kernel.prints[site];
        if (this.speaker === undefined || print === undefined) return;
        this.speaker.onPrint(printedLine(this.speaker, print, values, block));
      },
    });
  }

  placeBytes(): { readonly address: number; readonly length: number } {
    const { bytes } = this.kernel;
    if (this.#placed === undefined) {
      this.#placed = this.#memory.allocate(bytes.length);
      this.#memory.bytes.set(bytes, this.#placed);
    }
    return { address: this.#placed, length: bytes.length };
  }

  dispose(): void {
    if (this.#placed !== undefined) this.#memory.free(this.#placed, this.kernel.bytes.length);
    this.#placed = undefined;
  }
}

function instanceOf(
  module: WebAssembly.Module,
  { memory }: CpuMemory,
  host: {
    readonly call: (number: number, addresses: number) => void;
    readonly message: (site: number, values: number, block: number) => void;
  },
): RunBlocks {
  const { exports } = new WebAssembly.Instance(module, { env: { memory }, host });
  return exports["run"] as RunBlocks;
}

type CpuLaunch = Launch<CpuAllocation, CpuProgram>;

/** Memory that a launch has for its own time. */
type LaunchMemory = Extract<ArgumentField, { readonly kind: "memory" }>;

/** What a run needs besides its arguments. */
export interface RunSettings {
  readonly check: ((blocks: number) => void) | undefined;
  readonly onPrint: ((line: string) => void) | undefined;
}

/** A launch that was bound. */
export class BoundKernel {
  readonly name: string;
  readonly #launch: CpuLaunch;
  readonly #memory: CpuMemory;
  readonly #blocks: number;
  readonly #arguments: Uint8Array;
  readonly #own: readonly LaunchMemory[];
  readonly #stopFlags: readonly number[];

  constructor(launch: CpuLaunch, memory: CpuMemory) {
    const { kernel, program, dimensions } = launch;
    this.name = kernel.name;
    this.#launch = launch;
    this.#memory = memory;
    this.#blocks = program.kernel.grid.reduce(
      (count, { extent }) => count * evaluateSize(extent, dimensions),
      1,
    );
    this.#arguments = argumentBytes(launch);
    const { fields } = program.kernel;
    this.#own = fields.filter((field) => field.kind === "memory");
    this.#stopFlags = fields.flatMap(({ kind, offset }) => (kind === "stop flag" ? [offset] : []));
  }

  /** Runs it; undefined where it has ended already. */
  run(pool: RangePool, room: ArgumentRoom, settings: RunSettings): Promise<void> | undefined {
    if (this.#blocks === 0) return undefined;
    if (this.#own.length > 0) return this.#runWithMemory(pool, room, settings);
    return this.#runOn(pool, room, settings, this.#arguments);
  }

  async #runWithMemory(pool: RangePool, room: ArgumentRoom, settings: RunSettings): Promise<void> {
    const memory = this.#memory;
    const { dimensions } = this.#launch;
    const bytes = this.#arguments.slice();
    const view = new DataView(bytes.buffer);
    const taken: (readonly [address: number, bytes: number])[] = [];
    try {
      for (const field of this.#own) {
        const size = evaluateSize(field.bytes, dimensions);
        const address = memory.allocate(size);
        taken.push([address, size]);
        if (field.zeroed) memory.view(address, size).fill(0);
        view.setUint32(field.offset, address, true);
      }
      await this.#runOn(pool, room, settings, bytes);
    } finally {
      for (const [address, size] of taken) memory.free(address, size);
    }
  }

  #runOn(
    pool: RangePool,
    room: ArgumentRoom,
    { check, onPrint = printLine }: RunSettings,
    bytes: Uint8Array,
  ): Promise<void> | undefined {
    const { program, dimensions } = this.#launch;
    const memory = this.#memory;
    const argumentBlock = room.addressFor(bytes.length);
    memory.bytes.set(bytes, argumentBlock);
    for (const offset of this.#stopFlags) room.writeFlagAddress(argumentBlock + offset);
    if (program.kernel.prints.length > 0)
      program.speaker = { kernel: program.kernel, dimensions, memory, onPrint };
    const ended = pool.run({
      module: program,
      argumentBlock,
      blocks: this.#blocks,
      isSequential: program.isSequential,
      check,
      stopFlag: room.flag,
    });
    if (ended === undefined) return undefined;
    if (!(ended instanceof Promise)) throw this.#told(ended);
    return ended.then((failure) => {
      if (failure !== undefined) throw this.#told(failure);
    });
  }

  #told(failure: RangeFailure): unknown {
    const { program, kernel, dimensions } = this.#launch;
    if (failure.kind !== "code") return brokenOff(failure, kernel.name, kernel.location);
    const { code, scratch } = failure;
    const fault = program.kernel.faults[code - 1];
    if (code === stopped || fault === undefined)
      return new Error(`kernel ${kernel.name} ended with ${code}`);
    return faultError({ kernel: program.kernel, dimensions, memory: this.#memory }, fault, scratch);
  }
}

/** Where the arguments of the launch that runs lie: one launch runs at a time. */
export class ArgumentRoom {
  /** The address of the word by which a launch is stopped. */
  readonly flag: number;
  readonly #memory: CpuMemory;
  #address: number;
  #bytes = 1024;

  constructor(memory: CpuMemory) {
    this.#memory = memory;
    this.flag = memory.allocate(64);
    memory.view(this.flag, 64).fill(0);
    this.#address = memory.allocate(this.#bytes);
  }

  addressFor(bytes: number): number {
    if (bytes <= this.#bytes) return this.#address;
    const [address, before] = [this.#address, this.#bytes];
    this.#address = this.#memory.allocate(bytes);
    this.#bytes = bytes;
    this.#memory.free(address, before);
    return this.#address;
  }

  writeFlagAddress(at: number): void {
    new DataView(this.#memory.memory.buffer).setUint32(at, this.flag, true);
  }
}

function argumentBytes({ program, arrays, scalars, dimensions }: CpuLaunch): Uint8Array {
  const { fields, argumentBytes: count } = program.kernel;
  const bytes = new Uint8Array(count);
  const view = new DataView(bytes.buffer);
  for (const field of fields) {
    switch (field.kind) {
      case "array":
        view.setUint32(field.offset, given(arrays, field.name).address, true);
        break;
      case "scalar":
        bytes.set(valueBytes(field.dtype, given<HostValue>(scalars, field.name)), field.offset);
        break;
      case "size":
        view.setInt32(field.offset, evaluateIndexSize(field.size, dimensions), true);
        break;
      case "memory":
      case "stop flag":
        // Known when it runs.
        break;
    }
  }
  return bytes;
}

function given<T>(values: ReadonlyMap<string, T>, name: string): T {
  const value = values.get(name);
  if (value === undefined) throw new Error(`the launch has no ${name}`);
  return value;
}

/** A kernel as devices of this process share it. */
interface Shared {
  readonly kernel: CpuKernel;
  readonly module: WebAssembly.Module;
}

/** Kernels that are kept when the device that compiled them has ended. */
const keptKernels = 1024;
const shared = new LruCache<string, Shared>(keptKernels);

/** What a device has compiled. */
export class Programs {
  readonly #memory: CpuMemory;
  readonly #compile: CompileKernel;
  readonly #features: CpuFeatures;
  #count = 0;

  constructor(memory: CpuMemory, compile: CompileKernel, features: CpuFeatures) {
    this.#memory = memory;
    this.#compile = compile;
    this.#features = features;
  }

  compile(traced: Kernel, text: string): Compiled<CpuProgram> {
    const key = `${JSON.stringify(this.#features)} ${text}`;
    const { kernel, module } = shared.get(key) ?? this.#compileAnew(traced, key);
    const program = new CpuProgram(kernel, module, this.#count++, this.#memory);
    return { program, cached: false, notes: [] };
  }

  #compileAnew(traced: Kernel, key: string): Shared {
    const kernel = this.#compile(traced, this.#features);
    const compiled = { kernel, module: new WebAssembly.Module(kernel.bytes) };
    shared.set(key, compiled);
    return compiled;
  }
}
