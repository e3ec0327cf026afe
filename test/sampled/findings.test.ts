/** What the emulator finds in a kernel fails its launch, and is told to who asked for it. */
import { expect, test } from "vitest";
import { Device } from "../../src/device/device.ts";
import { f32 } from "../../src/formats/dtype.ts";
import { toNumbers } from "../../src/formats/hostarray.ts";
import { tensor, full, kernel } from "../../src/lang/index.ts";
import { EmulatorBackend } from "../../src/runtime/emulator-backend.ts";

/** Blocks that write the same elements, unordered. */
const racing = kernel(
  { name: "racing", grid: { i: 2 }, outputs: { out: tensor(f32, [32]) } },
  ({ i, out }) => {
    out.store(full(f32, [32], 1).add(i.cast(f32).mul(0)));
  },
);

test("a finding fails the launch", async () => {
  const told: string[] = [];
  const onFindings = (findings: readonly { readonly code: string }[]): void => {
    told.push(...findings.map(({ code }) => code));
  };
  const device = new Device(new EmulatorBackend({ onFindings }));
  await expect(device.run(racing, {})).rejects.toThrow("TW8014");
  expect(told).toEqual(["TW8014"]);
  device.dispose();
});

test("without checks nothing is found", async () => {
  const device = new Device(new EmulatorBackend({ checks: false }));
  const { out } = await device.run(racing, {});
  expect(new Set(toNumbers(out))).toEqual(new Set([1]));
  device.dispose();
});
