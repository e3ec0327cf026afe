/** Limits of runs, launches and waiting, as a program gives them to a device: the same options on all of them. */
import process from "node:process";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { openFake, scaled, settle, shifted } from "../../test/support/fake-driver/harness.ts";
import { f32, i32 } from "../formats/dtype.ts";
import { hostArray, toNumbers } from "../formats/hostarray.ts";
import { tensor, constant, kernel, whileLoop } from "../lang/index.ts";
import { open } from "../runtime/open.ts";
import { TilewrightError } from "../support/diagnostics.ts";
import type { Device } from "./device.ts";
import type { LaunchOptions, WaitLimits } from "./wait-limits.ts";

async function reportOf(work: () => unknown): Promise<TilewrightError> {
  try {
    await work();
  } catch (error) {
    if (error instanceof TilewrightError) return error;
    throw error;
  }
  throw new Error("nothing was thrown");
}

const endless = kernel({ name: "endless", outputs: { out: tensor(i32, [1]) } }, ({ out }) => {
  const always = whileLoop(
    constant(i32, 1),
    (v) => v.ne(0),
    (v) => v.mul(3),
  );
  out.at(0).store(always);
});

const aborting = (milliseconds: number): AbortSignal => AbortSignal.timeout(milliseconds);

describe.each(["simulator", "emulator"] as const)("on the %s", (name) => {
  let device: Device;
  beforeEach(async () => {
    device = await open(name, { onLeak: () => undefined });
  });
  afterEach(() => {
    device.dispose();
  });

  test.each<readonly [string, () => LaunchOptions]>([
    ["a time limit", () => ({ timeLimit: 30 })],
    ["a step limit", () => ({ stepLimit: 2000 })],
    ["a signal", () => ({ signal: aborting(30) })],
  ])("%s stops a run, and the device goes on", async (_, limits) => {
    // Compiled before, so that its time is that of the run.
    await reportOf(() => device.run(endless, {}, { stepLimit: 1 }));
    const stopped = await reportOf(() => device.run(endless, {}, limits()));
    expect(stopped.code).toBe("TW3022");
    const { out } = await device.run(scaled, { x: [1, 2], factor: 2 });
    expect(Array.from(toNumbers(out))).toEqual([2, 4]);
    expect(device.leaks).toEqual([]);
  });

  test.each([Infinity, 2 ** 53, 2 ** 31])("a time limit of %d is far away", async (timeLimit) => {
    const warnings: string[] = [];
    const hear = ({ name }: Error): void => void warnings.push(name);
    process.on("warning", hear);
    const { out } = await device.run(scaled, { x: [1, 2], factor: 2 }, { timeLimit });
    await device.synchronize({ timeLimit });
    await new Promise((resolve) => setImmediate(resolve));
    process.off("warning", hear);
    expect(Array.from(toNumbers(out))).toEqual([2, 4]);
    expect(warnings).toEqual([]);
  });

  test("a launch that is stopped is told by synchronize", async () => {
    const out = device.allocate(i32, [1]);
    await reportOf(() => device.run(endless, {}, { stepLimit: 1 }));
    device.launch(endless, { out }, { timeLimit: 20 });
    expect((await reportOf(() => device.synchronize())).code).toBe("TW3022");
    await device.synchronize();
  });

  test("waiting for other work ends without ending that", async () => {
    const out = device.allocate(i32, [1]);
    const controller = new AbortController();
    device.launch(endless, { out }, { signal: controller.signal });
    expect((await reportOf(() => device.synchronize({ timeLimit: 20 }))).code).toBe("TW4024");
    const behind = () => device.run(scaled, { x: [1], factor: 2 }, { timeLimit: 20 });
    expect((await reportOf(behind)).code).toBe("TW4024");
    controller.abort();
    expect((await reportOf(() => device.synchronize())).code).toBe("TW3022");
  });
});

