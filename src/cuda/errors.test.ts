/** What becomes of the driver's errors: faults of kernels, reopening after them, refusals. See `faults.test.ts`. */
import { describe, expect, test } from "vitest";
import { f32 } from "../formats/dtype.ts";
import { fromNumbers, toNumbers } from "../formats/hostarray.ts";
import type { HostArray } from "../formats/hostarray.ts";
import { TilewrightError } from "../support/diagnostics.ts";
import { CudaContext } from "./context.ts";
import { FakeDriver, fakeHopper } from "../../test/support/fake-driver/driver.ts";
import {
  elementwise,
  fakeKernels,
  openFake,
  scaled,
  settle,
  shifted,
} from "../../test/support/fake-driver/harness.ts";
import type { HarnessOptions } from "../../test/support/fake-driver/harness.ts";
import { FakeFault } from "../../test/support/fake-driver/memory.ts";
import { cudaText, newestPtx, requirePtx, targetForGpu } from "./gpu.ts";

function floats(...values: readonly number[]): HostArray<"f32"> {
  return fromNumbers(f32, [values.length], values);
}

async function thrownBy(work: () => unknown): Promise<unknown> {
  try {
    await work();
  } catch (error) {
    return error;
  }
  return undefined;
}

async function reportOf(work: () => unknown): Promise<TilewrightError> {
  const error = await thrownBy(work);
  if (error instanceof TilewrightError) return error;
  throw new Error(`no report but ${String(error)}`);
}

describe("a kernel's fault", () => {
  const broken: HarnessOptions["kernels"] = {
    ...fakeKernels,
    scaled: {
      ...elementwise((x) => x),
      run: () => {
        throw new FakeFault(700, "planted");
      },
    },
  };

  test("loses the device, names the kernel, and stays", async () => {
    const { driver, device } = openFake({ kernels: broken, onLeak: () => undefined });
    const x = await device.upload(floats(1));
    const out = device.allocate(f32, [1]);
    device.launch(scaled, { x, factor: 1, out });
    const first = await reportOf(() => device.synchronize());
    expect(first.code).toBe("TW4509");
    expect(first.summary).toContain("kernel scaled failed and took the device Fake H200 with it");
    expect(first.summary).toContain("an address that nothing is allocated at");
    expect(first.found).toContain("CUDA_ERROR_ILLEGAL_ADDRESS (700)");
    for (const use of [
      () => device.synchronize(),
      () => device.download(x),
      () => device.launch(shifted, { x, factor: 1, out }),
      () => device.allocate(f32, [1]),
      () => device.upload(floats(1)),
      () => device.run(shifted, { x, factor: 1 }),
    ]) {
      const later = await reportOf(use);
      expect([later.code, later.summary]).toEqual([
        "TW4509",
        `the device was lost before this use: ${first.summary}`,
      ]);
    }
    device.dispose();
    await settle();
    expect(driver.live).toEqual({});
    // The driver of this test recovers, so the device can be opened again.
    const again = openFake({ driver });
    const result = await again.device.run(shifted, { x: floats(1), factor: 1 });
    expect(Array.from(toNumbers(result.out))).toEqual([2]);
    again.device.dispose();
  });

  test("names every kernel that may have done it", async () => {
    const { device } = openFake({ kernels: broken, onLeak: () => undefined });
    const x = await device.upload(floats(1));
    const out = device.allocate(f32, [1]);
    device.launch(shifted, { x, factor: 1, out });
    await device.synchronize();
    device.launch(shifted, { x, factor: 1, out });
    device.launch(scaled, { x, factor: 1, out });
    const report = await reportOf(() => device.download(out));
    expect(report.summary).toContain("one of the kernels shifted, scaled failed");
    device.dispose();
  });

  test("names no kernel that had ended before", async () => {
    const { device } = openFake({ kernels: broken, onLeak: () => undefined });
    const x = await device.upload(floats(1));
    const out = device.allocate(f32, [1]);
    device.launch(shifted, { x, factor: 1, out });
    await device.synchronize();
    device.launch(scaled, { x, factor: 1, out });
    const report = await reportOf(() => device.synchronize());
    expect(report.summary).toContain("kernel scaled failed");
    device.dispose();
  });

  test("that the driver does not recover from asks for a new process", async () => {
    const driver = new FakeDriver();
    driver.fail("cuCtxSynchronize", 700);
    const report = await reportOf(() => openFake({ driver }));
    expect([report.code, report.remedy]).toEqual(["TW4509", "start a new process"]);
    expect(driver.live).toEqual({});
  });
});

describe("a launch that the GPU refuses", () => {
  test("says what the kernel needs", async () => {
    const { driver, device } = openFake();
    driver.fail("cuLaunchKernelEx", 701);
    const report = await reportOf(() => device.run(scaled, { x: floats(1), factor: 1 }));
    expect(report.code).toBe("TW4507");
    expect(report.found).toBe(
      "128 threads a block, 40 registers a thread, 0 bytes of shared memory; " +
        "cuLaunchKernelEx answered CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES (701)",
    );
    device.dispose();
  });

  test("for its shared memory is refused when it is loaded", async () => {
    const { device } = openFake({ plans: { scaled: { sharedBytes: 300_000 } } });
    const report = await reportOf(() => device.run(scaled, { x: floats(1), factor: 1 }));
    expect(report.code).toBe("TW4507");
    expect(report.found).toContain("300000 bytes of shared memory");
    device.dispose();
  });
});

