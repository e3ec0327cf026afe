/**
 * `libcuda` itself, through koffi, loaded when a GPU is first opened. koffi comes as a package for each
 * platform that holds nothing but the compiled library; npm installs the one that fits and runs no script.
 *
 *   libcuda.so.1 ──koffi──▶ one JavaScript function for each entry of `functions.ts`
 */
import { createRequire } from "node:module";
import { TilewrightError } from "../support/diagnostics.ts";
import type { AsideName, Driver, HostMemory } from "./driver.ts";
import { driverFunctions, functionNames } from "./functions.ts";
import type {
  ArgumentForm,
  DriverArguments,
  DriverCalls,
  DriverFunction,
  FunctionName,
} from "./functions.ts";
import { notSupported } from "./results.ts";

/** What of koffi is used here. */
interface Koffi {
  load(path: string): KoffiLibrary;
  alloc(type: string, length: number): bigint;
  free(pointer: bigint): void;
  view(pointer: bigint, bytes: number): ArrayBuffer;
}

interface KoffiLibrary {
  func(symbol: string, result: string, forms: readonly string[]): KoffiFunction;
}

interface KoffiFunction {
  (...values: readonly number[]): number;
  async(...values: readonly [...number[], (error: Error | null, result: number) => void]): void;
}

/** The machine that a library is looked for on. */
export interface Platform {
  readonly platform: string;
  readonly architecture: string;
}

const typeNames: { readonly [F in ArgumentForm]: string } = {
  i32: "int32",
  u32: "uint32",
  u8: "uint8",
  u64: "uint64",
};

/** Where the driver's library is looked for, in order; a plain name means the system's own places. */
export function libraryNames({ platform }: Platform): readonly string[] {
  if (platform === "win32") return ["nvcuda.dll"];
  if (platform === "linux") return ["libcuda.so.1", "/usr/lib/wsl/lib/libcuda.so.1"];
  return [];
}

/** The package of koffi for a platform. */
export function koffiPackage({ platform, architecture }: Platform): string {
  return `@koromix/koffi-${platform}-${architecture}`;
}

/** Loads what calls the driver, then the driver. */
export async function loadDriver(
  machine: Platform,
  loadPackage: (name: string) => Promise<unknown> = requirePackage,
): Promise<Driver> {
  const names = libraryNames(machine);
  if (names.length === 0) throw missingDriver(machine, []);
  const koffi = await loadKoffi(machine, loadPackage);
  return new NativeDriver(koffi, loadLibrary(koffi, names, machine));
}

/** As `import()`, which reads such a package twice, once for its names: 21 ms instead of 28 of what opening a GPU takes. */
function requirePackage(name: string): Promise<unknown> {
  const loaded: unknown = createRequire(import.meta.url)(name);
  return Promise.resolve({ default: loaded });
}

async function loadKoffi(
  machine: Platform,
  loadPackage: (name: string) => Promise<unknown>,
): Promise<Koffi> {
  const name = koffiPackage(machine);
  try {
    const loaded = (await loadPackage(name)) as { readonly default: Koffi };
    return loaded.default;
  } catch (error) {
    throw new TilewrightError({
      code: "TW4503",
      message: `the package ${name}, which calls the NVIDIA driver, cannot be loaded`,
      expected: `${name}, installed beside tilewright`,
      found: error instanceof Error ? firstLine(error.message) : String(error),
    });
  }
}

function loadLibrary(koffi: Koffi, names: readonly string[], machine: Platform): KoffiLibrary {
  const problems: string[] = [];
  for (const name of names) {
    try {
      return koffi.load(name);
    } catch (error) {
      problems.push(`${name}: ${error instanceof Error ? firstLine(error.message) : "not loaded"}`);
    }
  }
  throw missingDriver(machine, problems);
}

function missingDriver(machine: Platform, problems: readonly string[]): TilewrightError {
  return new TilewrightError({
    code: "TW4501",
    message: "this machine has no NVIDIA driver",
    expected: libraryNames(machine).join(" or ") || "Linux or Windows",
    found: problems.join("\n") || `${machine.platform}, which NVIDIA has no driver for`,
  });
}

function firstLine(text: string): string {
  return text.split("\n")[0] ?? "";
}

const alignment = 128;

interface NativeMemory extends HostMemory {
  /** What koffi gave, before alignment. */
  readonly pointer: bigint;
}

class NativeDriver implements Driver {
  readonly calls: DriverCalls;
  readonly #koffi: Koffi;
  readonly #functions: { readonly [N in FunctionName]: KoffiFunction };

  constructor(koffi: Koffi, library: KoffiLibrary) {
    this.#koffi = koffi;
    const bound = functionNames.map((name) => [name, bindFunction(library, name)] as const);
    const functions = Object.fromEntries(bound) as { readonly [N in FunctionName]: KoffiFunction };
    this.calls = functions;
    this.#functions = functions;
  }

  waitForEvent(event: number): Promise<number> {
    return onThread(this.#functions.cuEventSynchronize, [event]);
  }

  callAside<N extends AsideName>(name: N, ...values: DriverArguments<N>): Promise<number> {
    return onThread(this.#functions[name], values);
  }

  allocateHost(bytes: number): NativeMemory {
    const pointer = this.#koffi.alloc("uint8", bytes + alignment);
    const address = Math.ceil(Number(pointer) / alignment) * alignment;
    const view = this.viewHost(address, bytes).fill(0);
    return { address, bytes: view, pointer };
  }

  freeHost(memory: NativeMemory): void {
    this.#koffi.free(memory.pointer);
  }

  viewHost(address: number, bytes: number): Uint8Array {
    return new Uint8Array(this.#koffi.view(BigInt(address), bytes));
  }
}

/** Calls a function on a thread of its own. */
function onThread(call: KoffiFunction, values: readonly number[]): Promise<number> {
  return new Promise((resolve, reject) => {
    call.async(...values, (error: Error | null, result: number) => {
      if (error === null) resolve(result);
      else reject(error);
    });
  });
}

/** A function that this driver does not have. */
const unsupported: KoffiFunction = Object.assign(() => notSupported, {
  async: (...values: readonly [...number[], (error: null, result: number) => void]) => {
    (values.at(-1) as (error: null, result: number) => void)(null, notSupported);
  },
});

function bindFunction(library: KoffiLibrary, name: FunctionName): KoffiFunction {
  const { symbol, forms, isNewer }: DriverFunction = driverFunctions[name];
  try {
    return library.func(
      symbol,
      "int32",
      forms.map((form) => typeNames[form]),
    );
  } catch {
    if (isNewer === true) return unsupported;
    throw new TilewrightError({
      code: "TW4504",
      message: `the NVIDIA driver is too old: it has no ${symbol}`,
      expected: "a driver of CUDA 12.0 (525) or later",
      found: `a driver without ${symbol}`,
    });
  }
}
