/**
 * Every call of the driver fails, at each of its uses, once and for good from there on; then the device is used
 * again and disposed of, twice. Whatever happened, every failure has a code, the second use gives the right
 * result or a code, nothing hangs, and nothing is left behind.
 *
 *   scenario   cuInit … cuMemAllocAsync … cuLaunchKernelEx … cuMemFreeAsync …
 *   case                      ✗                                                 answers 2, 719 or 999, once or always
 */
import { describe, expect, test } from "vitest";
import { FakeDriver } from "../../test/support/fake-driver/driver.ts";
import type { FakeKernel } from "../../test/support/fake-driver/driver.ts";
import {
  elementwise,
  fakeKernels,
  openFake,
  scaled,
  scaledParameters,
  shifted,
} from "../../test/support/fake-driver/harness.ts";
import type { HarnessOptions } from "../../test/support/fake-driver/harness.ts";
import { isTaken } from "../../test/support/sample.ts";
import type { Device } from "../device/device.ts";
import { f32 } from "../formats/dtype.ts";
import { fromNumbers, toNumbers } from "../formats/hostarray.ts";
import type { HostArray } from "../formats/hostarray.ts";
import { compileAhead } from "../lower/compile-ahead.ts";
import { kernelFromCompiled } from "../ptx/compiled-kernel.ts";
import { TilewrightError } from "../support/diagnostics.ts";
import type { FunctionName } from "./functions.ts";

function floats(...values: readonly number[]): HostArray<"f32"> {
  return fromNumbers(f32, [values.length], values);
}

const printing: FakeKernel = {
  ...elementwise((x, factor) => x + factor),
  sizes: [8, 4, 8, 4, 8],
};

/** One kernel with scratch memory, one that prints. */
const options: HarnessOptions = {
  kernels: { ...fakeKernels, shifted: printing },
  plans: {
    scaled: {
      parameters: [...scaledParameters, { kind: "scratch", name: "space", bytes: 8, zeroed: true }],
      sharedBytes: 1024,
    },
    shifted: {
      parameters: [...scaledParameters, { kind: "messages" }],
      messages: [{ kind: "print", text: "hello", values: [], position: undefined }],
    },
  },
  onLeak: () => undefined,
  onPrint: () => undefined,
};

const ahead = compileAhead(scaled);
const loaded = kernelFromCompiled<typeof scaled>(ahead.manifest, ahead.ptx);

const foreignPtx = `.version 8.0
.target sm_90
.address_size 64
.entry scaled(.param .u64 x, .param .f32 factor, .param .u64 out, .param .u32 n) { ret; }`;

type Scenario = (device: Device) => Promise<unknown>;

const scenarios: { readonly [name: string]: Scenario } = {
  opening: async () => undefined,
  run: (device) => device.run(scaled, { x: floats(1, 2, 3), factor: 2 }),
  "several runs at once": (device) =>
    Promise.all([
      device.run(scaled, { x: floats(1), factor: 2 }),
      device.run(shifted, { x: floats(1), factor: 2 }),
      device.run(scaled, { x: floats(1, 2), factor: 2 }),
    ]),
  launches: async (device) => {
    const x = await device.upload(floats(1, 2, 3));
    const y = device.allocate(f32, [3]);
    device.launch(scaled, { x, factor: 2, out: y });
    device.launch(shifted, { x: y, factor: 1, out: x });
    await device.synchronize();
    await device.download(x);
    x.dispose();
    y.dispose();
  },
  recordings: async (device) => {
    const x = await device.upload(floats(1, 2, 3));
    const y = device.allocate(f32, [3]);
    const double = device.bind(scaled, { x, factor: 2, out: y });
    const shift = device.bind(shifted, { x: y, factor: 2, out: x });
    double.launch();
    const both = device.record([double, shift]);
    both.launch();
    await device.synchronize();
    both.dispose();
    double.dispose();
  },
  "whole arrays": async (device) => {
    const x = await device.zeros(f32, [8]);
    await device.fill(x, 1.5);
    await device.write(x.slice(4), floats(1, 2, 3, 4));
    await device.copy(x.slice(4), x.slice(0, 4));
    await device.element(x, 2);
    x.dispose();
  },
  streams: async (device) => {
    const [side, other] = [device.stream(), device.stream()];
    const x = await device.upload(floats(1, 2, 3));
    const y = device.allocate(f32, [3]);
    side.launch(scaled, { x, factor: 2, out: y });
    other.launch(shifted, { x: y, factor: 1, out: x });
    side.dispose();
    await device.synchronize();
    await device.download(x);
    x.dispose();
    y.dispose();
  },
  "views with strides": async (device) => {
    const x = await device.zeros(f32, [4, 4]);
    await device.fill(x.slice(1, 2, { axis: 1 }), 3);
    await device.copy(x.transpose(), x);
    x.dispose();
  },
  "code of others": async (device) => {
    const module = device.load(foreignPtx);
    const x = await device.upload(floats(1, 2, 3));
    const y = device.allocate(f32, [3]);
    device.launch(module, { blocks: 1, threads: 32, parameters: [x, 2, y, 3] });
    await device.download(y);
    module.dispose();
    x.dispose();
    y.dispose();
  },
  timing: async (device) => {
    const x = await device.upload(floats(1, 2, 3));
    const y = device.allocate(f32, [3]);
    await device.time(() => {
      device.launch(scaled, { x, factor: 2, out: y });
    });
  },
  "a kernel compiled ahead": async (device) => {
    const x = await device.upload(floats(1, 2, 3));
    await device.run(loaded, { x, factor: 1 });
  },
  "disposing while work is under way": async (device) => {
    const x = await device.upload(floats(1, 2, 3));
    const y = device.allocate(f32, [3]);
    device.launch(scaled, { x, factor: 2, out: y });
    const download = device.download(y);
    try {
      device.dispose();
    } finally {
      await download;
    }
  },
};

