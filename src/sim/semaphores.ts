/** Counters in global memory that the whole grid shares. */
import { rowMajorStrides } from "../formats/shape.ts";
import type { Op } from "../ir/node.ts";
import { SemaphoreState } from "../order/semaphore.ts";
import { product } from "./view.ts";
import { WaitList } from "./waiting.ts";

export class Semaphore {
  readonly state = new SemaphoreState();
  readonly waiters = new WaitList();
  readonly #array: SemaphoreArray;
  readonly #position: number;

  constructor(array: SemaphoreArray, position: number) {
    this.#array = array;
    this.#position = position;
  }

  /** How reports name it: `semaphore done[2, 0]`. */
  get name(): string {
    const { name, shape, strides } = this.#array;
    const indices = shape.map(
      (extent, axis) => Math.floor(this.#position / (strides[axis] ?? 1)) % extent,
    );
    return indices.length === 0 ? name : `${name}[${indices.join(", ")}]`;
  }
}

export class SemaphoreArray {
  readonly op: Op<"alloc_semaphore">;
  readonly shape: readonly number[];
  readonly strides: readonly number[];
  readonly #counters: readonly Semaphore[];

  constructor(op: Op<"alloc_semaphore">, shape: readonly number[]) {
    this.op = op;
    this.shape = shape;
    this.strides = rowMajorStrides(shape);
    this.#counters = Array.from(
      { length: product(shape) },
      (_, position) => new Semaphore(this, position),
    );
  }

  /** How reports name the array. */
  get name(): string {
    const { name } = this.op.attributes;
    return name === undefined ? "the semaphore" : `semaphore ${name}`;
  }

  /** The counter at the indices; undefined where one of them is out of bounds. */
  at(indices: readonly number[]): Semaphore | undefined {
    let position = 0;
    for (const [axis, index] of indices.entries()) {
      if (index < 0 || index >= (this.shape[axis] ?? 0)) return undefined;
      position += index * (this.strides[axis] ?? 0);
    }
    return this.#counters[position];
  }
}
