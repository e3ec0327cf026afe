/** Products of blocks in a cluster are those of the simulator, and their descriptors leave the block's rank out. */
import { expect, test } from "vitest";
import { lower } from "../../src/lower/pipeline.ts";
import { printPtx } from "../../src/ptx/printer.ts";
import { open } from "../../src/runtime/open.ts";
import { targets } from "../../src/targets/target.ts";
import { runCase } from "./case.ts";
import { clusterProductCases } from "./cluster-products.ts";

test.each(clusterProductCases())("$name", async (one) => {
  const device = await open("emulator", { onNotes: () => undefined });
  expect(await runCase(device, one)).toEqual({ name: one.name, problem: undefined });
  device.dispose();
  const text = printPtx(lower(one.prepare().definition.kernel, targets.sm_90a).module);
  // Two operands, and 14 bits of the address of each.
  expect(text.match(/bfe\.u32 %r\d+, %r\d+, 4, 14;/g)).toHaveLength(2);
});
