/**
 * Elements that were used before. A tile op needs an array for its result; arrays whose tile is dead come
 * back here instead of going to the garbage collector. What is taken holds leftovers, so every op must
 * write all of its result.
 */
import { allocateElements } from "../formats/dtype.ts";
import type { DType, Elements } from "../formats/dtype.ts";

/** Arrays of one format and length. */
export class ElementPool {
  readonly #dtype: DType;
  readonly #length: number;
  readonly #free: Elements[] = [];

  constructor(dtype: DType, length: number) {
    this.#dtype = dtype;
    this.#length = length;
  }

  take(): Elements {
    return this.#free.pop() ?? allocateElements(this.#dtype, this.#length);
  }

  give(elements: Elements): void {
    this.#free.push(elements);
  }
}

export class ElementPools {
  readonly #pools = new Map<string, ElementPool>();

  of(dtype: DType, length: number): ElementPool {
    const key = `${dtype.name} ${length}`;
    let pool = this.#pools.get(key);
    if (pool === undefined) {
      pool = new ElementPool(dtype, length);
      this.#pools.set(key, pool);
    }
    return pool;
  }
}
