/**
 * Which products in tensor memory were issued, whether they are over or not, by where they add up. Tensor cores take those of one form, on exactly one place, in the order in
 * which they were issued, and copies before products; all others may pass each other.
 *
 *   { "0 128,64 f16": clock of products on 64 columns, "copy": clock of copies }
 */
import { Clock } from "./clock.ts";

export class ProductOrder {
  static readonly none = new ProductOrder(new Map());

  readonly #clocks: ReadonlyMap<string, Clock>;

  private constructor(clocks: ReadonlyMap<string, Clock>) {
    this.#clocks = clocks;
  }

  /** What operations of a form follow. */
  of(form: string): Clock {
    return this.#clocks.get(form) ?? Clock.empty;
  }

  with(form: string, agent: number, count: number): ProductOrder {
    return new ProductOrder(new Map([...this.#clocks, [form, this.of(form).with(agent, count)]]));
  }

  /** Both; this one or `other` itself where that one covers both. */
  join(other: ProductOrder): ProductOrder {
    if (this === other || other.#clocks.size === 0) return this;
    if (this.#clocks.size === 0) return other;
    const joined = new Map(this.#clocks);
    for (const [form, clock] of other.#clocks) joined.set(form, this.of(form).join(clock));
    const isCovered = (by: ProductOrder): boolean =>
      [...joined].every(([form, clock]) => by.#clocks.get(form) === clock);
    if (isCovered(this)) return this;
    return isCovered(other) ? other : new ProductOrder(joined);
  }
}
