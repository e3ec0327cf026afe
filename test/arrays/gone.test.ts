/** An array that was disposed of or donated is gone, in the same way wherever arrays are computed. */
import { afterAll, beforeAll, describe, test } from "vitest";
import { useDevice } from "../../src/arrays/index.ts";
import type { Device } from "../../src/device/device.ts";
import { open } from "../../src/runtime/open.ts";
import { sampleOf } from "../support/sample.ts";
import { goneChecks } from "./gone-uses.ts";

describe.each(["evaluator", "default", "simulator", "emulator"] as const)("on the %s", (name) => {
  let device: Device | undefined;
  beforeAll(async () => {
    device = name === "evaluator" || name === "default" ? undefined : await open(name);
    await useDevice(name === "evaluator" ? name : device);
  });
  afterAll(async () => {
    await useDevice();
    device?.dispose();
  });
  const checks = name === "evaluator" ? goneChecks : sampleOf(goneChecks, 3);
  test.each(checks.map((check) => [check.name, check] as const))("%s", (_, { run }) => run());
});
