/**
 * Plans: what a compiled program does, as data. A plan is a list of launches over buffers; loops and branches hold lists
 * of their own. It prints as text, which tests record.
 *
 *   arena 16640 bytes
 *   launch reduce_max in(arg0) out(arena+0)            // jit(f)/softmax/reduce_max
 *   launch exp_sub in(arg0, arena+0) out(result0)      // jit(f)/softmax/exp
 */
import type { DType } from "../../formats/dtype.ts";
import type { HostArray } from "../../formats/hostarray.ts";
import type { Operation } from "../../device/operation.ts";
import type { KernelDefinition } from "../../lang/index.ts";
import type { Target } from "../../targets/target.ts";
import type { MatmulPrecision } from "../ops/matmul-precision.ts";
import type { PartView } from "../lower/library.ts";
import type { AnyGraphOp } from "../ops/node.ts";
import type { CollectiveCall, ProcessCounts } from "../ranks/collective.ts";
import type { TensorType } from "../ops/types.ts";

/** Where a buffer lies: in an argument, in a result, among the program's constants, or in the arena. */
export type Place =
  | { readonly kind: "argument"; readonly index: number }
  | { readonly kind: "result"; readonly index: number }
  | { readonly kind: "constant"; readonly index: number }
  | { readonly kind: "arena" };

export interface Buffer {
  readonly id: number;
  readonly type: TensorType;
  readonly dtype: DType;
  readonly count: number;
  readonly bytes: number;
  place: Place;
}

/** What of the program a launch is. */
export interface Origin {
  /** The op that it is launched for; undefined where nothing but memory is moved. */
  readonly op: AnyGraphOp | undefined;
  /** Those that it computes, with that one. */
  readonly ops: readonly AnyGraphOp[];
}

export interface LaunchStep {
  readonly kind: "launch";
  readonly kernel: KernelDefinition;
  readonly inputs: readonly Buffer[];
  readonly outputs: readonly Buffer[];
  /** Inputs that results are written over, by the results' places; they are none of `inputs` any more. */
  readonly overwritten: Overwritten;
  /** Inputs that a result may be written over: those that are read at its own places, or what it updates a part of. */
  readonly overwritable: Overwritten;
  /** The kernel that writes results over some of these. */
  readonly inPlace: (overwritten: Overwritten) => KernelDefinition;
  /** Whether its result is its input as it is, an input of which a part is changed, or anything else. */
  readonly form: "copy" | "update" | "other";
  /** What the program calls it. */
  readonly name: string;
  readonly origin: Origin;
}

/** Lists of buffers by the places of results. */
export type Overwritten = ReadonlyMap<number, readonly Buffer[]>;

/** An operation of the library: its arguments are buffers under shapes. */
export interface OperationStep {
  readonly kind: "operation";
  readonly operation: Operation;
  readonly inputs: readonly NamedBuffer[];
  readonly outputs: readonly NamedBuffer[];
  /** Whether the plan's text has the notes of the operation's plan. */
  readonly isNoted: boolean;
  readonly name: string;
  readonly origin: Origin;
}

export interface NamedBuffer {
  readonly name: string;
  readonly buffer: Buffer;
  readonly shape: readonly number[];
  /** Where the argument lies in the buffer, if it is a part of it: its shape is then the run from its first element to its last. */
  readonly view?: PartView | undefined;
}

/** A loop; `trips` is how often it runs where that is known, and then nobody asks the predicate. */
export interface WhileStep {
  readonly kind: "while";
  readonly condition: readonly Step[];
  readonly predicate: Buffer;
  readonly body: readonly Step[];
  readonly trips: number | undefined;
  readonly name: string;
}

export interface BranchStep {
  readonly kind: "branch";
  /** An i32 or a bool, of which true is branch 0. */
  readonly index: Buffer;
  readonly branches: readonly (readonly Step[])[];
  readonly name: string;
}

/** A comparison on the host of what the program computed. */
export interface CheckStep {
  readonly kind: "check";
  readonly op: AnyGraphOp;
  readonly operands: readonly Buffer[];
}

/** What ranks do together: each gives its inputs and gets its outputs. */
export interface CollectiveStep {
  readonly kind: "collective";
  readonly call: CollectiveCall;
  readonly inputs: readonly Buffer[];
  readonly outputs: readonly Buffer[];
  readonly name: string;
}

export type Step = LaunchStep | OperationStep | CollectiveStep | WhileStep | BranchStep | CheckStep;

/** A program compiled to launches of kernels: what is launched in which order, and where each value lies. */
export interface Plan {
  /** The name of the function that was compiled. */
  readonly name: string;
  /** How products and convolutions of f32 are multiplied that ask for no precision. */
  readonly matmulPrecision: MatmulPrecision;
  /** The GPU that its launches are meant for, unless they are loaded elsewhere. */
  readonly target: Target;
  /** The types of the arguments. */
  readonly parameters: readonly TensorType[];
  /** The types of the results. */
  readonly results: readonly TensorType[];
  /** The arrays that are uploaded once. */
  readonly constants: readonly HostArray[];
  /** Those among the constants, by their places, that hold the number of whoever runs the plan. */
  readonly numbers: ReadonlyMap<number, "replica" | "partition">;
  /** Replicas and partitions that run the plan together; process = replica · partitions + partition. */
  readonly processes: ProcessCounts;
  /** How many bytes the values between the steps take together. */
  readonly arenaBytes: number;
  /** Byte offsets of the buffers in the arena. */
  readonly offsets: ReadonlyMap<Buffer, number>;
  /** What is done, in order. */
  readonly steps: readonly Step[];
  /** The argument, by its place, whose memory a result takes. */
  readonly aliases: ReadonlyMap<number, number>;
}

/** Every step, those of loops and branches after the step that holds them. */
export function* allSteps(steps: readonly Step[]): Generator<Step> {
  for (const step of steps) {
    yield step;
    for (const inner of innerSteps(step)) yield* allSteps(inner);
  }
}

/** The lists of steps within a step. */
export function innerSteps(step: Step): readonly (readonly Step[])[] {
  if (step.kind === "while") return [step.condition, step.body];
  return step.kind === "branch" ? step.branches : [];
}

/** Buffers that a step itself reads and writes. */
export function buffersOf(step: Step): readonly Buffer[] {
  if (step.kind === "launch" || step.kind === "collective")
    return [...step.inputs, ...step.outputs];
  if (step.kind === "operation")
    return [...step.inputs, ...step.outputs].map(({ buffer }) => buffer);
  if (step.kind === "check") return step.operands;
  return [step.kind === "while" ? step.predicate : step.index];
}
