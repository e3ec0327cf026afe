/**
 * How asynchronous and collective instructions (mbarrier, bulk copies, tensor cores, matrices) join the
 * machine. A rule is found by the opcode's root (`mbarrier`, `wgmma`, `cp`); it looks at the instruction
 * once, when the module is loaded, and gives what runs it for a group of lanes of a warp:
 *
 *   const rules: CollectiveRules = {
 *     ldmatrix: (instruction) => {
 *       const { modifiers, operands } = instruction;      parsed once
 *       return {
 *         aligned: true,                                  runs only with all live lanes of the warp
 *         run: ({ machine, warp, mask }) => { …; return "done"; },
 *       };
 *     },
 *   };
 *
 * `run` gives "done", or "retry" to be asked again later: the lanes wait, and other groups, warps and
 * blocks go on. Nothing may have been changed by a run that gives "retry". Work that completes later is
 * handed to `machine.schedule`.
 */
import type { Instruction, Operand } from "../ptx/module.ts";
import type { Epoch, Knowledge, Timeline } from "../happens-before/knowledge.ts";
import type { DiagnosticDetails } from "../support/diagnostics.ts";
import type { Location } from "../support/location.ts";
import type { Random } from "../support/random.ts";
import type { Target } from "../targets/target.ts";
import type { MemoryViews } from "./memory.ts";
import type { Naming } from "./naming.ts";

/** An operand as the lanes see it. Registers are those of the frame that the warp is running. */
export interface OperandView {
  readonly operand: Operand;
  /** Bits of a register or constant up to 32 bits, unsigned; 0 or 1 of a predicate. */
  word(warp: WarpView, lane: number): number;
  setWord(warp: WarpView, lane: number, bits: number): void;
  /** A 64-bit register or constant, or all of a 128-bit register. */
  wide(warp: WarpView, lane: number): bigint;
  setWide(warp: WarpView, lane: number, bits: bigint): void;
  /** An address operand (base and offset) or a register that holds an address, unsigned. */
  address(warp: WarpView, lane: number): number;
  /**
   * Where a register lies: the index in `warp.words` of lane 0. A register up to 32 bits has a word a lane;
   * a 64-bit one two and a 128-bit one four, lowest first; a predicate a single word, a bit for each lane.
   */
  start(warp: WarpView): number;
  /** The index in `warp.words` of the word whose bits say which lanes have written the register. */
  defined(warp: WarpView): number;
  /** Of a vector, a list or a pair; of an address its coordinates. */
  readonly elements: readonly OperandView[];
}

export interface CollectiveInstruction {
  readonly instruction: Instruction;
  /** Everything behind the root of the opcode, as written: ["sync", "aligned", "m64n128k16"]. */
  readonly modifiers: readonly string[];
  readonly operands: readonly OperandView[];
  /** Where the user wrote it. */
  readonly location: Location;
}

export interface WarpView {
  /** In its block. */
  readonly index: number;
  /** As reports name it. */
  readonly title: string;
  readonly block: BlockView;
  /** All registers of the warp, under three views. May be replaced by a call: do not keep. */
  readonly words: Int32Array;
  readonly singles: Float32Array;
  readonly doubles: Float64Array;
  /** Lanes that have not exited, a bit each. */
  readonly live: number;
  /** What the warp knows to have happened; absent without checks. */
  readonly timeline: Timeline | undefined;
  /** Lanes look for what others do, and will look again: at a word of memory, or at a barrier. */
  polled(views?: MemoryViews, offset?: number): void;
  /** Takes what a wait told, to be relied on once the warp has decided something by its outcome. */
  learn(knowledge: Knowledge): void;
  /** Takes what a relaxed wait told, to be relied on behind a fence as well. */
  see(knowledge: Knowledge): void;
  /** What relaxed waits have told, which the warp may rely on behind a fence. */
  readonly found: Knowledge;
  /** What the warp knew at its last fence: all that it publishes without a release. */
  readonly fenced: Knowledge;
  /**
   * Registers that a wgmma has under way, by `OperandView.defined`, and which one. Such a register counts
   * as not written; whoever reads it reports this instruction instead (TW8070).
   */
  readonly flights: Map<number, CollectiveInstruction>;
}

