/**
 * Waiting for the GPU without making the event loop wait. A wait is an event on the stream and a promise;
 * one worker thread at a time waits for the oldest of them, and what has ended with it is found by asking.
 *
 *   wait() ─ event 1 ┐
 *   wait() ─ event 2 ├─ cuEventSynchronize(1) on a worker thread, then cuEventQuery(2), (3), …
 *   wait() ─ event 3 ┘
 */
import type { CudaContext } from "./context.ts";
import { notReady, success } from "./results.ts";

/** No times are taken, and the waiting thread sleeps. */
const eventFlags = 1 | 2;

interface Waiter {
  readonly event: number;
  /** The latest launch that it waits for. */
  readonly sequence: number;
  /** What can be done then besides, such as using memory again. */
  readonly afterwards: readonly (() => void)[];
  readonly resolve: () => void;
  readonly reject: (error: unknown) => void;
}

export class Completion {
  readonly #context: CudaContext;
  readonly #spare: number[] = [];
  readonly #waiting: Waiter[] = [];
  #afterwards: (() => void)[] = [];
  #following: Promise<void> | undefined;

  /** The latest launch that the main stream has waited for with everything before it. */
  readonly #sequence: () => number;
  readonly #whenIdle: () => void;

  /** `whenIdle` hears that nobody waits any more. */
  constructor(context: CudaContext, sequence = () => context.sequence, whenIdle = () => undefined) {
    this.#context = context;
    this.#sequence = sequence;
    this.#whenIdle = whenIdle;
  }

  /** Resolves when everything issued so far has ended; rejects where that cannot be said. */
  wait(): Promise<void> {
    try {
      const event = this.#record();
      return new Promise<void>((resolve, reject) => {
        const sequence = this.#sequence();
        const afterwards = this.#afterwards;
        this.#afterwards = [];
        this.#waiting.push({ event, sequence, afterwards, resolve, reject });
        this.#following ??= this.#follow();
      });
    } catch {
      return this.#waitHere();
    }
  }

  /**
   * Without an event the driver is waited for on this thread: what comes after, such as using memory again, must
   * not come early.
   */
  async #waitHere(): Promise<void> {
    const { sequence, driver } = this.#context;
    const result = driver.calls.cuCtxSynchronize();
    for (const work of this.#afterwards.splice(0)) work();
    this.#context.check(result, "cuCtxSynchronize", "wait for the GPU");
    this.#context.noteCompletion(sequence);
  }

  /** Has `work` done when somebody next waits, and everything issued so far has ended. */
  later(work: () => void): void {
    this.#afterwards.push(work);
  }

  /** Whether something is left to be done that nobody waits for yet. */
  get owes(): boolean {
    return this.#afterwards.length > 0;
  }

  /** Resolves when nobody waits any more; undefined where nobody does. */
  get idle(): Promise<void> | undefined {
    return this.#following;
  }

  dispose(): void {
    for (const work of this.#afterwards.splice(0)) work();
    const { calls } = this.#context.driver;
    for (const event of this.#spare) calls.cuEventDestroy(event);
    this.#spare.length = 0;
  }

  #record(): number {
    const { driver, stream } = this.#context;
    const event =
      this.#spare.pop() ?? this.#context.make("cuEventCreate", "make an event", eventFlags);
    const result = driver.calls.cuEventRecord(event, stream);
    if (result === success) return event;
    this.#spare.push(event);
    throw this.#context.failure(result, "cuEventRecord", "record an event");
  }

  /** Settles the waiters in order until none is left. */
  async #follow(): Promise<void> {
    // Whoever waits first has not been given the promise yet; nothing may settle before that.
    await Promise.resolve();
    for (let head = this.#waiting[0]; head !== undefined; head = this.#waiting[0]) {
      const failure = await this.#outcome(head);
      this.#waiting.shift();
      this.#spare.push(head.event);
      // After a failure nothing else tells when the stream is done with memory.
      if (failure !== undefined) this.#context.driver.calls.cuCtxSynchronize();
      for (const work of head.afterwards) work();
      if (failure === undefined) {
        this.#context.noteCompletion(head.sequence);
        head.resolve();
      } else head.reject(failure.error);
    }
    this.#following = undefined;
    this.#whenIdle();
  }

  /** What keeps a waiter from its success; undefined where nothing does. */
  async #outcome({ event }: Waiter): Promise<{ readonly error: unknown } | undefined> {
    try {
      let result = this.#query(event);
      if (result === notReady) result = await this.#context.driver.waitForEvent(event);
      this.#context.check(result, "cuEventSynchronize", "wait for the GPU");
      return this.#context.loss === undefined ? undefined : { error: this.#context.loss };
    } catch (error) {
      return { error };
    }
  }

  #query(event: number): number {
    // After a fault the context refuses to be entered; asking then gives the fault again.
    if (this.#context.loss === undefined) this.#context.enter();
    return this.#context.driver.calls.cuEventQuery(event);
  }
}
