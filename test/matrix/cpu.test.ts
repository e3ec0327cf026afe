/**
 * Cases of the matrix on the CPU device, compared with the simulator as on every device: one in some dozens of each group here, all of them
 * by `TILEWRIGHT_CASES=all npx vitest run test/matrix/cpu.test.ts`. What the CPU refuses, it refuses by its code.
 */
import { afterAll, beforeAll, expect, test } from "vitest";
import { Device } from "../../src/device/device.ts";
import { openCpu } from "../../src/cpu/device/open.ts";
import { sampleOf } from "../support/sample.ts";
import { runCase } from "./case.ts";
import { matrixCases } from "./index.ts";

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
    if (problem !== undefined) problems.push(`${one.name}: ${problem}`);
  }
  expect(problems).toEqual([]);
});
