/**
 * A kernel's code as a module of the driver: PTX, which the driver assembles, or a cubin, which it loads.
 *
 *   image ──cuModuleLoadDataEx──▶ module, and the assembler's log
 *
 * PTX is given to the driver whole. Through its linker, which would give the machine code back, it is assembled
 * as a part of something larger: `setmaxnreg` is then ignored (C7504) and wgmma serialised (C7512). The driver
 * keeps what it assembled in a cache of its own; code that comes from there comes without a log.
 */
import type { Location } from "../support/location.ts";
import type { CudaContext } from "./context.ts";
import { dataView, readAddress, writeAddress } from "./driver.ts";
import type { HostMemory } from "./driver.ts";
import { answerText, refusedProgram } from "./errors.ts";
import { faultText, programResults, success } from "./results.ts";

export interface Image {
  /** The kernel's name and place, for reports. */
  readonly name: string;
  readonly location: Location;
  /** PTX as text, or a cubin. */
  readonly code: string | Uint8Array;
}

export interface LoadedModule {
  readonly handle: number;
  /** What the assembler said; undefined where it was not asked. */
  readonly log: string | undefined;
}

const jitOptions = {
  infoLog: 3,
  infoLogBytes: 4,
  errorLog: 5,
  errorLogBytes: 6,
  verbose: 12,
  lineInformation: 13,
} as const;

const logBytes = 2 ** 16;

/** Has the driver load a kernel's code on the context's GPU. */
export function loadModule(context: CudaContext, image: Image): LoadedModule {
  context.enter();
  const loading = new Loading(context, image);
  try {
    return loading.run();
  } finally {
    loading.dispose();
  }
}

class Loading {
  readonly #context: CudaContext;
  readonly #image: Image;
  readonly #memories: HostMemory[] = [];
  readonly #infoLog: HostMemory;
  readonly #errorLog: HostMemory;
  readonly #result: HostMemory;

  constructor(context: CudaContext, image: Image) {
    this.#context = context;
    this.#image = image;
    this.#infoLog = this.#host(logBytes);
    this.#errorLog = this.#host(logBytes);
    this.#result = this.#host(8);
  }

  run(): LoadedModule {
    const { count, names, values } = this.#options();
    const { address } = this.#code();
    const call = "cuModuleLoadDataEx";
    const { calls } = this.#context.driver;
    const result = calls[call](this.#result.address, address, count, names, values);
    if (result !== success) throw this.#failure(result, call);
    const log = logText(this.#infoLog).trim();
    const handle = readAddress(dataView(this.#result), 0);
    return { handle, log: log === "" ? undefined : log };
  }

  dispose(): void {
    for (const memory of this.#memories) this.#context.driver.freeHost(memory);
  }

  #failure(result: number, call: "cuModuleLoadDataEx"): Error {
    const { name, location } = this.#image;
    if (faultText(result) !== undefined || !programResults.has(result))
      return this.#context.failure(result, call, `load kernel ${name}`);
    return refusedProgram(name, location, logText(this.#errorLog), answerText(call, result));
  }

  #options(): { readonly count: number; readonly names: number; readonly values: number } {
    const options: readonly (readonly [number, number])[] = [
      [jitOptions.infoLog, this.#infoLog.address],
      [jitOptions.infoLogBytes, logBytes],
      [jitOptions.errorLog, this.#errorLog.address],
      [jitOptions.errorLogBytes, logBytes],
      [jitOptions.verbose, 1],
      [jitOptions.lineInformation, 1],
    ];
    const names = this.#host(4 * options.length);
    const values = this.#host(8 * options.length);
    options.forEach(([name, value], position) => {
      dataView(names).setUint32(4 * position, name, true);
      writeAddress(dataView(values), 8 * position, value);
    });
    return { count: options.length, names: names.address, values: values.address };
  }

  /** The code in memory that keeps its place; text has a zero at its end. */
  #code(): HostMemory {
    const { code } = this.#image;
    const bytes = typeof code === "string" ? new TextEncoder().encode(`${code}\0`) : code;
    const memory = this.#host(bytes.byteLength);
    memory.bytes.set(bytes);
    return memory;
  }

  #host(bytes: number): HostMemory {
    const memory = this.#context.driver.allocateHost(bytes);
    this.#memories.push(memory);
    return memory;
  }
}

function logText({ bytes }: HostMemory): string {
  const end = bytes.indexOf(0);
  return new TextDecoder().decode(bytes.slice(0, end < 0 ? bytes.byteLength : end));
}
