/**
 * What was used last, up to a number of entries; whatever has gone unused for longest makes room:
 *
 *   limit 2     set a │ set b │ get a │ set c        b is gone: a was used since
 */
export class Recent<K, V> {
  readonly #limit: number;
  /** Least recently used first. */
  readonly #entries = new Map<K, V>();

  constructor(limit: number) {
    this.#limit = limit;
  }

  get size(): number {
    return this.#entries.size;
  }

  get(key: K): V | undefined {
    const value = this.#entries.get(key);
    if (value !== undefined) this.set(key, value);
    return value;
  }

  set(key: K, value: V): void {
    this.#entries.delete(key);
    this.#entries.set(key, value);
    for (const oldest of this.#entries.keys()) {
      if (this.#entries.size <= this.#limit) return;
      this.#entries.delete(oldest);
    }
  }
}
