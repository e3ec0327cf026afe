/** The functions of the fake driver, an entry for each of `../functions.ts`. */
import { dataView } from "../../../src/cuda/driver.ts";
import type { DriverCalls } from "../../../src/cuda/functions.ts";
import {
  invalidValue,
  noDevice,
  notReady,
  outOfMemory,
  success,
} from "../../../src/cuda/results.ts";
import type { FakeDriver, FakeEvent } from "./driver.ts";
import { conditionFunctions } from "./conditions.ts";
import { launchFunctions } from "./launch.ts";
import { moduleFunctions } from "./modules.ts";
import { FakeStream } from "./stream.ts";

/** Writes a handle, an address or a size where the caller wants it. */
export function give(driver: FakeDriver, address: number, value: number): number {
  const bytes = driver.memory.view("host", address, 8);
  dataView({ address, bytes }).setBigUint64(0, BigInt(value), true);
  return success;
}

function give32(driver: FakeDriver, address: number, value: number): number {
  const bytes = driver.memory.view("host", address, 4);
  dataView({ address, bytes }).setInt32(0, value, true);
  return success;
}

type DeviceFunctions = Pick<
  DriverCalls,
  | "cuInit"
  | "cuDriverGetVersion"
  | "cuDeviceGetCount"
  | "cuDeviceGet"
  | "cuDeviceGetName"
  | "cuDeviceGetAttribute"
  | "cuDevicePrimaryCtxRetain"
  | "cuDevicePrimaryCtxRelease"
  | "cuDevicePrimaryCtxReset"
  | "cuCtxSetCurrent"
  | "cuCtxSynchronize"
>;

function deviceFunctions(driver: FakeDriver): DeviceFunctions {
  /** A device has one primary context, for as long as somebody holds it. */
  const contexts = new Map<number, { readonly handle: number; holders: number }>();
  return {
    cuInit: () => (driver.gpus.length === 0 ? noDevice : success),
    cuDriverGetVersion: (address) => give32(driver, address, driver.driverVersion),
    cuDeviceGetCount: (address) => give32(driver, address, driver.gpus.length),
    cuDeviceGet: (address, ordinal) => give32(driver, address, ordinal),
    cuDeviceGetName: (address, length, device) => {
      const name = new TextEncoder().encode(driver.gpus[device]?.name ?? "");
      driver.memory.view("host", address, length).set(name);
      return success;
    },
    cuDeviceGetAttribute: (address, attribute, device) =>
      give32(driver, address, driver.gpus[device]?.attributes[attribute] ?? 0),
    cuDevicePrimaryCtxRetain: (address, device) => {
      const held = contexts.get(device) ?? { handle: driver.add("context", device), holders: 0 };
      held.holders += 1;
      contexts.set(device, held);
      return give(driver, address, held.handle);
    },
    cuDevicePrimaryCtxRelease: (device) => {
      const held = contexts.get(device);
      if (held === undefined) return invalidValue;
      held.holders -= 1;
      if (held.holders > 0) return success;
      contexts.delete(device);
      driver.finish();
      driver.remove("context", held.handle);
      if (driver.current === held.handle) driver.current = 0;
      return success;
    },
    cuDevicePrimaryCtxReset: () => {
      driver.reset();
      return success;
    },
    cuCtxSetCurrent: (context) => {
      driver.current = context;
      return driver.find("context", context) === undefined ? invalidValue : success;
    },
    cuCtxSynchronize: () => {
      driver.finish();
      return driver.sticky;
    },
  };
}

type MemoryFunctions = Pick<
  DriverCalls,
  | "cuDeviceGetDefaultMemPool"
  | "cuMemPoolSetAttribute"
  | "cuMemPoolGetAttribute"
  | "cuMemPoolTrimTo"
  | "cuMemAllocAsync"
  | "cuMemFreeAsync"
  | "cuMemAlloc"
  | "cuMemFree"
  | "cuMemGetInfo"
  | "cuMemHostAlloc"
  | "cuMemFreeHost"
>;

const pool = 4711;

function memoryFunctions(driver: FakeDriver): MemoryFunctions {
  const { memory } = driver;
  const allocate = (address: number, bytes: number): number => {
    if (bytes === 0) return invalidValue;
    if (memory.bytes("device") + bytes > driver.memoryBytes) return outOfMemory;
    return give(driver, address, memory.allocate("device", bytes));
  };
  const free = (kind: "device" | "pinned", address: number): number => {
    if (memory.free(kind, address)) return success;
    driver.misuses.push(`${kind} memory ${address} freed twice`);
    return invalidValue;
  };
  return {
    cuDeviceGetDefaultMemPool: (address) => give(driver, address, pool),
    cuMemPoolSetAttribute: (handle) => (handle === pool ? success : invalidValue),
    cuMemPoolGetAttribute: (handle, _attribute, address) =>
      handle === pool ? give(driver, address, memory.bytes("device")) : invalidValue,
    cuMemPoolTrimTo: (handle) => (handle === pool ? success : invalidValue),
    cuMemAllocAsync: (address, bytes) => allocate(address, bytes),
    cuMemFreeAsync: (address, stream) => {
      driver.find<FakeStream>("stream", stream)?.issue(() => {
        free("device", address);
      });
      return success;
    },
    cuMemAlloc: allocate,
    cuMemFree: (address) => {
      driver.finish();
      return free("device", address);
    },
    cuMemGetInfo: (freeAddress, totalAddress) => {
      give(driver, freeAddress, driver.memoryBytes - memory.bytes("device"));
      return give(driver, totalAddress, driver.memoryBytes);
    },
    cuMemHostAlloc: (address, bytes) => give(driver, address, memory.allocate("pinned", bytes)),
    cuMemFreeHost: (address) => free("pinned", address),
  };
}

