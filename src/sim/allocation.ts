/**
 * What a kernel allocates, and whose it is. Memory and barriers name the block that owns them by what reports of them need, so
 * that they can be used without one:
 *
 *   Agent ⇄ Block ──▶ BarrierArray, Memory ──▶ Owner
 */
import type { AnyOp } from "../ir/node.ts";
import type { Findings } from "./reports.ts";

/** Who shares an allocation: the grid, the block, or nobody. */
export type Sharing = "grid" | "block" | "private";

export interface Allocation {
  readonly op: Extract<
    AnyOp,
    { kind: "alloc" | "alloc_tmem" | "alloc_union" | "alloc_barrier" | "alloc_semaphore" }
  >;
  readonly sharing: Sharing;
  /** Extents; of a barrier or union, how many barriers or bytes. */
  readonly shape: readonly number[];
  /** Bytes of the memory it takes; 0 for barriers and semaphores. */
  readonly bytes: number;
  /** Bytes of the smallest element that is accessed in it. */
  readonly granuleBytes: number;
}

/** The block that memory or barriers lie in. */
export interface Owner {
  readonly machine: {
    readonly checks: boolean;
    readonly findings: Findings;
    readonly program: {
      readonly allocations: readonly Allocation[];
      /** The names of unions' members, by their number less one. */
      readonly members: readonly string[];
    };
  };
}
