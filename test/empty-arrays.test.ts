/** Arrays without elements, which a tensor map cannot describe: on the simulator and on the emulator, with everything checked. */
import { describe, test } from "vitest";
import { open } from "tilewright";
import { emptyArrayChecks } from "./gpu/empty-arrays.ts";

describe.each(["simulator", "emulator"] as const)("on the %s", (name) => {
  test.each(Object.entries(emptyArrayChecks))("%s", async (_, check) => {
    const device = await open(name, { onNotes: () => undefined });
    try {
      await check(device);
    } finally {
      device.dispose();
    }
  });
});
