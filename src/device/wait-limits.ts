/**
 * Waiting for a device no longer than its caller wants. The simulator and the emulator stop what they run, and say
 * where it was; a GPU cannot be made to stop a kernel, so there only the waiting ends:
 *
 *   limit reached ──▶ simulator, emulator   TW3022 from the run itself, and the device is free again
 *                 └─▶ GPU, or a turn that   TW4024 now; the work goes on, and what it uses stays taken
 *                     has not come
 */
import { TilewrightError } from "../support/diagnostics.ts";
import type { Location } from "../support/location.ts";
import { isReadable, isRecord, optionText, requireKnownOptions } from "../support/options.ts";
import { LimitWatch, requireRunLimits } from "../support/run-limits.ts";
import type { RunLimits } from "../support/run-limits.ts";

/** When to stop waiting. */
export type WaitLimits = Pick<RunLimits, "signal" | "timeLimit">;

/** Options of one launch. */
export interface LaunchOptions extends RunLimits {
  /** Values of named dimensions that no argument's shape gives. */
  readonly dimensions?: { readonly [name: string]: number };
}

/** A run that can be stopped says so itself, within this many milliseconds. */
export const ownReport = 500;

const launchOptions: readonly (keyof LaunchOptions)[] = [
  "dimensions",
  "signal",
  "timeLimit",
  "stepLimit",
];

/** Checks the options of `what`; on a device that cannot stop kernels, limits that it cannot keep are refused. */
export function requireLaunchOptions(
  what: "run" | "launch" | "bind",
  options: LaunchOptions,
  stopsKernels: boolean,
  location: Location,
): void {
  requireKnownOptions(what, options, launchOptions, "TW4015", location);
  const { dimensions } = options;
  if (dimensions !== undefined && !(isRecord(dimensions) && isReadable(dimensions, [])))
    throw new TilewrightError({
      code: "TW4016",
      message: `dimensions of ${what} cannot be ${optionText(dimensions)}`,
      location,
      expected: "an object with a number for each name, such as { n: 1000 }",
      found: optionText(dimensions),
    });
  requireRunLimits(what, options, location);
  requireKeptLimits(what, options, stopsKernels, location);
}

/** Refuses limits of `what` that a device that cannot stop kernels cannot keep. */
export function requireKeptLimits(
  what: "run" | "launch" | "bind",
  limits: RunLimits,
  stopsKernels: boolean,
  location: Location,
): void {
  const kept: readonly string[] = what === "run" ? ["signal", "timeLimit"] : [];
  for (const name of ["signal", "timeLimit", "stepLimit"] as const)
    if (!stopsKernels && limits[name] !== undefined && !kept.includes(name))
      throw new TilewrightError({
        code: "TW4016",
        message: `a GPU cannot keep the ${name} of ${what}: it does not stop kernels, nor count their steps`,
        location,
        expected: kept.length > 0 ? kept.join(", ") : "no limits",
        found: name,
        remedy: "limit the waiting: give signal or timeLimit to run or synchronize",
      });
}

export function requireWaitLimits(what: string, limits: WaitLimits, location: Location): void {
  requireKnownOptions(what, limits, ["signal", "timeLimit"], "TW4015", location);
  requireRunLimits(what, limits, location);
}

/** Refuses to begin what was aborted before. */
export function requireNotAborted(what: string, { signal }: WaitLimits): void {
  if (signal?.aborted !== true) return;
  throw new TilewrightError({
    code: "TW3022",
    message: `${what} was aborted before it began`,
    expected: "a signal that is not aborted yet",
    found: "one that is",
    remedy: "call it with a signal that has not been aborted",
  });
}

/** Who is waited for. */
export interface Waited {
  /** Whether it is about to stop by itself, and to say where it was. */
  readonly isStopping?: boolean | undefined;
  readonly stopsKernels: boolean;
}

/** What `work` gives, or a report when a limit is reached first. */
export async function waitWithin<T>(
  work: Promise<T>,
  limits: WaitLimits,
  waited: Waited,
  location: Location,
): Promise<T> {
  if (limits.signal === undefined && limits.timeLimit === undefined) return work;
  const watch = new LimitWatch(limits);
  let timer: ReturnType<typeof setTimeout> | undefined;
  let stopListening = (): void => undefined;
  const givenUp = new Promise<never>((_, reject) => {
    stopListening = watch.onReached(() => {
      const giveUp = (): void => {
        reject(waitingEnded(watch, waited, location));
      };
      // Others listen to the same signal, and may have yet to hear of it.
      queueMicrotask(() => {
        if (waited.isStopping === true) timer = setTimeout(giveUp, ownReport);
        else giveUp();
      });
    });
  });
  try {
    return await Promise.race([work, givenUp]);
  } finally {
    stopListening();
    clearTimeout(timer);
    // Nobody hears any more of what becomes of it.
    work.catch(() => undefined);
  }
}

/** Whether an error says that the waiting ended, and not the work. */
export function isGivenUp(error: unknown): boolean {
  return error instanceof TilewrightError && error.code === "TW4024";
}

function waitingEnded(
  watch: LimitWatch,
  { stopsKernels }: Waited,
  location: Location,
): TilewrightError {
  const reached = watch.reached(0);
  return new TilewrightError({
    code: "TW4024",
    message: `${reached?.message.replace("the run", "the wait") ?? "the wait ended"}, and the work goes on`,
    location,
    expected: reached?.expected ?? "an end within the limits",
    found: stopsKernels ? "work that waits for its turn" : "work on the GPU",
  });
}
