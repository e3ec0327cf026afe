/**
 * Global memory of the emulator: one heap, in which allocations lie apart so that an access past the end
 * of one hits nothing, and a byte of state for every byte of it:
 *
 *   heap    . . . . [ a a a a a a a a ] . . . . [ b b b b ] . . . .
 *   state   0 0 0 0   1 1 2 2 2 2 2 2   0 0 0 0   2 2 2 2   0 0 0 0
 *                     |   \ written     \ not allocated
 *                     allocated, never written
 */
import { globalBase, wordSize } from "./addresses.ts";

export const byteStates = Object.freeze({ absent: 0, unwritten: 1, written: 2 });

export interface Allocation {
  readonly address: number;
  readonly bytes: number;
  readonly label: string | undefined;
}

/** What accesses go through; replaced as a whole when the heap grows. */
export interface MemoryViews {
  readonly bytes: Uint8Array;
  readonly halves: Uint16Array;
  readonly words: Int32Array;
  readonly singles: Float32Array;
  readonly doubles: Float64Array;
  readonly states: Uint8Array;
  readonly stateWords: Int32Array;
}

/** The first bytes of buffers as memory: a multiple of 16 of them. */
export function viewsOf(
  bytes: ArrayBufferLike,
  states: ArrayBufferLike,
  size: number,
): MemoryViews {
  return {
    bytes: new Uint8Array(bytes, 0, size),
    halves: new Uint16Array(bytes, 0, size / 2),
    words: new Int32Array(bytes, 0, size / 4),
    singles: new Float32Array(bytes, 0, size / 4),
    doubles: new Float64Array(bytes, 0, size / 8),
    states: new Uint8Array(states, 0, size),
    stateWords: new Int32Array(states, 0, size / 4),
  };
}

/** Fresh memory of a multiple of 16 bytes, none of it allocated. */
export function memoryOf(size: number): MemoryViews {
  return viewsOf(new ArrayBuffer(size), new ArrayBuffer(size), size);
}

/** Of warps that have no stacks, which most of a launch are: nothing is written to it, so that one serves them all. */
export const noMemory: MemoryViews = memoryOf(0);

/** The allocations on both sides of an address. */
export interface Surroundings {
  readonly below: Allocation | undefined;
  readonly above: Allocation | undefined;
}

/** Global memory as a launch sees it. */
export interface Heap {
  readonly views: MemoryViews;
  /** The allocation that holds an address or is the nearest one below it, and the nearest one above. */
  around(address: number): Surroundings;
}

export function surroundings(allocations: Iterable<Allocation>, address: number): Surroundings {
  let below: Allocation | undefined;
  let above: Allocation | undefined;
  for (const allocation of allocations) {
    const start = allocation.address;
    if (start <= address && start >= (below?.address ?? start)) below = allocation;
    if (start > address && start <= (above?.address ?? start)) above = allocation;
  }
  return { below, above };
}

const alignment = 512;
/** Between two allocations, and before the first. */
const guard = 512;
/** What a kernel on small arrays needs. It grows by doubling, and is made for each of thousands of short-lived devices. */
const smallestHeap = 1 << 16;
const largestHeap = wordSize - (1 << 20);

export class EmulatedMemory implements Heap {
  #views: MemoryViews = memoryOf(smallestHeap);
  readonly #allocations = new Map<number, Allocation>();
  /** Gaps that freed allocations left, by offset. */
  #gaps: { readonly offset: number; readonly bytes: number }[] = [];
  #end = guard;
  /** Launches under way. */
  #holders = 0;

  get views(): MemoryViews {
    return this.#views;
  }

