/**
 * Runs the blocks of a launch on the calling thread and, where enough of them are left to be worth it, on the device's threads. The calling
 * thread always begins alone and always takes part: nobody waits for threads to start or to wake.
 *
 *   calling thread   blocks 0 … 7 │ opens the job │ 8 … 15   20 … 23  …  │ waits for those that are active
 *   thread 1                      │ wakes         │ 16 … 19  24 … 27  …  │
 *
 * Between two ranges, which take about half a millisecond, it looks at limits and gives way to the event loop.
 */
import { EventLoopYield } from "../../support/event-loop-yield.ts";
import { canShareMemory } from "../../workers/port.ts";
import type { Port, ThreadHost } from "../../workers/port.ts";
import { failures, share, words } from "./control.ts";
import type { RangeTask, RunBlocks } from "./control.ts";

/** Threads as a device hires them: they answer nothing until the device ends. */
export type RangeHost = ThreadHost<RangeTask, undefined>;

export interface RangePoolOptions {
  /** Threads that take blocks, the calling one among them; as many as there are processors unless given. */
  readonly threads?: number | undefined;
  readonly memory: WebAssembly.Memory;
  /** Scratch memory for so many threads of so many bytes each; it may move. */
  readonly scratchFor: (threads: number, bytes: number) => number;
  /** Node's or the browser's unless given. */
  readonly host?: RangeHost | undefined;
}

/** A module as threads find it. */
export interface RangeModule {
  readonly number: number;
  readonly run: RunBlocks;
  /** Of scratch memory of a thread. */
  readonly scratchBytes: number;
  /** Where its bytes lie, for threads to compile them; called when they are first needed. */
  readonly placeBytes: () => { readonly address: number; readonly length: number };
  /** Milliseconds of a block, by the last launches; undefined before the first. */
  pace: number | undefined;
}

export interface RangeJob {
  readonly module: RangeModule;
  readonly argumentBlock: number;
  readonly blocks: number;
  /** Whether blocks run in their order, on the calling thread. */
  readonly isSequential: boolean;
  /** The address of the word by which the others are stopped within their ranges. */
  readonly stopFlag: number;
  /** Throws where a limit is reached, after so many blocks. */
  readonly check: ((blocks: number) => void) | undefined;
}

/** What stopped a launch. */
export type RangeFailure =
  | { readonly kind: "code"; readonly code: number; readonly scratch: number }
  | { readonly kind: "trap"; readonly text: string; readonly block: number }
  | { readonly kind: "lost" };

/** Milliseconds of a range between two looks at limits. */
const slice = 0.5;
/** Milliseconds of work left that are worth waking threads for: that takes some microseconds, and twice as much from deep sleep. */
const worthWaking = 0.1;
/** Milliseconds of work left that are worth starting threads for. */
const worthStarting = 2;
/** Milliseconds for which the calling thread looks whether the others have ended, before it sleeps. */
const attention = 0.05;
/** Milliseconds of sleep after which the host's events are let in. */
const longestSleep = 20;

export class RangePool {
  readonly #options: RangePoolOptions;
  readonly #shared: Int32Array;
  readonly #control: SharedArrayBuffer | undefined;
  #threads: number;
  #ports: Port<RangeTask>[] = [];
  #isStarting = false;
  #isLost = false;
  #isOver = false;

  constructor(options: RangePoolOptions) {
    this.#options = options;
    const isShared = canShareMemory();
    this.#control = isShared ? new SharedArrayBuffer(4 * words.count) : undefined;
    this.#shared = new Int32Array(this.#control ?? new ArrayBuffer(4 * words.count));
    // Until the host has said how many processors there are.
    this.#threads = isShared ? (options.threads ?? 2) : 1;
  }

