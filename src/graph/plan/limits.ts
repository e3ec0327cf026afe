/**
 * Limits on a program that a device runs. The host issues its launches and decides its loops and branches, and asks before
 * each whether it may go on; what is under way then is stopped where the device stops kernels.
 *
 *   limit reached ──▶ simulator, emulator   the launch that runs ends, those behind it do not begin, and the device is free
 *                 └─▶ GPU                   nothing more is issued, and the waiting ends (TW4024)
 */
import type { Device } from "../../device/device.ts";
import type { WaitLimits } from "../../device/waiting.ts";
import { requireKnownOptions } from "../../support/options.ts";
import { captureLocation } from "../../support/location.ts";
import { LimitedProgram, requireRunLimits } from "../../support/run-limits.ts";
import type { RunLimits } from "../../support/run-limits.ts";

export const unlimited = new LimitedProgram({});

/** Runs a program's work under its limits, and leaves nothing of it behind where one is reached. */
export async function withinLimits<T>(
  device: Device,
  limits: RunLimits,
  work: (limited: LimitedProgram) => Promise<T>,
): Promise<T> {
  const location = captureLocation();
  requireKnownOptions("run", limits, ["signal", "timeLimit", "stepLimit"], "TW4015", location);
  requireRunLimits("run", limits, location);
  const limited = new LimitedProgram(limits);
  try {
    return await work(limited);
  } catch (error) {
    // The failures of launches that were stopped belong to this run, not to whoever synchronizes next.
    if (limited.stop?.aborted === true && device.stopsKernels)
      await device.synchronize().catch(() => undefined);
    throw error;
  } finally {
    limited.end();
  }
}

/** How long to wait for a part of the program, as the last argument of the device's calls; none without limits. */
export function waitOf({ stop }: LimitedProgram): readonly [limits?: WaitLimits] {
  return stop === undefined ? [] : [{ signal: stop }];
}
