/** Runs programs on a GPU through the driver: modules, buffers, tensor maps, launches. */
import { CudaContext } from "../../../src/cuda/context.ts";
import { dataView, writeAddress } from "../../../src/cuda/driver.ts";
import type { Driver, HostMemory } from "../../../src/cuda/driver.ts";
import { loadModule } from "../../../src/cuda/module.ts";
import { loadDriver } from "../../../src/cuda/native.ts";
import { encodeTensorMap, tensorMapTypes } from "../../../src/emulator/tensor-map.ts";
import { unknownLocation } from "../../../src/support/location.ts";
import { moduleText } from "../program.ts";
import type { Program, ProgramMap } from "../program.ts";

const attributesOffset = 64;
const pointersOffset = 256;
const valuesOffset = 512;
const mapBytes = 128;
const clusterAttribute = 4;
const sharedBytesAttribute = 8;
const swizzles = { 0: 0, 32: 1, 64: 2, 128: 3 } as const;
const fills = { zero: 0, nan: 1 } as const;

export function openDriver(): Promise<Driver> {
  const { platform, arch } = process;
  return loadDriver({ platform, architecture: arch });
}

export async function openDevice(): Promise<CudaContext> {
  const context = new CudaContext(await openDriver(), 0);
  context.enter();
  return context;
}

/** The entries of a module. */
export class DeviceModule {
  readonly #context: CudaContext;
  readonly #driver: Driver;
  readonly #module: number;

  constructor(context: CudaContext, programs: readonly Program[], name: string) {
    this.#context = context;
    this.#driver = context.driver;
    const ptx = moduleText(programs);
    this.#module = loadModule(context, { name, location: unknownLocation, code: ptx }).handle;
  }

  /** What the output holds after the program has run. */
  run(program: Program): Uint8Array {
    const entry = this.#entry(program);
    const input = this.#buffer(program.input);
    const output = this.#buffer(program.output);
    const host = this.#driver.allocateHost(program.output.length);
    const launch = this.#launchBlock(program, input, output);
    try {
      const { calls } = this.#driver;
      const { address } = launch;
      const result = calls.cuLaunchKernelEx(address, entry, address + pointersOffset, 0);
      this.#context.check(result, "cuLaunchKernelEx", `launch ${program.name}`);
      this.#context.noteLaunch(program.name);
      this.#synchronize(program);
      const { length } = program.output;
      calls.cuMemcpyDtoHAsync(host.address, output, length, this.#context.stream);
      this.#synchronize(program);
      return host.bytes.slice(0, length);
    } finally {
      this.#driver.calls.cuMemFree(input);
      this.#driver.calls.cuMemFree(output);
      this.#driver.freeHost(host);
      this.#driver.freeHost(launch);
    }
  }

  #synchronize(program: Program): void {
    const result = this.#driver.calls.cuCtxSynchronize();
    this.#context.check(result, "cuCtxSynchronize", `wait for ${program.name}`);
  }

  #entry(program: Program): number {
    const text = new TextEncoder().encode(`${program.name}\0`);
    const name = this.#driver.allocateHost(text.length);
    name.bytes.set(text);
    const doing = `find ${program.name}`;
    const entry = this.#context.make("cuModuleGetFunction", doing, this.#module, name.address);
    this.#driver.freeHost(name);
    if (program.sharedBytes > 0)
      this.#driver.calls.cuFuncSetAttribute(entry, sharedBytesAttribute, program.sharedBytes);
    return entry;
  }

  #buffer(bytes: Uint8Array): number {
    const address = this.#context.make("cuMemAlloc", "allocate a buffer", bytes.length);
    const host = this.#driver.allocateHost(bytes.length);
    host.bytes.set(bytes);
    const { calls } = this.#driver;
    calls.cuMemcpyHtoDAsync(address, host.address, bytes.length, this.#context.stream);
    calls.cuCtxSynchronize();
    this.#driver.freeHost(host);
    return address;
  }

  /** The launch as the driver reads it: configuration, attributes, parameters. */
  #launchBlock(program: Program, input: number, output: number): HostMemory {
    const block = this.#driver.allocateHost(valuesOffset + 128 + mapBytes * program.maps.length);
    const view = dataView(block);
    const { blocks, threads, cluster, sharedBytes } = program;
    [blocks, 1, 1, threads, 1, 1, sharedBytes].forEach((value, at) =>
      view.setUint32(4 * at, value, true),
    );
    writeAddress(view, 32, this.#context.stream);
    if (cluster > 1) {
      writeAddress(view, 40, block.address + attributesOffset);
      view.setUint32(48, 1, true);
      view.setUint32(attributesOffset, clusterAttribute, true);
      [cluster, 1, 1].forEach((value, at) =>
        view.setUint32(attributesOffset + 8 + 4 * at, value, true),
      );
    }
    writeAddress(view, valuesOffset, input);
    writeAddress(view, valuesOffset + 8, output);
    const places = [valuesOffset, valuesOffset + 8];
    program.maps.forEach((map, index) => {
      const at = valuesOffset + 128 + mapBytes * index;
      this.#encodeMap(map, map.buffer === "input" ? input : output, block, at);
      places.push(at);
    });
    places.forEach((place, at) =>
      writeAddress(view, pointersOffset + 8 * at, block.address + place),
    );
    return block;
  }

  /** Maps as the emulator encodes them; of tiled ones the driver must say the same. */
  #encodeMap({ map, offset }: ProgramMap, buffer: number, block: HostMemory, at: number): void {
    const bytes = encodeTensorMap({ ...map, address: buffer + offset });
    block.bytes.set(bytes, at);
    if (map.corners !== undefined) return;
    this.#encodeTiled(map, buffer + offset, block.address + at);
    if (bytes.some((byte, index) => block.bytes[at + index] !== byte))
      throw new Error(`the driver encodes a map of ${map.type} differently`);
  }

  #encodeTiled(map: ProgramMap["map"], array: number, target: number): void {
    const memory = this.#driver.allocateHost(160);
    const view = dataView(memory);
    map.extents.forEach((extent, axis) => writeAddress(view, 8 * axis, extent));
    map.strides.forEach((stride, axis) => writeAddress(view, 40 + 8 * axis, stride));
    map.box.forEach((side, axis) => view.setUint32(80 + 4 * axis, side, true));
    map.extents.forEach((_, axis) =>
      view.setUint32(100 + 4 * axis, map.elementStrides?.[axis] ?? 1, true),
    );
    const { address } = memory;
    const result = this.#driver.calls.cuTensorMapEncodeTiled(
      target,
      tensorMapTypes.indexOf(map.type),
      map.extents.length,
      array,
      address,
      address + 40,
      address + 80,
      address + 100,
      0,
      swizzles[map.swizzle],
      0,
      fills[map.fill],
    );
    this.#driver.freeHost(memory);
    this.#context.check(result, "cuTensorMapEncodeTiled", `encode a map of ${map.type}`);
  }
}