  /** Runs all blocks. Undefined where all went well, at once or, after some while, as a promise. */
  run(job: RangeJob): RangeFailure | undefined | Promise<RangeFailure | undefined> {
    const { module, blocks } = job;
    const begin = performance.now();
    if (this.#isWorthSharing(job, 0)) return this.#rest(job, 0, begin);
    const done = this.#alone(
      job,
      0,
      begin,
      begin + (module.pace === undefined ? worthWaking : slice),
    );
    if (typeof done === "object") return done;
    if (done < blocks) return this.#rest(job, done, begin);
    notePace(module, (performance.now() - begin) / blocks);
    return undefined;
  }

  /** Runs blocks here for some time; gives the block behind the last one. */
  #alone(
    { module, argumentBlock, blocks }: RangeJob,
    first: number,
    begin: number,
    until: number,
  ): number | RangeFailure {
    const { pace } = module;
    const scratch = this.#options.scratchFor(1, module.scratchBytes);
    let done = first;
    let count = pace === undefined ? 1 : Math.max(1, Math.floor(slice / pace));
    while (done < blocks) {
      const end = Math.min(blocks, done + count);
      const failure = attempt(module.run, argumentBlock, done, end, scratch);
      if (failure !== undefined) return failure;
      done = end;
      if (done < blocks && performance.now() >= until) break;
      count *= 2;
    }
    if (done < blocks) notePace(module, (performance.now() - begin) / done);
    return done;
  }

  async #rest(job: RangeJob, from: number, begin: number): Promise<RangeFailure | undefined> {
    const yields = new EventLoopYield();
    const { blocks, check } = job;
    let done = from;
    check?.(done);
    while (done < blocks) {
      if (this.#isWorthSharing(job, done)) return this.#together(job, done, yields);
      const now = performance.now();
      const next = this.#alone(job, done, begin, now + slice);
      if (typeof next === "object") return next;
      done = next;
      check?.(done);
      if (yields.isDue) await yields.giveWay();
    }
    return undefined;
  }

  /** Whether threads would gain something, and are there; those that would are started. */
  #isWorthSharing({ module, blocks, isSequential }: RangeJob, done: number): boolean {
    const left = (module.pace ?? 0) * (blocks - done);
    if (this.#threads === 1 || isSequential || blocks - done < 2) return false;
    if (this.#isOver || this.#isLost || left < worthWaking) return false;
    if (this.#ports.length > 0) return true;
    if (left >= worthStarting && !this.#isStarting) {
      this.#isStarting = true;
      void this.#startThreads();
    }
    return false;
  }

  async #startThreads(): Promise<void> {
    const control = this.#control;
    if (control === undefined) return;
    // Behind the one module that a browser has a stand-in for.
    const host = this.#options.host ?? (await import("../../workers/node.ts"));
    this.#threads = Math.min(this.#options.threads ?? Infinity, Math.max(1, host.processors()));
    if (this.#isOver) return;
    const { memory } = this.#options;
    try {
      for (let thread = 1; thread < this.#threads; thread++) {
        const port = host.openPort({
          answered: () => undefined,
          ended: () => {
            this.#isLost = true;
          },
        });
        this.#ports.push(port);
        port.hold(false);
        port.post({ task: "ranges", memory, control, thread });
      }
    } catch {
      // A host without room for threads: those that began serve, the calling one does the rest.
      this.#threads = this.#ports.length + 1;
    }
  }

  /** Runs what is left together with the threads. */
  async #together(
    job: RangeJob,
    from: number,
    yields: EventLoopYield,
  ): Promise<RangeFailure | undefined> {
    const shared = this.#shared;
    const { module, blocks, argumentBlock, check } = job;
    const { scratchBytes } = module;
    const threads = this.#threads;
    const begin = performance.now();
    const scratch = this.#options.scratchFor(threads, scratchBytes);
    const { address, length } = module.placeBytes();
    const ofSlice = Math.max(1, Math.floor(slice / (module.pace ?? slice)));
    shared[words.end] = blocks;
    shared[words.module] = module.number;
    shared[words.moduleBytes] = address;
    shared[words.moduleLength] = length;
    shared[words.argumentBlock] = argumentBlock;
    shared[words.scratch] = scratch;
    shared[words.scratchBytes] = scratchBytes;
    shared[words.slice] = ofSlice;
    shared[words.threads] = threads;
    shared[words.failure] = failures.none;
    Atomics.store(shared, words.next, from);
    Atomics.store(shared, words.isOpen, 1);
    Atomics.add(shared, words.epoch, 1);
    Atomics.notify(shared, words.epoch);
    let failure: RangeFailure | undefined;
    let isDone = false;
    try {
      for (;;) {
        const count = share(blocks - Atomics.load(shared, words.next), ofSlice, threads);
        const first = Atomics.add(shared, words.next, count);
        if (first >= blocks) break;
        const end = Math.min(blocks, first + count);
        failure = attempt(module.run, argumentBlock, first, end, scratch);
        if (failure !== undefined) break;
        check?.(end);
        if (yields.isDue) await yields.giveWay();
      }
      isDone = failure === undefined;
      failure = (await this.#ended()) ?? failure;
      notePace(module, ((performance.now() - begin) * threads) / (blocks - from));
      return failure;
    } finally {
      if (!isDone) await this.#stop(job);
    }
  }

  /** Has the others stop where they are: nothing is given back while a thread is in the job. */
  async #stop({ blocks, stopFlag }: RangeJob): Promise<void> {
    const flag = new Int32Array(this.#options.memory.buffer, stopFlag, 1);
    Atomics.store(this.#shared, words.next, blocks);
    Atomics.store(flag, 0, 1);
    await this.#ended();
    Atomics.store(flag, 0, 0);
  }

  /** Closes the job; resolves when no thread is in it any more. */
  async #ended(): Promise<RangeFailure | undefined> {
    const shared = this.#shared;
    Atomics.store(shared, words.isOpen, 0);
    const patience = performance.now() + attention;
    for (;;) {
      const active = Atomics.load(shared, words.active);
      if (active === 0) break;
      if (performance.now() < patience) continue;
      if (this.#isLost) return { kind: "lost" };
      if (!sleep(shared, words.active, active)) await nextEvents();
    }
    return this.#failure();
  }

  #failure(): RangeFailure | undefined {
    const shared = this.#shared;
    const block = shared[words.failureBlock] ?? 0;
    const detail = shared[words.failureDetail] ?? 0;
    const kind = Atomics.load(shared, words.failure);
    if (kind === failures.code)
      return { kind: "code", code: detail, scratch: shared[words.failureScratch] ?? 0 };
    if (kind === failures.trap) {
      const units = shared.subarray(words.text, words.text + detail);
      return { kind: "trap", text: String.fromCharCode(...units), block };
    }
    return undefined;
  }

  /** Ends the threads. */
  dispose(): void {
    this.#isOver = true;
    Atomics.store(this.#shared, words.isOver, 1);
    if (this.#control !== undefined) {
      Atomics.add(this.#shared, words.epoch, 1);
      Atomics.notify(this.#shared, words.epoch);
    }
    for (const port of this.#ports) port.end();
    this.#ports = [];
  }
}

const nextEvents = (): Promise<void> => new EventLoopYield().giveWay();

/** Sleeps until a word changes, for a short while; false where this thread may not sleep, as that of a page, or slept in vain. */
function sleep(shared: Int32Array, index: number, value: number): boolean {
  try {
    return Atomics.wait(shared, index, value, longestSleep) !== "timed-out";
  } catch {
    return false;
  }
}

function notePace(module: RangeModule, pace: number): void {
  // The first calls run code that is not optimised yet: what came last counts most.
  module.pace = module.pace === undefined ? pace : 0.5 * (module.pace + pace);
}

function attempt(
  run: RunBlocks,
  argumentBlock: number,
  begin: number,
  end: number,
  scratch: number,
): RangeFailure | undefined {
  try {
    const code = run(argumentBlock, begin, end, scratch);
    return code === 0 ? undefined : { kind: "code", code, scratch };
  } catch (error) {
    const text = error instanceof Error ? error.message : String(error);
    return { kind: "trap", text, block: begin };
  }
}
