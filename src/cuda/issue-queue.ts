/**
 * Issues calls in order where one of them cannot be issued at once. Almost all can.
 * A large transfer waits for a staging buffer in the middle; later calls come after it.
 *
 *   download of 1 GiB   ▓▓▓░▓▓░▓▓▓            (░ waits for a staging buffer)
 *   launch                        ▓           called early, issued in its turn
 */

/** Work that was begun. */
export interface Begun<T> {
  /** Resolves when all of it is on the stream; undefined where it already is. */
  readonly issued: Promise<void> | undefined;
  /** What it gives in the end. */
  readonly result: Promise<T>;
}

/** A promise whose failure may stay unheard: whoever wants to know still finds it. */
export function handled<T>(promise: Promise<T>): Promise<T> {
  promise.catch(() => undefined);
  return promise;
}

export class IssueQueue {
  /** The end of what is being issued; undefined where the queue is empty. */
  #last: Promise<void> | undefined;

  /** Runs `work` now, or in its turn; `failed` hears of a failure then. */
  pass(work: () => void, failed: (error: unknown) => void): void {
    if (this.#last === undefined) {
      work();
      return;
    }
    this.#append(async () => {
      try {
        work();
      } catch (error) {
        failed(error);
      }
    });
  }

  /** Begins `work` now, or in its turn. */
  async begin<T>(work: () => Begun<T>): Promise<T> {
    if (this.#last === undefined) {
      const { issued, result } = work();
      if (issued !== undefined) this.#append(() => issued);
      return result;
    }
    return new Promise<T>((resolve, reject) => {
      this.#append(async () => {
        try {
          const { issued, result } = work();
          resolve(result);
          await issued;
        } catch (error) {
          reject(error instanceof Error ? error : new Error(String(error)));
        }
      });
    });
  }

  /** Resolves when everything called so far is issued; undefined where it is. */
  get closed(): Promise<void> | undefined {
    return this.#last;
  }

  #append(next: () => Promise<void>): void {
    const last: Promise<void> = (this.#last ?? Promise.resolve()).then(next).then(
      () => {
        if (this.#last === last) this.#last = undefined;
      },
      () => {
        if (this.#last === last) this.#last = undefined;
      },
    );
    this.#last = last;
  }
}
