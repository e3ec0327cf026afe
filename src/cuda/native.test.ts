/** Finding and binding the driver's library, with a stand-in for koffi. */
import process from "node:process";
import { describe, expect, test } from "vitest";
import { TilewrightError } from "../support/diagnostics.ts";
import { driverFunctions, functionNames } from "./functions.ts";
import { driverPresence, libraryNames } from "./driver-presence.ts";
import type { Presence } from "./driver-presence.ts";
import { koffiPackage, loadDriver } from "./native.ts";
import type { Finders } from "./native.ts";

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
  const finders: Finders = {
    findPackage: () => Promise.resolve({ loaded: koffi }),
    presence: () => ({ driver: "here", found: library }),
  };
  return { finders, bound, loaded };
}

/** The libraries of this process, where the system lists them. */
function sharedObjects(): readonly string[] {
  const report: unknown = process.report?.getReport();
  const { sharedObjects: paths } = report as { readonly sharedObjects?: readonly string[] };
  return paths ?? [];
}

/** No koffi, on a machine with or without a driver. */
function withoutKoffi(driver: Presence["driver"]): Finders {
  return {
    findPackage: () => Promise.resolve({ problem: "Cannot find module" }),
    presence: () => ({ driver, found: "libcuda.so.1: the loader's words" }),
  };
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
    await loadDriver(linux, koffi.finders);
    expect(koffi.loaded).toEqual(libraryNames(linux));
    expect(libraryNames({ platform: "win32" })).toEqual(["nvcuda.dll"]);
  });

  test("that is nowhere is reported with every place", async () => {
    const report = await reportOf(loadDriver(linux, fakeKoffi("elsewhere").finders));
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
      loadDriver(linux, fakeKoffi("libcuda.so.1", "cuLaunchKernelEx").finders),
    );
    expect(report.code).toBe("TW4504");
    expect(report.summary).toContain("cuLaunchKernelEx");
  });

  test("cannot be called without koffi's package, which is a mistake where there is a driver", async () => {
    const report = await reportOf(loadDriver(linux, withoutKoffi("here")));
    expect(report.code).toBe("TW4503");
    expect(report.summary).toContain(koffiPackage(linux));
    expect(report.found).toBe("Cannot find module");
    expect(report.remedy).toContain("npm install --include=optional");
  });

  test("is missing, rather than koffi, where both are", async () => {
    const report = await reportOf(loadDriver(linux, withoutKoffi("absent")));
    expect([report.code, report.summary]).toEqual(["TW4501", "this machine has no NVIDIA driver"]);
    expect(report.found).toBe("libcuda.so.1: the loader's words");
    expect(report.notes.map(({ message }) => message).join()).toContain(koffiPackage(linux));
  });

  test("may not be looked for everywhere", async () => {
    const report = await reportOf(loadDriver(linux, withoutKoffi("unknown")));
    expect(report.code).toBe("TW4501");
    expect(report.summary).toContain("the host does not let this program look");
    expect(report.remedy).toContain("--allow-ffi");
  });
});

describe("without koffi", () => {
  const presence = (words: readonly string[], platform = "linux") => {
    const asked: string[] = [];
    const dlopen = (_module: object, path: string) => {
      asked.push(path);
      const problem = words[asked.length - 1];
      if (problem !== undefined) throw new Error(problem);
    };
    return { ...driverPresence({ platform }, { dlopen, env: { SystemRoot: "D:\\W" } }), asked };
  };
  const absent = "libcuda.so.1: cannot open shared object file: No such file or directory";

  test.each([
    ["Node", ["Module did not self-register: 'libcuda.so.1'."]],
    ["Bun", ["symbol 'napi_register_module_v1' not found in native module. Is this …?"]],
    ["Deno", ["Unable to find register Node-API module at libcuda.so.1"]],
    ["whoever takes it as an addon", []],
    ["Node, in WSL", [absent, "Module did not self-register: '/usr/lib/wsl/…'."]],
  ])("a driver is seen by %s", (_host, words) => {
    expect(presence(words).driver).toBe("here");
  });

  test.each([
    ["glibc", absent],
    ["musl", "Error loading shared library libcuda.so.1: No such file or directory"],
    ["another architecture", "libcuda.so.1: wrong ELF class: ELFCLASS32"],
  ])("there is none, says %s", (_loader, words) => {
    const { driver, found, asked } = presence([words, words]);
    expect([driver, asked]).toEqual(["absent", libraryNames({ platform: "linux" })]);
    expect(found).toContain(words);
  });

  test("nobody knows where loading is forbidden", () => {
    const words = "Cannot load native addon because loading addons is disabled.";
    expect(presence([words, words]).driver).toBe("unknown");
    expect(presence([absent, words]).driver).toBe("unknown");
    expect(driverPresence({ platform: "linux" }, {}).driver).toBe("unknown");
  });

  test("Windows is asked for the library of its own folder", () => {
    const { driver, asked } = presence(["The specified module could not be found."], "win32");
    expect([driver, asked]).toEqual(["absent", ["D:\\W\\System32\\nvcuda.dll"]]);
  });

  test("other systems have none", () => {
    expect(presence([], "darwin")).toEqual({ driver: "absent", found: "", asked: [] });
  });

  test("this very host tells a library that is there from one that is not", () => {
    const libraries = sharedObjects().filter((path) => /lib(?:m|c)\b.*\.so/.test(path));
    const { dlopen } = process;
    const asking = (library: string) => ({
      dlopen: (module: object) => {
        dlopen(module, library);
      },
    });
    for (const library of libraries)
      expect(driverPresence({ platform: "linux" }, asking(library)).driver).toBe("here");
    const nowhere = driverPresence({ platform: "linux" }, asking("libnowhere-at-all.so.1"));
    expect(nowhere.driver).toBe(process.platform === "linux" ? "absent" : nowhere.driver);
    expect(libraries.length).toBeGreaterThan(process.platform === "linux" ? 0 : -1);
  });
});

describe("a loaded driver", () => {
  test("has every function of the table, by its symbol and forms", async () => {
    const koffi = fakeKoffi("libcuda.so.1");
    const driver = await loadDriver(linux, koffi.finders);
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
    const driver = await loadDriver(linux, fakeKoffi("libcuda.so.1").finders);
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
