/** Finding and binding the driver's library, with a stand-in for koffi. */
import process from "node:process";
import { describe, expect, test } from "vitest";
import { TilewrightError } from "../support/diagnostics.ts";
import { driverFunctions, functionNames } from "./functions.ts";
import { koffiPackage, libraryNames, loadDriver } from "./native.ts";

interface Bound {
  readonly symbol: string;
  readonly forms: readonly string[];
}

/** A koffi that knows one library, whose functions answer 7 and miss `absent`. */
function fakeKoffi(library: string, absent = "") {
  const bound: Bound[] = [];
  const loaded: string[] = [];
  const koffi = {
    load(path: string) {
      loaded.push(path);
      if (path !== library) throw new Error(`${path}: cannot open shared object file\nmore`);
      return {
        func(symbol: string, result: string, forms: readonly string[]) {
          if (symbol === absent || result !== "int32") throw new Error("no such function");
          bound.push({ symbol, forms });
          const call = () => 7;
          return Object.assign(call, {
            async: (_event: number, done: (error: Error | null, result: number) => void) =>
              setTimeout(() => done(null, 9), 0),
          });
        },
      };
    },
    alloc: () => 1000n,
    free: () => undefined,
    view: (_pointer: bigint, bytes: number) => new ArrayBuffer(bytes),
  };
  return { load: () => Promise.resolve({ default: koffi }), bound, loaded };
}

const linux = { platform: "linux", architecture: "x64" };

async function reportOf(work: Promise<unknown>): Promise<TilewrightError> {
  const error: unknown = await work.catch((thrown: unknown) => thrown);
  if (error instanceof TilewrightError) return error;
  throw new Error("nothing was reported");
}

describe("the driver's library", () => {
  test("is looked for under each of its names", async () => {
    const koffi = fakeKoffi("/usr/lib/wsl/lib/libcuda.so.1");
    await loadDriver(linux, koffi.load);
    expect(koffi.loaded).toEqual(libraryNames(linux));
    expect(libraryNames({ platform: "win32", architecture: "x64" })).toEqual(["nvcuda.dll"]);
  });

  test("that is nowhere is reported with every place", async () => {
    const report = await reportOf(loadDriver(linux, fakeKoffi("elsewhere").load));
    expect(report.code).toBe("TW4501");
    expect(report.found).toBe(
      libraryNames(linux)
        .map((name) => `${name}: ${name}: cannot open shared object file`)
        .join("\n"),
    );
  });

  test("does not exist for other systems", async () => {
    const report = await reportOf(loadDriver({ platform: "darwin", architecture: "arm64" }));
    expect(report.code).toBe("TW4501");
    expect(report.found).toContain("darwin");
  });

  test("without one of the functions is too old", async () => {
    const report = await reportOf(
      loadDriver(linux, fakeKoffi("libcuda.so.1", "cuLaunchKernelEx").load),
    );
    expect(report.code).toBe("TW4504");
    expect(report.summary).toContain("cuLaunchKernelEx");
  });

  test("cannot be called without koffi's package", async () => {
    const machine = { platform: "linux", architecture: "vax" };
    const report = await reportOf(loadDriver(machine));
    expect(report.code).toBe("TW4503");
    expect(report.summary).toContain(koffiPackage(machine));
  });
});

describe("a loaded driver", () => {
  test("has every function of the table, by its symbol and forms", async () => {
    const koffi = fakeKoffi("libcuda.so.1");
    const driver = await loadDriver(linux, koffi.load);
    expect(koffi.bound.map(({ symbol }) => symbol)).toEqual(
      functionNames.map((name) => driverFunctions[name].symbol),
    );
    expect(koffi.bound.find(({ symbol }) => symbol === "cuMemsetD8Async")?.forms).toEqual([
      "uint64",
      "uint8",
      "uint64",
      "uint64",
    ]);
    expect(driver.calls.cuInit(0)).toBe(7);
    expect(await driver.waitForEvent(1)).toBe(9);
  });

  test("gives host memory at multiples of 128", async () => {
    const driver = await loadDriver(linux, fakeKoffi("libcuda.so.1").load);
    const { address, bytes } = driver.allocateHost(100);
    expect([address, bytes.byteLength]).toEqual([1024, 100]);
  });
});

test("koffi itself calls a library and waits on another thread", async () => {
  const name = koffiPackage({ platform: process.platform, architecture: process.arch });
  interface Function {
    (...values: readonly number[]): number;
    async(value: number, done: (error: Error | null, result: number) => void): void;
  }
  interface Koffi {
    load(path: string | null): { func(name: string, result: string, forms: string[]): Function };
    alloc(type: string, length: number): bigint;
    view(pointer: bigint, bytes: number): ArrayBuffer;
    free(pointer: bigint): void;
  }
  const koffi = ((await import(name)) as { readonly default: Koffi }).default;
  const library = koffi.load(null);
  const pointer = koffi.alloc("uint8", 8);
  new Uint8Array(koffi.view(pointer, 8)).set([65, 66, 67, 0]);
  // An address as a plain number is what every function of the driver is given.
  const length = library.func("strlen", "uint64", ["uint64"]);
  expect(length(Number(pointer))).toBe(3);
  const later = new Promise((resolve, reject) => {
    length.async(Number(pointer), (error, result) =>
      error === null ? resolve(result) : reject(error),
    );
  });
  expect(await later).toBe(3);
  koffi.free(pointer);
});
