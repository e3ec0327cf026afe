/**
 * Runs a kernel from the language on the emulator, and gives back its outputs. Nothing stops the launch when an assertion
 * fails, as nothing would on a GPU.
 */
import { emulate, EmulatedMemory } from "../../src/emulator/index.ts";
import type { EmulatorOptions } from "../../src/emulator/types.ts";
import { elementConstructors, packedBytes } from "../../src/formats/dtype.ts";
import { hostArray } from "../../src/formats/hostarray.ts";
import { elementCount } from "../../src/formats/shape.ts";
import type { HostArray } from "../../src/formats/hostarray.ts";
import type { Kernel } from "../../src/ir/node.ts";
import { evaluateSize } from "../../src/ir/size.ts";
import type { Executable, LaunchParameter } from "../../src/ptx/executable.ts";
import { readMessages, ringHeader } from "../../src/ptx/print-ring.ts";
import type { PtxModule } from "../../src/ptx/module.ts";
import type { TilewrightError } from "../../src/support/diagnostics.ts";
import { targets } from "../../src/targets/target.ts";
import type { Target } from "../../src/targets/target.ts";
import { lower } from "../../src/lower/stages.ts";
import type { LoweringOptions } from "../../src/lower/stages.ts";

export interface EmulatedRun {
  readonly executable: Executable;
  readonly findings: readonly TilewrightError[];
  readonly results: { readonly [name: string]: HostArray };
  /** The first assertion that failed. */
  readonly failure: TilewrightError | undefined;
}

const ringWords = 1024;

export interface EmulationOptions {
  readonly target?: Target;
  readonly seed?: number;
  /** What runs in place of what was emitted. */
  readonly change?: (module: PtxModule) => PtxModule;
  readonly limits?: EmulatorOptions["limits"];
  readonly without?: LoweringOptions["without"];
}

const noDimensions = new Map<string, number>();

/** A kernel of arrays with known shapes. */
export function emulateKernel(
  { kernel }: { readonly kernel: Kernel },
  inputs: { readonly [name: string]: HostArray },
  {
    target = targets.sm_90a,
    seed = 1,
    change = (module) => module,
    limits,
    without,
  }: EmulationOptions = {},
): EmulatedRun {
  const executable = lower(kernel, target, { ...(without && { without }) });
  const memory = new EmulatedMemory();
  const places = new Map<string, number>();
  for (const { name, value } of kernel.parameters) {
    if (value.type.kind !== "ref") throw new Error(`${name} is no array`);
    const { dtype, shape } = value.type;
    const bytes = packedBytes(dtype, elementCount(shape.map(Number)));
    const place = memory.allocate(bytes, name);
    const given = inputs[name]?.data;
    if (given !== undefined)
      memory.write(place, new Uint8Array(given.buffer, given.byteOffset, given.byteLength));
    places.set(name, place);
  }
  let ring: number | undefined;
  const addressOf = (parameter: LaunchParameter): number => {
    switch (parameter.kind) {
      case "array":
        return places.get(parameter.name) ?? 0;
      case "scratch": {
        const bytes = evaluateSize(parameter.bytes, noDimensions);
        const place = memory.allocate(bytes, parameter.name);
        if (parameter.zeroed) memory.write(place, new Uint8Array(bytes));
        return place;
      }
      case "messages": {
        ring = memory.allocate(4 * ringWords, "messages");
        const words = new Uint32Array(ringWords);
        words.set(ringHeader(ringWords));
        memory.write(ring, new Uint8Array(words.buffer));
        return ring;
      }
      case "scalar":
      case "size":
      case "tensorMap":
        throw new Error(`a parameter of kind ${parameter.kind}`);
    }
  };
  const { findings } = emulate(
    change(executable.module),
    {
      entry: executable.entry,
      blocks: [evaluateSize(executable.blocks, noDimensions), 1, 1],
      threads: [executable.threadsPerBlock, 1, 1],
      cluster: executable.cluster,
      sharedBytes: executable.sharedBytes,
      parameters: executable.parameters.map(
        (parameter) => new Uint8Array(BigUint64Array.of(BigInt(addressOf(parameter))).buffer),
      ),
    },
    memory,
    { target, seed, limits },
  );
  const results: { [name: string]: HostArray } = {};
  for (const { name, role, value } of kernel.parameters) {
    if (role === "input" || value.type.kind !== "ref") continue;
    const { dtype } = value.type;
    const shape = value.type.shape.map(Number);
    const bytes = memory.read(places.get(name) ?? 0, packedBytes(dtype, elementCount(shape)));
    const copy = bytes.slice().buffer;
    const Elements = elementConstructors[dtype.name];
    const data =
      dtype.bits === 4 ? new Uint8Array(copy) : new Elements(copy, 0, elementCount(shape));
    results[name] = hostArray(dtype, shape, data as never);
  }
  const told = ring && new Uint32Array(memory.read(ring, 4 * ringWords).slice().buffer);
  const { failure } = told ? readMessages(told, executable, noDimensions) : { failure: undefined };
  return { executable, findings, results, failure };
}
