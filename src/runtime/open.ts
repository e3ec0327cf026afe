/** `open()`: the device that kernels run on. */
import { Device } from "../device/device.ts";
import type { DeviceOptions } from "../device/device.ts";
import { TilewrightError } from "../support/diagnostics.ts";
import { SimulatorBackend } from "./simulator-backend.ts";
import type { SimulatorOptions } from "./simulator-backend.ts";

export type DeviceName = "simulator";

export type OpenOptions = DeviceOptions & SimulatorOptions;

const openers: { readonly [N in DeviceName]: (options: OpenOptions) => Device } = {
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
export function open(name: DeviceName = "simulator", options: OpenOptions = {}): Promise<Device> {
  const opener = (openers as { readonly [name: string]: (options: OpenOptions) => Device })[name];
  if (opener !== undefined) return Promise.resolve(opener(options));
  return Promise.reject(
    new TilewrightError({
      code: "TW4012",
      message: `there is no device ${String(name)}`,
      expected: deviceNames.join(", "),
      found: String(name),
    }),
  );
}
