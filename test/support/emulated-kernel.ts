/** Runs a kernel from the language on the emulator, and gives back its outputs. */
import { emulate, EmulatedMemory } from "../../src/emulator/index.ts";
import { laneConstructors, packedBytes } from "../../src/formats/dtype.ts";
import { hostArray } from "../../src/formats/hostarray.ts";
import { elementCount } from "../../src/formats/shape.ts";
import type { HostArray } from "../../src/formats/hostarray.ts";
import type { Kernel } from "../../src/ir/node.ts";
import { evaluateSize } from "../../src/ir/size.ts";
import type { Executable } from "../../src/ptx/executable.ts";
import type { TilewrightError } from "../../src/support/diagnostics.ts";
import { targets } from "../../src/targets/target.ts";
import type { Target } from "../../src/targets/target.ts";
import { lower } from "../../src/lower/pipeline.ts";

export interface EmulatedRun {
  readonly executable: Executable;
  readonly findings: readonly TilewrightError[];
  readonly results: { readonly [name: string]: HostArray };
}

const noDimensions = new Map<string, number>();

/** A kernel of arrays with known shapes. */
export function emulateKernel(
  { kernel }: { readonly kernel: Kernel },
  inputs: { readonly [name: string]: HostArray },
  { target = targets.sm_90a, seed = 1 }: { readonly target?: Target; readonly seed?: number } = {},
): EmulatedRun {
  const executable = lower(kernel, target);
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
  const { findings } = emulate(
    executable.module,
    {
      entry: executable.entry,
      blocks: [evaluateSize(executable.blocks, noDimensions), 1, 1],
      lanes: [executable.lanes, 1, 1],
      cluster: executable.cluster,
      sharedBytes: executable.sharedBytes,
      parameters: executable.parameters.map((parameter) => {
        if (parameter.kind !== "array") throw new Error(`a parameter of kind ${parameter.kind}`);
        return new Uint8Array(BigUint64Array.of(BigInt(places.get(parameter.name) ?? 0)).buffer);
      }),
    },
    memory,
    { target, seed },
  );
  const results: { [name: string]: HostArray } = {};
  for (const { name, role, value } of kernel.parameters) {
    if (role === "input" || value.type.kind !== "ref") continue;
    const { dtype } = value.type;
    const shape = value.type.shape.map(Number);
    const bytes = memory.read(places.get(name) ?? 0, packedBytes(dtype, elementCount(shape)));
    const copy = bytes.slice().buffer;
    const Lanes = laneConstructors[dtype.name];
    const data = dtype.bits === 4 ? new Uint8Array(copy) : new Lanes(copy, 0, elementCount(shape));
    results[name] = hostArray(dtype, shape, data as never);
  }
  return { executable, findings, results };
}
