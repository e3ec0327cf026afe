/**
 * Products of blocks in a cluster are those of the simulator. Shared addresses carry the block's rank on the emulator as
 * they do on hardware, so that a descriptor which takes it in reads elsewhere.
 */
import { expect, test } from "vitest";
import { open } from "../../src/runtime/open.ts";
import { runCase } from "./case.ts";
import { clusterProductCases } from "./cluster-products.ts";

test.each(clusterProductCases())("$name", async (one) => {
  const device = await open("emulator", { onNotes: () => undefined });
  expect(await runCase(device, one)).toEqual({ name: one.name, problem: undefined });
  device.dispose();
});
