import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { describe, expect, test } from "vitest";
import { openFake } from "../../test/support/fake-driver/harness.ts";
import type { Gpu } from "../cuda/gpu.ts";
import type { DiagnosticCode } from "../support/diagnostics.ts";
import { TilewrightError } from "../support/diagnostics.ts";
import { doctorCommand } from "./commands/doctor.ts";
import { hostOf } from "./host.ts";
import type { Host } from "./host.ts";
import { Output } from "./output.ts";
import { thisMachine } from "./doctor-probes.ts";
import type { Probes } from "./doctor-probes.ts";
import { testLaunch } from "./test-launch.ts";

function refusal(code: DiagnosticCode, message: string): TilewrightError {
  return new TilewrightError({ code, message, expected: "a driver", found: "none" });
}

function node(version: string): Host {
  return hostOf({ version, versions: { node: version.slice(1) } });
}

const bare: Probes = {
  host: node("v20.11.0"),
  platform: "linux",
  architecture: "x64",
  findTool: () => Promise.resolve(undefined),
  cache: () => ({ folder: "/cache", kernels: 0, bytes: 0, limitBytes: 2 ** 30 }),
  launch: () => Promise.resolve(12),
  tryGpu: () => Promise.reject(refusal("TW4501", "this machine has no NVIDIA driver")),
};

const gpu: Gpu = {
  ordinal: 0,
  name: "NVIDIA H200",
  major: 9,
  minor: 0,
  processors: 132,
  sharedMemoryPerBlock: 232448,
  sharedMemoryPerProcessor: 233472,
  threadsPerProcessor: 2048,
  blocksPerProcessor: 32,
  memoryPools: true,
  driverVersion: 12080,
};

const equipped: Probes = {
  ...bare,
  findTool: (name) => Promise.resolve({ path: `/cuda/bin/${name}`, version: "12.4" }),
  cache: () => ({ folder: "/cache", kernels: 3, bytes: 1536, limitBytes: 2 ** 30 }),
  tryGpu: () => Promise.resolve({ gpu, target: "sm_90a", launch: 45 }),
};

/** What doctor prints about a machine, as text and as data, and its exit status. */
async function doctor(machine: Probes) {
  const printed = { text: "", data: "" };
  const run = (json: boolean, take: (text: string) => void) =>
    doctorCommand(
      machine,
      new Output({ stdout: { write: take }, stderr: { write: take }, json, environment: {} }),
    );
  const status = await run(false, (text) => (printed.text += text));
  await run(true, (text) => (printed.data += text));
  return { status, text: printed.text, data: JSON.parse(printed.data) as unknown };
}

