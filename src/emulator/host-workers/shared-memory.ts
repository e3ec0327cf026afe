/**
 * The copy of a memory that threads work on, while the memory itself is lent to their launch and nobody touches it:
 *
 *   memory       │ lent ──────────────────────────────────────── │ at rest
 *   shared         copied ─▶ threads read and write ─▶ copied back, where they did not disturb each other
 *
 * Its buffers are kept from launch to launch. Engines do not see how large shared buffers are and collect them late, so that
 * fresh ones for every launch would fill a machine.
 */
import { grown } from "../buffer-growth.ts";
import type { EmulatedMemory } from "../memory.ts";
import type { SharedHeap } from "./job.ts";
import { marksSize } from "./touched-bytes.ts";

/** What threads of a launch share. */
export interface SharedCopy {
  readonly heap: SharedHeap;
  /** One for each thread. */
  readonly marks: readonly SharedArrayBuffer[];
}

function atLeast(buffer: SharedArrayBuffer | undefined, needed: number): SharedArrayBuffer {
  const { byteLength: before } = buffer ?? { byteLength: 0 };
  if (buffer !== undefined && before >= needed) return buffer;
  return grown((bytes) => new SharedArrayBuffer(bytes), { needed, before, largest: Infinity });
}

export class SharedMemory {
  #bytes: SharedArrayBuffer | undefined;
  #states: SharedArrayBuffer | undefined;
  readonly #marks: SharedArrayBuffer[] = [];

  /** Copies a memory. Throws a RangeError where the process has no room for that. */
  take({ views, extent: size }: EmulatedMemory, threads: number): SharedCopy {
    const bytes = (this.#bytes = atLeast(this.#bytes, size));
    const states = (this.#states = atLeast(this.#states, size));
    const marks = Array.from(
      { length: threads },
      (_, thread) => (this.#marks[thread] = atLeast(this.#marks[thread], marksSize(size))),
    );
    new Uint8Array(bytes).set(views.bytes.subarray(0, size));
    new Uint8Array(states).set(views.states.subarray(0, size));
    return { heap: { bytes, states, size }, marks };
  }
}

/** Copies back what threads made of a copy, to the memory that it is of. */
export function giveBack({ bytes, states, size }: SharedHeap, { views }: EmulatedMemory): void {
  views.bytes.set(new Uint8Array(bytes, 0, size));
  views.states.set(new Uint8Array(states, 0, size));
}
