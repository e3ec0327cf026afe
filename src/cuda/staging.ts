/**
 * Pinned host memory, through which all transfers go: the driver copies to and from it while the program
 * goes on. Buffers come in sizes of powers of two and are kept for the next transfer.
 *
 *   64 KiB   a scalar result, a small array
 *   4 MiB    a piece of a large array; at most 16 of these at once
 */
import type { CudaContext } from "./context.ts";

const smallest = 2 ** 16;
export const largestBuffer = 2 ** 22;
export const stagingLimit = 16 * largestBuffer;

export interface StagingBuffer {
  readonly address: number;
  readonly bytes: Uint8Array;
}

export class Staging {
  readonly #context: CudaContext;
  readonly #spare = new Map<number, StagingBuffer[]>();
  #held = 0;

  constructor(context: CudaContext) {
    this.#context = context;
  }

  /** A buffer of at least so many bytes; undefined where all are in use. */
  take(bytes: number): StagingBuffer | undefined {
    const size = Math.max(smallest, 2 ** Math.ceil(Math.log2(bytes)));
    const spare = this.#spare.get(size)?.pop();
    if (spare !== undefined) return spare;
    while (this.#held + size > stagingLimit) if (!this.#dropSpare()) return undefined;
    const address = this.#context.make("cuMemHostAlloc", "pin host memory", size, 0);
    this.#held += size;
    return { address, bytes: this.#context.driver.viewHost(address, size) };
  }

  /** Takes a buffer back, for the next transfer. */
  give(buffer: StagingBuffer): void {
    const size = buffer.bytes.byteLength;
    const spare = this.#spare.get(size);
    if (spare === undefined) this.#spare.set(size, [buffer]);
    else spare.push(buffer);
  }

  dispose(): void {
    while (this.#dropSpare());
  }

  /** Gives one unused buffer back to the system. */
  #dropSpare(): boolean {
    for (const buffers of this.#spare.values()) {
      const buffer = buffers.pop();
      if (buffer === undefined) continue;
      this.#context.driver.calls.cuMemFreeHost(buffer.address);
      this.#held -= buffer.bytes.byteLength;
      return true;
    }
    return false;
  }
}
