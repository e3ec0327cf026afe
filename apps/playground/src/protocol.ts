/**
 * What the page and the worker that runs a program say to each other. Everything is plain data, and the page treats
 * what it hears as text from a stranger: the worker has run a stranger's program.
 *
 *   page                                worker
 *   run { program, settings } ───────▶  load, trace, launch
 *          ◀─────────── printed, progress, launched …
 *          ◀─────────── finished { findings, notes, kernels, … }
 *   ask { question } ────────────────▶  about kernels and launches that it keeps
 *          ◀─────────── answered { answer }
 */
import type { ScheduleName } from "../../../src/sim/index.ts";
import type { TargetName } from "../../../src/targets/target.ts";
import type { PartFile } from "./parts.ts";

export type Language = "typescript" | "stablehlo";

export interface Program {
  /** A file's name, such as `axpy.ts`. */
  readonly name: string;
  readonly language: Language;
  readonly source: string;
}

export const generators = ["normal", "uniform", "counting", "ones", "zeros"] as const;
export type Generator = (typeof generators)[number];

export interface Settings {
  readonly device: "simulator" | "emulator" | "cpu";
  readonly schedule: ScheduleName;
  readonly seed: number;
  readonly target: TargetName;
  readonly checks: boolean;
  /** Whether the other device runs the program too, and results are compared. */
  readonly compare: boolean;
  /** What fills the inputs of kernels in programs without `main`. */
  readonly generator: Generator;
  /** The value of named dimensions there. */
  readonly extent: number;
}

/** Lines that are shown: a program may print without end. The worker sends no more, and the page takes no more. */
export const mostPrinted = 500;

export const defaultSettings: Settings = {
  device: "simulator",
  schedule: "random",
  seed: 1,
  target: "sm_90a",
  checks: true,
  compare: false,
  generator: "normal",
  extent: 256,
};

/** A line of the program, from 1; undefined where something is of no line of it. */
export type Line = number | undefined;

export interface FindingNote {
  readonly message: string;
  readonly line: Line;
}

export interface Finding {
  /** A code of the reference, or `SyntaxError`, `Error` … for what JavaScript itself throws. */
  readonly code: string;
  readonly title: string;
  readonly summary: string;
  readonly line: Line;
  readonly expected?: string | undefined;
  readonly found?: string | undefined;
  readonly remedy?: string | undefined;
  readonly notes: readonly FindingNote[];
}

/** Something that costs speed. */
export interface SpeedNote {
  readonly code: string;
  readonly message: string;
  readonly because: string;
  readonly remedy: string;
  readonly line: Line;
  readonly kernel: string;
}

export interface WaitNode {
  readonly thread: string;
  readonly place: string;
  readonly op: string;
  readonly line: Line;
  readonly awaited: string;
}

/** From somebody who waits, over a barrier, to the op and thread that would arrive on it. */
export interface WaitEdge {
  /** Numbers of `waits`. */
  readonly waiter: number;
  readonly barrier: string;
  readonly arrival: { readonly op: string; readonly line: Line };
  readonly thread: string;
  /** The wait that keeps that thread; undefined where it has ended. */
  readonly keptBy: number | undefined;
}

export interface DeadlockGraph {
  readonly waits: readonly WaitNode[];
  readonly edges: readonly WaitEdge[];
}

export interface HeatMap {
  readonly rows: number;
  readonly columns: number;
  /** Means of the elements under each cell; NaN where one is NaN. */
  readonly cells: Float32Array;
}

export interface ArraySummary {
  readonly name: string;
  readonly role: string;
  readonly dtype: string;
  readonly shape: readonly number[];
  readonly least: number;
  readonly greatest: number;
  readonly mean: number;
  readonly notANumber: number;
  readonly heat: HeatMap;
  /** How it compares with the other device's. */
  readonly comparison?: ArrayComparison | undefined;
}

export interface ArrayComparison {
  readonly device: string;
  readonly different: number;
  readonly elements: number;
  /** The first that differs, and its two values. */
  readonly first?: {
    readonly index: readonly number[];
    readonly values: readonly [string, string];
  };
}

export interface LaunchSummary {
  readonly kernel: string;
  readonly device: string;
  readonly dimensions: readonly (readonly [string, number])[];
  readonly scalars: readonly (readonly [string, string])[];
  readonly arrays: readonly ArraySummary[];
  readonly milliseconds: number;
}

