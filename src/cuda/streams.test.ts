/** Streams over the fake driver, whose streams run only as far as somebody waits for them: what was not waited for shows. */
import { afterEach, describe, expect, test } from "vitest";
import {
  openFake,
  scaled,
  scaledParameters,
  settle,
  shifted,
} from "../../test/support/fake-driver/harness.ts";
import type { Harness, HarnessOptions } from "../../test/support/fake-driver/harness.ts";
import { elementwise, fakeKernels } from "../../test/support/fake-driver/harness.ts";
import { f32 } from "../formats/dtype.ts";
import { fromNumbers } from "../formats/hostarray.ts";
import type { HostArray } from "../formats/hostarray.ts";
import { TilewrightError } from "../support/diagnostics.ts";
import { Random } from "../support/random.ts";

const opened: Harness[] = [];

function openTest(options: HarnessOptions = {}): Harness {
  const harness = openFake(options);
  opened.push(harness);
  return harness;
}

afterEach(async () => {
  for (const { driver, device } of opened.splice(0)) {
    device.dispose();
    await settle();
    expect(driver.live).toEqual({});
    expect(driver.misuses).toEqual([]);
  }
});

function floats(...values: readonly number[]): HostArray<"f32"> {
  return fromNumbers(f32, [values.length], values);
}

const waits = (driver: Harness["driver"]): number =>
  driver.log.filter((name) => name === "cuStreamWaitEvent").length;

