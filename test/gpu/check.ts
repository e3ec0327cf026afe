/** A check of the device suite: it throws where the device is wrong, and may say something where it is right. */
import type { Device } from "../../src/device/device.ts";
import { TilewrightError } from "../../src/support/diagnostics.ts";

export interface Check {
  readonly name: string;
  /** Roughly how long it takes beside others; 1 by default. */
  readonly work?: number;
  readonly run: (device: Device) => Promise<string | void>;
}

/**
 * Gives the number of the next check, and undefined behind the last one. Processes that share a suite ask one dealer, since some checks take a
 * hundred times as long as others.
 */
export type Dealer = () => Promise<number | undefined>;

/** The checks from the first to the last one. */
export function inOrder(count: number): Dealer {
  let next = 0;
  return () => Promise.resolve(next < count ? next++ : undefined);
}

/** Those with most work first, so that of processes that share them none has a long one left when the others are done. */
export function longestFirst(checks: readonly Check[]): readonly Check[] {
  return checks.toSorted(({ work: one = 1 }, { work: other = 1 }) => other - one);
}

export interface Counts {
  readonly checks: number;
  readonly failures: number;
}

/** What a process has counted, and whether it was left in a check, so that its device may never be done. */
export interface Left extends Counts {
  readonly isStuck: boolean;
}

/** Whether the device was lost under a check. */
function isLost(error: unknown): boolean {
  if (error instanceof TilewrightError) return error.code === "TW4509";
  return error instanceof Error && error.cause !== undefined && isLost(error.cause);
}

/** Time between two lines that say how far it is. */
const millisecondsBetween = 10_000;

/** A check that takes longer is named, since others wait for it. */
const longMilliseconds = 20_000;

/** What a check said, or "over" where the time is before it is done. Says so where it takes long, while it does and in the end. */
async function runUntil(
  { name, run }: Check,
  device: Device,
  write: (line: string) => void,
  until: number,
): Promise<{ readonly said: string | void } | "over"> {
  const began = performance.now();
  const taken = (): string => `${((performance.now() - began) / 1000).toFixed(1)} s`;
  const telling = setInterval(() => {
    write(`     ${name} has run for ${taken()}`);
  }, longMilliseconds);
  let ending: NodeJS.Timeout | undefined;
  const isOver = new Promise<"over">((resolve) => {
    ending = setTimeout(resolve, until - began, "over");
  });
  try {
    return await Promise.race([run(device).then((said) => ({ said })), isOver]);
  } finally {
    clearInterval(telling);
    clearTimeout(ending);
    if (performance.now() - began > longMilliseconds) write(`     ${name} took ${taken()}`);
  }
}

/**
 * Runs the checks that it is dealt, one after the other, and writes what fails, what is said, what takes long, and from time to time how far it is.
 * The rest is left where the device is lost, since every check behind would fail, and where the time is over; either is one failure.
 */
export async function runChecks(
  device: Device,
  checks: readonly Check[],
  deal: Dealer,
  write: (line: string) => void,
  seconds: number,
): Promise<Left> {
  let [done, failures, told] = [0, 0, performance.now()];
  const until = told + 1000 * seconds;
  const left = (isStuck = false): Left => ({ checks: done, failures, isStuck });
  for (;;) {
    const number = await deal();
    if (number === undefined) return left();
    const check = checks[number];
    if (check === undefined) throw new RangeError(`there is no check ${number}`);
    const { name } = check;
    if (performance.now() > until) {
      write(`FAIL the time is over before ${name}, ${number} of ${checks.length} checks`);
      failures += 1;
      return left();
    }
    if (performance.now() - told > millisecondsBetween) {
      told = performance.now();
      write(`     ${number} of ${checks.length} checks, at ${name}`);
    }
    done += 1;
    try {
      const result = await runUntil(check, device, write, until);
      if (result === "over") {
        failures += 1;
        write(`FAIL the time is over in ${name}`);
        return left(true);
      }
      if (result.said !== undefined) write(`ok   ${name}: ${result.said}`);
    } catch (error) {
      failures += 1;
      write(`FAIL ${name}: ${error instanceof Error ? error.message : String(error)}`);
      if (!isLost(error)) continue;
      failures += 1;
      write("FAIL the device is lost, which this process checks no more");
      return left();
    }
  }
}
