/** Loops and branches as conditional nodes, on the fake driver, whose kernels are JavaScript. */
import { afterEach, describe, expect, test } from "vitest";
import {
  elementwise,
  fakeKernels,
  openFake,
  scaled,
  shifted,
} from "../../test/support/fake-driver/harness.ts";
import type { Harness, HarnessOptions } from "../../test/support/fake-driver/harness.ts";
import { f32 } from "../formats/dtype.ts";
import { fromNumbers, toNumbers } from "../formats/hostarray.ts";

let opened: Harness[] = [];
afterEach(() => {
  for (const { device } of opened) device.dispose();
  opened = [];
});

/** Here `scaled` says 0 while x is above 0, and 1 from then on: as indices of branches, the first and the last. */
function openTest(options: HarnessOptions = {}): Harness {
  const kernels = { ...fakeKernels, scaled: elementwise((x) => (x > 0 ? 0 : 1)) };
  const made = openFake({ kernels, ...options });
  opened.push(made);
  return made;
}

async function counting({ device }: Harness, start: number) {
  const x = await device.upload(fromNumbers(f32, [1], [start]));
  const selector = device.allocate(f32, [1]);
  const condition = [device.bind(scaled, { x, factor: 1, out: selector })];
  const y = device.allocate(f32, [1]);
  const by = (factor: number) => [
    device.bind(shifted, { x, factor, out: y }),
    device.bind(shifted, { x: y, factor: 0, out: x }),
  ];
  const [down, up] = [by(-1), by(100)];
  const value = async (): Promise<number> => toNumbers(await device.download(x))[0] ?? NaN;
  const dispose = (): void => {
    for (const each of [...condition, ...down, ...up, x, y, selector]) each.dispose();
  };
  return { x, selector, condition, down, up, value, dispose };
}

describe("a loop", () => {
  test.each([5, 1, 0, -3])(
    "from %d runs as often as its condition holds, in one call",
    async (start) => {
      const harness = openTest();
      const { device, driver } = harness;
      const { selector, condition, down, up, value, dispose } = await counting(harness, start);
      expect(device.decides).toBe(true);
      const loop = device.control({
        kind: "while",
        selector,
        isBool: false,
        condition,
        body: down,
      });
      const all = device.record([...down, loop, ...up]);
      const before = driver.log.length;
      all.launch();
      expect(driver.log.slice(before)).toEqual(["cuGraphLaunch"]);
      expect(await value()).toBe(100 + Math.min(start - 1, 0));
      all.dispose();
      loop.dispose();
      dispose();
      expect(driver.misuses).toEqual([]);
    },
  );

  test("within a loop", async () => {
    const harness = openTest();
    const { device } = harness;
    const outer = await counting(harness, 3);
    const inner = await counting(harness, 0);
    const innerLoop = device.control({
      ...({ kind: "while", selector: inner.selector, isBool: false } as const),
      ...{ condition: inner.condition, body: inner.down },
    });
    const outerLoop = device.control({
      ...({ kind: "while", selector: outer.selector, isBool: false } as const),
      ...{
        condition: outer.condition,
        body: [...outer.down, ...inner.up, innerLoop, ...inner.down],
      },
    });
    const all = device.record([outerLoop]);
    all.launch();
    expect(await outer.value()).toBe(0);
    // 100 steps up and as many down, each time but one more.
    expect(await inner.value()).toBe(-1);
    all.dispose();
    for (const each of [outer, inner]) each.dispose();
  });
});

test.each([
  [1, 0],
  [0, 100],
])("a branch by %d", async (start, expected) => {
  const harness = openTest();
  const { device } = harness;
  const { selector, condition, down, up, value, dispose } = await counting(harness, start);
  const branch = device.control({
    ...({ kind: "branch", selector, isBool: false } as const),
    branches: [down, up],
  });
  const all = device.record([...condition, branch]);
  all.launch();
  expect(await value()).toBe(expected);
  all.dispose();
  dispose();
});

describe("left to the host", () => {
  test("where the driver is older than conditional nodes", () => {
    expect(openTest({ driverVersion: 12020 }).device.decides).toBe(false);
  });

  test("where the driver does not load what sets a condition", () => {
    const { driver, device } = openTest();
    driver.fail("cuModuleLoadDataEx", 218);
    expect(device.decides).toBe(false);
    expect(device.decides).toBe(false);
  });

  test("where the driver refuses to record a loop", () => {
    const { driver, device } = openTest();
    const { module, stream } = driver.live;
    driver.fail("cuGraphAddNode", 801);
    expect(device.decides).toBe(false);
    expect(driver.live["module"]).toBe(module);
    expect(driver.live["stream"]).toBe(stream);
  });
});

test.each([
  "cuGraphConditionalHandleCreate",
  "cuStreamGetCaptureInfo",
  "cuGraphAddNode",
  "cuStreamUpdateCaptureDependencies",
  "cuStreamBeginCaptureToGraph",
] as const)("a recording ends where %s fails, and leaves nothing behind", async (name) => {
  const harness = openTest();
  const { device, driver } = harness;
  const { selector, condition, down, value, dispose } = await counting(harness, 2);
  const loop = device.control({ kind: "while", selector, isBool: false, condition, body: down });
  const { stream, graph } = driver.live;
  driver.fail(name, 999);
  expect(() => device.record([loop])).toThrow(name);
  expect(driver.live).toMatchObject({ stream });
  expect(driver.live["graph"]).toBe(graph);
  // The stream records no longer, and takes the next recording.
  const all = device.record([loop]);
  all.launch();
  expect(await value()).toBe(0);
  all.dispose();
  dispose();
});