describe("a kernel that the assembler refuses", () => {
  test("comes back with the assembler's lines", async () => {
    const { device } = openFake({ plans: { scaled: { comment: "bad instruction" } } });
    const report = await reportOf(() => device.run(scaled, { x: floats(1), factor: 1 }));
    expect(report.code).toBe("TW4506");
    expect(report.summary).toContain("kernel scaled");
    expect(report.found).toContain("ptxas fatal : line 7: bad instruction");
    device.dispose();
  });

  test("for newer PTX than the driver has names both versions", async () => {
    const { device } = openFake({ driverVersion: 12040, plans: { scaled: { version: "8.6" } } });
    const report = await reportOf(() => device.run(scaled, { x: floats(1), factor: 1 }));
    expect(report.code).toBe("TW4504");
    expect(report.summary).toBe(
      "kernel scaled needs PTX 8.6, which the driver of CUDA 12.4 does not accept",
    );
    expect(report.expected).toBe("PTX 8.4 or older");
    device.dispose();
  });

  test("passes on what costs speed as notes", async () => {
    const line = "info : (C7510) Potential Performance Loss: wgmma.mma_async instructions";
    const told: string[] = [];
    const { device } = openFake({
      plans: { scaled: { comment: line } },
      onNotes: (kernel, notes) => told.push(kernel, ...notes.map(({ code }) => code)),
    });
    await device.run(scaled, { x: floats(1), factor: 1 });
    const [record] = device.compilations;
    expect(record?.notes).toMatchObject([
      { code: "TW7506", because: expect.stringContaining("(C7510)") as string },
    ]);
    expect(told).toEqual(["scaled", "TW7506"]);
    device.dispose();
  });
});

describe("opening", () => {
  test("without a GPU says so", async () => {
    const report = await reportOf(() => new CudaContext(new FakeDriver({ gpus: [] }), 0));
    expect(report.code).toBe("TW4502");
  });

  test("a GPU that is not there names those that are", async () => {
    const report = await reportOf(() => new CudaContext(new FakeDriver(), 3));
    expect([report.code, report.expected]).toEqual(["TW4513", "0, the only one"]);
  });

  test("an old GPU or an old driver is refused", async () => {
    const old = { name: "Fake V100", attributes: { ...fakeHopper.attributes, 75: 7 } };
    const gpu = await reportOf(() => new CudaContext(new FakeDriver({ gpus: [old] }), 0));
    expect([gpu.code, gpu.found]).toEqual(["TW4505", "7.0"]);
    const driver = await reportOf(
      () => new CudaContext(new FakeDriver({ driverVersion: 11080 }), 0),
    );
    expect([driver.code, driver.found]).toEqual(["TW4504", "a driver of CUDA 11.8"]);
  });
});

describe("targets of GPUs", () => {
  const gpu = {
    ordinal: 0,
    name: "some GPU",
    major: 9,
    minor: 0,
    processors: 132,
    sharedMemoryPerBlock: 227 * 1024,
    sharedMemoryPerProcessor: 228 * 1024,
    threadsPerProcessor: 2048,
    blocksPerProcessor: 32,
    memoryPools: true,
    driverVersion: 13000,
  };

  test.each([
    [9, 0, "sm_90a"],
    [10, 0, "sm_100a"],
    [8, 0, "sm_80"],
    [8, 6, "sm_86"],
    [8, 7, "sm_80"],
    [8, 9, "sm_89"],
    [10, 3, "sm_103a"],
    [12, 0, "sm_120a"],
    [12, 1, "sm_121a"],
    [12, 9, "sm_80"],
  ])("compute capability %i.%i takes %s", (major, minor, name) => {
    expect(targetForGpu({ ...gpu, major, minor }).name).toBe(name);
  });

  test("have the GPU's own limits", () => {
    const small = targetForGpu({ ...gpu, major: 8, minor: 9, sharedMemoryPerBlock: 99 * 1024 });
    expect(small.sharedMemoryPerBlock).toBe(99 * 1024);
    expect(small.features).not.toContain("tma");
  });

  test.each([
    [12000, "8.0"],
    [12060, "8.5"],
    [12080, "8.7"],
    [13000, "9.0"],
    [14020, "9.0"],
  ])("driver %i takes PTX up to %s", (version, ptx) => {
    expect(newestPtx(version)).toBe(ptx);
    expect(() => requirePtx("k", ptx, version)).not.toThrow();
    expect(cudaText(version)).toBe(`${Math.floor(version / 1000)}.${(version % 1000) / 10}`);
  });
});

test("an answer that nothing else fits is told with the call and its number", async () => {
  const driver = new FakeDriver({ kernels: fakeKernels });
  driver.fail("cuStreamCreate", 999);
  const report = await reportOf(() => new CudaContext(driver, 0));
  expect([report.code, report.found]).toEqual([
    "TW4512",
    expect.stringContaining("cuStreamCreate"),
  ]);
});
