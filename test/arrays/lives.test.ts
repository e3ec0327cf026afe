/** Random lives of arrays: each read is right or refused as it should be, and nothing is left in the device's memory. */
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { describe, expect, test } from "vitest";
import { livePrograms } from "../../src/arrays/device.ts";
import { useDevice } from "../../src/arrays/index.ts";
import { open } from "../../src/runtime/open.ts";
import { Random } from "../../src/support/random.ts";
import { ArrayPatterns } from "../support/array-patterns.ts";
import { takesAll } from "../support/sample.ts";

const seeds = takesAll ? 20 : 1;
const steps = 50;

setFlagsFromString("--expose-gc");
const collectGarbage = runInNewContext("gc") as () => void;

async function live(seed: number): Promise<void> {
  const patterns = new ArrayPatterns(new Random(seed));
  for (let step = 0; step < steps; step++)
    try {
      await patterns.step();
    } catch (error) {
      throw new Error(`step ${step} of seed ${seed}`, { cause: error });
    }
  patterns.end();
}

test.each(["evaluator", "cpu"] as const)("on the %s", async (name) => {
  await useDevice(name);
  try {
    for (let seed = 0; seed < seeds; seed++) await live(seed);
  } finally {
    await useDevice();
  }
});

describe.each(["simulator", "emulator"] as const)("on the %s", (name) => {
  test("and nothing is left of them", async () => {
    const device = await open(name);
    await useDevice(device);
    for (let seed = 0; seed < seeds; seed++) await live(seed);
    expect(livePrograms(device)).toBeLessThanOrEqual(128);
    await useDevice();
    expect(livePrograms(device)).toBe(0);
    // What was forgotten is the garbage collector's.
    for (let round = 0; round < 20 && device.memory.used > 0; round++) {
      collectGarbage();
      await new Promise((resolve) => setTimeout(resolve, 5));
    }
    expect([device.memory.used, device.memory.allocations]).toEqual([0, 0]);
    device.dispose();
  });
});
