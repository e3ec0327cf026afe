/**
 * PTX to machine code, by the assembler in the driver. The result is a cubin, which can be kept: loading
 * one takes a fraction of the time.
 *
 *   PTX text ──cuLinkAddData──▶ ──cuLinkComplete──▶ cubin, and the assembler's lines
 *
 * Lines with a code of (C7…) tell that wgmma runs one after the other or that registers are not moved as
 * asked: the kernel is right but slow, so they are passed on as warnings.
 */
import type { Location } from "../support/location.ts";
import type { CudaContext } from "./context.ts";
import { dataView, readAddress, writeAddress } from "./driver.ts";
import type { HostMemory } from "./driver.ts";
import { answerText, refusedProgram } from "./errors.ts";
import type { FunctionName } from "./functions.ts";
import { faultText, programResults, success } from "./results.ts";

export interface Source {
  /** The kernel's name and place, for reports. */
  readonly name: string;
  readonly location: Location;
  readonly ptx: string;
}

export interface Assembled {
  readonly cubin: Uint8Array;
  readonly warnings: readonly string[];
}

const jitOptions = {
  infoLog: 3,
  infoLogBytes: 4,
  errorLog: 5,
  errorLogBytes: 6,
  target: 9,
  verbose: 12,
  lineInformation: 13,
} as const;

const inputPtx = 1;
const logBytes = 2 ** 16;
/** What CUjit_target adds for architectures that end in "a". */
const acceleratedBase = 0x10000;

/** Machine code for the context's GPU. */
export function assemble(context: CudaContext, source: Source): Assembled {
  context.enter();
  const assembler = new Assembler(context, source);
  try {
    return assembler.run();
  } finally {
    assembler.dispose();
  }
}

/** The number that CUjit_target has for a target that ends in "a"; the GPU's own elsewhere. */
function jitTarget(name: string): number | undefined {
  const accelerated = /^sm_(\d+)a$/.exec(name)?.[1];
  return accelerated === undefined ? undefined : acceleratedBase + Number(accelerated);
}

class Assembler {
  readonly #context: CudaContext;
  readonly #source: Source;
  readonly #memories: HostMemory[] = [];
  readonly #infoLog: HostMemory;
  readonly #errorLog: HostMemory;
  readonly #results: HostMemory;
  #state = 0;

  constructor(context: CudaContext, source: Source) {
    this.#context = context;
    this.#source = source;
    this.#infoLog = this.#host(logBytes);
    this.#errorLog = this.#host(logBytes);
    this.#results = this.#host(16);
  }

  run(): Assembled {
    const { driver } = this.#context;
    const { calls } = driver;
    const options = this.#options();
    const results = this.#results.address;
    this.#check(
      calls.cuLinkCreate(options.count, options.names, options.values, results),
      "cuLinkCreate",
    );
    this.#state = readAddress(dataView(this.#results), 0);
    const text = this.#text(this.#source.ptx);
    const name = this.#text(this.#source.name);
    const bytes = text.bytes.byteLength;
    this.#check(
      calls.cuLinkAddData(this.#state, inputPtx, text.address, bytes, name.address, 0, 0, 0),
      "cuLinkAddData",
    );
    this.#check(calls.cuLinkComplete(this.#state, results, results + 8), "cuLinkComplete");
    const view = dataView(this.#results);
    // The driver owns the result until the link is destroyed.
    const cubin = driver.viewHost(readAddress(view, 0), readAddress(view, 8)).slice();
    return { cubin, warnings: warningLines(logText(this.#infoLog)) };
  }

  dispose(): void {
    const { driver } = this.#context;
    if (this.#state !== 0) driver.calls.cuLinkDestroy(this.#state);
    for (const memory of this.#memories) driver.freeHost(memory);
  }

  #check(result: number, call: FunctionName): void {
    if (result === success) return;
    if (faultText(result) !== undefined || !programResults.has(result))
      throw this.#context.failure(result, call, `assemble kernel ${this.#source.name}`);
    const { name, location } = this.#source;
    throw refusedProgram(name, location, logText(this.#errorLog), answerText(call, result));
  }

  #options(): { readonly count: number; readonly names: number; readonly values: number } {
    const target = jitTarget(this.#context.target.name);
    const options: (readonly [number, number])[] = [
      [jitOptions.infoLog, this.#infoLog.address],
      [jitOptions.infoLogBytes, logBytes],
      [jitOptions.errorLog, this.#errorLog.address],
      [jitOptions.errorLogBytes, logBytes],
      [jitOptions.verbose, 1],
      [jitOptions.lineInformation, 1],
      ...(target === undefined ? [] : [[jitOptions.target, target] as const]),
    ];
    const names = this.#host(4 * options.length);
    const values = this.#host(8 * options.length);
    options.forEach(([name, value], position) => {
      dataView(names).setUint32(4 * position, name, true);
      writeAddress(dataView(values), 8 * position, value);
    });
    return { count: options.length, names: names.address, values: values.address };
  }

  /** Text as C has it, with a zero at the end. */
  #text(text: string): HostMemory {
    const encoded = new TextEncoder().encode(text);
    const memory = this.#host(encoded.byteLength + 1);
    memory.bytes.set(encoded);
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

/** The assembler's lines that tell of lost speed. */
export function warningLines(log: string): readonly string[] {
  return log
    .split("\n")
    .filter((line) => line.includes("(C7"))
    .map((line) => line.trim());
}
