/** The context that is opened ahead, beside the compiler's warm-up. */
import { expect, test } from "vitest";
import { KernelCache } from "./cache/kernel-cache.ts";
import { FakeDriver } from "../../test/support/fake-driver/driver.ts";
import { startAhead } from "./start.ts";

test("a context opened ahead is held until it is let go of", async () => {
  const driver = new FakeDriver();
  const letGo = await startAhead(driver, 0, () => new KernelCache(undefined, undefined));
  expect(driver.live).toEqual({ context: 1 });
  letGo();
  expect(driver.live).toEqual({});
  expect(driver.misuses).toEqual([]);
});

test.each([
  ["cuInit", 999],
  ["cuDeviceGet", 101],
  ["cuDevicePrimaryCtxRetain", 2],
] as const)("a failure of %s is left to who opens next", async (name, result) => {
  const driver = new FakeDriver();
  driver.fail(name, result);
  const letGo = await startAhead(driver, 0, () => new KernelCache(undefined, undefined));
  letGo();
  expect(driver.live).toEqual({});
});
