/** The GPU back end over the fake driver: results, order, memory, and what is left in the end. */
import { Buffer } from "node:buffer";
import { afterEach, describe, expect, test } from "vitest";
import { f32, i8 } from "../formats/dtype.ts";
import { fromNumbers, toNumbers } from "../formats/hostarray.ts";
import type { HostArray } from "../formats/hostarray.ts";
import {
  openFake,
  scaled,
  scaledParameters,
  settle,
  shifted,
} from "../../test/support/fake-driver/harness.ts";
import type { Harness, HarnessOptions } from "../../test/support/fake-driver/harness.ts";

const opened: Harness[] = [];

function openTest(options: HarnessOptions = {}): Harness {
  const harness = openFake(options);
  opened.push(harness);
  return harness;
}

// Every test ends with nothing left behind and nothing misused.
afterEach(async () => {
  for (const { driver, device } of opened.splice(0)) {
    device.dispose();
    await settle();
    expect(driver.live).toEqual({});
    expect(driver.misuses).toEqual([]);
    expect(driver.mostWaits).toBeLessThanOrEqual(1);
  }
});

function floats(...values: readonly number[]): HostArray<"f32"> {
  return fromNumbers(f32, [values.length], values);
}

function numbers(array: HostArray): readonly number[] {
  return Array.from(toNumbers(array));
}

describe("run", () => {
  test("gives what the kernel computes", async () => {
    const { device } = openTest();
    const { out } = await device.run(scaled, { x: floats(1, 2, 3), factor: 2.5 });
    expect(numbers(out)).toEqual([2.5, 5, 7.5]);
    expect(device.leaks).toEqual([]);
  });

  test("of an empty array launches nothing", async () => {
    const { driver, device } = openTest();
    const { out } = await device.run(scaled, { x: floats(), factor: 2 });
    expect(numbers(out)).toEqual([]);
    expect(driver.log).not.toContain("cuLaunchKernelEx");
  });

  test("issues everything before it waits for anything", async () => {
    const { driver, device } = openTest();
    await device.run(scaled, { x: floats(1), factor: 1 });
    const log = driver.log;
    const first = log.indexOf("cuEventQuery");
    expect(log.lastIndexOf("cuMemcpyDtoHAsync")).toBeLessThan(first);
    expect(log.indexOf("cuLaunchKernelEx")).toBeLessThan(log.indexOf("cuMemcpyDtoHAsync"));
  });
});

