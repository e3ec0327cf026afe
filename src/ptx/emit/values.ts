/**
 * What the values of the IR are while PTX is written. A tile is a list of words in each lane, packed in
 * the order of the layout's registers:
 *
 *   | format               | register       | holds                                                    |
 *   |----------------------|----------------|----------------------------------------------------------|
 *   | bool                 | pred           | one element                                              |
 *   | 4, 8 and 16 bits     | b32            | 8, 4 or 2 elements, the first in the low bits            |
 *   | 32 bits              | b32            | one element                                              |
 *   | 64 bits              | b64            | one element                                              |
 *
 * A word's last elements may be padding. In a splat every slot of its one word holds the number. Scalars
 * are lone elements: pred for bool, b16 for 16 bits, b64 for 64, b32 for the others, where narrow
 * integers are extended by their sign and narrow floats are their code.
 */
import type { DType } from "../../formats/dtype.ts";
import type { Fact } from "../../ir/facts/index.ts";
import type { Size } from "../../ir/size.ts";
import type { Value } from "../../ir/node.ts";
import type { RegisterLayout } from "../../layout/algebra/register-layout.ts";
import type { SharedLayout } from "../../layout/algebra/shared-layout.ts";
import type { SharedWindow } from "../../layout/model/windows.ts";
import type { RegisterClass } from "../code.ts";
import type { Register } from "../module.ts";

export interface ScalarValue {
  readonly kind: "scalar";
  readonly dtype: DType;
  readonly register: Register;
  /** Where it is known now; integers only. */
  readonly constant?: number | undefined;
}

export interface TileValue {
  readonly kind: "tile";
  readonly dtype: DType;
  readonly shape: readonly number[];
  readonly layout: RegisterLayout;
  readonly words: readonly Register[];
}

/** An accumulator that may still be written: `wgmma` layout, one tuple of registers for its whole life. */
export interface InflightValue {
  readonly kind: "inflight";
  readonly dtype: DType;
  readonly shape: readonly number[];
  /** Words of slab i (64 rows) at i · wordsPerSlab and up, in the order of the instruction's operands. */
  readonly words: readonly Register[];
}

/** A whole number: an i32 register, a constant, or their sum. */
export interface IndexValue {
  readonly register: Register | undefined;
  readonly constant: number;
}

/** An index and what is known of it whatever the launch. */
export interface Position extends IndexValue {
  readonly fact: Fact;
}

/** An axis of the array that a window lies in. */
export interface RootAxis {
  readonly extent: Size;
  /** In elements. */
  readonly stride: Size;
}

/** Where a window lies in one that it was cut from, and on which sides it may overhang. */
export interface Bound {
  /** From the first element of that window to the first of this one. */
  readonly start: Position;
  /** Elements of that window. */
  readonly size: Size;
  readonly low: boolean;
  readonly high: boolean;
}

/** A part of a window that must lie inside it wherever it is accessed, and for all that is known may not. */
export interface RequiredBound {
  /** From the first element of that window. */
  readonly start: Position;
  readonly count: number;
  /** Elements of that window. */
  readonly size: Size;
}

export interface WindowAxis {
  /** The axis of the array along which it runs. */
  readonly root: number;
  readonly size: Size;
  /** The windows, the array among them, of which an element must be inside as well. */
  readonly bounds: readonly Bound[];
}

/**
 * A window on global memory whose axes run along those of an array, each along one of its own. Axes of
 * the array along which no axis of the window runs stay at their origin.
 */
export interface GlobalValue {
  readonly kind: "global";
  /** The parameter or allocation. */
  readonly root: Value;
  /** Its name among the launch's parameters. */
  readonly name: string;
  /** b64: the address of the array's first element. */
  readonly base: Register;
  /**
   * Undefined where that is the parameter itself. Elsewhere the array is a window that was reshaped,
   * which no tensor map describes, and this divides the number of elements that lie before it.
   */
  readonly moved: number | undefined;
  readonly dtype: DType;
  /** Nobody writes it while the kernel runs. */
  readonly readOnly: boolean;
  /** The array, where the window was reshaped under the shape that makes it a box. */
  readonly array: readonly RootAxis[];
  /** The position along each axis of the array at which the window begins. */
  readonly origin: readonly Position[];
  readonly axes: readonly WindowAxis[];
  /** Of indices that drop an axis. */
  readonly required: readonly RequiredBound[];
}

/** A window under another shape that strides cannot express: indices are taken apart one by one. */
export interface ReshapedValue {
  readonly kind: "reshaped";
  readonly dtype: DType;
  readonly source: RefValue;
  /** The shape of the whole; the elements of the source in row-major order. */
  readonly shape: readonly Size[];
  /** The window: where it begins in the whole, and along which of its axes it runs. */
  readonly origin: readonly Position[];
  readonly axes: readonly WindowAxis[];
  readonly required: readonly RequiredBound[];
}

/** What an offset known at run time adds to the number of a window's first element. */
export interface SharedMove {
  readonly index: Register;
  /** Elements for each step of the index. */
  readonly stride: number;
  /** The values that the index may have: multiples of `divisor` from 0 on, `count` of them. */
  readonly divisor: number;
  readonly count: number;
}

/**
 * A window on shared memory of this block or of a peer: elements of the allocation by their number in its
 * row-major order, a first one and a stride for each axis.
 */
export interface SharedValue {
  readonly kind: "shared";
  readonly window: SharedWindow;
  readonly dtype: DType;
  /** The allocation, how it is stored, and the byte of shared memory at which it begins. */
  readonly allocation: readonly number[];
  readonly layout: SharedLayout;
  readonly offset: number;
  readonly shape: readonly number[];
  readonly strides: readonly number[];
  readonly first: number;
  readonly moves: readonly SharedMove[];
  /** Of every slice: no window of shared memory may overhang. */
  readonly required: readonly RequiredBound[];
  /** b32: the block of the cluster, for `peer` windows. */
  readonly rank: Register | undefined;
}

export interface BarrierValue {
  readonly kind: "barrier";
  /** Bytes from the start of shared memory. */
  readonly offset: number;
  readonly count: number;
  /** Arrivals of the hardware that one arrival of the language stands for. */
  readonly scale: number;
  /** Parity of the next phase to wait for, a bit for each barrier, 32 in a word. */
  readonly phases: readonly Register[];
}

export interface SemaphoreValue {
  readonly kind: "semaphore";
  /** b64: the address of the first counter. */
  readonly base: Register;
  readonly shape: readonly Size[];
}

export type RefValue = GlobalValue | ReshapedValue | SharedValue;

export type EmittedValue =
  | ScalarValue
  | TileValue
  | InflightValue
  | RefValue
  | BarrierValue
  | SemaphoreValue;

/** The class of a word of a tile. */
export function wordClass(dtype: DType): RegisterClass {
  if (dtype.kind === "bool") return "pred";
  return dtype.bits === 64 ? "b64" : "b32";
}

/** Elements of a word. */
export function slotsOf(dtype: DType): number {
  return dtype.kind === "bool" ? 1 : Math.max(1, 32 / dtype.bits);
}

/** The class of a lone element. */
export function elementClass(dtype: DType): RegisterClass {
  if (dtype.kind === "bool") return "pred";
  return dtype.bits === 64 ? "b64" : dtype.bits === 16 ? "b16" : "b32";
}
