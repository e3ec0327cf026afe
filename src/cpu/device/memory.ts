/**
 * The memory of a CPU device: one WebAssembly memory, which all its threads see, and places in it. It grows when it is asked for more; views of
 * it are made anew then, so nobody keeps one. What a device leaves behind is taken by the next: pages that were touched before are
 * cheaper than new ones.
 *
 *   | guard | array | guard | module's bytes | guard | scratch of threads | guard | …      every place on a multiple of 512 bytes
 */
import type { Allocation } from "../../device/backend.ts";
import { Places } from "../../emulator/heap-allocator.ts";
import { TilewrightError } from "../../support/diagnostics.ts";

/** Memory of an array. */
export interface CpuAllocation extends Allocation {
  readonly address: number;
}

const pageBytes = 65536;
/** All that addresses of 32 bits reach. */
const mostPages = 65536;
/** Of smaller memories, where a host has no room to reserve that. */
const leastReserved = 4096;
const firstPages = 16;
/** Larger memories are not kept for the next device. */
const keptPages = 1024;

/** Of a device that has ended. */
let spare: { readonly memory: WebAssembly.Memory; readonly maximum: number } | undefined;

function reserve(): { readonly memory: WebAssembly.Memory; readonly maximum: number } {
  const kept = spare;
  spare = undefined;
  if (kept !== undefined) return kept;
  for (let maximum = mostPages; ; maximum /= 2) {
    try {
      const memory = new WebAssembly.Memory({ initial: firstPages, maximum, shared: true });
      return { memory, maximum };
    } catch (error) {
      if (!(error instanceof RangeError) || maximum <= leastReserved) throw error;
    }
  }
}

export class CpuMemory {
  readonly memory: WebAssembly.Memory;
  readonly #maximum: number;
  readonly #places: Places;
  #bytes: Uint8Array;

  constructor() {
    const { memory, maximum } = reserve();
    this.memory = memory;
    this.#maximum = maximum;
    this.#places = new Places(maximum * pageBytes);
    this.#bytes = new Uint8Array(memory.buffer);
  }

  /** All of it, until it grows. */
  get bytes(): Uint8Array {
    return this.#bytes;
  }

  /** Bytes that the system has given. */
  get capacity(): number {
    return this.#bytes.length;
  }

  /** The address of so many bytes, which hold anything. */
  allocate(bytes: number): number {
    const address = this.#places.take(bytes);
    if (address === undefined) throw this.#outOfMemory(bytes);
    try {
      this.#grow(this.#places.end);
    } catch (error) {
      this.#places.giveBack(address, bytes);
      if (!(error instanceof RangeError)) throw error;
      throw this.#outOfMemory(bytes);
    }
    return address;
  }

  free(address: number, bytes: number): void {
    this.#places.giveBack(address, bytes);
  }

  view(address: number, bytes: number): Uint8Array {
    return this.#bytes.subarray(address, address + bytes);
  }

  /** Leaves the memory to the next device. */
  dispose(): void {
    if (this.#bytes.length > keptPages * pageBytes) return;
    spare = { memory: this.memory, maximum: this.#maximum };
  }

  #grow(needed: number): void {
    const before = this.#bytes.length;
    if (needed <= before) return;
    const pages = Math.ceil(needed / pageBytes);
    const had = before / pageBytes;
    // By half, so that arrays that come one by one seldom find it too small.
    const wanted = Math.min(this.#maximum, Math.max(pages, Math.ceil(1.5 * had)));
    try {
      this.memory.grow(wanted - had);
    } catch (error) {
      if (!(error instanceof RangeError)) throw error;
      this.memory.grow(pages - had);
    }
    this.#bytes = new Uint8Array(this.memory.buffer);
  }

  #outOfMemory(bytes: number): TilewrightError {
    const limit = this.#maximum * pageBytes;
    return new TilewrightError({
      code: "TW4701",
      message: `the CPU device has no room for ${bytes} bytes more`,
      expected: `at most ${limit} bytes in all, which is what a WebAssembly memory of this host can have`,
      found: `${this.#places.end} bytes in use or between arrays in use`,
    });
  }
}