describe("launches", () => {
  test("go to the stream at once, in order, and compile once", async () => {
    const { driver, device } = openTest();
    const x = await device.upload(floats(1, 2, 3, 4));
    const y = device.allocate(f32, [4]);
    device.launch(scaled, { x, factor: 10, out: y });
    device.launch(shifted, { x: y, factor: 1, out: x });
    device.launch(scaled, { x, factor: 2, out: y });
    expect(driver.log.filter((name) => name === "cuLaunchKernelEx")).toHaveLength(3);
    expect(numbers(await device.download(y))).toEqual([22, 42, 62, 82]);
    await device.synchronize();
    expect(device.compilations.map(({ kernel }) => kernel)).toEqual(["scaled", "shifted"]);
    x.dispose();
    y.dispose();
  });

  test("leave the event loop free while the GPU works", async () => {
    const { driver, device } = openTest();
    let release: () => void = () => undefined;
    driver.hold = new Promise((resolve) => (release = resolve));
    const running = device.run(scaled, { x: floats(1), factor: 3 });
    let turns = 0;
    for (; turns < 50; turns += 1) await new Promise((resolve) => setImmediate(resolve));
    expect(turns).toBe(50);
    release();
    expect(numbers((await running).out)).toEqual([3]);
  });

  test("carry configuration, sizes and attributes", async () => {
    const seen: unknown[] = [];
    const { device } = openTest({
      kernels: {
        scaled: {
          sizes: [8, 4, 8, 4],
          run: ({ grid, lanes, cluster, sharedBytes, programmaticLaunch, parameters }) => {
            const [, factor, , size] = parameters;
            seen.push(grid, lanes, cluster, sharedBytes, programmaticLaunch);
            seen.push(factor?.getFloat32(0, true), size?.getUint32(0, true));
          },
        },
      },
      plans: { scaled: { cluster: 2, dependentLaunch: true, sharedBytes: 100_000 } },
    });
    await device.run(scaled, { x: floats(1, 2, 3, 4, 5, 6, 7, 8), factor: 0.5 });
    expect(seen).toEqual([2, 128, 2, 100_000, true, 0.5, 8]);
  });

  test("of clusters of more than 8 blocks ask for them", async () => {
    const clusters: number[] = [];
    const run = async (blocks: number): Promise<unknown> => {
      const { device } = openTest({
        kernels: {
          scaled: { sizes: [8, 4, 8, 4], run: ({ cluster }) => clusters.push(cluster) },
        },
        plans: { scaled: { cluster: blocks, blocks: 2 * blocks } },
      });
      return device.run(scaled, { x: floats(1, 2, 3, 4, 5, 6, 7, 8), factor: 0.5 });
    };
    for (const blocks of [8, 16]) await run(blocks);
    expect(clusters).toEqual([8, 16]);
    await expect(run(32)).rejects.toMatchObject({ code: "TW4507" });
  });

  test("of 2^31 blocks or more are refused", async () => {
    const { device } = openTest({ plans: { scaled: { blocks: 2 ** 31 } } });
    await expect(device.run(scaled, { x: floats(1), factor: 1 })).rejects.toMatchObject({
      code: "TW4508",
    });
  });
});

describe("scratch memory", () => {
  test("lasts for the launch and is zero where that was asked for", async () => {
    const found: number[][] = [];
    const { driver, device } = openTest({
      kernels: {
        scaled: {
          sizes: [8, 8, 8],
          run: ({ parameters, memory }) => {
            const views = parameters.map((parameter) =>
              memory.view("device", Number(parameter.getBigUint64(0, true)), 16),
            );
            found.push(views.map((bytes) => bytes.reduce((sum, byte) => sum + byte, 0)));
            for (const bytes of views) bytes.fill(1);
          },
        },
      },
      plans: {
        scaled: {
          parameters: [
            { kind: "scratch", name: "counter", bytes: 16, zeroed: true },
            { kind: "scratch", name: "space", bytes: 16, zeroed: false },
            { kind: "scratch", name: "restored", bytes: 16, zeroed: "once" },
          ],
        },
      },
    });
    const x = await device.upload(floats(1));
    const out = device.allocate(f32, [1]);
    const bound = device.bind(scaled, { x, factor: 1, out });
    bound.launch();
    bound.launch();
    device.launch(scaled, { x, factor: 1, out });
    await device.synchronize();
    expect(found.map(([counter]) => counter)).toEqual([0, 0, 0]);
    // A bound launch keeps its scratch memory; what is not cleared stays.
    expect(found[1]?.[1]).toBe(16);
    // What kernels leave at 0 is cleared when launches are bound, and for each one that is not: this kernel keeps no promise.
    expect(found.map(([, , restored]) => restored)).toEqual([0, 16, 0]);
    bound.dispose();
    x.dispose();
    out.dispose();
    await device.synchronize();
    expect(driver.memory.count("device")).toBe(0);
  });
});