describe("streams", () => {
  test("wait for each other where they share an array that one writes", async () => {
    const { device } = openTest();
    const [side, other] = [device.stream(), device.stream()];
    const x = await device.upload(floats(1, 2, 3));
    const [y, z] = [device.allocate(f32, [3]), device.allocate(f32, [3])];
    side.launch(scaled, { x, factor: 10, out: y });
    other.launch(shifted, { x: y, factor: 1, out: z });
    side.launch(scaled, { x: z, factor: 2, out: x }); // after other has read y, and read x itself
    expect(Array.from((await device.download(x)).data)).toEqual([22, 42, 62]);
    await device.fill(x, 5);
    side.launch(scaled, { x, factor: 2, out: y });
    expect(Array.from((await device.download(y)).data)).toEqual([10, 10, 10]);
    for (const each of [x, y, z]) each.dispose();
  });

  test("do not wait for what they do not share", async () => {
    const { device, driver } = openTest();
    const [a, b, c, d] = [1, 2, 3, 4].map(() => device.allocate(f32, [2]));
    if (a === undefined || b === undefined || c === undefined || d === undefined)
      throw new Error("no arrays");
    await device.fill(a, 1);
    await device.fill(c, 1);
    const [side, other] = [device.stream(), device.stream()];
    const before = waits(driver);
    side.launch(scaled, { x: a, factor: 2, out: b });
    other.launch(scaled, { x: c, factor: 3, out: d });
    side.launch(shifted, { x: a, factor: 2, out: b });
    other.launch(shifted, { x: a, factor: 3, out: d }); // both read a
    expect(waits(driver)).toBe(before);
    await device.synchronize();
    expect(waits(driver)).toBe(before + 2);
    expect(Array.from((await device.download(b)).data)).toEqual([3, 3]);
    for (const each of [a, b, c, d]) each.dispose();
  });

  test("cost a device that has none nothing", async () => {
    const { device, driver } = openTest();
    const [x, y] = [await device.upload(floats(1)), device.allocate(f32, [1])];
    device.launch(scaled, { x, factor: 2, out: y });
    await device.synchronize();
    expect(waits(driver)).toBe(0);
    x.dispose();
    y.dispose();
  });

  test("give memory back when all have done with it", async () => {
    const { device, driver } = openTest();
    const side = device.stream();
    const [x, y] = [await device.upload(floats(1, 2)), device.allocate(f32, [2])];
    side.launch(scaled, { x, factor: 2, out: y });
    // Freed on the main stream: without a wait the launch would find its input gone.
    x.dispose();
    expect(Array.from((await device.download(y)).data)).toEqual([2, 4]);
    const z = device.allocate(f32, [2]);
    side.launch(scaled, { x: y, factor: 2, out: z });
    side.dispose();
    y.dispose();
    z.dispose();
    await device.synchronize();
    expect(driver.misuses).toEqual([]);
  });

  test("run bound launches, recordings, scratch memory and messages", async () => {
    const lines: string[] = [];
    const printing = { ...elementwise((x, factor) => x + factor), sizes: [8, 4, 8, 4, 8] };
    const { device } = openTest({
      kernels: { ...fakeKernels, shifted: printing },
      plans: {
        scaled: {
          parameters: [
            ...scaledParameters,
            { kind: "scratch", name: "space", bytes: 8, zeroed: true },
          ],
        },
        shifted: {
          parameters: [...scaledParameters, { kind: "messages" }],
          messages: [{ kind: "print", text: "hello", values: [], position: undefined }],
        },
      },
      onPrint: (line) => lines.push(line),
    });
    const side = device.stream();
    const [x, y] = [await device.upload(floats(1, 2)), device.allocate(f32, [2])];
    const double = device.bind(scaled, { x, factor: 2, out: y });
    const shift = device.bind(shifted, { x: y, factor: 1, out: x });
    double.launch(side);
    shift.launch();
    const both = device.record([double, shift]);
    both.launch(side);
    side.launch(scaled, { x, factor: 10, out: y });
    side.launch(shifted, { x: y, factor: 1, out: x });
    await device.synchronize();
    expect(Array.from((await device.download(x)).data)).toEqual([71, 111]);
    for (const each of [both, double, shift, side, x, y]) each.dispose();
  });

  test("are within what time measures", async () => {
    const { device } = openTest();
    const side = device.stream();
    const [x, y] = [await device.upload(floats(1)), device.allocate(f32, [1])];
    expect(
      await device.time(() => {
        side.launch(scaled, { x, factor: 2, out: y });
      }),
    ).toBeGreaterThan(0);
    expect(Array.from((await device.download(y)).data)).toEqual([2]);
    for (const each of [x, y, side]) each.dispose();
  });

  test("random programs give what they give without streams", async () => {
    const seed = 7;
    const random = new Random(seed);
    for (let round = 0; round < 30; round += 1) {
      const [{ device }, { device: plain }] = [openTest(), openTest()];
      const streams = [device.stream(), device.stream(), device.stream()];
      const here = await Promise.all([1, 2, 3, 4].map((value) => device.upload(floats(value))));
      const there = await Promise.all([1, 2, 3, 4].map((value) => plain.upload(floats(value))));
      for (let step = 0; step < 25; step += 1) {
        const from = random.below(4);
        const to = (from + 1 + random.below(3)) % 4;
        const kernel = random.pick([scaled, shifted]);
        const factor = 1 + random.below(3);
        const stream = streams[random.below(4)] ?? device;
        const [x, out, px, pout] = [here[from], here[to], there[from], there[to]];
        if (x === undefined || out === undefined || px === undefined || pout === undefined)
          throw new Error("no arrays");
        stream.launch(kernel, { x, factor, out });
        plain.launch(kernel, { x: px, factor, out: pout });
        if (random.below(8) === 0) {
          streams.shift()?.dispose();
          streams.push(device.stream());
        }
        if (random.below(6) === 0) await device.download(random.pick(here));
      }
      const results = async (arrays: typeof here, owner: typeof device): Promise<unknown> =>
        Promise.all(arrays.map(async (array) => Array.from((await owner.download(array)).data)));
      expect(await results(here, device), `seed ${seed}, round ${round}`).toEqual(
        await results(there, plain),
      );
      for (const array of [...here, ...there]) array.dispose();
    }
  });

  test("take no work once they are disposed of, nor another device's", () => {
    const [{ device }, { device: other }] = [openTest(), openTest()];
    const codeOf = (work: () => void): string => {
      try {
        work();
      } catch (error) {
        if (error instanceof TilewrightError) return error.code;
      }
      return "nothing was thrown";
    };
    const [x, y] = [device.allocate(f32, [1]), device.allocate(f32, [1])];
    const side = device.stream();
    const bound = device.bind(scaled, { x, factor: 2, out: y });
    const foreign = other.stream();
    expect(codeOf(() => bound.launch(foreign))).toBe("TW4031");
    side.dispose();
    side.dispose();
    expect(codeOf(() => side.launch(scaled, { x, factor: 2, out: y }))).toBe("TW4031");
    expect(codeOf(() => bound.launch(side))).toBe("TW4031");
    for (const each of [x, y, bound]) each.dispose();
  });
});

describe("memory", () => {
  test("is counted, limited and trimmed", async () => {
    const { device, driver } = openTest({ memoryLimit: 4096 });
    const x = device.allocate(f32, [512]);
    expect(device.memory).toMatchObject({ used: 2048, peak: 2048, allocations: 1, limit: 4096 });
    expect(device.memory.reserved).toBeGreaterThanOrEqual(2048);
    let found: unknown;
    try {
      device.allocate(f32, [1024]);
    } catch (error) {
      found = error;
    }
    expect(found).toMatchObject({ code: "TW4030", found: "2048 bytes in use already" });
    expect((found as TilewrightError).notes.map(({ message }) => message)).toContain(
      "f32[512], 2048 bytes, made here",
    );
    x.dispose();
    expect(device.memory).toMatchObject({ used: 0, peak: 2048, allocations: 0 });
    device.trim();
    expect(driver.log.at(-1)).toBe("cuMemPoolTrimTo");
    device.allocate(f32, [1024]).dispose();
  });
});
