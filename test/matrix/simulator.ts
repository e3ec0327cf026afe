/** The simulator that results are compared with. Checks are left to its own tests. */
import { Device } from "../../src/device/device.ts";
import { SimulatorBackend } from "../../src/runtime/simulator-backend.ts";

export function openSimulator(): Promise<Device> {
  return Promise.resolve(new Device(new SimulatorBackend({ checks: false })));
}
