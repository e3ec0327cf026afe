/**
 * A case: one piece of work at one size, that we do and that peers do. What peers are asked for is plain data, which
 * each of them knows how to do or refuses:
 *
 *   { op: "matmul", dtype: "bf16", m: 4096, n: 4096, k: 4096, b: "kn" }
 */
import type { BenchEntry } from "tilewright/bench";
import type { Cost, Device } from "tilewright";

export type Figure = "TB/s" | "TFLOP/s";

/** What a peer is asked to do. */
export interface Task {
  readonly op: string;
  readonly [name: string]: string | number;
}

/** The case on a device, ready to be timed. */
export interface PreparedCase {
  readonly ours: BenchEntry;
  /** Other ways of ours to do the same, timed in the same rounds. */
  readonly beside?: { readonly [name: string]: BenchEntry };
  /** Work that is no peer, and that ours is told as a part of: the dense product beside one of rows in groups. */
  readonly measures?: { readonly [name: string]: BenchEntry };
  /** Throws where the result is wrong, by a reference in float64. */
  readonly check: () => Promise<void>;
  readonly dispose: () => void;
}

export interface BenchCase {
  readonly name: string;
  readonly task: Task;
  readonly unit: Figure;
  /** Bytes that must be moved, or operations. */
  readonly work: number;
  /** Bytes that operations have to move besides, where these may take longer. */
  readonly moved?: number;
  /** Bytes of the arrays of one set, by which sets are counted that no cache holds. */
  readonly setBytes: number;
  readonly prepare: (device: Device, sets: number) => PreparedCase | Promise<PreparedCase>;
}

/** What the cache of any GPU that is measured holds, with a margin. */
const cacheBytes = 128e6;

/** So many sets of arrays that the cache holds none of them until it is used again. */
export function setsOf({ setBytes }: Pick<BenchCase, "setBytes">, launches: number): number {
  return Math.min(Math.max(2, Math.ceil((2 * cacheBytes) / setBytes)), launches);
}

/** The cost of work that only its rate is told of. */
export function costOf({
  unit,
  work,
  moved = 0,
}: Pick<BenchCase, "unit" | "work" | "moved">): Cost {
  const flops = unit === "TFLOP/s" ? work : 0;
  const none = { read: 0, written: 0 };
  return {
    flops,
    products: { f64: 0, f32: 0, tf32: 0, half: flops, byte: 0 },
    transcendentals: 0,
    bytes: { gmem: { read: unit === "TB/s" ? work : moved, written: 0 }, smem: none },
  };
}
