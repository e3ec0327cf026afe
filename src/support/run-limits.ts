/**
 * Limits on a run, so that a kernel that never ends does not take its host along:
 *
 *   { timeLimit: 2000 }                     milliseconds
 *   { stepLimit: 1e6 }                      the same on every machine: steps, not time
 *   { signal: controller.signal }           whenever somebody says so
 *
 * Whoever runs a kernel asks a `LimitWatch` between two pieces of work, which are short. What stands where
 * by then is the report's business.
 */
import { onAbort } from "./abort-signals.ts";
import { EventLoopYield } from "./event-loop-yield.ts";
import { TilewrightError } from "./diagnostics.ts";
import type { DiagnosticDetails } from "./diagnostics.ts";
import type { Location } from "./location.ts";
import { isReadable, optionText } from "./options.ts";

/** What ends a run before it is done: a signal, or limits of time and of steps. */
export interface RunLimits {
  /** Ends the run when it is aborted. */
  readonly signal?: AbortSignal | undefined;
  /** Milliseconds that the run may take. */
  readonly timeLimit?: number | undefined;
  /** Steps that the run may take: the simulator's of program threads, the emulator's instructions of warps. */
  readonly stepLimit?: number | undefined;
}

/** When a run of several launches began: with the first of them. */
export class LimitClock {
  #begin: number | undefined;

  begin(): number {
    return (this.#begin ??= performance.now());
  }
}

/** Limits of one launch among others. */
export interface LaunchLimits extends RunLimits {
  /** Of all launches that share the time limit. */
  readonly clock?: LimitClock | undefined;
  /** Ends the launch with the program that it belongs to. */
  readonly stop?: AbortSignal | undefined;
}

/** Refuses limits that are none; `what` is who takes them. */
export function requireRunLimits(
  what: string,
  { signal, timeLimit, stepLimit }: RunLimits,
  location: Location,
): void {
  const refuse = (name: keyof RunLimits, expected: string, value: unknown): never => {
    const found = optionText(value);
    const message = `${name} of ${what} cannot be ${found}`;
    throw new TilewrightError({ code: "TW4016", message, location, expected, found });
  };
  if (signal !== undefined && !isSignal(signal)) refuse("signal", "an AbortSignal", signal);
  if (timeLimit !== undefined && !(typeof timeLimit === "number" && timeLimit >= 0))
    refuse("timeLimit", "milliseconds, from 0 up", timeLimit);
  if (stepLimit !== undefined && !(Number.isSafeInteger(stepLimit) && stepLimit > 0))
    refuse("stepLimit", "a whole number from 1 up", stepLimit);
}

/** Signals of other realms and of polyfills serve as well. */
function isSignal(value: unknown): value is AbortSignal {
  if (typeof value !== "object" || value === null || !isReadable(value, ["aborted"])) return false;
  const { aborted, addEventListener } = value as Partial<AbortSignal>;
  return typeof aborted === "boolean" && typeof addEventListener === "function";
}

/** Why a run was stopped, as its report says it. */
export type ReachedLimit = Pick<DiagnosticDetails, "message" | "expected" | "found">;

/** Why the launches of a program are stopped: for the limit that the program has reached. */
class StoppedProgram {
  readonly reached: ReachedLimit;

  constructor(reached: ReachedLimit) {
    this.reached = reached;
  }
}

/** Timers that are set for longer go off at once. */
const longestTimer = 2 ** 31 - 1;

export class LimitWatch {
  readonly #limits: LaunchLimits;
  readonly #begin: number;
  readonly #deadline: number;
  readonly #mostSteps: number;

  constructor(limits: LaunchLimits = {}) {
    this.#limits = limits;
    this.#begin = limits.clock?.begin() ?? performance.now();
    this.#deadline = this.#begin + (limits.timeLimit ?? Infinity);
    this.#mostSteps = limits.stepLimit ?? Infinity;
  }

  /** Whether the steps are counted: then no other thread may take some. */
  get countsSteps(): boolean {
    return this.#mostSteps !== Infinity;
  }

