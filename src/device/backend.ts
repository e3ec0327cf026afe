/**
 * The interface a way of running kernels implements: the simulator, a GPU, the emulator. Arguments reach a
 * back end checked and bound, so it never has to look at a user's mistakes.
 *
 * Calls take effect in the order in which they are made, and none of them makes the caller wait: what a
 * call needs from the device comes as a promise, and what goes wrong in a launch is told later.
 *
 *   launch ─────────┐
 *   launch ─────────┤ in order      synchronize() resolves when all of it is done and rejects with
 *   download ───────┘               the first failure of a launch since the last time
 */
import type { DType, DTypeName, HostValue } from "../formats/dtype.ts";
import type { HostArray } from "../formats/hostarray.ts";
import type { Kernel, KernelInterface } from "../ir/node.ts";
import type { CompiledKernel } from "../ptx/compiled-kernel.ts";
import type { PerformanceNote } from "../ptx/notes/note.ts";
import type { Location } from "../support/location.ts";
import type { LaunchLimits, LimitedProgram } from "../support/run-limits.ts";
import type { Target } from "../targets/target.ts";
import type { Control } from "./control-flow.ts";
import type { CodeBackend } from "./foreign-code.ts";
import type { LaunchInputs, ScratchArrays } from "./launch-inputs.ts";
import type { MemoryUse } from "./memory-account.ts";

/** Memory of a back end; opaque to everyone else. */
export interface Allocation {
  readonly bytes: number;
}

/** Memory as other libraries of a process know it. */
export interface ForeignMemory {
  readonly address: bigint;
  /** The number of the GPU, in the driver's order. */
  readonly gpu: number;
}

/** What an assembler made of a kernel. */
export interface MachineCode {
  /** Of a lane. */
  readonly registers: number;
  /** Bytes of each lane that lie in memory: spilled registers. */
  readonly localBytes: number;
  /** What the assembler said; undefined where it ran before anybody kept that. */
  readonly log: string | undefined;
}

/** A kernel made ready to run, in whatever form the back end wants. */
export interface Compiled<P = unknown> {
  readonly program: P;
  /** Whether it came from an earlier process's work. */
  readonly cached: boolean;
  /** What the compiler knows to cost speed. */
  readonly notes: readonly PerformanceNote[];
  /** Undefined where nothing is assembled. */
  readonly machineCode?: MachineCode | undefined;
}

/** A launch with everything known. */
export interface Launch<A extends Allocation = Allocation, P = unknown> {
  readonly kernel: KernelInterface;
  readonly program: P;
  readonly arrays: ReadonlyMap<string, A>;
  readonly scalars: ReadonlyMap<string, HostValue>;
  readonly dimensions: ReadonlyMap<string, number>;
  /** When to stop it, where it has not come to its end. */
  readonly limits?: LaunchLimits | undefined;
  /** Whether the launch before it in the plan of its operation is issued right before it. */
  readonly follows?: boolean | undefined;
}

/** A line of work beside the back end's own. */
export interface BackendStream {
  /** Once what was issued on it has ended. */
  dispose(): void;
}

/** Work that was prepared once and can be issued again and again. */
export interface Repeatable {
  /** On the back end's own stream unless another is given; `limited` ends it on those that stop kernels. */
  launch(stream?: BackendStream, limited?: LimitedProgram): void;
  dispose(): void;
}

/** A GPU and its driver, as measurements name them. */
export interface GpuDescription {
  readonly name: string;
  readonly driver: string;
}

/** Cycles of a processor, instructions of all warps, or steps of the simulator. */
export type TimeUnit = "cycles" | "instructions" | "steps";

/** A kernel to be compiled elsewhere: what tells it from every other, and its text with all source lines. */
export interface KernelToCompile {
  readonly text: string;
  readonly located: string;
}

/** A launch that is to be kept: its kernel as it was traced, and what tells that from every other. */
export interface LaunchToKeep extends LaunchInputs {
  readonly kernel: Kernel;
  readonly text: string;
}

/** A launch that an earlier process kept, found without its kernel's being traced. */
export interface KeptLaunch<P = unknown> extends LaunchInputs {
  readonly kernel: KernelInterface;
  /** Tells the kernel from every other. */
  readonly key: string;
  /** Makes it ready; undefined where it has to be traced after all. */
  readonly load: () => Compiled<P> | undefined;
}

/** What is kept of a plan: its launches, and the arrays that only they use. */
export interface KeptPlan<P = unknown> {
  readonly launches: readonly KeptLaunch<P>[];
  readonly scratch: ScratchArrays;
}

