/**
 * What one instruction of a lane moves: elements of some registers, side by side in memory from an
 * address on, where a predicate allows it. Every kind of window and layout comes down to a list of these.
 *
 *   bf16, rows of 8 neighbours a lane:   registers 0 … 7    [%d4]         ld.global.v4.b32
 *                                        registers 8 … 15   [%d4+4096]
 *   the last row overhangs:              registers 8 … 15   [%d4+4096] where %p2
 */
import type { AddressOperand, Register } from "../../module.ts";
import type { CachePolicy } from "./cache-policy.ts";

export interface Unit {
  /** In the order of memory. */
  readonly registers: readonly number[];
  readonly address: AddressOperand;
  /** Undefined where it is always allowed. */
  readonly guard: Register | undefined;
  /** For a lone 4-bit element, which half of the byte it is: a number or a b32. */
  readonly half?: number | Register | undefined;
}

/** The state space as instructions spell it. */
export type Space = "global" | "shared" | "shared::cluster";

/** How a tile's window is accessed. */
export interface Access {
  readonly space: Space;
  /** Loads may go through the read-only path. */
  readonly readOnly: boolean;
  /** What loads tell the cache; nothing without it. */
  readonly policy?: CachePolicy;
  /** The units, right for every window; emits their addresses. */
  readonly units: () => readonly Unit[];
  /** Wider units, for windows that do not overhang at all. */
  readonly whole?: WholeAccess | undefined;
  /** The same by instructions of a whole warp, where that takes fewer. */
  readonly matrices?: MatrixAccess | undefined;
}

/** One, two or four words of every lane, each an 8 × 8 matrix. */
export interface MatrixGroup {
  readonly words: readonly number[];
  readonly address: AddressOperand;
}

export interface MatrixAccess {
  readonly transposed: boolean;
  /** Emits the addresses. */
  readonly groups: () => readonly MatrixGroup[];
}

export interface WholeAccess {
  /** pred, the same in all lanes: whether the window is inside. */
  readonly inside: Register;
  readonly units: () => readonly Unit[];
}
