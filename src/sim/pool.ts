/**
 * Lanes that were used before. A tile op needs an array for its result; arrays whose tile is dead come
 * back here instead of going to the garbage collector. What is taken holds leftovers, so every op must
 * write all of its result.
 */
import { allocateLanes } from "../formats/dtype.ts";
import type { DType, Lanes } from "../formats/dtype.ts";

/** Arrays of one format and length. */
export class LanePool {
  readonly #dtype: DType;
  readonly #length: number;
  readonly #free: Lanes[] = [];

  constructor(dtype: DType, length: number) {
    this.#dtype = dtype;
    this.#length = length;
  }

  take(): Lanes {
    return this.#free.pop() ?? allocateLanes(this.#dtype, this.#length);
  }

  give(lanes: Lanes): void {
    this.#free.push(lanes);
  }
}

export class LanePools {
  readonly #pools = new Map<string, LanePool>();

  of(dtype: DType, length: number): LanePool {
    const key = `${dtype.name} ${length}`;
    let pool = this.#pools.get(key);
    if (pool === undefined) {
      pool = new LanePool(dtype, length);
      this.#pools.set(key, pool);
    }
    return pool;
  }
}
