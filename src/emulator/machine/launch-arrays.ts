/** The arrays of a launch that addresses came from, as bytes of the heap; see `program/provenance.ts`. */
import { globalBase, wordSize } from "../addresses.ts";
import type { Heap, MemoryViews } from "../memory.ts";
import type { Provenance } from "../program/provenance.ts";

export interface ArrayBytes {
  /** Where in the heap it begins, and the byte behind it; the whole heap where no array is known. */
  readonly first: number;
  readonly end: number;
  readonly address: number | undefined;
}

/** One for each set of sources: the array that they point into, where it is the same for all that do. */
export function arraysOf(
  { sources }: Provenance,
  parameters: MemoryViews,
  heap: Heap,
): readonly ArrayBytes[] {
  return sources.map((bytes) => {
    const pointed = new Map(
      bytes.flatMap((byte) => {
        const found = allocationAt(heap, pointerAt(parameters, byte));
        return found === undefined ? [] : [[found.address, found] as const];
      }),
    );
    const [only, ...others] = pointed.values();
    if (only === undefined || others.length > 0)
      return { first: 0, end: heap.views.bytes.length, address: undefined };
    const first = only.address - globalBase;
    return { first, end: first + only.bytes, address: only.address };
  });
}

function pointerAt({ words }: MemoryViews, byte: number): number {
  const [low = 0, high = 0] = [words[byte >>> 2], words[(byte >>> 2) + 1]];
  return (high >>> 0) * wordSize + (low >>> 0);
}

function allocationAt(heap: Heap, address: number) {
  const { below } = heap.around(address);
  const holds = below !== undefined && address < below.address + Math.max(1, below.bytes);
  return holds ? below : undefined;
}
