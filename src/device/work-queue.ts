/**
 * A queue for back ends whose work is promises: each piece begins when the one before it has ended,
 * whether that failed or not. A failure that nobody waits for is kept until somebody asks.
 *
 *   launch(a) ──▶ run(b) ──▶ launch(c)      synchronize(): rejects with a's failure, or c's
 *                   └── rejects with b's
 *
 * Work of a program with limits does not begin once one of them is reached, and its caller hears so at once.
 */
import type { LimitedProgram } from "../support/run-limits.ts";

export class WorkQueue {
  #last: Promise<void> = Promise.resolve();
  #failure: { readonly error: unknown } | undefined;

  /** Runs `work` in its turn and gives what it gives. */
  run<T>(work: () => Promise<T>, limited?: LimitedProgram): Promise<T> {
    const before = this.#last;
    const isLimited = limited?.stop !== undefined;
    const result = isLimited ? limited.wait(before).then(work) : before.then(work);
    // Whoever gave up may have left before its turn.
    const ended = isLimited ? () => before : () => undefined;
    this.#last = result.then(ended, ended);
    return result;
  }

  /** Runs `work` in its turn; `synchronize` tells of its failure. */
  launch(work: () => Promise<void>): void {
    this.run(work).catch((error: unknown) => {
      this.#failure ??= { error };
    });
  }

  /** Waits for everything queued so far; rejects with the first kept failure, which is then forgotten. */
  async synchronize(): Promise<void> {
    await this.#last;
    const failure = this.#failure;
    this.#failure = undefined;
    if (failure !== undefined) throw failure.error;
  }
}