describe("on a GPU", () => {
  test("a limit ends the waiting, says that the work goes on, and leaves the device usable", async () => {
    const { driver, device } = openFake();
    let letGo = (): void => undefined;
    driver.hold = new Promise((resolve) => (letGo = resolve));
    const run = (limits: LaunchOptions) => device.run(scaled, { x: [1, 2], factor: 2 }, limits);
    for (const limits of [() => ({ timeLimit: 10 }), () => ({ signal: aborting(10) })]) {
      const report = await reportOf(() => run(limits()));
      expect([report.code, report.found]).toEqual(["TW4024", "work on the GPU"]);
      expect(report.summary).toMatch(/^the wait .* and the work goes on$/);
    }
    const waited = await reportOf(() => device.synchronize({ timeLimit: 10 }));
    expect(waited.code).toBe("TW4024");
    letGo();
    expect(Array.from(toNumbers((await run({ timeLimit: 600_000 })).out))).toEqual([2, 4]);
    device.dispose();
    await settle();
    expect(driver.live).toEqual({});
  });

  test("limits that it cannot keep are refused", async () => {
    const { device } = openFake({ onLeak: () => undefined });
    const out = device.allocate(f32, [1]);
    const x = await device.upload(hostArray(f32, [1]));
    const steps = () => device.run(scaled, { x, factor: 2 }, { stepLimit: 100 });
    expect((await reportOf(steps)).code).toBe("TW4016");
    for (const limits of [{ timeLimit: 5 }, { signal: aborting(5) }, { stepLimit: 5 }]) {
      const launch = () => device.launch(scaled, { x, factor: 2, out }, limits);
      expect((await reportOf(launch)).code).toBe("TW4016");
    }
    device.dispose();
  });
});

describe("what is no limit", () => {
  const { device } = openFake();
  test.each<LaunchOptions>([
    { timeLimit: -1 },
    { timeLimit: NaN },
    { timeLimit: "5" as never },
    { signal: {} as never },
    { dimensions: 5 as never },
    { dimensions: null as never },
  ])("%j is refused", async (limits) => {
    const run = () => device.run(scaled, { x: [1], factor: 2 }, limits);
    expect((await reportOf(run)).code).toBe("TW4016");
  });

  test("is refused by synchronize too", async () => {
    const wait = (limits: unknown) => () => device.synchronize(limits as WaitLimits);
    expect((await reportOf(wait({ stepLimit: 5 }))).code).toBe("TW4015");
    expect((await reportOf(wait(5))).code).toBe("TW4015");
    expect((await reportOf(wait({ timeLimit: -5 }))).code).toBe("TW4016");
  });

  test("a signal aborted before runs nothing", async () => {
    const { device: fresh } = openFake();
    const signal = AbortSignal.abort();
    const run = () => fresh.run(scaled, { x: [1], factor: 2 }, { signal });
    expect((await reportOf(run)).code).toBe("TW3022");
    expect(fresh.compilations).toEqual([]);
    fresh.dispose();
  });
});

test("programs that a device forgets are unloaded once nothing uses them", async () => {
  const { driver, backend } = openFake();
  const first = backend.compile(scaled.kernel, "first").program;
  const second = backend.compile(shifted.kernel, "second").program;
  const numbers = { dimensions: new Map([["n", 1]]), scalars: new Map([["factor", 1]]) };
  const allocations = ["x", "out"].map((name) => [name, backend.allocate(f32, [1])] as const);
  const arrays = new Map(allocations);
  const bound = backend.bind({ kernel: shifted.kernel, program: second, arrays, ...numbers });
  backend.forget(first);
  backend.forget(second);
  await backend.synchronize();
  expect(driver.live["module"]).toBe(1);
  bound.launch();
  bound.dispose();
  await backend.synchronize();
  expect(driver.live["module"]).toBeUndefined();
  for (const [, allocation] of allocations) backend.release(allocation);
  backend.dispose();
  await settle();
  expect(driver.live).toEqual({});
  expect(driver.misuses).toEqual([]);
});
