/** A check of the device suite: it throws where the device is wrong, and may say something where it is right. */
import type { Device } from "../../src/device/device.ts";
import { TilewrightError } from "../../src/support/diagnostics.ts";

export interface Check {
  readonly name: string;
  readonly run: (device: Device) => Promise<string | void>;
}

/** One check in `of`, beginning with the one of this number. */
export interface Share {
  readonly number: number;
  readonly of: number;
}

export interface Counts {
  readonly checks: number;
  readonly failures: number;
}

/** Whether the device was lost under a check. */
function isLost(error: unknown): boolean {
  if (error instanceof TilewrightError) return error.code === "TW4509";
  return error instanceof Error && error.cause !== undefined && isLost(error.cause);
}

/** Time between two lines that say how far it is. */
const millisecondsBetween = 10_000;

/**
 * Runs a share of the checks, one after the other, and writes what fails, what is said, and from time to time how far it is. The rest is
 * left where the device is lost, since every check behind would fail, and where the time is over; either is one failure.
 */
export async function runChecks(
  device: Device,
  checks: readonly Check[],
  { number, of }: Share,
  write: (line: string) => void,
  seconds: number,
): Promise<Counts> {
  const own = checks.filter((_, index) => index % of === number);
  let [failures, told] = [0, performance.now()];
  const until = told + 1000 * seconds;
  for (const [done, { name, run }] of own.entries()) {
    if (performance.now() > until) {
      write(`FAIL the time is over after ${done} of ${own.length} checks, before ${name}`);
      return { checks: done, failures: failures + 1 };
    }
    if (performance.now() - told > millisecondsBetween) {
      told = performance.now();
      write(`     ${done} of ${own.length} checks, at ${name}`);
    }
    try {
      const said = await run(device);
      if (said !== undefined) write(`ok   ${name}: ${said}`);
    } catch (error) {
      failures += 1;
      write(`FAIL ${name}: ${error instanceof Error ? error.message : String(error)}`);
      if (!isLost(error)) continue;
      write(`FAIL the device is lost: ${own.length - done - 1} checks are left`);
      return { checks: done + 1, failures: failures + 1 };
    }
  }
  return { checks: own.length, failures };
}
