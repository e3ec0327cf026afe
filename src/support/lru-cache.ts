/**
 * A least-recently-used cache of a limited number of entries; the least recently used entry is evicted:
 *
 *   limit 2     set a │ set b │ get a │ set c        b is gone: a was used since
 */
export class LruCache<K, V> {
  readonly #limit: number;
  readonly #onEvict: (value: V) => void;
  /** Least recently used first. */
  readonly #entries = new Map<K, V>();

  /** `onEvict` gets the evicted value. */
  constructor(limit: number, onEvict: (value: V) => void = () => undefined) {
    this.#limit = limit;
    this.#onEvict = onEvict;
  }

  get size(): number {
    return this.#entries.size;
  }

  /** All that is kept, which counts as no use of it. */
  values(): readonly V[] {
    return [...this.#entries.values()];
  }

  get(key: K): V | undefined {
    const value = this.#entries.get(key);
    if (value !== undefined) this.set(key, value);
    return value;
  }

  /** Takes an entry out, which is not told as evicted. */
  delete(key: K): void {
    this.#entries.delete(key);
  }

  set(key: K, value: V): void {
    this.#entries.delete(key);
    this.#entries.set(key, value);
    for (const [oldest, unused] of this.#entries) {
      if (this.#entries.size <= this.#limit) return;
      this.#entries.delete(oldest);
      this.#onEvict(unused);
    }
  }
}
