/** `open()`: the device that kernels run on. */
import { Device } from "../device/device.ts";
import { TilewrightError } from "../support/diagnostics.ts";
import { captureLocation } from "../support/location.ts";
import { checkOpenOptions } from "./open-options.ts";
import type { CheckedOptions, OpenOptions } from "./open-options.ts";
import { SimulatorBackend } from "./simulator-backend.ts";

export type DeviceName = "simulator";

const openers: { readonly [N in DeviceName]: (options: CheckedOptions) => Device } = {
  simulator: (options) => new Device(new SimulatorBackend(options), options),
};

/** The names that `open` takes. */
export const deviceNames = Object.freeze(Object.keys(openers)) as readonly DeviceName[];

/**
 * Opens a device: the best one there is, or the one named. Dispose of it when done.
 *
 * ```ts
 * const device = await open();
 * try {
 *   const { out } = await device.run(axpy, { x, y });
 * } finally {
 *   device.dispose();
 * }
 * ```
 */
export async function open(
  name: DeviceName = "simulator",
  options: OpenOptions = {},
): Promise<Device> {
  const location = captureLocation();
  const opener = (openers as { readonly [name: string]: (options: CheckedOptions) => Device })[
    name
  ];
  if (opener !== undefined) return opener(checkOpenOptions(options, location));
  throw new TilewrightError({
    code: "TW4012",
    message: `there is no device ${String(name)}`,
    location,
    expected: deviceNames.join(", "),
    found: String(name),
  });
}
