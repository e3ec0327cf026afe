/** Launches, recordings and tensor maps of the fake driver. */
import { readAddress } from "../../../src/cuda/driver.ts";
import type { DriverCalls } from "../../../src/cuda/functions.ts";
import { invalidValue, success } from "../../../src/cuda/results.ts";
import type { FakeDriver, FakeKernel, FakeLaunch } from "./driver.ts";
import type { FakeStream } from "./stream.ts";

const invalidClusterSize = 912;

type LaunchFunctions = Pick<
  DriverCalls,
  | "cuTensorMapEncodeTiled"
  | "cuTensorMapEncodeIm2col"
  | "cuLaunchKernelEx"
  | "cuGraphInstantiate"
  | "cuGraphLaunch"
  | "cuGraphExecDestroy"
  | "cuGraphDestroy"
>;

type Give = (driver: FakeDriver, address: number, value: number) => number;

/** A tensor map of the fake driver, as `readTensorMap` gives it back. */
export interface FakeTensorMap {
  readonly dataType: number;
  readonly address: number;
  readonly extents: readonly number[];
  readonly strides: readonly number[];
  readonly box: readonly number[];
  readonly swizzle: number;
  readonly fill: number;
}

function viewAt(driver: FakeDriver, address: number, bytes: number): DataView {
  const view = driver.memory.view("host", address, bytes);
  return new DataView(view.buffer, view.byteOffset, view.byteLength);
}

function list(count: number, read: (index: number) => number): readonly number[] {
  return Array.from({ length: count }, (_, index) => read(index));
}

/** What the fake encoder wrote: rank, then the fields in the order of `FakeTensorMap`. */
export function readTensorMap(view: DataView): FakeTensorMap {
  const rank = view.getUint8(0);
  return {
    dataType: view.getUint8(1),
    swizzle: view.getUint8(2),
    fill: view.getUint8(3),
    address: readAddress(view, 8),
    extents: list(rank, (axis) => readAddress(view, 16 + 8 * axis)),
    strides: list(rank - 1, (axis) => readAddress(view, 56 + 8 * axis)),
    box: list(rank, (axis) => view.getUint32(88 + 4 * axis, true)),
  };
}

function parametersOf(
  driver: FakeDriver,
  kernel: FakeKernel,
  pointers: number,
): readonly DataView[] {
  const view = viewAt(driver, pointers, 8 * kernel.sizes.length);
  return kernel.sizes.map((bytes, index) => {
    const source = driver.memory.view("host", readAddress(view, 8 * index), bytes);
    return new DataView(source.slice().buffer);
  });
}

interface Configuration extends Omit<FakeLaunch, "parameters" | "memory"> {
  readonly stream: number;
  /** Whether clusters fill the grid along every axis. */
  readonly fits: boolean;
}

function configurationAt(driver: FakeDriver, address: number): Configuration {
  const view = viewAt(driver, address, 56);
  const words = (from: DataView, start: number): readonly number[] =>
    [0, 4, 8].map((offset) => from.getUint32(start + offset, true));
  const attributes = new Map<number, readonly number[]>();
  const count = view.getUint32(48, true);
  for (let index = 0; index < count; index += 1) {
    const attribute = viewAt(driver, readAddress(view, 40) + 72 * index, 72);
    attributes.set(attribute.getUint32(0, true), words(attribute, 8));
  }
  const cluster = attributes.get(4) ?? [1, 1, 1];
  return {
    grid: view.getUint32(0, true),
    lanes: view.getUint32(12, true),
    sharedBytes: view.getUint32(24, true),
    stream: readAddress(view, 32),
    cluster: cluster[0] ?? 1,
    programmaticLaunch: attributes.get(6)?.[0] === 1,
    fits: words(view, 0).every((extent, axis) => extent % (cluster[axis] ?? 1) === 0),
  };
}

export function launchFunctions(driver: FakeDriver, give: Give): LaunchFunctions {
  return {
    cuTensorMapEncodeTiled: (...values) => {
      const [target, dataType, rank, address, extents, strides, box] = values;
      const [swizzle = 0, , fill = 0] = values.slice(9);
      if (target % 64 !== 0 || rank < 1 || rank > 5) return invalidValue;
      const map = viewAt(driver, target, 128);
      const [from, along, across] = [
        viewAt(driver, extents, 8 * rank),
        viewAt(driver, strides, 8 * (rank - 1)),
        viewAt(driver, box, 4 * rank),
      ];
      [rank, dataType, swizzle, fill].forEach((value, index) => {
        map.setUint8(index, value);
      });
      map.setBigUint64(8, BigInt(address), true);
      for (let axis = 0; axis < rank; axis += 1) {
        if (across.getUint32(4 * axis, true) > 256) return invalidValue;
        map.setBigUint64(16 + 8 * axis, from.getBigUint64(8 * axis, true), true);
        if (axis > 0)
          map.setBigUint64(48 + 8 * axis, along.getBigUint64(8 * (axis - 1), true), true);
        map.setUint32(88 + 4 * axis, across.getUint32(4 * axis, true), true);
      }
      return success;
    },
    cuTensorMapEncodeIm2col: (target) => {
      viewAt(driver, target, 128).setUint8(4, 1);
      return success;
    },
    cuLaunchKernelEx: (config, handle, pointers) => {
      const { stream, fits, ...configuration } = configurationAt(driver, config);
      if (configuration.grid === 0 || !fits) return invalidValue;
      const most = driver.nonPortable.has(handle) ? 16 : 8;
      if (configuration.cluster > most) return invalidClusterSize;
      const entries = driver.find<readonly string[]>("module", Math.floor(handle / 2 ** 16)) ?? [];
      const kernel = driver.kernels[entries[handle % 2 ** 16] ?? ""];
      if (kernel === undefined) return success;
      const parameters = parametersOf(driver, kernel, pointers);
      driver.find<FakeStream>("stream", stream)?.issue(() => {
        kernel.run({ ...configuration, parameters, memory: driver.memory });
      });
      return success;
    },
    cuGraphInstantiate: (address, graph) => {
      const works = driver.find<readonly (() => void)[]>("graph", graph);
      return give(driver, address, driver.add("executable", works));
    },
    cuGraphLaunch: (executable, stream) => {
      const works = driver.find<readonly (() => void)[]>("executable", executable) ?? [];
      for (const work of works) driver.find<FakeStream>("stream", stream)?.issue(work);
      return success;
    },
    cuGraphExecDestroy: (executable) => {
      driver.remove("executable", executable);
      return success;
    },
    cuGraphDestroy: (graph) => {
      driver.remove("graph", graph);
      return success;
    },
  };
}