describe("bound launches", () => {
  test("take one call of the driver each", async () => {
    const { driver, device } = openTest();
    const x = await device.upload(floats(2));
    const out = device.allocate(f32, [1]);
    const bound = device.bind(scaled, { x, factor: 4, out });
    const before = driver.log.length;
    for (let round = 0; round < 10; round += 1) bound.launch();
    expect(driver.log.slice(before)).toEqual(Array(10).fill("cuLaunchKernelEx"));
    expect(numbers(await device.download(out))).toEqual([8]);
    bound.dispose();
    expect(() => bound.launch()).toThrow("TW4017");
    x.dispose();
    out.dispose();
  });

  test("notice that an array is gone", async () => {
    const { device } = openTest();
    const x = await device.upload(floats(2));
    const out = device.allocate(f32, [1]);
    const bound = device.bind(scaled, { x, factor: 4, out });
    x.dispose();
    expect(() => bound.launch()).toThrow("TW4010");
    out.dispose();
  });

  test("are replayed together by a recording, with one call", async () => {
    const { driver, device } = openTest();
    const x = await device.upload(floats(1, 2));
    const y = device.allocate(f32, [2]);
    const double = device.bind(scaled, { x, factor: 2, out: y });
    const add = device.bind(shifted, { x: y, factor: 1, out: x });
    const round = device.record([double, add]);
    expect(round.kernels).toEqual(["scaled", "shifted"]);
    const before = driver.log.length;
    round.launch();
    round.launch();
    expect(driver.log.slice(before)).toEqual(["cuGraphLaunch", "cuGraphLaunch"]);
    expect(numbers(await device.download(x))).toEqual([7, 11]);
    const twice = device.record([round, round]);
    twice.launch();
    expect(numbers(await device.download(x))).toEqual([31, 47]);
    for (const array of [x, y]) array.dispose();
  });

  test("of another device are refused", async () => {
    const [first, second] = [openTest(), openTest()];
    const x = await first.device.upload(floats(1));
    const out = first.device.allocate(f32, [1]);
    const bound = first.device.bind(scaled, { x, factor: 1, out });
    expect(() => second.device.record([bound])).toThrow("TW4018");
    x.dispose();
    out.dispose();
  });
});

describe("transfers", () => {
  test("of large arrays keep their bytes and the order of calls", async () => {
    const { driver, device } = openTest();
    // More than all staging buffers hold together, and no multiple of their size.
    const count = 17 * 2 ** 22 + 12_345;
    const data = new Int8Array(count);
    for (let index = 0; index < count; index += 1) data[index] = Math.imul(index, 0x9e3779b1) >> 24;
    const bytes = await device.upload({ dtype: i8, shape: [count], data });
    const small = device.allocate(f32, [1]);
    const x = await device.upload(floats(1));
    const download = device.download(bytes);
    // Issued while the download still waits for buffers, and must come after it.
    bytes.dispose();
    device.launch(scaled, { x, factor: 5, out: small });
    const later = device.download(small);
    expect(Buffer.from((await download).data).equals(Buffer.from(data))).toBe(true);
    expect(numbers(await later)).toEqual([5]);
    expect(driver.memory.bytes("pinned")).toBeLessThanOrEqual(2 ** 26);
    small.dispose();
    x.dispose();
  });

  test("of any size fit into their buffers", async () => {
    const { device } = openTest();
    for (const count of [1, 2 ** 16, 2 ** 16 + 1, 100_000, 2 ** 20 - 3]) {
      const data = new Int8Array(count).map((_, index) => index);
      const bytes = await device.upload({ dtype: i8, shape: [count], data });
      const back = Buffer.from((await device.download(bytes)).data);
      expect(back.equals(Buffer.from(data)), `${count} bytes`).toBe(true);
      bytes.dispose();
    }
  });

  test("use their buffers again", async () => {
    const { driver, device } = openTest();
    for (let round = 0; round < 20; round += 1)
      await device.run(scaled, { x: floats(round), factor: 1 });
    expect(driver.memory.count("pinned")).toBeLessThanOrEqual(3);
    expect(driver.log.filter((name) => name === "cuEventCreate").length).toBeLessThanOrEqual(6);
  });
});

