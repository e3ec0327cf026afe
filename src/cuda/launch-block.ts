/**
 * A launch as the driver reads it: one piece of host memory with the configuration, its attributes, and
 * the parameters. It is laid out once for a kernel; a launch then writes its numbers and makes one call.
 *
 *   0      CUlaunchConfig: grid, block, shared memory, stream, attributes
 *   64     CUlaunchAttribute, twice at most: cluster, programmatic dependent launch, which is last, since not every launch of a kernel may
 *   256    addresses of the parameters, 8 bytes each
 *   …      the parameters' values, tensor maps at multiples of 64
 */
import type { DType, HostValue } from "../formats/dtype.ts";
import { valueBytes } from "../formats/values.ts";
import { evaluateIndexSize, evaluateSize } from "../ir/size.ts";
import type { DimensionValues, Size } from "../ir/size.ts";
import type { LaunchParameter } from "../ptx/executable.ts";
import type { CudaContext } from "./context.ts";
import { dataView, writeAddress } from "./driver.ts";
import type { HostMemory } from "./driver.ts";
import { hugeGrid } from "./errors.ts";
import { launchFailure } from "./program.ts";
import type { Program } from "./program.ts";
import { success } from "./results.ts";
import { tensorMapBytes } from "./tensor-map.ts";
import type { TensorMapEncoder } from "./tensor-map.ts";

const attributeCountOffset = 48;
const attributesOffset = 64;
const attributeBytes = 72;
/** Where a launch keeps the addresses of its parameters. */
export const pointersOffset = 256;
const clusterAttribute = 4;
const programmaticLaunchAttribute = 6;
const gridLimit = 2 ** 31;

/** The numbers of one launch. */
export interface LaunchNumbers {
  /** Addresses of arrays and scratch by name. */
  readonly addresses: ReadonlyMap<string, number>;
  readonly scalars: ReadonlyMap<string, HostValue>;
  readonly dimensions: DimensionValues;
  /** The address of the messages' ring; 0 where there is none. */
  readonly ring: number;
  /** Whether the launch before it in the plan of its operation is issued right before it. */
  readonly follows: boolean;
}

export class LaunchBlock {
  readonly #context: CudaContext;
  readonly #program: Program;
  readonly #memory: HostMemory;
  readonly #view: DataView;
  readonly #offsets: readonly number[];
  readonly #attributes: number;
  #blocks = 0;

