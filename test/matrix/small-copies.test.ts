/** Elements of 4 bits travel by TMA where their windows are whole bytes, and arrive as they were. */
import { expect, test } from "vitest";
import { lower } from "../../src/lower/stages.ts";
import { printPtx } from "../../src/ptx/printer.ts";
import { open } from "../../src/runtime/open.ts";
import { targets } from "../../src/targets/target.ts";
import { runCase } from "./case.ts";
import { smallCopyCases } from "./small-copies.ts";

test.each(smallCopyCases())("$name", async (one) => {
  const device = await open("emulator", { onNotes: () => undefined });
  expect(await runCase(device, one)).toEqual({ name: one.name, problem: undefined });
  device.dispose();
  const text = printPtx(lower(one.prepare().definition.kernel, targets.sm_90a).module);
  const isWhole = !one.name.endsWith("from 3");
  expect(text.includes("cp.async.bulk.tensor.2d.shared::cluster")).toBe(isWhole);
});
