/**
 * Who did what, and where in the program: the part of an access that reports print.
 *
 *   thread load of block (i = 3, j = 0), iteration 5.2, warp 1
 */
import type { AnyOp } from "../ir/node.ts";
import type { Epoch } from "./knowledge.ts";
import type { ScopedBlock } from "./memory-scopes.ts";

/** A point in the execution of a grid. */
export interface Place {
  readonly thread: string;
  /** Names of the grid's axes, and the block's index along each. */
  readonly axes: readonly string[];
  readonly block: readonly number[];
  /** Index values of the enclosing loops, outermost first. */
  readonly iterations: readonly number[];
  /** Inside `warps`: which one. */
  readonly warp?: number | undefined;
}

/** An op at a place: one execution of it. */
export interface Origin {
  readonly op: AnyOp;
  readonly place: Place;
}

export type AccessMode = "read" | "write" | "atomic";
export type Proxy = "generic" | "async";

/** One execution of an op on a window of memory; identity tells two apart. */
export interface Access extends Epoch, Origin {
  /** `observe`: a load with a memory order, or a read of the byte around an element of 4 bits, of which it does not use the other half. */
  readonly mode: AccessMode | "observe";
  readonly proxy: Proxy;
  /** The block of an atomic update, or of a load or store with a memory order; its scope decides whom it may meet. */
  readonly from?: ScopedBlock | undefined;
  readonly wantsContents?: boolean | undefined;
  mayMeet?(other: Access): boolean;
  /** Which member of a union the window belongs to, from 1; 0 for memory that is in no union. */
  readonly member: number;
}

/** A place in words. */
export function placeText({ thread, axes, block, iterations, warp }: Place): string {
  const index = axes.map((axis, position) => `${axis} = ${block[position] ?? 0}`).join(", ");
  return [
    `thread ${thread}${index === "" ? "" : ` of block (${index})`}`,
    ...(iterations.length === 0 ? [] : [`iteration ${iterations.join(".")}`]),
    ...(warp === undefined ? [] : [`warp ${warp}`]),
  ].join(", ");
}
