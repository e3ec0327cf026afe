/**
 * Some cases of the matrix on the emulator, chosen by name: a few of each family, in seconds, to say at once
 * whether what is emitted still computes what the simulator does. The other cases, in `test/matrix`, take
 * minutes.
 */
import { afterAll, describe, expect, test } from "vitest";
import { Device } from "../../src/device/device.ts";
import { EmulatorBackend } from "../../src/runtime/emulator-backend.ts";
import type { EmulatorDeviceOptions } from "../../src/runtime/emulator-backend.ts";
import { runCase } from "../matrix/case.ts";
import type { MatrixCase } from "../matrix/case.ts";

/** Runs the cases of these names. */
export function sample(
  title: string,
  cases: readonly MatrixCase[],
  names: readonly string[],
  options: EmulatorDeviceOptions = {},
): void {
  describe(title, () => {
    const device = new Device(new EmulatorBackend(options));
    afterAll(() => {
      device.dispose();
    });
    test.each(names)("%s", async (name) => {
      const named = cases.filter((each) => each.name === name);
      expect(named, "cases of this name").toHaveLength(1);
      for (const one of named) expect((await runCase(device, one)).problem).toBeUndefined();
    });
  });
}
