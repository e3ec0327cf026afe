/**
 * Streams of the fake driver: work that waits until somebody waits for it. As on hardware, issuing
 * returns at once, and what a copy moves is what memory holds when its turn comes.
 */

export class FakeStream {
  readonly #queue: (() => void)[] = [];
  #issued = 0;
  #done = 0;
  /** What is captured instead of queued, while a recording is made. */
  #captured: (() => void)[] | undefined;

  issue(work: () => void): void {
    if (this.#captured !== undefined) {
      this.#captured.push(work);
      return;
    }
    this.#queue.push(work);
    this.#issued += 1;
  }

  beginCapture(into: (() => void)[] = []): void {
    this.#captured = into;
  }

  /** What is being captured. */
  get captured(): (() => void)[] | undefined {
    return this.#captured;
  }

  endCapture(): readonly (() => void)[] | undefined {
    const captured = this.#captured;
    this.#captured = undefined;
    return captured;
  }

  get capturing(): boolean {
    return this.#captured !== undefined;
  }

  /** The point that all work issued so far leads to. */
  get position(): number {
    return this.#issued;
  }

  hasReached(position: number): boolean {
    return this.#done >= position;
  }

  /** Does the work up to a point. */
  advance(position: number): void {
    while (this.#done < position) {
      const work = this.#queue.shift();
      this.#done += 1;
      work?.();
    }
  }
}