describe("doctor", () => {
  test("on a machine that has only Node nothing fails", async () => {
    const { status, text, data } = await doctor(bare);
    expect(status).toBe(0);
    expect(text.split("\n")).toEqual([
      "part           status   what was found",
      "Node.js        ok       v20.11.0 (20.6 or later is needed)",
      "platform       ok       linux x64",
      "NVIDIA driver  missing  this machine has no NVIDIA driver",
      "GPU            missing  none can be opened; nothing else needs one",
      "ptxas          missing  not on PATH nor in CUDA_HOME; only --emit cubin and registers in reports need it",
      "nvdisasm       missing  not on PATH nor in CUDA_HOME; only machine code in --dump needs it",
      "cache          ok       /cache: 0 kernels, 0 bytes of 1 GiB",
      "cpu            ok       ran axpy in 12 ms",
      "simulator      ok       ran axpy in 12 ms",
      "emulator       ok       ran axpy in 12 ms",
      "gpu            missing  this machine has no NVIDIA driver",
      "",
      'open() uses the simulator: this machine has no NVIDIA driver; open("cpu") is for speed.',
      "",
    ]);
    expect(data).toMatchObject({
      open: {
        device: "simulator",
        reason: 'this machine has no NVIDIA driver; open("cpu") is for speed',
      },
    });
  });

  test("on a machine with a GPU it tells what was tried", async () => {
    const { status, data } = await doctor(equipped);
    expect(status).toBe(0);
    expect(data).toMatchObject({
      checks: [
        { name: "Node.js" },
        { name: "platform" },
        { status: "ok", detail: "CUDA 12.8, PTX up to 8.7" },
        { detail: "NVIDIA H200, compute capability 9.0; kernels are compiled for sm_90a" },
        { status: "ok", detail: "12.4, /cuda/bin/ptxas" },
        { status: "ok", detail: "12.4, /cuda/bin/nvdisasm" },
        { detail: "/cache: 3 kernels, 1.5 KiB of 1 GiB" },
        { name: "cpu" },
        { name: "simulator" },
        { name: "emulator" },
        { name: "gpu", status: "ok", detail: "ran axpy in 45 ms" },
      ],
      open: { device: "gpu", reason: "NVIDIA H200" },
    });
  });

  test("a driver without a GPU is there, and the simulator is used", async () => {
    const error = refusal("TW4502", "the NVIDIA driver shows no GPU to this process");
    const { status, text } = await doctor({ ...bare, tryGpu: () => Promise.reject(error) });
    expect(status).toBe(0);
    expect(text).toContain("NVIDIA driver  ok       it can be called");
    expect(text).toContain("open() uses the simulator: the NVIDIA driver shows no GPU");
  });

  test("a GPU that cannot be opened, or on which a kernel fails, is a failure", async () => {
    const old = refusal("TW4504", "the NVIDIA driver is too old");
    const unopened = await doctor({ ...bare, tryGpu: () => Promise.reject(old) });
    expect(unopened.status).toBe(1);
    expect(unopened.text).toContain("NVIDIA driver  failed   the NVIDIA driver is too old");
    expect(unopened.text).toContain("open() uses the gpu: but it fails: the NVIDIA driver");
    const launch = refusal("TW4509", "kernel axpy failed");
    const broken = { gpu, target: "sm_90a", launch };
    const { status, text } = await doctor({ ...equipped, tryGpu: () => Promise.resolve(broken) });
    expect(status).toBe(1);
    expect(text).toContain("gpu            failed  kernel axpy failed");
  });

  test("a device that goes wrong, and a cache that cannot be used, are failures", async () => {
    const wrong = new Error("element 7 of axpy is 0");
    const failing = await doctor({ ...bare, launch: () => Promise.reject(wrong) });
    expect([failing.status, failing.text]).toEqual([
      1,
      expect.stringContaining("emulator       failed   element 7 of axpy is 0"),
    ]);
    const cache = (): never => {
      throw refusal("TW4602", "the cache folder /cache cannot be used");
    };
    const locked = await doctor({ ...bare, cache });
    expect([locked.status, locked.text]).toEqual([
      1,
      expect.stringContaining("cache          failed   the cache folder /cache cannot be used"),
    ]);
  });

  test("a cache that cannot be written to", async () => {
    const cache = () => ({
      folder: "/cache",
      kernels: 0,
      bytes: 0,
      limitBytes: 2 ** 30,
      problem: "EROFS: read-only file system",
    });
    const { status, text } = await doctor({ ...bare, cache });
    expect(status).toBe(1);
    expect(text).toMatch(
      /cache +failed +\/cache cannot be written to, .*: EROFS.*TILEWRIGHT_CACHE/,
    );
  });

  test("a cache that is off is fine", async () => {
    const off = { folder: undefined, kernels: 0, bytes: 0, limitBytes: 0 };
    const { status, text } = await doctor({ ...bare, cache: () => off });
    expect([status, text]).toEqual([0, expect.stringContaining("off, by TILEWRIGHT_CACHE")]);
  });

  test("a Node that is too old is a failure", async () => {
    const { status, text } = await doctor({ ...bare, host: node("v18.20.0") });
    expect(status).toBe(1);
    expect(text).toContain("Node.js        missing  v18.20.0 (20.6 or later is needed)");
    const old = await doctor({ ...bare, host: node("v20.5.1") });
    expect(old.status).toBe(1);
    expect((await doctor({ ...bare, host: node("v20.6.0") })).status).toBe(0);
  });

  test("runtimes that stand in for Node are named", async () => {
    const version = "v26.3.0";
    const bun = hostOf({ version, versions: { node: "26.3.0", bun: "1.4.4" } });
    const deno = hostOf({ version, versions: { node: "26.3.0", deno: "2.9.6" } });
    const under = async (host: Host) => (await doctor({ ...bare, host })).text.split("\n")[1];
    expect(await under(bun)).toMatch(
      /^Bun +ok +1\.4\.4 \(as Node\.js v26\.3\.0; 20\.6 or later is needed\)$/,
    );
    expect(await under(deno)).toMatch(/^Deno +ok +2\.9\.6 \(as Node\.js v26\.3\.0/);
    expect(await under(node("v20.6.0"))).toMatch(/^Node\.js +ok +v20\.6\.0 \(20\.6 or later/);
    const old = hostOf({ version: "v18.0.0", versions: { node: "18.0.0", bun: "0.5.0" } });
    expect((await doctor({ ...bare, host: old })).status).toBe(1);
  });

  test("this machine's runtime is the one that runs this", () => {
    expect(thisMachine().host).toEqual(hostOf(process));
  });
});

describe("the trial launch", () => {
  test("takes a wrong result for what it is", async () => {
    const { device } = openFake({
      kernels: { axpy: { sizes: [8], run: () => undefined } },
      plans: { axpy: { parameters: [{ kind: "array", name: "out" }] } },
    });
    await expect(testLaunch(device)).rejects.toThrow(/^element \d+ of axpy is /);
    device.dispose();
  });
});

// The tool that it finds is played by a script of a shell.
test.skipIf(process.platform === "win32")("this machine answers every probe", async () => {
  const machine = thisMachine();
  expect(await machine.findTool("no-such-program-here")).toBeUndefined();
  expect(await machine.launch("emulator")).toBeGreaterThan(0);
  const folder = mkdtempSync(join(tmpdir(), "tilewright-probes-"));
  const [path, cache] = [process.env["PATH"], process.env["TILEWRIGHT_CACHE"]];
  try {
    process.env["PATH"] = folder;
    process.env["TILEWRIGHT_CACHE"] = folder;
    writeFileSync(join(folder, "ptxas"), "#!/bin/sh\necho 'release 99.1, V99'\n", { mode: 0o755 });
    expect(await machine.findTool("ptxas")).toEqual({
      path: join(folder, "ptxas"),
      version: "99.1",
    });
    expect(machine.cache()).toMatchObject({ folder, kernels: 0 });
    process.env["TILEWRIGHT_CACHE"] = "off";
    expect(machine.cache().folder).toBeUndefined();
  } finally {
    process.env["PATH"] = path;
    if (cache === undefined) delete process.env["TILEWRIGHT_CACHE"];
    else process.env["TILEWRIGHT_CACHE"] = cache;
    rmSync(folder, { recursive: true });
  }
});