export interface KernelSummary {
  readonly name: string;
  readonly line: Line;
  /** The number of its first launch. */
  readonly launch: number | undefined;
}

export interface RunReport {
  readonly findings: readonly Finding[];
  readonly deadlock: DeadlockGraph | undefined;
  readonly launches: readonly LaunchSummary[];
  readonly kernels: readonly KernelSummary[];
  /** What `main` returned, where that is a comparison with a reference. */
  readonly reference: { readonly elements: number; readonly worst: number } | undefined;
  /** What `main` returned otherwise, as text. */
  readonly returned: string | undefined;
  readonly milliseconds: number;
}

export interface StageLine {
  readonly text: string;
  readonly line: Line;
  /** Whether the stage before had it. */
  readonly change: "same" | "new";
}

export interface Stage {
  readonly name: string;
  readonly lines: readonly StageLine[];
  /** How many lines of the stage before are gone. */
  readonly removed: number;
}

export interface TileSummary {
  readonly op: string;
  readonly line: Line;
  readonly dtype: string;
  readonly shape: readonly number[];
  readonly layout: string;
  readonly name: string | undefined;
  readonly registers: number;
}

export interface ConversionSummary {
  readonly op: string;
  readonly line: Line;
  readonly shape: readonly number[];
  readonly before: string;
  readonly after: string;
  readonly way: string;
  readonly cost: number;
}

export interface SharedSummary {
  readonly name: string;
  readonly line: Line;
  readonly dtype: string;
  readonly shape: readonly number[];
  readonly layout: string;
}

export interface BankSummary {
  readonly op: string;
  readonly line: Line;
  readonly wavefronts: number;
  readonly ideal: number;
}

export interface LayoutReport {
  readonly tiles: readonly TileSummary[];
  readonly conversions: readonly ConversionSummary[];
  readonly shared: readonly SharedSummary[];
  readonly banks: readonly BankSummary[];
}

/** What of a placed kernel is looked at. */
export type LayoutSubject =
  | { readonly kind: "tile"; readonly number: number }
  | { readonly kind: "before" | "after"; readonly number: number }
  | { readonly kind: "shared"; readonly number: number };

/** Where each element lies, row by row; axes before the last two are joined with the rows. */
export type ElementMap =
  | {
      readonly kind: "registers";
      readonly rows: number;
      readonly columns: number;
      readonly lanes: Uint8Array;
      readonly warps: Uint8Array;
      readonly registers: Uint16Array;
      /** Lanes that hold each element. */
      readonly copies: number;
      readonly title: string;
    }
  | {
      readonly kind: "shared";
      readonly rows: number;
      readonly columns: number;
      /** In bits, from the beginning of the buffer. */
      readonly offsets: Uint32Array;
      readonly bits: number;
      readonly title: string;
    };

export interface TimelineTrack {
  readonly block: string;
  readonly name: string;
  readonly beside: boolean;
}

export interface TimelineSpan {
  readonly track: number;
  readonly kind: "runs" | "waits" | "beside";
  readonly op: string;
  readonly line: Line;
  readonly iteration: string;
  readonly from: number;
  readonly to: number;
}

export interface TimelineReport {
  readonly tracks: readonly TimelineTrack[];
  readonly spans: readonly TimelineSpan[];
  readonly steps: number;
  readonly complete: boolean;
}

export interface MemoryBuffer {
  readonly name: string;
  readonly offset: number;
  readonly bytes: number;
  readonly holds: string;
}

export interface MemoryAccess {
  readonly buffer: number;
  readonly mode: "read" | "write";
  readonly op: string;
  readonly line: Line;
  readonly thread: string;
  readonly from: number;
  readonly to: number;
}

export interface MemoryReport {
  readonly block: string;
  readonly buffers: readonly MemoryBuffer[];
  readonly accesses: readonly MemoryAccess[];
  readonly bytes: number;
  readonly limit: number;
  readonly steps: number;
}

export interface CostLine {
  readonly line: Line;
  readonly instructions: number;
  readonly products: number;
  readonly accesses: string;
  readonly conversions: number;
  readonly lostToBanks: number;
}

