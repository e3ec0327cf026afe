/**
 * A kernel as a module of WebAssembly, and everything that a launch must hand over.
 *
 *   module   imports ("env", "memory"), shared by all workers, and ("host", "call") and ("host", "message")
 *            exports run(arguments: i32, begin: i32, end: i32, scratch: i32) -> i32
 *
 *   arguments   the address of a block in memory, a field for each address and number that the kernel asks for
 *   begin, end  blocks of the grid, numbered row by row, the last axis fastest
 *   scratch     the address of `scratchBytes` of the worker's own, aligned to 64; their content is anything
 *   result      0; `stopped` where the stop flag was set; else 1 + the number of one of `faults`, the first that was met,
 *               and what belongs to it lies at the beginning of scratch
 *
 * Arrays may be read up to `padding` bytes behind their end, but are never written there.
 */
import type { HostCall } from "./lower/host-calls.ts";
import type { DType } from "../formats/dtype.ts";
import type { Size } from "../ir/size.ts";
import type { Location } from "../support/location.ts";

/** What `run` gives where its stop flag was set. */
export const stopped = -1;

/** Bytes behind each array that may be read, whatever they hold. */
export const padding = 64;

/** A field of the block of arguments, `offset` bytes from its beginning. Numbers of 8 bytes are aligned to 8, others to 4. */
export type ArgumentField = { readonly offset: number } & (
  | {
      /** The address of the first byte of an array argument: 4 bytes. */
      readonly kind: "array";
      readonly name: string;
    }
  | {
      /** An argument that is a number, as its dtype is stored: up to 8 bytes; 4-bit formats take the low half of one. */
      readonly kind: "scalar";
      readonly name: string;
      readonly dtype: DType;
    }
  | {
      /** A number that follows from the launch's dimensions: an i32. */
      readonly kind: "size";
      readonly size: Size;
    }
  | {
      /** The address of memory for the time of the launch, shared by all blocks: 4 bytes. */
      readonly kind: "memory";
      readonly name: string;
      readonly bytes: Size;
      readonly zeroed: boolean;
    }
  | {
      /** The address of an i32 that is not 0 when the launch is to stop: read before each block. */
      readonly kind: "stop flag";
    }
);

/** Why a launch ends with an error; asserts and promises say what failed where. */
export interface Fault {
  readonly kind: "assert" | "promise" | "step" | "bounds" | "deadlock";
  /** The message of an assert, what is promised, or what was accessed. */
  readonly text: string;
  readonly location: Location;
  /** What lies at the beginning of scratch behind the number of the block (an i32 at 0): values from byte 16, each aligned to 16. */
  readonly values: readonly FaultValue[];
}

export interface FaultValue {
  readonly dtype: DType;
  readonly shape: readonly number[];
}

/**
 * A print, by the number handed to the import `message(site: i32, values: i32, block: i32)`: `values` is the address of the values,
 * each aligned to 16 and packed as arrays are.
 */
export interface PrintSite {
  readonly format: string;
  readonly location: Location;
  /** The index of the program thread that prints. */
  readonly thread: number;
  readonly values: readonly FaultValue[];
}

/** Whether blocks may run in any order and at the same time. */
export type BlockOrder =
  /** In any order, on any number of threads. */
  | "independent"
  /** On any number of threads, whose updates of the same elements come in any order: floats may differ in their last places. */
  | "atomic"
  /** One after another, from 0 on one thread: a block may wait for what those before it did. */
  | "in order";

export interface CpuKernel {
  readonly name: string;
  readonly bytes: Uint8Array<ArrayBuffer>;
  /** Whether the module holds relaxed SIMD. */
  readonly relaxed: boolean;
  /** How many blocks the grid has, along each axis. */
  readonly grid: readonly { readonly name: string; readonly extent: Size }[];
  readonly argumentBytes: number;
  readonly fields: readonly ArgumentField[];
  readonly scratchBytes: number;
  readonly blocks: BlockOrder;
  readonly faults: readonly Fault[];
  readonly prints: readonly PrintSite[];
  /** What the host computes, by the number handed to the import `call(number, addresses)`: see `runHostCall`. */
  readonly hostCalls: readonly HostCall[];
}

/** What an engine offers beyond 128-bit SIMD. */
export interface CpuFeatures {
  /** Relaxed SIMD: fused multiply-add where the processor has it. */
  readonly relaxed: boolean;
  /** Whether it keeps loads where they stand, so that few of them are in registers at once; older V8 puts all loads of a loop first. */
  readonly keepsLoadsInOrder?: boolean | undefined;
}

/** Pages that a module's memory may have: 4 GiB. */
export const maximumPages = 65_536;
