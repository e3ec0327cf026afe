/** What is emitted for random kernels means what the simulator says: the emulator gives the same arrays. */
import { expect, test } from "vitest";
import { Device } from "../src/device/device.ts";
import type { Kernel } from "../src/ir/node.ts";
import { printKernel } from "../src/ir/printer.ts";
import { EmulatorBackend } from "../src/runtime/emulator-backend.ts";
import { SimulatorBackend } from "../src/runtime/simulator-backend.ts";
import { TilewrightError } from "../src/support/diagnostics.ts";
import { defaultTarget } from "../src/targets/target.ts";
import { randomKernel } from "./support/random-kernel.ts";
import { randomArguments, runRandom } from "./support/random-runs.ts";
import { place } from "../src/lower/pipeline.ts";

test("random kernels give the same arrays on the emulator and on the simulator", async () => {
  const simulator = new Device(new SimulatorBackend({ checks: false }));
  let compared = 0;
  for (let seed = 0; compared < 60; seed += 1) {
    const kernel = randomKernel(seed, { exact: true });
    if (!isPlaceable(kernel)) continue;
    compared += 1;
    const emulator = new Device(new EmulatorBackend({ seed }));
    const given = randomArguments(kernel, seed);
    const expected = await runRandom(simulator, kernel, given);
    const found = await runRandom(emulator, kernel, given).catch((error: unknown) => String(error));
    expect(found, `randomKernel(${seed}, { exact: true }):\n${printKernel(kernel)}`).toBe(expected);
    emulator.dispose();
  }
  simulator.dispose();
});

/** Random layoutCasts may contradict each other, which placing reports. */
function isPlaceable(kernel: Kernel): boolean {
  try {
    place(kernel, defaultTarget);
    return true;
  } catch (error) {
    if (error instanceof TilewrightError && error.code === "TW6101") return false;
    throw error;
  }
}
