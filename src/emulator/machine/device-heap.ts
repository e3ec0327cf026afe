/**
 * The memory that `malloc` in a kernel hands out: a part of global memory in which only what is allocated can be
 * accessed. It outlives launches. What was freed is used again only when nothing else is left, so that an access
 * behind `free` is noticed.
 */
import { globalBase } from "../addresses.ts";
import { byteStates } from "../memory.ts";
import type { MemoryViews } from "../memory.ts";

export const deviceHeapBytes = 8 << 20;
const alignment = 16;

export class DeviceHeap {
  readonly #start: number;
  readonly #allocated = new Map<number, number>();
  /** What was freed, oldest first. */
  #free: { readonly offset: number; readonly room: number }[] = [];
  #end: number;
  #isEmpty = true;

  /** `address`: of the part of global memory. */
  constructor(address: number) {
    this.#start = address - globalBase;
    this.#end = this.#start;
  }

  /** An address, or 0 where nothing is left. */
  allocate({ states }: MemoryViews, bytes: number): number {
    if (this.#isEmpty) states.fill(byteStates.absent, this.#start, this.#start + deviceHeapBytes);
    this.#isEmpty = false;
    // Bytes behind an allocation belong to nobody.
    const room = alignment * (Math.ceil(bytes / alignment) + 1);
    const offset = this.#place(room);
    if (bytes === 0 || offset === undefined) return 0;
    this.#allocated.set(offset, bytes);
    states.fill(byteStates.unwritten, offset, offset + bytes);
    return globalBase + offset;
  }

  #place(room: number): number | undefined {
    const offset = this.#end;
    if (offset + room <= this.#start + deviceHeapBytes) {
      this.#end += room;
      return offset;
    }
    const position = this.#free.findIndex((gap) => gap.room >= room);
    const gap = this.#free[position];
    if (gap === undefined) return undefined;
    this.#free = this.#free.toSpliced(position, 1);
    return gap.offset;
  }

  /** Whether something was allocated there. */
  free({ states }: MemoryViews, address: number): boolean {
    const offset = address - globalBase;
    const bytes = this.#allocated.get(offset);
    if (bytes === undefined) return false;
    this.#allocated.delete(offset);
    states.fill(byteStates.absent, offset, offset + bytes);
    this.#free.push({ offset, room: alignment * (Math.ceil(bytes / alignment) + 1) });
    return true;
  }
}

const heaps = new WeakMap<object, Map<number, DeviceHeap>>();

/** The heap at an address of a memory. */
export function deviceHeapOf(memory: object, address: number): DeviceHeap {
  const ofMemory = heaps.get(memory) ?? new Map<number, DeviceHeap>();
  heaps.set(memory, ofMemory);
  const found = ofMemory.get(address) ?? new DeviceHeap(address);
  ofMemory.set(address, found);
  return found;
}