export interface BlockView {
  /** In the grid, x fastest. */
  readonly index: number;
  /** In the cluster. */
  readonly rank: number;
  readonly cluster: readonly BlockView[];
  readonly warps: readonly WarpView[];
  readonly shared: MemoryViews;
}

/** Memory that an address leads to. */
export interface Place {
  readonly views: MemoryViews;
  /** In bytes from the start of the views. */
  readonly offset: number;
  /** The block whose shared memory it is; undefined for other spaces. */
  readonly block: BlockView | undefined;
  readonly space: "global" | "shared" | "local" | "const" | "param";
}

export type AddressKind = "shared" | "global" | "generic" | "param" | "const" | "local";

export interface AccessRequest {
  /** Whose accesses these are. */
  readonly warp: WarpView;
  readonly instruction: CollectiveInstruction;
  readonly lane: number;
  /** `shared` also takes addresses of other blocks of the cluster. */
  readonly kind: AddressKind;
  readonly address: number;
  readonly bytes: number;
  readonly alignment: number;
}

/** An access for the race checks: who, what, and what it may rely on. */
export interface RecordedAccess {
  readonly place: Place;
  readonly bytes: number;
  readonly mode: "read" | "write" | "atomic";
  /** Asynchronous operations see memory through a proxy of their own. */
  readonly proxy: "generic" | "async";
  /** The step it belongs to: the warp's timeline, or that of an asynchronous operation. */
  readonly epoch: Epoch;
  /** What is known to have happened before it. */
  readonly known: Knowledge;
  readonly warp: WarpView;
  readonly lane: number;
  readonly instruction: CollectiveInstruction;
  /** The read of a tensor map by a copy. */
  readonly ofMap?: boolean | undefined;
  /** Of an operation by the ordinary proxy: the agent that stands for it behind a proxy fence. */
  readonly fencedBy?: number | undefined;
}

export interface MachineView {
  readonly target: Target;
  readonly checks: boolean;
  readonly naming: Naming;
  /** Whether the program is a kernel of ours, which promises more than PTX demands. */
  readonly isOwn: boolean;
  /** Of the schedule; the seed decides. */
  readonly random: Random;
  /** A fresh agent of the happens-before order, for an asynchronous operation. */
  newAgent(): number;
  /** The memory at an address; throws the finding where there is none or it is misaligned. */
  resolve(request: AccessRequest): Place;
  /** Notes that an instruction writes bytes of a place, for launches on threads. */
  wrote(place: Place, bytes: number): void;
  /** Checks an access against those that it is not ordered with, and remembers it; does nothing without checks. */
  record(access: RecordedAccess): void;
  /** Runs `complete` later, in an order that the seed decides. */
  schedule(complete: () => void): void;
  /** Takes a cluster that has not started, which then never does: the index of its first block; undefined where none is left. */
  cancelCluster(): readonly [x: number, y: number, z: number] | undefined;
  /** Something changed that lanes of the cluster whose turn it is may be waiting for. */
  changed(): void;
  /** A finding after which the launch goes on. */
  report(details: DiagnosticDetails): void;
  /** What is worth knowing and no finding, since it is another compiler's business. */
  note(details: DiagnosticDetails): void;
}

export interface CollectiveCall {
  readonly machine: MachineView;
  readonly warp: WarpView;
  /** The lanes that run it, a bit each. */
  readonly mask: number;
}

export interface Collective {
  /** Whether all live lanes of the warp must run it together. */
  readonly aligned: boolean;
  run(call: CollectiveCall): "done" | "retry";
}

/** Looks at an instruction once; undefined where the form is unknown. */
export type CollectiveRule = (instruction: CollectiveInstruction) => Collective | undefined;

/** By the root of the opcode. */
export type CollectiveRules = { readonly [root: string]: CollectiveRule };
