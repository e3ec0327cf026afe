/** Codes of devices and the runtime: TW4xxx. */
import { registerCodes } from "./entry.ts";

export const deviceCodes = registerCodes({
  TW4001: {
    title: "device already disposed",
    cause: "A disposed device has given back its memory and takes no more work.",
    example: "device.dispose(); await device.run(kernel, inputs);",
    remedy: "dispose of the device after its last use",
  },
});
