/**
 * A kernel ready to run: its PTX, and everything that a launch must hand over. The driver, the emulator
 * and files written ahead of time all work from this, so that none of them needs the kernel's IR.
 *
 *   .entry axpy (.param .b64 x, .param .b64 out, .param .b32 size_n)
 *      array x ─────────┘            │                 │
 *      array out ────────────────────┘                 │
 *      size n, evaluated with the launch's dimensions ─┘
 */
import type { DType } from "../formats/dtype.ts";
import type { GridAxis } from "../ir/node.ts";
import type { Size } from "../ir/size.ts";
import type { Swizzle } from "../layout/algebra/shared-layout.ts";
import type { Position } from "../support/location.ts";
import type { Target } from "../targets/target.ts";
import type { PtxModule } from "./module.ts";

/** What a tensor map says, as far as it is known before the launch; innermost axis first. */
export interface TensorMapPlan {
  /** The array parameter or scratch that the map describes. */
  readonly array: string;
  readonly dtype: DType;
  readonly extents: readonly Size[];
  /** In bytes, of every axis but the innermost. */
  readonly strides: readonly Size[];
  readonly box: readonly number[];
  readonly swizzle: Swizzle;
  readonly fill: "zero" | "nan";
  /** What copies do through the map: of an array without elements the two need memory of their own. */
  readonly use: "load" | "store";
}

export type LaunchParameter =
  /** The address of an array argument. */
  | { readonly kind: "array"; readonly name: string }
  | { readonly kind: "scalar"; readonly name: string; readonly dtype: DType }
  /** A number that follows from the launch's dimensions. */
  | { readonly kind: "size"; readonly size: Size; readonly bits: 32 | 64 }
  /** 128 bytes by value. */
  | { readonly kind: "tensorMap"; readonly map: TensorMapPlan }
  /** Global memory for the time of the launch; `zeroed` for counters, "once" where launches leave them at zero. */
  | {
      readonly kind: "scratch";
      readonly name: string;
      readonly bytes: Size;
      readonly zeroed: boolean | "once";
    }
  /** The ring that debugPrint and assert write to. */
  | { readonly kind: "messages" };

/** A debugPrint or assert of the kernel, or a loop's step, by the number that the kernel writes; or a promise, of which it writes nothing and traps. */
export interface MessageSite {
  readonly kind: "print" | "assert" | "step" | "promise";
  /** The format of a print, the message of an assert, what is promised. */
  readonly text: string;
  readonly values: readonly { readonly dtype: DType; readonly shape: readonly number[] }[];
  readonly position: Position | undefined;
}

/** A buffer of shared memory, so that reports can name the bytes of it. */
export interface BufferPlan {
  readonly name: string;
  readonly offset: number;
  readonly bytes: number;
  /** Barriers, or elements in a layout, as its text; absent for unions and scratch. */
  readonly holds?: "barriers" | BufferElements | undefined;
}

export interface BufferElements {
  readonly dtype: DType;
  readonly shape: readonly number[];
  readonly layout: string;
}

/** What a launch needs to know besides the code itself: plain data, so that it can be kept in a file. */
export interface LaunchPlan {
  /** The kernel's name, as the user gave it. */
  readonly name: string;
  /** The name of the entry in the module. */
  readonly entry: string;
  readonly target: Target;
  /** Threads of a block. */
  readonly threadsPerBlock: number;
  /** Blocks of a cluster; 1 where there are none. */
  readonly cluster: number;
  /** Blocks of the grid, all axes together. */
  readonly blocks: Size;
  /** Dynamic shared memory. */
  readonly sharedBytes: number;
  readonly buffers: readonly BufferPlan[];
  /** In the order of the entry's parameters. */
  readonly parameters: readonly LaunchParameter[];
  readonly messages: readonly MessageSite[];
  /** The grid's axes and the names of the program threads, by which messages say where they come from. */
  readonly grid: readonly GridAxis[];
  readonly threads: readonly string[];
  /**
   * Programmatic dependent launch: whether the kernel waits for the grid before it by itself, so that it may start before that has ended;
   * "in a plan" where it may so only behind the launch that precedes it in its operation's plan.
   */
  readonly dependentLaunch: boolean | "in a plan";
}

export interface Executable extends LaunchPlan {
  readonly module: PtxModule;
}