  get allocations(): readonly Allocation[] {
    return [...this.#allocations.values()];
  }

  /** Bytes from the start of the heap that allocations lie in. */
  get extent(): number {
    return this.#end;
  }

  /** The address of fresh memory whose contents are undefined. */
  allocate(bytes: number, label?: string): number {
    if (!Number.isInteger(bytes) || bytes < 0) throw new RangeError(`${bytes} bytes of memory`);
    const room = Math.ceil(Math.max(bytes, 1) / alignment) * alignment + guard;
    const offset = this.#place(room);
    const address = globalBase + offset;
    this.#allocations.set(address, { address, bytes, label });
    this.#views.states.fill(byteStates.unwritten, offset, offset + bytes);
    return address;
  }

  #place(room: number): number {
    const position = this.#gaps.findIndex((gap) => gap.bytes >= room);
    const gap = this.#gaps[position];
    if (gap !== undefined) {
      const rest = { offset: gap.offset + room, bytes: gap.bytes - room };
      this.#gaps.splice(position, 1, ...(rest.bytes > 0 ? [rest] : []));
      return gap.offset;
    }
    const offset = this.#end;
    if (offset + room > largestHeap)
      throw new RangeError(`the heap cannot hold ${offset + room} bytes`);
    this.#end += room;
    if (this.#holders === 0) this.#grow(this.#end);
    return offset;
  }

  /**
   * Runs a launch, which reads and writes the heap where it is: what is allocated meanwhile finds its room
   * when the launch is over.
   */
  async during<T>(launch: () => Promise<T>): Promise<T> {
    this.#holders += 1;
    try {
      return await launch();
    } finally {
      this.#holders -= 1;
      if (this.#holders === 0) this.#catchUp();
    }
  }

  #catchUp(): void {
    const known = this.#views.bytes.length;
    this.#grow(this.#end);
    for (const { address, bytes } of this.#allocations.values()) {
      const [start, end] = [address - globalBase, address - globalBase + bytes];
      if (end > known) this.#views.states.fill(byteStates.unwritten, Math.max(start, known), end);
    }
  }

  #grow(needed: number): void {
    const { bytes, states } = this.#views;
    if (needed <= bytes.length) return;
    const size = Math.min(largestHeap, Math.max(needed, 2 * bytes.length));
    const rounded = Math.ceil(size / alignment) * alignment;
    const grown = memoryOf(rounded);
    grown.bytes.set(bytes);
    grown.states.set(states);
    this.#views = grown;
  }

  free(address: number): void {
    const { bytes } = this.#allocation(address);
    const offset = address - globalBase;
    this.#allocations.delete(address);
    this.#views.states.fill(byteStates.absent, offset, offset + bytes);
    const room = Math.ceil(Math.max(bytes, 1) / alignment) * alignment + guard;
    this.#gaps = joined([...this.#gaps, { offset, bytes: room }]);
  }

  #allocation(address: number): Allocation {
    const found = this.#allocations.get(address);
    if (found === undefined) throw new RangeError(`nothing is allocated at ${address}`);
    return found;
  }

  around(address: number): Surroundings {
    return surroundings(this.#allocations.values(), address);
  }

  write(address: number, bytes: Uint8Array): void {
    const offset = this.#inside(address, bytes.length);
    this.#views.bytes.set(bytes, offset);
    this.#views.states.fill(byteStates.written, offset, offset + bytes.length);
  }

  /** A copy of the bytes. */
  read(address: number, length: number): Uint8Array {
    const offset = this.#inside(address, length);
    return this.#views.bytes.slice(offset, offset + length);
  }

  /** How many of the bytes nothing has written. */
  unwritten(address: number, length: number): number {
    const offset = this.#inside(address, length);
    let count = 0;
    for (let at = offset; at < offset + length; at++)
      if (this.#views.states[at] !== byteStates.written) count += 1;
    return count;
  }

  /** Sets bytes, as a launch of a memory fill would. */
  fill(address: number, length: number, value: number): void {
    const offset = this.#inside(address, length);
    this.#views.bytes.fill(value, offset, offset + length);
    this.#views.states.fill(byteStates.written, offset, offset + length);
  }

  #inside(address: number, length: number): number {
    const { below: holder } = this.around(address);
    if (holder === undefined || address + length > holder.address + holder.bytes)
      throw new RangeError(`${length} bytes at ${address} are in no allocation`);
    return address - globalBase;
  }
}

function joined(
  gaps: readonly { readonly offset: number; readonly bytes: number }[],
): { offset: number; bytes: number }[] {
  const merged: { offset: number; bytes: number }[] = [];
  for (const gap of [...gaps].sort((left, right) => left.offset - right.offset)) {
    const last = merged.at(-1);
    if (last !== undefined && last.offset + last.bytes === gap.offset) last.bytes += gap.bytes;
    else merged.push({ ...gap });
  }
  return merged;
}
