/**
 * Runs cases on the emulator, with all its checks, as tests: one for each op and what it is applied to. Cases
 * that `test/sampled` runs are left to it. Of cases that differ in format, shape and axis alone a part is enough to see
 * an op go wrong (what each lane does in each format `src/ptx/emit/elementwise` tries in full); `npm run test:gpu` runs
 * them all.
 */
import { afterAll, beforeAll, expect, test } from "vitest";
import { Device } from "../../src/device/device.ts";
import { EmulatorBackend } from "../../src/runtime/emulator-backend.ts";
import { sampleOf } from "../support/sample.ts";
import { sampledNames } from "../sampled/names.ts";
import { runCase } from "./case.ts";
import type { MatrixCase } from "./case.ts";

const sampled: ReadonlySet<string> = new Set(Object.values(sampledNames).flat());

/** Cases that share the first words of their names are one test. */
function groupsOf(cases: readonly MatrixCase[]): ReadonlyMap<string, readonly MatrixCase[]> {
  const groups = new Map<string, MatrixCase[]>();
  for (const one of cases) {
    const key = one.name.split(" ").slice(0, 2).join(" ");
    const group = groups.get(key);
    if (group === undefined) groups.set(key, [one]);
    else group.push(one);
  }
  return groups;
}

/** Tests the first case of each group, and all others or one in so many of them. */
export function emulateCases(cases: readonly MatrixCase[], oneIn = 1): void {
  let device: Device | undefined;
  beforeAll(() => {
    device = new Device(new EmulatorBackend({ seed: 1 }));
  });
  afterAll(() => device?.dispose());
  for (const [name, all] of groupsOf(cases.filter(({ name }) => !sampled.has(name)))) {
    const group = sampleOf(all, oneIn);
    test(`${name}: ${group.length} on the emulator`, async () => {
      const problems: string[] = [];
      for (const one of group) {
        if (device === undefined) throw new Error("no emulator");
        const { problem } = await runCase(device, one);
        if (problem !== undefined) problems.push(`${one.name}: ${problem}`);
      }
      expect(problems).toEqual([]);
    });
  }
}
