/**
 * `libcuda` itself, through koffi, loaded when a GPU is first opened. koffi comes as a package for each
 * platform that holds nothing but the compiled library; npm installs the one that fits and runs no script.
 *
 *   libcuda.so.1 ──koffi──▶ one JavaScript function for each entry of `functions.ts`
 */
import process from "node:process";
import { TilewrightError } from "../support/diagnostics.ts";
import type { RelatedNote } from "../support/diagnostics.ts";
import { findPackage, remedyOf } from "./binding.ts";
import type { FoundPackage } from "./binding.ts";
import { driverPresence, firstLine, libraryNames } from "./driver-presence.ts";
import type { Platform, Presence } from "./driver-presence.ts";
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

const typeNames: { readonly [F in ArgumentForm]: string } = {
  i32: "int32",
  u32: "uint32",
  u8: "uint8",
  u64: "uint64",
};

/** The package of koffi for a platform. */
export function koffiPackage({ platform, architecture }: Platform): string {
  return `@koromix/koffi-${platform}-${architecture}`;
}

/** What finds koffi and the driver; tests bring others. */
export interface Finders {
  readonly findPackage: (name: string) => Promise<FoundPackage>;
  /** Whether there is a driver, asked without koffi. */
  readonly presence: (machine: Platform) => Presence;
}

const hostFinders: Finders = {
  findPackage,
  presence: (machine) => driverPresence(machine, process),
};

/** Loads what calls the driver, then the driver. */
export async function loadDriver(
  machine: Platform,
  finders: Finders = hostFinders,
): Promise<Driver> {
  const names = libraryNames(machine);
  if (names.length === 0) throw missingDriver(machine, []);
  const koffi = await loadKoffi(machine, finders);
  return new NativeDriver(koffi, loadLibrary(koffi, names, machine));
}

/** Where there is no driver, nothing is wrong with lacking what calls it: installed without it on purpose, for a machine like this. */
async function loadKoffi(machine: Platform, finders: Finders): Promise<Koffi> {
  const name = koffiPackage(machine);
  const found = await finders.findPackage(name);
  if ("loaded" in found) return found.loaded as Koffi;
  const { driver, found: places } = finders.presence(machine);
  const note = {
    message: `the package ${name}, which calls it, cannot be loaded either: ${found.problem}`,
  };
  if (driver === "absent") throw missingDriver(machine, [places], note);
  if (driver === "unknown")
    throw new TilewrightError({
      code: "TW4501",
      message: "the host does not let this program look for an NVIDIA driver",
      expected: "a program that may load libraries",
      found: places,
      remedy:
        "allow it: deno run --allow-ffi --allow-read --allow-env, node --allow-addons; or open another device by its name",
      notes: [note],
    });
  throw new TilewrightError({
    code: "TW4503",
    message: `there is an NVIDIA driver, but the package ${name}, which calls it, cannot be loaded`,
    expected: `${name}, installed beside tilewright`,
    found: found.problem,
    remedy: `${remedyOf(name)}; or open another device by its name`,
  });
}

function loadLibrary(koffi: Koffi, names: readonly string[], machine: Platform): KoffiLibrary {
  const problems: string[] = [];
  for (const name of names) {
    try {
      return koffi.load(name);
    } catch (error) {
      problems.push(`${name}: ${firstLine(error)}`);
    }
  }
  throw missingDriver(machine, problems);
}

function missingDriver(
  machine: Platform,
  problems: readonly string[],
  note?: RelatedNote,
): TilewrightError {
  return new TilewrightError({
    code: "TW4501",
    message: "this machine has no NVIDIA driver",
    expected: libraryNames(machine).join(" or ") || "Linux or Windows",
    found: problems.join("\n") || `${machine.platform}, which NVIDIA has no driver for`,
    notes: note === undefined ? [] : [note],
  });
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
