/**
 * The state of one semaphore: a counter that threads add to and wait on. A waiter for `value` could
 * have passed as soon as the counter reached it, so it acquires what the signals up to that point released
 * and not what later ones did, however late it runs:
 *
 *   signals      +1 by A    +1 by B    +1 by C
 *   sums            1          2          3          wait(2) learns what A and B knew
 *
 * A read has seen every signal that is in the number it gives, and learns what all of them told.
 *
 * A wait that decrements takes the oldest units away: after wait(2, decrement) the counter is 1, and
 * a further wait(1) is a wait for the sum 3. A counter past 2^31 - 1 goes on at -2^31.
 */
import { Knowledge } from "./knowledge.ts";

interface Signal {
  /** Sum of the increments up to this one. */
  readonly sum: number;
  /** What this signal and the ones before it told. */
  readonly knowledge: Knowledge;
}

export class SemaphoreState {
  #signals: Signal[] = [];
  #sum = 0;
  #taken = 0;
  #gathered = Knowledge.none;

  /** As a GPU counts: 32 bits with a sign. */
  get value(): number {
    return (this.#sum - this.#taken) | 0;
  }

  signal(knowledge: Knowledge, increment: number): void {
    this.#gathered = this.#gathered.join(knowledge);
    this.#sum += increment;
    // Sums that are not increasing have no first signal that reaches them.
    if (increment <= 0) this.#signals = [];
    this.#signals.push({ sum: this.#sum, knowledge: this.#gathered });
  }

  hasReached(value: number): boolean {
    return this.value >= value;
  }

  /** Reads the counter: what the reader learns. */
  read(): Knowledge {
    return this.#gathered;
  }

  /** Passes a wait: what the waiter learns. */
  pass(value: number, decrement: boolean): Knowledge {
    if (!this.hasReached(value)) throw new Error(`semaphore at ${this.value} passed for ${value}`);
    const learnt = value <= 0 ? Knowledge.none : this.#knowledgeAt(this.#taken + value);
    if (decrement) this.#take(value);
    return learnt;
  }

  #knowledgeAt(sum: number): Knowledge {
    return this.#signals[this.#firstReaching(sum)]?.knowledge ?? Knowledge.none;
  }

  #firstReaching(sum: number): number {
    let low = 0;
    let high = this.#signals.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if ((this.#signals[middle]?.sum ?? 0) < sum) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  #take(value: number): void {
    this.#taken += value;
    const passed = this.#firstReaching(this.#taken + 1);
    if (passed * 2 > this.#signals.length) this.#signals = this.#signals.slice(passed);
  }
}
