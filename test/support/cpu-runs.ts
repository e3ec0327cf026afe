/** Runs kernels as WebAssembly on one thread, without a device, with guard words around every array. */
import { lowerKernel } from "../../src/cpu/lower/index.ts";
import { runHostCall } from "../../src/cpu/lower/host-calls.ts";
import type { CpuFeatures, CpuKernel } from "../../src/cpu/compiled-kernel.ts";
import { storeScalarArgument } from "./cpu-scalars.ts";
import type { Elements, HostValue } from "../../src/formats/dtype.ts";
import type { Kernel } from "../../src/ir/node.ts";
import { evaluateIndexSize, evaluateSize } from "../../src/ir/size.ts";
import type { DimensionValues } from "../../src/ir/size.ts";
import { simplify } from "../../src/lower/simplify.ts";

const guard = 0xa5;
const guardBytes = 64;

export interface CpuArguments {
  /** Arrays by name, as memory holds them; they are written in place. */
  readonly arrays: ReadonlyMap<string, Elements>;
  readonly scalars: ReadonlyMap<string, HostValue>;
  readonly dimensions: DimensionValues;
}

export interface CpuRun {
  readonly kernel: CpuKernel;
  /** What `run` gave. */
  readonly status: number;
  readonly printed: readonly number[];
  /** Names of arrays behind or before which something was written. */
  readonly overrun: readonly string[];
}

export const engineFeatures: CpuFeatures = { relaxed: false };

/** Lowers and runs a kernel on the arrays, which it changes. */
export function runOnCpu(kernel: Kernel, args: CpuArguments, features = engineFeatures): CpuRun {
  return runCpuKernel(lowerKernel(simplify(kernel), features), args);
}

export function runCpuKernel(compiled: CpuKernel, args: CpuArguments): CpuRun {
  let end = 1024;
  const take = (bytes: number): number => {
    const address = end + guardBytes;
    end = Math.ceil((address + bytes + 2 * guardBytes) / 64) * 64;
    return address;
  };
  // An array passed twice is one memory.
  const places = new Map<Elements, number>();
  for (const data of args.arrays.values())
    if (!places.has(data)) places.set(data, take(data.byteLength));
  const scratch = take(compiled.scratchBytes);
  const block = take(compiled.argumentBytes);
  const launched = new Map<number, number>();
  for (const field of compiled.fields)
    if (field.kind === "memory")
      launched.set(field.offset, take(evaluateSize(field.bytes, args.dimensions)));
  const stop = take(4);
  const pages = Math.ceil(end / 65_536) + 1;
  const memory = new WebAssembly.Memory({ initial: pages, maximum: 65_536, shared: true });
  const bytes = new Uint8Array(memory.buffer);
  bytes.fill(guard, 0, end);
  for (const [data, address] of places)
    bytes.set(new Uint8Array(data.buffer, data.byteOffset, data.byteLength), address);
  const view = new DataView(memory.buffer);
  view.setInt32(stop, 0, true);
  for (const field of compiled.fields) {
    const at = block + field.offset;
    if (field.kind === "array") {
      const data = args.arrays.get(field.name);
      view.setUint32(at, (data && places.get(data)) ?? 0, true);
    } else if (field.kind === "size")
      view.setInt32(at, evaluateIndexSize(field.size, args.dimensions), true);
    else if (field.kind === "stop flag") view.setUint32(at, stop, true);
    else if (field.kind === "memory") {
      const address = launched.get(field.offset) ?? 0;
      if (field.zeroed)
        bytes.fill(0, address, address + evaluateSize(field.bytes, args.dimensions));
      view.setUint32(at, address, true);
    } else storeScalarArgument(view, at, field.dtype, args.scalars.get(field.name) ?? 0);
  }
  const printed: number[] = [];
  const instance = new WebAssembly.Instance(new WebAssembly.Module(compiled.bytes), {
    env: { memory },
    host: {
      call: (number: number, list: number) => {
        const call = compiled.hostCalls[number];
        if (call !== undefined) runHostCall(call, memory.buffer, list);
      },
      message: (site: number) => printed.push(site),
    },
  });
  const { run } = instance.exports;
  if (typeof run !== "function") throw new Error("no function run");
  const blocks = compiled.grid.reduce(
    (product, { extent }) => product * evaluateSize(extent, args.dimensions),
    1,
  );
  const status: unknown = Reflect.apply(run, undefined, [block, 0, blocks, scratch]);
  const overrun: string[] = [];
  for (const [name, data] of args.arrays) {
    const address = places.get(data) ?? 0;
    const before = bytes.subarray(address - guardBytes, address);
    const behind = bytes.subarray(
      address + data.byteLength,
      address + data.byteLength + guardBytes,
    );
    if (![...before, ...behind].every((byte) => byte === guard)) overrun.push(name);
    new Uint8Array(data.buffer, data.byteOffset, data.byteLength).set(
      bytes.subarray(address, address + data.byteLength),
    );
  }
  return { kernel: compiled, status: Number(status), printed, overrun };
}
