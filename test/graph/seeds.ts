/**
 * Tests of random programs, one a seed: how many there are, from which seed on and on which device, the environment may say
 * (`PROGRAMS`, `SEED`, `DEVICE`). What is wrong is told with its seed.
 */
import { expect, test } from "vitest";
import type { Device } from "../../src/device/device.ts";
import { open } from "../../src/runtime/open.ts";
import type { DeviceName } from "../../src/runtime/open-options.ts";

const { PROGRAMS, SEED = "1", DEVICE = "simulator" } = process.env;

/** What is wrong with the program of a seed; undefined where it has none. */
type Judge = (device: Device, seed: number) => Promise<readonly string[] | undefined>;

/** Runs so many programs, unless the environment says another number. */
export function testPrograms(usual: number, judge: Judge): void {
  const [first, count] = [Number(SEED), Number(PROGRAMS ?? usual)];
  test(
    `${count} programs from seed ${first} on the ${DEVICE}`,
    { timeout: 3_600_000 },
    async () => {
      const device = await open(DEVICE as DeviceName, { onNotes: () => undefined });
      const wrong: string[] = [];
      let judged = 0;
      try {
        for (let seed = first; seed < first + count; seed++) {
          const found = await judge(device, seed);
          if (found === undefined) continue;
          judged += 1;
          for (const what of found) wrong.push(`seed ${seed}: ${what}`);
        }
      } finally {
        device.dispose();
      }
      expect(wrong).toEqual([]);
      // Seeds without a program are few, or nothing was tried.
      expect(2 * judged).toBeGreaterThan(count);
    },
  );
}
