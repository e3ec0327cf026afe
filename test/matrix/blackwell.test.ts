/**
 * Cases of the matrix compiled for targets of Blackwell and run on the emulator, as on every device compared with the simulator: one in some hundreds here for
 * each target, all of them by `npm run test:gpu -- --device emulator --target sm_100a`. Cases that ask for wgmma by its name, or for larger clusters, are refused.
 */
import { expect, test } from "vitest";
import { Device } from "../../src/device/device.ts";
import { EmulatorBackend } from "../../src/runtime/emulator-backend.ts";
import { targets } from "../../src/targets/target.ts";
import { isTaken } from "../support/sample.ts";
import { asksForMore, runCase } from "./case.ts";
import { matrixCases } from "./index.ts";

test.each(["sm_100a", "sm_120a"] as const)(
  "%s: cases give what the simulator gives",
  { timeout: 7_200_000 },
  async (name) => {
    const backend = new EmulatorBackend({ seed: 1, threads: 1, target: targets[name] });
    const device = new Device(backend, { onNotes: () => undefined });
    const problems: string[] = [];
    // Another part for each target.
    const offset = name === "sm_100a" ? 0 : 10_000;
    const cases = matrixCases().filter((_, place) => isTaken(place + offset, 400));
    expect(cases.length).toBeGreaterThan(5);
    for (const one of cases) {
      const { problem } = await runCase(device, one);
      if (problem !== undefined && !asksForMore(problem, name))
        problems.push(`${one.name}: ${problem}`);
    }
    device.dispose();
    expect(problems).toEqual([]);
  },
);