  constructor(context: CudaContext, program: Program) {
    const { offsets, bytes } = layOut(program.plan.parameters);
    this.#context = context;
    this.#program = program;
    this.#offsets = offsets;
    this.#memory = context.driver.allocateHost(bytes);
    this.#view = dataView(this.#memory);
    const { threadsPerBlock: threads, cluster, sharedBytes } = program.plan;
    const form = { blocks: [0, 1, 1], threads: [threads, 1, 1], cluster, sharedBytes } as const;
    const dependentLaunch = program.plan.dependentLaunch !== false;
    writeConfiguration(this.#view, this.#memory.address, { ...form, dependentLaunch });
    this.#attributes = this.#view.getUint32(attributeCountOffset, true);
    offsets.forEach((offset, position) => {
      writeAddress(this.#view, pointersOffset + 8 * position, this.#memory.address + offset);
    });
  }

  /** Writes everything that differs between launches. */
  fill(numbers: LaunchNumbers, maps: TensorMapEncoder): void {
    const { plan, location } = this.#program;
    this.#blocks = evaluateSize(plan.blocks, numbers.dimensions);
    if (this.#blocks >= gridLimit) throw hugeGrid(plan.name, location, this.#blocks);
    this.#view.setUint32(0, this.#blocks, true);
    if (this.#blocks === 0) return;
    const left = plan.dependentLaunch === "in a plan" && !numbers.follows ? 1 : 0;
    this.#view.setUint32(attributeCountOffset, this.#attributes - left, true);
    plan.parameters.forEach((parameter, position) => {
      this.#write(parameter, this.#offsets[position] ?? 0, numbers, maps);
    });
  }

  /** Puts the launch on a stream, the main one unless given. An empty grid is no launch. */
  issue(stream = this.#context.stream): void {
    if (this.#blocks === 0) return;
    writeAddress(this.#view, 32, stream);
    const { address } = this.#memory;
    const result = this.#context.driver.calls.cuLaunchKernelEx(
      address,
      this.#program.function,
      address + pointersOffset,
      0,
    );
    if (result !== success)
      throw launchFailure(this.#context, this.#program, result, "cuLaunchKernelEx");
    this.#context.noteLaunch(this.#program.plan.name);
  }

  dispose(): void {
    this.#context.driver.freeHost(this.#memory);
  }

  #write(
    parameter: LaunchParameter,
    offset: number,
    { addresses, scalars, dimensions, ring }: LaunchNumbers,
    maps: TensorMapEncoder,
  ): void {
    switch (parameter.kind) {
      case "array":
      case "scratch":
        writeAddress(this.#view, offset, known(addresses, parameter.name));
        break;
      case "scalar":
        this.#writeScalar(offset, parameter.dtype, known(scalars, parameter.name));
        break;
      case "size":
        this.#writeSize(offset, parameter, dimensions);
        break;
      case "tensorMap": {
        const { map } = parameter;
        const { name } = this.#program.plan;
        const target = this.#memory.address + offset;
        maps.encode(name, map, known(addresses, map.array), dimensions, target);
        break;
      }
      case "messages":
        writeAddress(this.#view, offset, ring);
        break;
    }
  }

  #writeScalar(offset: number, dtype: DType, value: HostValue): void {
    this.#memory.bytes.set(valueBytes(dtype, value), offset);
  }

  #writeSize(
    offset: number,
    { size, bits }: { readonly size: Size; readonly bits: 32 | 64 },
    dimensions: DimensionValues,
  ): void {
    if (bits === 64) writeAddress(this.#view, offset, evaluateSize(size, dimensions));
    else this.#view.setUint32(offset, evaluateIndexSize(size, dimensions), true);
  }
}

/** The form of a launch, as the driver is told of it. */
export interface LaunchConfiguration {
  readonly blocks: readonly [number, number, number];
  readonly threads: readonly [number, number, number];
  readonly sharedBytes: number;
  /** Blocks of a cluster, along x. */
  readonly cluster: number;
  /** Whether it may start before the grid before it has ended. */
  readonly dependentLaunch?: boolean;
}

/** Writes a CUlaunchConfig and its attributes to memory at an address; the stream comes with the launch. */
export function writeConfiguration(
  view: DataView,
  address: number,
  { blocks, threads, sharedBytes, cluster, dependentLaunch = false }: LaunchConfiguration,
): void {
  const attributes: (readonly [number, number])[] = [];
  if (cluster > 1) attributes.push([clusterAttribute, cluster]);
  if (dependentLaunch) attributes.push([programmaticLaunchAttribute, 1]);
  [...blocks, ...threads, sharedBytes].forEach((value, position) => {
    view.setUint32(4 * position, value, true);
  });
  writeAddress(view, 40, attributes.length === 0 ? 0 : address + attributesOffset);
  view.setUint32(attributeCountOffset, attributes.length, true);
  attributes.forEach(([identity, value], position) => {
    const offset = attributesOffset + attributeBytes * position;
    view.setUint32(offset, identity, true);
    view.setUint32(offset + 8, value, true);
    if (identity !== clusterAttribute) return;
    view.setUint32(offset + 12, 1, true);
    view.setUint32(offset + 16, 1, true);
  });
}

function known<T>(values: ReadonlyMap<string, T>, name: string): T {
  const value = values.get(name);
  if (value === undefined) throw new Error(`the launch has nothing called ${name}`);
  return value;
}

/** Where each parameter's value lies, and the bytes of the whole block. */
function layOut(parameters: readonly LaunchParameter[]): {
  readonly offsets: readonly number[];
  readonly bytes: number;
} {
  let end = pointersOffset + 8 * parameters.length;
  const offsets = parameters.map(({ kind }) => {
    const [alignment, bytes] = kind === "tensorMap" ? [64, tensorMapBytes] : [8, 8];
    const offset = Math.ceil(end / alignment) * alignment;
    end = offset + bytes;
    return offset;
  });
  return { offsets, bytes: end };
}
