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
import type { Fact } from "../../ir/range-analysis/index.ts";
import type { Size } from "../../ir/size.ts";
import type { Value } from "../../ir/node.ts";
import type { GlobalBox, Reshaped, SharedBox, SharedMove } from "../../layout/access/window.ts";
import type { RegisterLayout } from "../../layout/algebra/register-layout.ts";
import type { SharedWindow } from "../../layout/model/windows.ts";
import type { RegisterClass } from "../function-builder.ts";
import type { Register } from "../module.ts";
import type { TmemLayout } from "../../layout/algebra/tensor-memory.ts";

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

/** A window on global memory, with the registers that say where it lies. */
export interface GlobalValue extends GlobalBox<Position> {
  /** The parameter or allocation. */
  readonly root: Value;
  /** Its name among the launch's parameters. */
  readonly name: string;
  /** b64: the address of the array's first element. */
  readonly base: Register;
  /** Nobody writes it while the kernel runs. */
  readonly readOnly: boolean;
}

export type ReshapedValue = Reshaped<RefValue, Position>;

/** What an offset in a register adds to the number of a window's first element. */
export interface MovedIndex extends SharedMove {
  readonly index: Register;
}

/** A window on shared memory of this block or of a peer, with its run-time offsets. */
export interface SharedValue extends SharedBox<Position, MovedIndex> {
  readonly window: SharedWindow;
  /** The byte of shared memory at which the allocation begins. */
  readonly offset: number;
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

/** A window of tensor memory: columns behind the kernel's own, and all lanes of its tile. */
export interface TensorValue {
  readonly kind: "tensor";
  /** b32: the address of its first column; constant columns come on top. */
  readonly base: Register;
  readonly columns: number;
  /** How tiles of its allocation lie, and columns from each to the next, outermost first. */
  readonly storage: TmemLayout;
  readonly strides: readonly number[];
  /** Whether halves of the lanes are an axis of their own, before the columns. */
  readonly halves?: boolean;
}

export type RefValue = GlobalValue | ReshapedValue | SharedValue;

export type EmittedValue =
  | ScalarValue
  | TileValue
  | InflightValue
  | RefValue
  | TensorValue
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