/** Nobody hears of what fails while everything is given back, nor of what succeeds when tried again. */
const quiet: ReadonlySet<FunctionName> = new Set<FunctionName>([
  "cuStreamDestroy",
  "cuEventDestroy",
  "cuModuleUnload",
  "cuGraphDestroy",
  "cuGraphExecDestroy",
  "cuMemFreeHost",
  "cuMemFreeAsync",
  "cuMemPoolTrimTo",
  "cuDevicePrimaryCtxRelease",
  "cuEventCreate",
  "cuEventRecord",
]);

interface Case {
  readonly name: FunctionName;
  readonly after: number;
  readonly result: number;
  readonly forGood: boolean;
}

/** The first wait for the context asks whether it is sound; a later one comes before programs are given back. */
const isQuiet = ({ name, after, result }: Case): boolean =>
  quiet.has(name) ||
  (name === "cuMemAllocAsync" && result === 2) ||
  (name === "cuCtxSynchronize" && after > 0);

class Hang extends Error {}

async function withinTime<T>(work: Promise<T>): Promise<T> {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => {
      reject(new Hang("it hangs"));
    }, 300_000);
  });
  try {
    return await Promise.race([work, late]);
  } finally {
    clearTimeout(timer);
  }
}

/** Runs `work`; gives whether it failed, which takes a code. */
async function failed(work: () => unknown): Promise<boolean> {
  try {
    await withinTime(Promise.resolve(work()));
    return false;
  } catch (error) {
    if (error instanceof TilewrightError && /^TW45(04|06|07|09|10|11|12)$/.test(error.code))
      return true;
    // A device may be disposed of by the scenario itself.
    if (error instanceof TilewrightError && error.code === "TW4001") return false;
    throw error;
  }
}

/** Runs a scenario against a driver, then everything that may come after; gives whether anybody heard of a failure. */
async function liveThrough(driver: FakeDriver, scenario: Scenario): Promise<boolean> {
  const opened: Device[] = [];
  let heard = await failed(() => opened.push(openFake({ ...options, driver }).device));
  for (const device of opened) {
    heard = (await failed(async () => scenario(device))) || heard;
    const again = async (): Promise<void> => {
      const { out } = await device.run(shifted, { x: floats(1, 2), factor: 3 });
      expect(Array.from(toNumbers(out))).toEqual([4, 5]);
    };
    heard = (await failed(again)) || heard;
    heard = (await failed(() => device.synchronize())) || heard;
    heard =
      (await failed(() => {
        device.dispose();
      })) || heard;
    device.dispose();
  }
  for (let turn = 0; turn < 50 && Object.keys(driver.live).length > 0; turn += 1)
    await new Promise((resolve) => setImmediate(resolve));
  expect(driver.live).toEqual({});
  expect(driver.misuses).toEqual([]);
  return heard;
}

describe("a call of the driver that fails", () => {
  let number = 0;
  let cases = 0;
  test.each(Object.entries(scenarios))(
    "leaves nothing behind, at any use: %s",
    async (_, scenario) => {
      const whole = new FakeDriver(options);
      expect(await liveThrough(whole, scenario)).toBe(false);
      const uses = new Map<FunctionName, number>();
      for (const name of whole.log) {
        const after = uses.get(name) ?? 0;
        uses.set(name, after + 1);
        for (const result of [2, 719, 999])
          for (const forGood of [false, true]) {
            number += 1;
            if (!isTaken(number, 10)) continue;
            const injected: Case = { name, after, result, forGood };
            const driver = new FakeDriver(options);
            driver.fail(name, result, after, forGood);
            try {
              const heard = await liveThrough(driver, scenario);
              if (!heard && !isQuiet(injected)) throw new Error("nobody heard of it");
            } catch (error) {
              throw new Error(`case ${JSON.stringify(injected)}`, { cause: error });
            }
            cases += 1;
          }
      }
    },
    120_000,
  );

  test("was tried in some of thousands of cases", () => {
    expect(number).toBeGreaterThan(4000);
    expect(cases).toBeGreaterThan(300);
  });
});
