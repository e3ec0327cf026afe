/** Memoized results by key; all are dropped at once when there are too many. */
export class Memo<V> {
  readonly #limit: number;
  readonly #known = new Map<string, { readonly value: V }>();

  constructor(limit: number) {
    this.#limit = limit;
  }

  get(key: string, make: () => V): V {
    const known = this.#known.get(key);
    if (known !== undefined) return known.value;
    const value = make();
    if (this.#known.size >= this.#limit) this.#known.clear();
    this.#known.set(key, { value });
    return value;
  }
}

/** A function of things that never change, which makes its answer once for each of them and forgets it with them. */
export function onceForEach<K extends object, V>(make: (key: K) => V): (key: K) => V {
  const known = new WeakMap<K, { readonly value: V }>();
  return (key) => {
    const found = known.get(key);
    if (found !== undefined) return found.value;
    const value = make(key);
    known.set(key, { value });
    return value;
  };
}
