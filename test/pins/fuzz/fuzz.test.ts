/** A few kernels of the fuzzer: `npm run fuzz:pins` tries thousands. */
import process from "node:process";
import { expect, test } from "vitest";
import { takesAll } from "../../support/sample.ts";
import { tryPins } from "./campaign.ts";

const first = takesAll ? Date.now() % 1_000_000 : 10;
const count = takesAll ? 200 : 20;

test(`kernels of seeds ${first} to ${first + count - 1} are accepted or refused alike, with equal results`, async () => {
  const { failures, accepted, emulated } = await tryPins(
    Array.from({ length: count }, (_, index) => first + index),
  );
  if (failures.length > 0) process.stderr.write(`seeds from ${first}\n`);
  expect(failures).toEqual([]);
  expect(accepted).toBeGreaterThan(0);
  expect(emulated).toBeGreaterThan(0);
}, 600_000);