  /** The limit that a run has reached by now, after that many steps. */
  reached(steps: number): ReachedLimit | undefined {
    const { signal, stop, timeLimit, stepLimit } = this.#limits;
    if (steps >= this.#mostSteps)
      return {
        message: "the run took all its steps",
        ...{ expected: `at most ${stepLimit} steps`, found: `${steps} steps` },
      };
    const now = performance.now();
    const aborted = [signal, stop].find((each) => each?.aborted === true);
    if (aborted === undefined && now < this.#deadline) return undefined;
    const found = `${Math.round(now - this.#begin)} ms, ${steps} steps`;
    if (aborted === stop && stop?.reason instanceof StoppedProgram) return stop.reason.reached;
    if (aborted !== undefined)
      return {
        message: `the run was aborted: ${reasonText(aborted.reason)}`,
        ...{ expected: "a signal that is not aborted before the end", found },
      };
    return { message: "the run took all its time", expected: `at most ${timeLimit} ms`, found };
  }

  /** Calls back at the moment when a limit other than that of steps is reached; gives what stops listening. */
  onReached(callback: () => void): () => void {
    const signals = [this.#limits.signal, this.#limits.stop];
    let timer: ReturnType<typeof setTimeout> | undefined;
    const arm = (): void => {
      const left = this.#deadline - performance.now();
      // Timers can be early, by less than a millisecond.
      if (left > 0) timer = setTimeout(arm, Math.min(Math.ceil(left), longestTimer));
      else callback();
    };
    if (this.#deadline !== Infinity) arm();
    const forget = signals.map((signal) => signal && onAbort(signal, callback));
    return () => {
      clearTimeout(timer);
      for (const each of forget) each?.();
    };
  }
}

/** Whether anything is limited. */
function hasLimits({ signal, timeLimit, stepLimit }: RunLimits): boolean {
  return signal !== undefined || timeLimit !== undefined || stepLimit !== undefined;
}

/**
 * The limits of a program, whose steps the host takes: ops on the evaluator, launches and decisions on a device. Work that
 * is under way when a limit is reached ends with `stop`; what waits for its turn then does not begin.
 */
export class LimitedProgram {
  readonly #watch: LimitWatch | undefined;
  #controller: AbortController | undefined;
  readonly #endListening: () => void;
  readonly #yields = new EventLoopYield();
  /** Who hears at once that a limit was reached. */
  readonly #waiting = new Set<() => void>();
  #steps = 0;
  /** The launch that runs; it does not reject. */
  #running: Promise<void> | undefined;
  /** What a launch that was stopped says: where it was. */
  #failure: { readonly error: unknown } | undefined;

  constructor(limits: RunLimits) {
    const watch = hasLimits(limits) ? new LimitWatch(limits) : undefined;
    this.#watch = watch;
    this.#endListening =
      watch?.onReached(() => {
        this.#end(watch.reached(this.#steps));
      }) ?? (() => undefined);
  }

  /** Made when it is needed: while modules are loaded, hosts such as edge workers let nobody make one. */
  get #stop(): AbortController {
    return (this.#controller ??= new AbortController());
  }

  /** Undefined where there is no limit. */
  get stop(): AbortSignal | undefined {
    return this.#watch === undefined ? undefined : this.#stop.signal;
  }

  /** Counts a step that is about to be taken; throws where a limit has been reached. */
  step(location?: Location): void {
    if (this.#watch === undefined) return;
    this.look(location);
    this.#steps += 1;
  }

  /** Throws where a limit has been reached. */
  look(location?: Location): void {
    const reached = this.#watch?.reached(this.#steps);
    if (reached === undefined) return;
    this.#end(reached);
    if (this.#failure !== undefined) throw this.#failure.error;
    throw new TilewrightError({ code: "TW3022", ...reached, location });
  }

  #end(reached: ReachedLimit | undefined): void {
    if (reached !== undefined) this.#stop.abort(new StoppedProgram(reached));
    for (const hear of [...this.#waiting]) hear();
  }

  /** Runs a launch of the program whose turn has come, unless the program has been stopped meanwhile. */
  async launch(execute: (stop: AbortSignal) => Promise<void>): Promise<void> {
    const stop = this.#stop.signal;
    if (stop.aborted) return;
    const running = execute(stop);
    const ended = running.then(
      () => undefined,
      () => undefined,
    );
    this.#running = ended;
    try {
      await running;
    } catch (error) {
      if (!stop.aborted) throw error;
      // Of a launch that was stopped the program hears, and not whoever synchronizes next.
      this.#failure ??= { error };
    } finally {
      if (this.#running === ended) this.#running = undefined;
    }
  }

  /**
   * What `work` gives; throws as soon as a limit is reached and the launch that runs has ended with it, whatever else
   * `work` waits for.
   */
  async wait<T>(work: Promise<T>): Promise<T> {
    if (this.#watch === undefined) return work;
    work.catch(() => undefined);
    let hear = (): void => undefined;
    const stopped = new Promise<void>((resolve) => {
      hear = resolve;
      if (this.#stop.signal.aborted) resolve();
    });
    this.#waiting.add(hear);
    try {
      const given = await Promise.race([work.then((value) => ({ value })), stopped]);
      await (given === undefined ? this.#running : undefined);
      this.look();
      return given === undefined ? await work : given.value;
    } finally {
      this.#waiting.delete(hear);
    }
  }

  /** Gives way to the host where that is due: launches may all be too short to do so themselves. */
  async pause(): Promise<void> {
    if (this.#yields.isDue) await this.#yields.giveWay();
  }

  /** Lets go of signal and timer. */
  end(): void {
    this.#endListening();
  }
}

/** Programs may give any reason at all. */
function reasonText(reason: unknown): string {
  return reason instanceof Error ? reason.message : String(reason);
}
