/**
 * Memory that threads share, kept from launch to launch. Engines do not see how large shared buffers are and
 * collect them late, so that a fresh copy of the heap for every launch would fill a machine.
 */
import { globalBase } from "../addresses.ts";
import type { Allocation, EmulatedMemory } from "../memory.ts";
import type { SharedHeap } from "./job.ts";
import { marksSize } from "./marks.ts";

function atLeast(buffer: SharedArrayBuffer | undefined, size: number): SharedArrayBuffer {
  return buffer !== undefined && buffer.byteLength >= size ? buffer : new SharedArrayBuffer(size);
}

export class SharedMemory {
  #heap: SharedHeap | undefined;
  #allocations: readonly Allocation[] = [];
  readonly #marks: SharedArrayBuffer[] = [];

  /** The copy that was made last. */
  get heap(): SharedHeap {
    if (this.#heap === undefined) throw new Error("no heap was copied");
    return this.#heap;
  }

  /** Copies a memory's heap. */
  take({ views, extent: size, allocations }: EmulatedMemory): SharedHeap {
    const bytes = atLeast(this.#heap?.bytes, size);
    const states = atLeast(this.#heap?.states, size);
    new Uint8Array(bytes).set(views.bytes.subarray(0, size));
    new Uint8Array(states).set(views.states.subarray(0, size));
    this.#heap = { bytes, states, size };
    this.#allocations = allocations;
    return this.#heap;
  }

  /** Copies back what was allocated when the copy was made; the memory may have grown since. */
  giveBack({ views }: EmulatedMemory): void {
    const { bytes, states } = this.heap;
    for (const { address, bytes: length } of this.#allocations) {
      const offset = address - globalBase;
      views.bytes.set(new Uint8Array(bytes, offset, length), offset);
      views.states.set(new Uint8Array(states, offset, length), offset);
    }
  }

  /** A thread's marks for a heap. */
  marks(thread: number, heapBytes: number): SharedArrayBuffer {
    const buffer = atLeast(this.#marks[thread], marksSize(heapBytes));
    this.#marks[thread] = buffer;
    return buffer;
  }
}
