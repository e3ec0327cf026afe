/**
 * What still happens after a program has been stopped: launches that were issued ahead, programs that wait for their turn,
 * and GPUs, which nobody can stop. Launches are counted; no time is measured.
 */
import { afterEach, describe, expect, test, vi } from "vitest";
import { tensor as arrayOf, f32, fromNumbers, kernel, open, TilewrightError } from "tilewright";
import type { Device } from "tilewright";
import { add, array, jit, useDevice } from "tilewright/arrays";
import type { NDArray } from "tilewright/arrays";
import { compilePlan, parseGraph, Program } from "tilewright/graph";
import { BoundLaunch } from "../src/device/bound-launch.ts";
import { EmulatorBackend } from "../src/runtime/emulator-backend.ts";
import { SimulatorBackend } from "../src/runtime/simulator-backend.ts";
import { mostAhead } from "../src/graph/plan/limits.ts";
import { readAddress } from "../src/cuda/driver.ts";
import { FakeDriver } from "./support/fake-driver/driver.ts";
import type { FakeKernel } from "./support/fake-driver/driver.ts";
import { openFake, settle, stubCompiler } from "./support/fake-driver/harness.ts";

/** A million turns, of which the host knows. */
const counting = `func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  %ones = stablehlo.constant dense<1.0> : tensor<4xf32>
  %most = stablehlo.constant dense<TURNS> : tensor<i32>
  %r:2 = stablehlo.while(%i = %zero, %s = %x) : tensor<i32>, tensor<4xf32>
    cond {
      %p = stablehlo.compare LT, %i, %most : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %p : tensor<i1>
    } do {
      %j = stablehlo.add %i, %one : tensor<i32>
      %t = stablehlo.add %s, %ones : tensor<4xf32>
      stablehlo.return %j, %t : tensor<i32>, tensor<4xf32>
    }
  return %r#1 : tensor<4xf32>
}`;

/** As long as the first element is above -1, which the host reads at each turn. */
const asking = `func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %least = stablehlo.constant dense<-1.0> : tensor<f32>
  %ones = stablehlo.constant dense<1.0> : tensor<4xf32>
  %r = stablehlo.while(%s = %x) : tensor<4xf32>
    cond {
      %e = stablehlo.slice %s [0:1] : (tensor<4xf32>) -> tensor<1xf32>
      %f = stablehlo.reshape %e : (tensor<1xf32>) -> tensor<f32>
      %p = stablehlo.compare GT, %f, %least : (tensor<f32>, tensor<f32>) -> tensor<i1>
      stablehlo.return %p : tensor<i1>
    } do {
      %t = stablehlo.add %s, %ones : tensor<4xf32>
      stablehlo.return %t : tensor<4xf32>
    }
  return %r : tensor<4xf32>
}`;

function planOf(text: string, turns = 1_000_000) {
  const [module] = parseGraph(text.replace("TURNS", String(turns)));
  if (module === undefined) throw new Error("a program is missing");
  return compilePlan(module, "main");
}

const start = fromNumbers(f32, [4], [1, 2, 3, 4]);
const given = [{ kind: "tensor", element: "f32", shape: [4], data: start.data }] as const;

async function failureOf(work: Promise<unknown>): Promise<TilewrightError> {
  try {
    await work;
  } catch (error) {
    if (error instanceof TilewrightError) return error;
    throw error;
  }
  throw new Error("the run came to an end");
}

const inc = kernel(
  { name: "inc", inputs: { x: arrayOf(f32, [4]) }, outputs: { out: arrayOf(f32, [4]) } },
  ({ x, out }) => out.store(x.load().add(1)),
);

interface Executing {
  execute(launch: unknown): Promise<void>;
}

const backends = {
  simulator: SimulatorBackend.prototype as unknown as Executing,
  emulator: EmulatorBackend.prototype as unknown as Executing,
};

/** Has every launch of a back end counted; `before` may hold it up. */
function counted(name: keyof typeof backends, before: (launches: number) => void | Promise<void>) {
  const { execute } = backends[name];
  let launches = 0;
  vi.spyOn(backends[name], "execute").mockImplementation(async function (this: Executing, launch) {
    launches += 1;
    await before(launches);
    return execute.call(this, launch);
  });
  return () => launches;
}

let device: Device | undefined;

afterEach(async () => {
  vi.restoreAllMocks();
  await useDevice();
  device?.dispose();
  device = undefined;
});

