/**
 * A queue for back ends whose work is promises: each piece begins when the one before it has ended,
 * whether that failed or not. A failure that nobody waits for is kept until somebody asks.
 *
 *   launch(a) ──▶ run(b) ──▶ launch(c)      synchronize(): rejects with a's failure, or c's
 *                   └── rejects with b's
 */
export class WorkQueue {
  #last: Promise<void> = Promise.resolve();
  #failure: { readonly error: unknown } | undefined;

  /** Runs `work` in its turn and gives what it gives. */
  run<T>(work: () => Promise<T>): Promise<T> {
    const result = this.#last.then(work);
    this.#last = result.then(
      () => undefined,
      () => undefined,
    );
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