describe("memory", () => {
  test("stays flat over 10,000 launches", async () => {
    const { driver, device } = openTest({
      plans: {
        scaled: {
          parameters: [
            ...scaledParameters,
            { kind: "scratch", name: "space", bytes: 64, zeroed: true },
          ],
        },
      },
    });
    const x = await device.upload(floats(1, 2, 3, 4));
    const out = device.allocate(f32, [4]);
    device.launch(scaled, { x, factor: 2, out });
    await device.synchronize();
    const before = driver.live;
    for (let round = 0; round < 10_000; round += 1) {
      device.launch(scaled, { x, factor: 2, out });
      if (round % 100 === 99) await device.synchronize();
    }
    expect(driver.live).toEqual(before);
    x.dispose();
    out.dispose();
  });

  test("that runs out is reported with the arrays that hold it", async () => {
    const { device } = openTest({ memoryBytes: 4096 });
    const kept = device.allocate(f32, [512]);
    const error: unknown = await Promise.resolve()
      .then(() => device.allocate(f32, [1024]))
      .catch((thrown: unknown) => thrown);
    expect(error).toMatchObject({ code: "TW4510", summary: "the GPU has no room for 4096 bytes" });
    const message = String(error);
    expect(message).toContain("2048 of 4096 bytes");
    expect(message).toMatch(/f32\[512\], 2048 bytes, made here \(.*backend\.test\.ts/);
    kept.dispose();
    // What was given back is there again.
    device.allocate(f32, [1024]).dispose();
  });

  test("comes without pools where the driver has none", async () => {
    const old = {
      name: "Fake A100",
      attributes: {
        16: 108,
        39: 2048,
        75: 8,
        76: 0,
        81: 164 * 1024,
        97: 163 * 1024,
        106: 32,
        115: 0,
      },
    };
    const { driver, device } = openTest({ gpus: [old] });
    expect(device.target.name).toBe("sm_80");
    const { out } = await device.run(scaled, { x: floats(3), factor: 3 });
    expect(numbers(out)).toEqual([9]);
    expect(driver.log).toContain("cuMemAlloc");
    expect(driver.log).not.toContain("cuMemAllocAsync");
  });
});

describe("time", () => {
  test("is the GPU's own, around what was launched", async () => {
    const { device } = openTest();
    const x = await device.upload(floats(1));
    const out = device.allocate(f32, [1]);
    const milliseconds = await device.time(() => {
      device.launch(scaled, { x, factor: 1, out });
    });
    // The fake clock ticks once an event.
    expect(milliseconds).toBe(1);
    x.dispose();
    out.dispose();
  });
});

describe("disposal", () => {
  test("lets tools that watch the driver report while programs are still loaded", async () => {
    const { driver, device } = openTest();
    await device.run(scaled, { x: floats(1), factor: 2 });
    const before = driver.log.length;
    device.dispose();
    await settle();
    const ending = driver.log.slice(before);
    expect(ending).toContain("cuModuleUnload");
    expect(ending.indexOf("cuCtxSynchronize")).toBeGreaterThanOrEqual(0);
    expect(ending.indexOf("cuCtxSynchronize")).toBeLessThan(ending.indexOf("cuModuleUnload"));
  });

  test("while work is under way waits for it", async () => {
    const { driver, device } = openTest();
    const x = await device.upload(floats(1));
    const out = device.allocate(f32, [1]);
    device.launch(scaled, { x, factor: 2, out });
    const result = device.download(out);
    x.dispose();
    out.dispose();
    device.dispose();
    expect(driver.live["context"]).toBe(1);
    expect(numbers(await result)).toEqual([2]);
  });

  test("gives bound launches and forgotten arrays back too", async () => {
    const forgotten: number[] = [];
    const { device } = openTest({ onLeak: (leaks) => forgotten.push(leaks.length) });
    const x = await device.upload(floats(1));
    const out = device.allocate(f32, [1]);
    device.record([device.bind(scaled, { x, factor: 1, out })]).launch();
    device.dispose();
    expect(forgotten).toEqual([2]);
  });
});