describe.each(["simulator", "emulator"] as const)("on the %s", (name) => {
  test.each([
    ["that counts", counting],
    ["that asks", asking],
  ])("no launch of a loop %s begins after its signal is aborted", async (_, text) => {
    device = await open(name);
    const program = await Program.load(device, planOf(text));
    const controller = new AbortController();
    const launches = counted(name, (count) => {
      if (count === 5) controller.abort("enough");
    });
    let issued = 0;
    const { launchWith } = BoundLaunch.prototype;
    vi.spyOn(BoundLaunch.prototype, "launchWith").mockImplementation(function (
      this: BoundLaunch,
      limited,
    ) {
      issued += this.kernels.length;
      launchWith.call(this, limited);
    });
    const { code, summary } = await failureOf(program.run(given, { signal: controller.signal }));
    expect([code, summary]).toEqual(["TW3022", "the run was aborted: enough"]);
    await device.synchronize();
    expect(launches()).toBe(5);
    expect(issued).toBeLessThanOrEqual(mostAhead + 5);
    // Nothing of it is left for others to hear.
    expect([...(await device.run(inc, { x: start })).out.data]).toEqual([2, 3, 4, 5]);
    program.dispose();
    expect(device.leaks).toEqual([]);
  });

  test("without limits, too, the host is ahead by few launches", async () => {
    device = await open(name);
    const program = await Program.load(device, planOf(counting, 80));
    const launches = counted(name, () => undefined);
    let most = 0;
    let issued = 0;
    const { launchWith } = BoundLaunch.prototype;
    vi.spyOn(BoundLaunch.prototype, "launchWith").mockImplementation(function (
      this: BoundLaunch,
      limited,
    ) {
      issued += this.kernels.length;
      most = Math.max(most, issued - launches());
      launchWith.call(this, limited);
    });
    const [result] = await program.run(given);
    expect([...(result?.data ?? [])]).toEqual([81, 82, 83, 84]);
    expect(issued).toBeGreaterThanOrEqual(80);
    expect(most).toBeLessThanOrEqual(mostAhead + 2);
    program.dispose();
  });

  test("a run that waits for its turn ends at once, and never begins", async () => {
    device = await open(name);
    const program = await Program.load(device, planOf(counting, 3));
    let release = (): void => undefined;
    const held = new Promise<void>((resolve) => (release = resolve));
    const launches = counted(name, () => held);
    const first = program.run(given);
    const controller = new AbortController();
    const { signal } = controller;
    const limits = [{ signal }, { timeLimit: 5 }, { signal, stepLimit: 1e6 }];
    const waiting = limits.map((each) => failureOf(program.run(given, each)));
    setTimeout(() => {
      controller.abort("nobody wants it");
    }, 5);
    // The first holds the device until all others have ended.
    const codes = (await Promise.all(waiting)).map(({ code }) => code);
    expect(codes).toEqual(["TW3022", "TW3022", "TW3022"]);
    release();
    const [result] = await first;
    expect([...(result?.data ?? [])]).toEqual([4, 5, 6, 7]);
    const own = launches();
    const [again] = await program.run(given);
    expect([...(again?.data ?? [])]).toEqual([4, 5, 6, 7]);
    expect(launches()).toBe(2 * own);
    program.dispose();
    expect(device.leaks).toEqual([]);
  });

  test("so does a call of a compiled function, with what was donated to it", async () => {
    device = await open(name);
    await useDevice(device);
    let release = (): void => undefined;
    const held = new Promise<void>((resolve) => (release = resolve));
    const controller = new AbortController();
    const { signal } = controller;
    const slow = jit((x: NDArray) => add(add(add(x, 1), 1), 1));
    const quick = jit((x: NDArray) => add(x, 1), { signal, donate: [0] });
    const w = slow(array([1, 2]));
    await w.read();
    const launches = counted(name, () => held);
    const first = slow(w);
    const donated = slow(w);
    const second = quick(donated);
    const hears = failureOf(second.read());
    controller.abort("nobody wants it");
    expect((await hears).summary).toMatch(/the run was aborted: nobody wants it/);
    release();
    expect(await first.values()).toEqual([7, 8]);
    await device.synchronize();
    const own = launches();
    expect((await failureOf(quick(array([1])).read())).code).toBe("TW3022");
    expect(launches()).toBe(own);
    for (const each of [w, first]) each.dispose();
    await useDevice();
    expect(device.leaks).toEqual([]);
  });

  test("and a kernel behind other work", async () => {
    device = await open(name);
    let release = (): void => undefined;
    const held = new Promise<void>((resolve) => (release = resolve));
    const launches = counted(name, () => held);
    const first = device.run(inc, { x: start });
    const controller = new AbortController();
    const { signal } = controller;
    const waiting = [{ signal }, { timeLimit: 5 }].map((limits) =>
      failureOf(device?.run(inc, { x: start }, limits) ?? Promise.resolve()),
    );
    setTimeout(() => {
      controller.abort();
    }, 5);
    for (const { code } of await Promise.all(waiting)) expect(code).toBe("TW4024");
    release();
    expect([...(await first).out.data]).toEqual([2, 3, 4, 5]);
    await device.synchronize();
    expect(launches()).toBe(1);
    expect(device.leaks).toEqual([]);
  });

  test("a signal may be that of many runs", async () => {
    device = await open(name);
    const program = await Program.load(device, planOf(counting, 2));
    const warnings: string[] = [];
    const hear = ({ name: kind }: Error): void => void warnings.push(kind);
    process.on("warning", hear);
    const { signal } = new AbortController();
    await Promise.all(Array.from({ length: 40 }, () => program.run(given, { signal })));
    await new Promise((resolve) => setImmediate(resolve));
    process.off("warning", hear);
    expect(warnings).toEqual([]);
    program.dispose();
  });
});

