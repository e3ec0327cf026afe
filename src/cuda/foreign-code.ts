/**
 * PTX and cubins of other compilers on a GPU. The driver assembles or loads them; what each entry takes is read from
 * the text, or from the cubin's own tables, so that parameters are checked as the emulator checks them.
 *
 *   load     PTX ──parse──▶ entries, ──driver──▶ module        cubin ──tables──▶ entries, ──driver──▶ module
 *   bind     parameters' bytes and the configuration in one piece of host memory, as for kernels (launch-block.ts)
 */
import type { Allocation, Repeatable } from "../device/backend.ts";
import type { CodeBackend, CodeLaunch, LoadedCode } from "../device/foreign-code.ts";
import { EmulatedModule } from "../emulator/api/module.ts";
import type { Entry } from "../emulator/api/module.ts";
import { parsePtx } from "../ptx/parser/index.ts";
import type { TensorMap } from "../emulator/tensor-map.ts";
import { runEach } from "../support/run-all.ts";
import { TilewrightError } from "../support/diagnostics.ts";
import type { Location } from "../support/location.ts";
import { CudaBound } from "./bound-launch.ts";
import type { BoundHost } from "./bound-launch.ts";
import { cubinEntries } from "./cubin-entries.ts";
import { dataView, writeAddress } from "./driver.ts";
import { answerText, misfit } from "./errors.ts";
import { allowances } from "./function-attributes.ts";
import { pointersOffset, writeConfiguration } from "./launch-block.ts";
import { loadModule } from "./module.ts";
import { findFunction } from "./program.ts";
import { resourceResults, success } from "./results.ts";
import type { MemoryRecord } from "./streams.ts";
import type { TensorMapEncoder } from "./tensor-map.ts";

/** Memory of the GPU. */
export interface CudaAllocation extends Allocation {
  readonly address: number;
  /** Which streams have used it; views share that of their array. */
  readonly record: MemoryRecord;
}

/** Where parameters may begin, whatever their type; a tensor map wants it. */
const parameterAlignment = 64;

class CudaModule implements LoadedCode {
  readonly entries: readonly Entry[];
  readonly location: Location;
  readonly handle: number;
  readonly #unload: (module: CudaModule) => void;

  constructor(
    entries: readonly Entry[],
    location: Location,
    handle: number,
    unload: (module: CudaModule) => void,
  ) {
    this.entries = entries;
    this.location = location;
    this.handle = handle;
    this.#unload = unload;
  }

  unload(): void {
    this.#unload(this);
  }
}

export class CudaCode implements CodeBackend<CudaAllocation> {
  readonly #host: BoundHost;
  readonly #maps: TensorMapEncoder;
  readonly #later: (unload: () => void) => void;
  readonly #modules = new Set<CudaModule>();

  /** `later` does something when everything issued so far has ended. */
  constructor(host: BoundHost, maps: TensorMapEncoder, later: (unload: () => void) => void) {
    this.#host = host;
    this.#maps = maps;
    this.#later = later;
  }

  load(code: string | Uint8Array, file: string, location: Location): LoadedCode {
    const entries = entriesOf(code, file, location);
    const { handle } = loadModule(this.#host.context, { name: file, location, code });
    const module = new CudaModule(entries, location, handle, (each) => {
      this.#later(() => {
        this.#unload(each);
      });
    });
    this.#modules.add(module);
    return module;
  }

  addressOf({ address }: CudaAllocation): number {
    return address;
  }

  encodeMap(map: TensorMap): Uint8Array {
    this.#host.context.enter();
    return this.#maps.encodeMap(map);
  }

  bind(launch: CodeLaunch<CudaAllocation>): Repeatable {
    const { context } = this.#host;
    context.enter();
    const { code, entry, location } = launch;
    if (!(code instanceof CudaModule)) throw new Error("the code was loaded by another back end");
    const handle = findFunction(context, entry, code.handle);
    this.#allow(launch, handle);
    const { offsets, bytes } = layOut(launch.parameters);
    const memory = context.driver.allocateHost(bytes);
    const view = dataView(memory);
    writeConfiguration(view, memory.address, launch);
    launch.parameters.forEach((value, position) => {
      const offset = offsets[position] ?? 0;
      memory.bytes.set(value, offset);
      writeAddress(view, pointersOffset + 8 * position, memory.address + offset);
    });
    const issue = (stream: number): void => {
      writeAddress(view, 32, stream);
      const pointers = memory.address + pointersOffset;
      const { calls } = context.driver;
      const result = calls.cuLaunchKernelEx(memory.address, handle, pointers, 0);
      if (result !== success) throw this.#failure(launch, location, result, "cuLaunchKernelEx");
      context.noteLaunch(entry);
    };
    return new CudaBound(this.#host, {
      name: entry,
      issue,
      scratch: [],
      ring: undefined,
      uses: { writes: launch.arrays.map(({ record }) => record) },
      release: () => {
        context.driver.freeHost(memory);
      },
    });
  }

  dispose(): void {
    runEach(
      [...this.#modules].map((module) => () => {
        this.#unload(module);
      }),
    );
  }

  #unload(module: CudaModule): void {
    if (this.#modules.delete(module)) this.#host.context.driver.calls.cuModuleUnload(module.handle);
  }

  /** Asks for what a function does not have by default. */
  #allow(launch: CodeLaunch<CudaAllocation>, handle: number): void {
    const { calls } = this.#host.context.driver;
    for (const [attribute, value] of allowances(launch)) {
      const result = calls.cuFuncSetAttribute(handle, attribute, value);
      if (result !== success)
        throw this.#failure(launch, launch.location, result, "cuFuncSetAttribute");
    }
  }

  #failure(
    { entry, blocks, threads, cluster, sharedBytes }: CodeLaunch<CudaAllocation>,
    location: Location,
    result: number,
    call: "cuFuncSetAttribute" | "cuLaunchKernelEx",
  ): Error {
    if (!resourceResults.has(result))
      return this.#host.context.failure(result, call, `launch ${entry}`);
    const needs = [
      `${blocks.join(" × ")} blocks of ${threads.join(" × ")} threads`,
      `${sharedBytes} bytes of dynamic shared memory`,
      ...(cluster > 1 ? [`clusters of ${cluster} blocks`] : []),
    ];
    return misfit(entry, location, needs.join(", "), answerText(call, result));
  }
}

function entriesOf(code: string | Uint8Array, file: string, location: Location): readonly Entry[] {
  if (typeof code === "string") return new EmulatedModule(parsePtx(code, file)).entries;
  const entries = cubinEntries(code);
  if (entries !== undefined) return entries;
  throw new TilewrightError({
    code: "TW4032",
    message: "these bytes are no cubin",
    location,
    expected: "an ELF file, as ptxas and nvcc -cubin write it, or PTX as text",
    found: `${code.byteLength} bytes`,
  });
}

function layOut(parameters: readonly Uint8Array[]): {
  readonly offsets: readonly number[];
  readonly bytes: number;
} {
  let end = pointersOffset + 8 * parameters.length;
  const offsets = parameters.map(({ byteLength }) => {
    const offset = Math.ceil(end / parameterAlignment) * parameterAlignment;
    end = offset + byteLength;
    return offset;
  });
  return { offsets, bytes: end };
}
