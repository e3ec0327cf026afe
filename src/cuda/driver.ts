/**
 * The driver as everything else here sees it: its functions, one way to wait on another thread, and host
 * memory that keeps its address. `libcuda` is behind it on a machine with a GPU, the fake driver in tests.
 *
 * Results come through pointers, so even a number takes host memory:
 *
 *   const memory = driver.allocateHost(8);
 *   driver.calls.cuDeviceGetCount(memory.address);       // writes an int there
 *   new DataView(memory.bytes.buffer, …).getInt32(0, true)
 */
import type { DriverArguments, DriverCalls } from "./functions.ts";

/** What another thread may call: the driver wants a context of that thread for everything else. */
export type AsideName = "cuInit" | "cuDevicePrimaryCtxRetain";

/** Memory of the host that never moves; its address is a multiple of 128. */
export interface HostMemory {
  readonly address: number;
  readonly bytes: Uint8Array;
}

export interface Driver {
  readonly calls: DriverCalls;
  /** cuEventSynchronize without making this thread wait. */
  waitForEvent(event: number): Promise<number>;
  /** A call that takes long and needs no context, without making this thread wait. */
  callAside<N extends AsideName>(name: N, ...values: DriverArguments<N>): Promise<number>;
  /** Zeroed memory, until `freeHost`. */
  allocateHost(bytes: number): HostMemory;
  freeHost(memory: HostMemory): void;
  /** The bytes at an address that the driver gave. */
  viewHost(address: number, bytes: number): Uint8Array;
}

/** The bytes as numbers. */
export function dataView({ bytes }: HostMemory): DataView {
  return new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}

/** A 64-bit number at an offset. */
export function readAddress(view: DataView, offset: number): number {
  return Number(view.getBigUint64(offset, true));
}

export function writeAddress(view: DataView, offset: number, address: number): void {
  view.setBigUint64(offset, BigInt(address), true);
}
