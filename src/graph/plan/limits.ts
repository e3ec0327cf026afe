/**
 * Limits on a program that a device runs. The host issues its launches and decides its loops and branches, and asks before
 * each whether it may go on; what is under way then is stopped where the device stops kernels.
 *
 *   limit reached ──▶ simulator, emulator   the launch that runs ends, those behind it do not begin, and the device is free
 *                 └─▶ GPU                   nothing more is issued, and the waiting ends (TW4024)
 *
 * The host runs ahead of the device by few launches, which on a GPU are those that still begin after a limit.
 */
import type { Device } from "../../device/device.ts";
import type { WaitLimits } from "../../device/wait-limits.ts";
import { isReadable, requireKnownOptions } from "../../support/options.ts";
import { captureLocation } from "../../support/location.ts";
import { LimitedProgram, requireRunLimits } from "../../support/run-limits.ts";
import type { RunLimits } from "../../support/run-limits.ts";

export const unlimited = new LimitedProgram({});

/** Launches that a program with limits, or one on a device of the host, has issued and not waited for. */
export const mostAhead = 64;

const kinds = ["signal", "timeLimit", "stepLimit"] as const;

/** Whether there is nothing to look at, which costs a program of few small launches more than these. */
function isUnlimited(limits: unknown): boolean {
  // What is no record of limits is looked at, and refused.
  if (typeof limits !== "object" || limits === null || !isReadable(limits, kinds)) return false;
  if (Object.getPrototypeOf(limits) !== Object.prototype) return false;
  return Object.entries(limits).every(
    ([name, limit]) => limit === undefined && kinds.some((kind) => kind === name),
  );
}

/** Runs a program's work under its limits. */
export async function withinLimits<T>(
  limits: RunLimits,
  work: (limited: LimitedProgram) => Promise<T>,
): Promise<T> {
  if (isUnlimited(limits)) return work(unlimited);
  const location = captureLocation();
  requireKnownOptions("run", limits, kinds, "TW4015", location);
  requireRunLimits("run", limits, location);
  const limited = new LimitedProgram(limits);
  try {
    limited.look(location);
    return await work(limited);
  } finally {
    limited.end();
  }
}

/** Waits for a part of the program, which `begin` asks of the device with how long to wait. */
export async function waited<T>(
  device: Device,
  limited: LimitedProgram,
  begin: (...limits: readonly [limits?: WaitLimits]) => Promise<T>,
): Promise<T> {
  const { stop } = limited;
  if (stop === undefined) return begin();
  // A launch that is stopped says where it was; a GPU's goes on.
  return device.stopsKernels ? limited.wait(begin()) : begin({ signal: stop });
}
