import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { doctorCommand } from "./commands/doctor.ts";
import { Output } from "./output.ts";
import { probe, thisMachine } from "./probes.ts";
import type { Machine } from "./probes.ts";

const bare: Machine = {
  nodeVersion: "v20.11.0",
  platform: "linux",
  architecture: "x64",
  environment: {},
  exists: () => false,
  readText: () => undefined,
  run: () => Promise.resolve(undefined),
  resolvePackage: () => undefined,
};

const driverText = [
  "NVRM version: NVIDIA UNIX x86_64 Kernel Module  550.54.15  Tue Mar  5 22:23:56 UTC 2024",
  "GCC version:  gcc version 12.2.0",
].join("\n");

const ptxas = join("/opt/cuda", "bin", "ptxas");

const equipped: Machine = {
  ...bare,
  environment: { PATH: "/usr/bin", CUDA_HOME: "/opt/cuda", LD_LIBRARY_PATH: "/driver" },
  exists: (path) => ["/driver/libcuda.so.1", ptxas].includes(path),
  readText: (path) => (path === "/proc/driver/nvidia/version" ? driverText : undefined),
  run: (program) =>
    Promise.resolve(
      {
        "nvidia-smi": "NVIDIA H200\nNVIDIA H200\n",
        [ptxas]: "Cuda compilation, release 12.4, V12",
      }[program],
    ),
  resolvePackage: (name) => `/modules/${name}`,
};

/** What doctor prints about a machine, as text and as data, and its exit status. */
async function doctor(machine: Machine) {
  const printed = { text: "", data: "" };
  const run = (json: boolean, take: (text: string) => void) =>
    doctorCommand(
      probe(machine),
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
      "Node.js        ok       v20.11.0 (20 or later is needed)",
      "platform       ok       linux x64",
      "NVIDIA driver  missing  no libcuda.so.1; the simulator needs none",
      "GPU            missing  nvidia-smi lists none; the simulator needs none",
      "ptxas          missing  not on PATH nor in CUDA_HOME; nothing needs it",
      "koffi          missing  not installed; the simulator needs none",
      "",
      "open() uses the simulator: this version has no GPU back end.",
      "",
    ]);
    expect(data).toMatchObject({
      checks: [{ name: "Node.js", status: "ok" }, {}, {}, {}, {}, {}],
      open: { device: "simulator", reason: "this version has no GPU back end" },
    });
  });

  test("on a machine with a GPU it lists what is there and unused", async () => {
    const { status, data } = await doctor(equipped);
    expect(status).toBe(0);
    expect(data).toMatchObject({
      checks: [
        { name: "Node.js" },
        { name: "platform" },
        { status: "unused", detail: "550.54.15, /driver/libcuda.so.1" },
        { status: "unused", detail: "NVIDIA H200; NVIDIA H200" },
        { status: "unused", detail: `12.4, ${ptxas}` },
        { status: "unused", detail: "installed; it would call the driver" },
      ],
    });
  });

  test("Windows has its own library", async () => {
    const library = "D:\\Windows\\System32\\nvcuda.dll";
    const windows: Machine = {
      ...bare,
      platform: "win32",
      environment: { SystemRoot: "D:\\Windows" },
    };
    expect((await doctor(windows)).text).toContain("missing  no nvcuda.dll");
    const found = await doctor({ ...windows, exists: (path) => path === library });
    expect(found.text).toContain(`unused   ${library}`);
  });

  test("a platform without a driver says so", async () => {
    const { text } = await doctor({ ...bare, platform: "darwin" });
    expect(text).toContain("NVIDIA driver  missing  there is none for darwin");
  });

  test("a Node that is too old is a failure", async () => {
    const { status, text } = await doctor({ ...bare, nodeVersion: "v18.20.0" });
    expect(status).toBe(1);
    expect(text).toContain("Node.js        missing  v18.20.0 (20 or later is needed)");
  });
});

test("this machine answers every probe", async () => {
  const machine = thisMachine();
  expect(await machine.run("no-such-program-here", [])).toBeUndefined();
  expect((await machine.run(process.execPath, ["--version"]))?.trim()).toBe(process.version);
  expect(machine.readText("/no/such/file")).toBeUndefined();
  expect(machine.resolvePackage("no-such-package-here")).toBeUndefined();
  expect(machine.resolvePackage("commander")).toContain("commander");
});