export interface CostReport {
  readonly flops: number;
  readonly transcendentals: number;
  readonly globalRead: number;
  readonly globalWritten: number;
  readonly sharedRead: number;
  readonly sharedWritten: number;
  /** Lines of loops whose trips are not known; their bodies count once. */
  readonly unknownLoops: readonly Line[];
  readonly threads: number;
  readonly sharedBytes: number;
  readonly occupancy: { readonly blocks: number; readonly limit: string };
  readonly lines: readonly CostLine[];
  readonly roofline: Roofline;
}

export interface Roofline {
  readonly board: string;
  /** Floating-point operations a second, of the formats that the kernel multiplies. */
  readonly peak: number;
  readonly peakOf: string;
  /** Bytes a second. */
  readonly bandwidth: number;
  /** Operations for each byte of global memory. */
  readonly intensity: number;
  /** Seconds that the work takes at least. */
  readonly least: number;
  readonly bound: "memory" | "arithmetic";
}

export interface GraphNode {
  readonly id: number;
  readonly kind: string;
  readonly type: string;
  readonly detail: string;
  readonly line: Line;
  readonly layer: number;
}

export interface GraphReport {
  readonly name: string;
  readonly nodes: readonly GraphNode[];
  readonly edges: readonly (readonly [number, number])[];
  /** The program after simplification, as text. */
  readonly simplified: readonly StageLine[];
  readonly plan: PlanReport;
}

/** A buffer between launches, where it lies in the arena, and the steps that it is needed from and to. */
export interface ArenaBuffer {
  readonly type: string;
  readonly offset: number;
  readonly bytes: number;
  readonly from: number;
  readonly to: number;
}

/** How a program runs on a device, or why it does not. */
export type PlanReport =
  | {
      readonly kind: "planned";
      /** Of launches, loops and branches, as text. */
      readonly lines: readonly string[];
      readonly launches: number;
      readonly steps: number;
      readonly arenaBytes: number;
      readonly buffers: readonly ArenaBuffer[];
    }
  | { readonly kind: "refused"; readonly finding: Finding };

/** Where an array of a launch is read. */
export interface ValuesRequest {
  readonly launch: number;
  readonly array: string;
  readonly row: number;
  readonly column: number;
}

export interface ValuesReport {
  readonly rows: number;
  readonly columns: number;
  readonly row: number;
  readonly column: number;
  readonly values: readonly (readonly string[])[];
}

/** What can be asked of a worker after a run. */
export interface Questions {
  readonly stages: { readonly asks: { readonly kernel: number }; readonly gives: readonly Stage[] };
  readonly notes: {
    readonly asks: { readonly kernel: number };
    readonly gives: readonly SpeedNote[];
  };
  readonly layouts: { readonly asks: { readonly kernel: number }; readonly gives: LayoutReport };
  readonly elements: {
    readonly asks: { readonly kernel: number; readonly subject: LayoutSubject };
    readonly gives: ElementMap;
  };
  readonly timeline: { readonly asks: { readonly launch: number }; readonly gives: TimelineReport };
  readonly trace: { readonly asks: { readonly launch: number }; readonly gives: string };
  readonly memory: { readonly asks: { readonly launch: number }; readonly gives: MemoryReport };
  readonly cost: { readonly asks: { readonly kernel: number }; readonly gives: CostReport };
  readonly values: { readonly asks: ValuesRequest; readonly gives: ValuesReport };
  readonly graph: { readonly asks: Record<never, never>; readonly gives: GraphReport };
}

export type QuestionName = keyof Questions;

export type Question = {
  [N in QuestionName]: { readonly name: N } & Questions[N]["asks"];
}[QuestionName];

export type ToWorker =
  | { readonly kind: "run"; readonly program: Program; readonly settings: Settings }
  | { readonly kind: "ask"; readonly id: number; readonly question: Question }
  | {
      readonly kind: "part";
      readonly name: string;
      /** Undefined where they could not be fetched. */
      readonly files: readonly PartFile[] | undefined;
    }
  /** Be quick when the program comes. */
  | { readonly kind: "warm" };

export type FromWorker =
  | { readonly kind: "need"; readonly part: string }
  | { readonly kind: "printed"; readonly text: string }
  | { readonly kind: "refused"; readonly what: string }
  | { readonly kind: "progress"; readonly message: string }
  | { readonly kind: "finished"; readonly report: RunReport }
  | { readonly kind: "answered"; readonly id: number; readonly answer: unknown }
  | { readonly kind: "failed"; readonly id: number; readonly finding: Finding };
