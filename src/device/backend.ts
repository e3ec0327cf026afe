/**
 * The interface a way of running kernels implements: the simulator now, GPU and emulator later. It is
 * deliberately small. Arguments reach a back end checked and bound, so it never has to look at a user's
 * mistakes.
 */
import type { DType, DTypeName, HostValue } from "../formats/dtype.ts";
import type { HostArray } from "../formats/hostarray.ts";
import type { Kernel } from "../ir/node.ts";
import type { Target } from "../targets/target.ts";

/** Memory of a back end; opaque to everyone else. */
export interface Allocation {
  readonly bytes: number;
}

/** A launch with everything known. */
export interface Launch<A extends Allocation = Allocation> {
  /** The kernel after the passes. */
  readonly kernel: Kernel;
  readonly arrays: ReadonlyMap<string, A>;
  readonly scalars: ReadonlyMap<string, HostValue>;
  readonly dimensions: ReadonlyMap<string, number>;
}

export interface Backend<A extends Allocation = Allocation> {
  readonly name: string;
  readonly target: Target;
  /** Uninitialised memory for `shape` elements. */
  allocate(dtype: DType, shape: readonly number[]): A;
  release(allocation: A): void;
  upload(array: HostArray, allocation: A): Promise<void>;
  download<N extends DTypeName>(
    dtype: DType<N>,
    shape: readonly number[],
    allocation: A,
  ): Promise<HostArray<N>>;
  /** Resolves when the kernel has run; rejects with what went wrong in it. */
  launch(launch: Launch<A>): Promise<void>;
  dispose(): void;
}
