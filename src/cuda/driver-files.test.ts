/** Machine code out of files of the driver: what counts as such, what the driver is told, and what our cache makes of it. */
import { Buffer } from "node:buffer";
import { mkdirSync, mkdtempSync, readdirSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { FakeDriver } from "../../test/support/fake-driver/driver.ts";
import { fakeKernels, openFake, scaled } from "../../test/support/fake-driver/harness.ts";
import { f32 } from "../formats/dtype.ts";
import { fromNumbers, toNumbers } from "../formats/hostarray.ts";
import { KernelCache } from "./cache/kernel-cache.ts";
import { FileStore } from "./cache/store.ts";
import { cubinBehind, DriverFiles } from "./driver-files.ts";

const ptx = ".version 8.0\n.target sm_90a\n.visible .entry axpy () { ret; }\n\n";

/** A cubin as far as its headers go: sections, then programs, at its end. */
function cubin(changes: { readonly machine?: number; readonly more?: number } = {}): Buffer {
  const { machine = 190, more = 0 } = changes;
  const bytes = Buffer.alloc(64 + 100 + 3 * 64 + 2 * 56 + more);
  bytes.set([0x7f, 0x45, 0x4c, 0x46, 2, 1]);
  bytes.writeUInt16LE(machine, 18);
  bytes.writeBigUInt64LE(BigInt(164 + 3 * 64), 32);
  bytes.writeBigUInt64LE(164n, 40);
  for (const [at, value] of [
    [54, 56],
    [56, 2],
    [58, 64],
    [60, 3],
  ] as const)
    bytes.writeUInt16LE(value, at);
  return bytes;
}

function driverFile(text: string, code: Buffer): Buffer {
  return Buffer.concat([
    Buffer.from([0x41, 0, 0, 0, 7]),
    Buffer.from(`Apr 29 202617:12:06HOST64sm_90${text}\0 -lineinfo`),
    code,
  ]);
}

describe("a file of the driver", () => {
  test("has the cubin behind the PTX", () => {
    expect(cubinBehind(ptx, driverFile(ptx, cubin()))).toEqual(Uint8Array.from(cubin()));
  });

  test.each([
    ["of other PTX", driverFile(`${ptx}// more`, cubin())],
    ["of longer PTX", driverFile(`${ptx}.entry b () {}`, cubin())],
    ["of another machine", driverFile(ptx, cubin({ machine: 62 }))],
    ["with something behind the cubin", driverFile(ptx, cubin({ more: 8 }))],
    ["that was cut off", driverFile(ptx, cubin()).subarray(0, -1)],
    ["with too little of a cubin", driverFile(ptx, cubin().subarray(0, 40))],
    ["without a cubin", driverFile(ptx, Buffer.from("none"))],
    ["with the cubin before the PTX", Buffer.concat([cubin(), Buffer.from(`${ptx}\0`)])],
    ["that is empty", Buffer.alloc(0)],
  ])("%s has none", (_, file) => {
    expect(cubinBehind(ptx, file)).toBeUndefined();
  });
});

describe("the driver's folder", () => {
  const names = ["CUDA_CACHE_DISABLE", "CUDA_CACHE_PATH"] as const;
  const before = names.map((name) => process.env[name]);
  afterEach(() => {
    names.forEach((name, position) => {
      const value = before[position];
      if (value === undefined) delete process.env[name];
      else process.env[name] = value;
    });
  });

  const settings = (): readonly (string | undefined)[] => names.map((name) => process.env[name]);

  test("is one of the process where the driver keeps nothing, and what is there is taken", async () => {
    process.env["CUDA_CACHE_DISABLE"] = "1";
    delete process.env["CUDA_CACHE_PATH"];
    const files = new DriverFiles();
    expect(files.take(ptx)).toBeUndefined();
    const [kept, folder = ""] = await files.during(() => Promise.resolve(settings()));
    expect(kept).toBe("0");
    expect(settings()).toEqual(["1", undefined]);
    expect(statSync(folder).mode & 0o777).toBe(0o700);
    expect(files.take(ptx)).toBeUndefined();
    mkdirSync(join(folder, "e", "f"), { recursive: true });
    writeFileSync(join(folder, "index"), "numbers");
    writeFileSync(join(folder, "e", "f", "1"), driverFile("other", cubin()));
    writeFileSync(join(folder, "e", "f", "2"), driverFile(ptx, cubin()));
    expect(files.take(ptx)).toEqual(Uint8Array.from(cubin()));
    rmSync(folder, { recursive: true });
    expect(files.take(ptx)).toBeUndefined();
  });

  test("is told again as it was when starting fails", async () => {
    process.env["CUDA_CACHE_DISABLE"] = "1";
    process.env["CUDA_CACHE_PATH"] = "/somewhere";
    const failing = new DriverFiles().during(() => Promise.reject(new Error("no GPU")));
    await expect(failing).rejects.toThrow("no GPU");
    expect(settings()).toEqual(["1", "/somewhere"]);
  });

  test("is left as it is where the driver keeps what it makes", async () => {
    process.env["CUDA_CACHE_DISABLE"] = "0";
    process.env["CUDA_CACHE_PATH"] = "/somewhere";
    const files = new DriverFiles();
    expect(await files.during(() => Promise.resolve(settings()))).toEqual(["0", "/somewhere"]);
    expect(files.take(ptx)).toBeUndefined();
  });
});

describe("machine code in our cache", () => {
  let folder = "";
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), "tilewright-machine-"));
  });
  afterEach(() => {
    rmSync(folder, { recursive: true, force: true });
  });

  /** A cubin of the fake driver, by the entry that it has. */
  const fakeCubin = (entry: string): Uint8Array => new TextEncoder().encode(`fake cubin ${entry}`);

  /** Runs a kernel in what stands for a process of its own, whose driver keeps nothing. */
  async function inProcess(made: (ptx: string) => Uint8Array | undefined = () => undefined) {
    const driver = new FakeDriver({ kernels: fakeKernels });
    const { device } = openFake({
      driver,
      cache: new KernelCache(new FileStore(folder, 2 ** 30), "1.0"),
      machineCode: made,
    });
    const { out } = await device.run(scaled, { x: fromNumbers(f32, [2], [1, 2]), factor: 3 });
    const [record] = device.compilations;
    device.dispose();
    expect([...toNumbers(out)]).toEqual([3, 6]);
    expect(driver.misuses).toEqual([]);
    expect(driver.live).toEqual({});
    return { assembled: driver.assemblies, machineCode: record?.machineCode };
  }

  const machineFiles = (): readonly string[] =>
    readdirSync(folder).filter((name) => name.startsWith("machine-"));

  test("spares later processes the assembler, and the log is as it was", async () => {
    const cold = await inProcess(() => fakeCubin("scaled"));
    expect(cold.assembled).toBe(1);
    const warm = await inProcess();
    expect(warm).toEqual({ assembled: 0, machineCode: cold.machineCode });
    expect(warm.machineCode?.log).toContain("Used 40 registers");
  });

  test.each([
    ["has another entry", fakeCubin("shifted")],
    ["is none", new TextEncoder().encode("rubbish")],
  ])("is not kept where it %s", async (_, code) => {
    await inProcess(() => code);
    expect(machineFiles()).toEqual([]);
    expect((await inProcess()).assembled).toBe(1);
  });

  test.each<readonly [string, (path: string, key: string) => void]>([
    ["is damaged", (path) => writeFileSync(path, "rubbish")],
    ["takes other registers", (_, key) => rewrite(key, { registers: 41, localBytes: 0 })],
    ["does not say what it takes", (_, key) => rewrite(key, { registers: "40" })],
    ["is of another kernel", (_, key) => rewrite(key, { registers: 40, localBytes: 0 }, "shifted")],
  ])("that %s is not used", async (_, change) => {
    await inProcess(() => fakeCubin("scaled"));
    const [name = ""] = machineFiles();
    change(join(folder, name), name.replace(".kernel", ""));
    expect((await inProcess()).assembled).toBe(1);
  });

  function rewrite(key: string, header: object, entry = "scaled"): void {
    new FileStore(folder, 2 ** 30).write(key, header, fakeCubin(entry));
  }
});
