/** Both passes of attention recorded as one piece, which a GPU replays as one CUDA graph; the device suite does so there. */
import { expect, test } from "vitest";
import { checkRecorded } from "../../../test/support/recorded-attention.ts";
import { open } from "../../runtime/open.ts";

test.each([
  { name: "by lists, in order", mask: "prefix", deterministic: true },
  { name: "causal", causal: true },
] as const)("$name", async (told) => {
  const device = await open("simulator", { onNotes: () => undefined });
  const sizes = [1, 70, 140, 2, 1, 16, 16] as const;
  await checkRecorded(device, { sizes, sinks: true, dropout: 0.25, ...told });
  expect(device.leaks).toEqual([]);
  device.dispose();
});
