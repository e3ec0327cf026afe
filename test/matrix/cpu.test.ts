/**
 * Cases of the matrix on the CPU device, compared with the simulator as on every device: one in some dozens of each group here, all of them
 * by `TILEWRIGHT_CASES=all npx vitest run test/matrix/cpu.test.ts`. What the CPU refuses is what docs/cpu.md lists, by its code.
 */
import { afterAll, beforeAll, expect, test } from "vitest";
import { Device } from "../../src/device/device.ts";
import { openCpu } from "../../src/cpu/device/open.ts";
import { sampleOf } from "../support/sample.ts";
import { runCase } from "./case.ts";
import { matrixCases } from "./index.ts";

/** The refusals of docs/cpu.md, by what the error says. */
const refusals =
  /^TW4710: \S+ cannot run on the CPU device: (a cluster of blocks|tensor memory|products with scales by tensor cores|inline PTX without a meaning|a window whose elements do not lie at even distances|a copy that combines by (inc|dec) of \w+|an atomic (update of a packed format|\w+ of \w+)|a \w+ of tf32 over axes that are no neighbours|a bit cast between \w+ and \w+)/;
/** Blocks that wait for later ones. */
const endless = new Map([["semaphores that are taken", "TW4705"]]);

function isRefused(name: string, problem: string): boolean {
  const code = endless.get(name);
  return refusals.test(problem) || (code !== undefined && problem.startsWith(code));
}

let device: Device | undefined;
beforeAll(() => {
  device = new Device(openCpu({ threads: 1 }), { onNotes: () => undefined });
});
afterAll(() => device?.dispose());

test("cases give what the simulator gives", async () => {
  if (device === undefined) throw new Error("no device");
  const problems: string[] = [];
  for (const one of sampleOf(matrixCases(), 40)) {
    const { problem } = await runCase(device, one);
    if (problem !== undefined && !isRefused(one.name, problem))
      problems.push(`${one.name}: ${problem}`);
  }
  expect(problems).toEqual([]);
});