type CopyFunctions = Pick<
  DriverCalls,
  | "cuMemcpyHtoDAsync"
  | "cuMemcpyDtoHAsync"
  | "cuMemcpyDtoDAsync"
  | "cuMemsetD8Async"
  | "cuMemsetD32Async"
>;

function copyFunctions(driver: FakeDriver): CopyFunctions {
  const { memory } = driver;
  const issue = (stream: number, work: () => void): number => {
    driver.find<FakeStream>("stream", stream)?.issue(work);
    return success;
  };
  return {
    cuMemcpyHtoDAsync: (target, source, bytes, stream) =>
      issue(stream, () => {
        memory.view("device", target, bytes).set(memory.view("host", source, bytes));
      }),
    cuMemcpyDtoHAsync: (target, source, bytes, stream) =>
      issue(stream, () => {
        memory.view("host", target, bytes).set(memory.view("device", source, bytes));
      }),
    cuMemcpyDtoDAsync: (target, source, bytes, stream) =>
      issue(stream, () => {
        memory.view("device", target, bytes).set(memory.view("device", source, bytes));
      }),
    cuMemsetD8Async: (target, value, count, stream) =>
      issue(stream, () => memory.view("device", target, count).fill(value)),
    cuMemsetD32Async: (target, value, count, stream) =>
      issue(stream, () => {
        const bytes = memory.view("device", target, 4 * count);
        const view = new DataView(bytes.buffer, bytes.byteOffset);
        for (let index = 0; index < count; index += 1) view.setUint32(4 * index, value, true);
      }),
  };
}

type StreamFunctions = Pick<
  DriverCalls,
  | "cuStreamCreate"
  | "cuStreamDestroy"
  | "cuStreamWaitEvent"
  | "cuStreamBeginCapture"
  | "cuStreamEndCapture"
  | "cuEventCreate"
  | "cuEventDestroy"
  | "cuEventRecord"
  | "cuEventQuery"
  | "cuEventSynchronize"
  | "cuEventElapsedTime"
>;

function streamFunctions(driver: FakeDriver): StreamFunctions {
  const stream = (handle: number): FakeStream | undefined => driver.find("stream", handle);
  const event = (handle: number): FakeEvent | undefined => driver.find("event", handle);
  return {
    cuStreamCreate: (address) => give(driver, address, driver.add("stream", new FakeStream())),
    cuStreamDestroy: (handle) => {
      driver.finish();
      driver.remove("stream", handle);
      return success;
    },
    cuStreamWaitEvent: (handle, eventHandle) => {
      const [waiting, recorded] = [stream(handle), event(eventHandle)];
      if (waiting === undefined || recorded?.stream === undefined) return invalidValue;
      // The event may be recorded again before its turn comes: what counts is where it is now.
      const { stream: other, position } = recorded;
      waiting.issue(() => {
        other.advance(position);
      });
      return success;
    },
    cuStreamBeginCapture: (handle) => {
      stream(handle)?.beginCapture();
      return success;
    },
    cuStreamEndCapture: (handle, address) => {
      const captured = stream(handle)?.endCapture();
      if (captured === undefined) return invalidValue;
      const within = driver.conditions.bodies.has(captured);
      return give(driver, address, within ? 0 : driver.add("graph", captured));
    },
    cuEventCreate: (address) => {
      const made: FakeEvent = { stream: undefined, position: 0, recordedAt: 0 };
      return give(driver, address, driver.add("event", made));
    },
    cuEventDestroy: (handle) => {
      driver.remove("event", handle);
      return success;
    },
    cuEventRecord: (handle, streamHandle) => {
      const [recorded, on] = [event(handle), stream(streamHandle)];
      if (recorded === undefined || on === undefined) return invalidValue;
      recorded.stream = on;
      on.issue(() => {
        driver.clock += 1;
        recorded.recordedAt = driver.clock;
      });
      recorded.position = on.position;
      return success;
    },
    cuEventQuery: (handle) => {
      const recorded = event(handle);
      if (recorded?.stream === undefined) return invalidValue;
      return recorded.stream.hasReached(recorded.position) ? success : notReady;
    },
    cuEventSynchronize: (handle) => {
      if (driver.sticky !== success) return driver.sticky;
      const recorded = event(handle);
      if (recorded === undefined) return invalidValue;
      driver.attempt(() => recorded.stream?.advance(recorded.position));
      return driver.sticky;
    },
    cuEventElapsedTime: (address, first, second) => {
      const milliseconds = (event(second)?.recordedAt ?? 0) - (event(first)?.recordedAt ?? 0);
      const bytes = driver.memory.view("host", address, 4);
      dataView({ address, bytes }).setFloat32(0, milliseconds, true);
      return success;
    },
  };
}

export function fakeFunctions(driver: FakeDriver): DriverCalls {
  return {
    ...deviceFunctions(driver),
    ...memoryFunctions(driver),
    ...copyFunctions(driver),
    ...streamFunctions(driver),
    ...moduleFunctions(driver, give),
    ...launchFunctions(driver, give),
    ...conditionFunctions(driver, give),
  };
}
