/** Counters in global memory that the whole grid shares. */
import type { Op } from "../ir/node.ts";
import { SemaphoreState } from "./order/semaphore.ts";
import { product, rowMajorStrides } from "./view.ts";
import { WaitList } from "./waiting.ts";

export interface Semaphore {
  readonly state: SemaphoreState;
  readonly waiters: WaitList;
}

export class SemaphoreArray {
  readonly op: Op<"alloc_semaphore">;
  readonly shape: readonly number[];
  readonly #strides: readonly number[];
  readonly #counters: readonly Semaphore[];

  constructor(op: Op<"alloc_semaphore">, shape: readonly number[]) {
    this.op = op;
    this.shape = shape;
    this.#strides = rowMajorStrides(shape);
    this.#counters = Array.from({ length: product(shape) }, () => ({
      state: new SemaphoreState(),
      waiters: new WaitList(),
    }));
  }

  /** The counter at the indices; undefined where one of them is out of bounds. */
  at(indices: readonly number[]): Semaphore | undefined {
    let position = 0;
    for (const [axis, index] of indices.entries()) {
      if (index < 0 || index >= (this.shape[axis] ?? 0)) return undefined;
      position += index * (this.#strides[axis] ?? 0);
    }
    return this.#counters[position];
  }
}
