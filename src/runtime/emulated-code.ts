/** PTX of other compilers on the emulator's device: findings fail a launch, as those of kernels do. */
import type { Allocation, Repeatable } from "../device/backend.ts";
import type { CodeBackend, CodeLaunch, LoadedCode } from "../device/foreign-code.ts";
import type { WorkQueue } from "../device/work-queue.ts";
import { EmulatedModule } from "../emulator/api/module.ts";
import { emulateWith } from "../emulator/index.ts";
import type { EmulatedMemory, WorkerPool } from "../emulator/index.ts";
import { parsePtx } from "../ptx/parser/index.ts";
import { encodeTensorMap } from "../emulator/tensor-map.ts";
import type { TensorMap } from "../emulator/tensor-map.ts";
import type { EmulatorOptions } from "../emulator/types.ts";
import type { DType } from "../formats/dtype.ts";
import { TilewrightError } from "../support/diagnostics.ts";
import type { Location } from "../support/location.ts";
import { combineFindings } from "./findings.ts";

/** Memory of the emulator's device. */
export interface EmulatorAllocation extends Allocation {
  readonly address: number;
  readonly dtype: DType;
  readonly shape: readonly number[];
}

/** What it runs on. */
export interface EmulatedCodeHost {
  readonly memory: EmulatedMemory;
  readonly pool: WorkerPool;
  readonly queue: WorkQueue;
  readonly options: Pick<EmulatorOptions, "target" | "seed" | "checks">;
  readonly onFindings: ((findings: readonly TilewrightError[]) => void) | undefined;
}

class EmulatedCode implements LoadedCode {
  readonly module: EmulatedModule;

  constructor(text: string, file: string) {
    this.module = new EmulatedModule(parsePtx(text, file));
  }

  get entries(): LoadedCode["entries"] {
    return this.module.entries;
  }

  unload(): void {
    // The garbage collector takes modules back.
  }
}

export class EmulatedCodeBackend implements CodeBackend<EmulatorAllocation> {
  readonly #host: EmulatedCodeHost;

  constructor(host: EmulatedCodeHost) {
    this.#host = host;
  }

  load(code: string | Uint8Array, file: string, location: Location): LoadedCode {
    if (typeof code === "string") return new EmulatedCode(code, file);
    throw new TilewrightError({
      code: "TW4019",
      message: "the emulator runs PTX, and this is machine code",
      location,
      expected: "PTX as text",
      found: `${code.byteLength} bytes`,
      remedy: "give the PTX that the cubin was assembled from",
    });
  }

  addressOf({ address }: EmulatorAllocation): number {
    return address;
  }

  encodeMap(map: TensorMap): Uint8Array {
    return encodeTensorMap(map);
  }

  bind(launch: CodeLaunch<EmulatorAllocation>): Repeatable {
    return {
      launch: () => {
        this.#host.queue.launch(() => this.#execute(launch));
      },
      dispose: () => undefined,
    };
  }

  async #execute(launch: CodeLaunch<EmulatorAllocation>): Promise<void> {
    const { code, limits, location, arrays, ...form } = launch;
    if (!(code instanceof EmulatedCode)) throw new Error("the code was loaded by another back end");
    const { memory, pool, options, onFindings } = this.#host;
    const names = new Map(
      arrays.map(({ address, dtype, shape }) => [address, { name: "an array", dtype, shape }]),
    );
    try {
      const { findings } = await emulateWith(
        pool,
        code.module.module,
        { ...form, names: { arrays: names } },
        memory,
        { ...options, limits },
      );
      const [first, ...others] = findings;
      if (first === undefined) return;
      onFindings?.(findings);
      throw combineFindings(first, others);
    } catch (error) {
      throw error instanceof TilewrightError && error.position === undefined
        ? error.located(location)
        : error;
    }
  }
}
