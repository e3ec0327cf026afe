/**
 * A thread that serves a CPU device: it waits for jobs and takes blocks of them. It looks for the next job for a moment before it sleeps,
 * since to be woken takes longer than many a job; it sleeps without blocking, so that messages still reach it.
 */
import { failures, mostText, share, words } from "./control.ts";
import type { RangeTask, RunBlocks } from "./control.ts";

/** Milliseconds for which a thread looks for the next job before it sleeps. */
const attention = 0.05;

/** Modules that a thread keeps. */
const keptModules = 256;

type WaitResult =
  | { readonly async: false; readonly value: "not-equal" | "timed-out" }
  | { readonly async: true; readonly value: Promise<"ok" | "timed-out"> };

/** `Atomics.waitAsync`, which the type library does not know yet. */
const { waitAsync } = Atomics as unknown as {
  readonly waitAsync?: (words: Int32Array, index: number, value: number) => WaitResult;
};

class Server {
  readonly #task: RangeTask;
  readonly #shared: Int32Array;
  readonly #modules = new Map<number, RunBlocks>();

  constructor(task: RangeTask) {
    this.#task = task;
    this.#shared = new Int32Array(task.control);
  }

  async serve(): Promise<void> {
    const shared = this.#shared;
    // A job may have been opened while this thread was on its way.
    let seen = 0;
    for (;;) {
      const epoch = await this.#nextEpoch(seen);
      if (Atomics.load(shared, words.isOver) === 1) return;
      Atomics.add(shared, words.active, 1);
      try {
        if (Atomics.load(shared, words.isOpen) === 1) this.#takeBlocks();
      } finally {
        Atomics.sub(shared, words.active, 1);
        Atomics.notify(shared, words.active);
      }
      seen = epoch;
    }
  }

  async #nextEpoch(seen: number): Promise<number> {
    const shared = this.#shared;
    const patience = performance.now() + attention;
    for (;;) {
      const epoch = Atomics.load(shared, words.epoch);
      if (epoch !== seen) return epoch;
      if (performance.now() < patience) continue;
      if (waitAsync === undefined) Atomics.wait(shared, words.epoch, seen);
      else await waitAsync(shared, words.epoch, seen).value;
    }
  }

  #takeBlocks(): void {
    const shared = this.#shared;
    const end = shared[words.end] ?? 0;
    let first = Atomics.load(shared, words.next);
    try {
      const run = this.#module();
      const scratch = this.#scratch;
      const argumentBlock = shared[words.argumentBlock] ?? 0;
      const [slice, threads] = [shared[words.slice] ?? 1, shared[words.threads] ?? 1];
      for (;;) {
        const count = share(end - Atomics.load(shared, words.next), slice, threads);
        first = Atomics.add(shared, words.next, count);
        if (first >= end) return;
        const code = run(argumentBlock, first, Math.min(end, first + count), scratch);
        if (code !== 0) {
          this.#fail(failures.code, code, first);
          return;
        }
      }
    } catch (error) {
      const text = error instanceof Error ? error.message : String(error);
      this.#fail(failures.trap, this.#leave(text), first);
    }
  }

  get #scratch(): number {
    const shared = this.#shared;
    return (shared[words.scratch] ?? 0) + this.#task.thread * (shared[words.scratchBytes] ?? 0);
  }

  /** The function of the job's module, compiled here from the bytes in memory: a module cannot be sent to a thread that waits. */
  #module(): RunBlocks {
    const shared = this.#shared;
    const number = shared[words.module] ?? 0;
    const known = this.#modules.get(number);
    if (known !== undefined) return known;
    const { memory } = this.#task;
    const at = (shared[words.moduleBytes] ?? 0) >>> 0;
    const length = shared[words.moduleLength] ?? 0;
    const bytes = new Uint8Array(memory.buffer, at, length).slice();
    // What prints or needs the host runs on the device's own thread.
    const imports = { env: { memory }, host: { call: () => undefined, message: () => undefined } };
    const made = new WebAssembly.Instance(new WebAssembly.Module(bytes), imports).exports[
      "run"
    ] as RunBlocks;
    this.#modules.set(number, made);
    for (const oldest of this.#modules.keys()) {
      if (this.#modules.size <= keptModules) break;
      this.#modules.delete(oldest);
    }
    return made;
  }

  /** The first failure counts; the others take no more blocks. */
  #fail(kind: number, detail: number, block: number): void {
    const shared = this.#shared;
    if (Atomics.compareExchange(shared, words.failure, failures.none, kind) === failures.none) {
      shared[words.failureDetail] = detail;
      shared[words.failureBlock] = block;
      shared[words.failureScratch] = this.#scratch;
    }
    Atomics.store(shared, words.next, shared[words.end] ?? 0);
  }

  /** Leaves a text for the device, unless another failure came before; gives its length. */
  #leave(text: string): number {
    const shared = this.#shared;
    const length = Math.min(text.length, mostText);
    if (Atomics.load(shared, words.failure) === failures.none)
      for (let i = 0; i < length; i++) shared[words.text + i] = text.charCodeAt(i);
    return length;
  }
}

/** Serves a device until it ends. */
export async function serveRanges(task: RangeTask): Promise<void> {
  await new Server(task).serve();
}