/** Launches of operations' plans, kept from one process to the next. */
export interface KeptPlans<P = unknown> {
  /** What is kept of the plan that `text` tells from every other; `location` is the operation's. */
  read(text: string, location: Location): KeptPlan<P> | undefined;
  write(text: string, launches: readonly LaunchToKeep[], scratch: ScratchArrays): void;
}

export interface Backend<A extends Allocation = Allocation, P = unknown> {
  readonly name: string;
  readonly target: Target;
  /** Undefined where there is none. */
  readonly board?: GpuDescription | undefined;
  /** Whether it stops a launch that has reached its limits. */
  readonly stopsKernels: boolean;
  /** Whether what runs may be about to end by a limit of its own, and say so. */
  readonly isStopping?: boolean | undefined;
  /** Resolves when all that was issued so far has ended, however that went, on back ends whose work the host does. */
  caughtUp?(): Promise<void>;
  /** Which source lines a program carries; kernels that differ in other lines alone share one program. */
  readonly sourceLines: "all" | "messages";
  /** What its clock counts, by which profiles measure. */
  readonly timeUnit: TimeUnit;
  /** Makes a kernel ready; `text` tells it from every other kernel. Called once for each text. */
  compile(kernel: Kernel, text: string): Compiled<P>;
  /**
   * Has kernels that nobody has compiled before compiled beside this process, many at a time, so that `compile` finds
   * them; where that gains nothing there is no such thing.
   */
  compileInBackground?(kernels: readonly KernelToCompile[]): Promise<void>;
  /** Undefined where nothing is kept. */
  readonly keptPlans?: KeptPlans<P> | undefined;
  /** Lets go of a program that will not be launched again, once the work issued so far is done with it. */
  forget(program: P): void;
  /** Makes a kernel ready that was compiled ahead of time. Called once for each. */
  load(kernel: CompiledKernel): Compiled<P>;
  /** What memory is used for. */
  readonly memory: MemoryUse;
  /** Gives back to the system what is kept for the next who asks. */
  trim(): void;
  /** How code of other compilers is run; undefined where it is not. */
  readonly code: CodeBackend<A> | undefined;
  /** Uninitialised memory for `shape` elements. */
  allocate(dtype: DType, shape: readonly number[]): A;
  /** Part of an allocation, from `offset` bytes on, which lives as long as that does. */
  view(allocation: A, offset: number, dtype: DType, shape: readonly number[]): A;
  /** Repeats the bytes of `pattern` through an allocation, in its turn. */
  fill(allocation: A, pattern: Uint8Array): Promise<void>;
  /** Copies as many bytes as `to` has, in its turn. */
  copy(from: A, to: A): Promise<void>;
  /** Where memory lies for other libraries of this process; undefined where it has no address. */
  addressOf(allocation: A): ForeignMemory | undefined;
  /** Memory of others at an address, which is not given back; undefined where there are no addresses. */
  wrap(address: number, dtype: DType, shape: readonly number[]): A | undefined;
  /** Takes memory back once the work issued so far is done with it. */
  release(allocation: A): void;
  /** Copies what the host array holds at the time of the call; resolves when that is on its way. */
  upload(array: HostArray, allocation: A): Promise<void>;
  /** The same with values that are yet to come: what is called later takes its turn after them. */
  receive(values: Promise<HostArray>, allocation: A): Promise<void>;
  download<N extends DTypeName>(
    dtype: DType<N>,
    shape: readonly number[],
    allocation: A,
  ): Promise<HostArray<N>>;
  /** Issues the kernel; what goes wrong while it runs is told by `synchronize`. */
  launch(launch: Launch<A, P>, stream?: BackendStream): void;
  /** Another stream; work on it that shares arrays with other work keeps the order of the calls. */
  stream(): BackendStream;
  /** Issues the kernel; resolves when it has run, rejects with what went wrong in it. */
  run(launch: Launch<A, P>): Promise<void>;
  /** Does everything about a launch now that does not have to be done each time. */
  bind(launch: Launch<A, P>): Repeatable;
  /** Work of `bind`, one after the other, as a single piece. */
  record(works: readonly Repeatable[]): Repeatable;
  /** Whether it decides loops and branches by itself; where there is no such thing, the host has to. */
  readonly decides?: boolean;
  /** A loop or a choice over such work, to be recorded with others; called where `decides`. */
  control?(control: Control<Repeatable, A>): Repeatable;
  /** Resolves when all work is done; rejects with the first failure of a launch since the last time. */
  synchronize(): Promise<void>;
  /** Milliseconds that the device spends on what `work` issues. */
  time(work: () => void): Promise<number>;
  dispose(): void;
}