describe("on a GPU", () => {
  /** Kernels that write 1 to the first word of their last array, so that loops that ask never end. */
  function openGpu() {
    let launches = 0;
    let onLaunch = (_: number): void => undefined;
    const driver = new FakeDriver();
    const run: FakeKernel["run"] = ({ parameters, memory }) => {
      launches += 1;
      onLaunch(launches);
      const last = parameters.at(-1);
      if (last !== undefined) memory.view("device", readAddress(last, 0), 1)[0] = 1;
    };
    const plain = stubCompiler();
    let named = 0;
    const harness = openFake({
      driver,
      compiler: (compiled, target) => {
        const entry = `entry_${named++}`;
        const sizes = compiled.parameters.map(() => 8);
        Object.assign(driver.kernels, { [entry]: { sizes, run } });
        const { executable, notes } = plain(compiled, target);
        const parameters = compiled.parameters.map(
          ({ name }) => ({ kind: "array", name }) as const,
        );
        const module = {
          ...executable.module,
          declarations: executable.module.declarations.map((each) => ({ ...each, name: entry })),
        } as typeof executable.module;
        return { executable: { ...executable, entry, parameters, module }, notes };
      },
    });
    return {
      ...harness,
      launches: () => launches,
      hearLaunches: (hear: (launches: number) => void): void => {
        onLaunch = hear;
      },
    };
  }

  test.each([
    ["that counts", counting],
    ["that asks", asking],
  ])("nothing more of a loop %s is issued, and the wait ends at once", async (_, text) => {
    const { device: gpu, driver, launches, hearLaunches } = openGpu();
    const program = await Program.load(gpu, planOf(text));
    const controller = new AbortController();
    let hold = (): void => undefined;
    hearLaunches((count) => {
      if (count !== 5) return;
      // From here on the GPU is busy, for longer than anybody waits.
      driver.hold = new Promise((resolve) => (hold = resolve));
      controller.abort("enough");
    });
    const { code } = await failureOf(program.run(given, { signal: controller.signal }));
    expect(["TW3022", "TW4024"]).toContain(code);
    const issued = launches();
    expect(issued).toBeLessThanOrEqual(mostAhead + 5);
    await settle();
    hold();
    driver.hold = undefined;
    await settle();
    await gpu.synchronize();
    expect(launches()).toBe(issued);
    program.dispose();
    gpu.dispose();
    await settle();
    expect(driver.live).toEqual({});
  });

  test("a run that waits for its turn ends at once, and never begins", async () => {
    const { device: gpu, driver, launches } = openGpu();
    const program = await Program.load(gpu, planOf(counting, 3));
    await program.run(given);
    const own = launches();
    let release = (): void => undefined;
    driver.hold = new Promise((resolve) => (release = resolve));
    const first = program.run(given);
    const controller = new AbortController();
    const second = failureOf(program.run(given, { signal: controller.signal }));
    await settle();
    controller.abort();
    expect((await second).code).toBe("TW3022");
    release();
    await first;
    await settle();
    expect(launches()).toBe(2 * own);
    program.dispose();
    gpu.dispose();
    await settle();
    expect(driver.live).toEqual({});
  });
});

test("a signal that was aborted before runs nothing", async () => {
  device = await open("simulator");
  const program = await Program.load(device, planOf(counting, 3));
  const launches = counted("simulator", () => undefined);
  const signal = AbortSignal.abort("early");
  expect((await failureOf(program.run(given, { signal }))).code).toBe("TW3022");
  await device.synchronize();
  expect(launches()).toBe(0);
  program.dispose();
});
