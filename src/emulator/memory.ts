/**
 * Global memory of the emulator: one heap, in which allocations lie apart so that an access past the end
 * of one hits nothing, and a byte of state for every byte of it:
 *
 *   heap    . . . . [ a a a a a a a a ] . . . . [ b b b b ] . . . .
 *   state   0 0 0 0   1 1 2 2 2 2 2 2   0 0 0 0   2 2 2 2   0 0 0 0
 *                     |   \ written     \ not allocated
 *                     allocated, never written
 *
 * A program allocates whenever it wants, also while a launch runs, in turns with its host or on threads. Memory is either at
 * rest or lent to one launch:
 *
 *                  at rest                           lent, until the launch has ended
 *   allocate       appears at once                   gets its place, and appears when memory comes back
 *   the heap       moves to larger buffers           gets larger buffers, and moves there when memory comes back
 *   write, read,
 *   copy, free     happen at once                    are mistakes of whoever lent it: they wait for their turn
 *
 * - `allocate` alone makes the heap larger, and has the buffers when it returns: whoever asks for too much is who hears of it
 *   (TW8005), and nothing that happens later can fail for want of room.
 * - A launch sees the views and the allocations of the moment when memory was lent to it, from its first instruction to its
 *   last. What else a program allocates meanwhile cannot make a wild access hit something, nor change a report.
 * - Threads never see this memory. They work on a copy of all of it (`host-workers/shared-memory.ts`), which is copied back as a
 *   whole or not at all.
 * - A place is free again once nothing that was issued before can touch it: devices queue `free` behind their launches, and
 *   the emulator of PTX refuses it while one runs (TW8006). Memory itself refuses it too.
 */
import { TilewrightError } from "../support/diagnostics.ts";
import { repeatBytes } from "../support/repeat-bytes.ts";
import { globalBase, wordSize } from "./addresses.ts";
import { grown } from "./buffer-growth.ts";
import { Places } from "./heap-allocator.ts";

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

/** What a kernel on small arrays needs. It grows by doubling, and is made for each of thousands of short-lived devices. */
const smallestHeap = 1 << 16;
/** Offsets in the heap are words. */
const largestHeap = wordSize - (1 << 20);

export class EmulatedMemory implements Heap {
  readonly #places = new Places(largestHeap);
  readonly #allocations = new Map<number, Allocation>();
  #views: MemoryViews = memoryOf(smallestHeap);
  #extent = this.#places.end;
  #isLent = false;
  /** What was allocated since memory was lent. */
  #late: Allocation[] = [];
  /** Where the heap moves to when memory comes back. */
  #larger: MemoryViews | undefined;

  /** These stay the same while memory is lent. */
  get views(): MemoryViews {
    return this.#views;
  }

  /** As launches see them. */
  get allocations(): readonly Allocation[] {
    return [...this.#allocations.values()];
  }

  /** Bytes from the start of the heap that these lie in: a multiple of 512. */
  get extent(): number {
    return this.#extent;
  }

  /** Bytes that the heap has room for. */
  get capacity(): number {
    return (this.#larger ?? this.#views).bytes.length;
  }

  around(address: number): Surroundings {
    return surroundings(this.#allocations.values(), address);
  }

  /* ---- at rest or lent ---- */

  /** The address of fresh memory whose contents are undefined. */
  allocate(bytes: number, label?: string): number {
    if (!Number.isInteger(bytes) || bytes < 0) throw new RangeError(`${bytes} bytes of memory`);
    const offset = this.#places.take(bytes);
    if (offset === undefined) throw noRoom(bytes, label, "4 GiB at most, all arrays together");
    try {
      this.#reserve(this.#places.end);
    } catch (error) {
      this.#places.giveBack(offset, bytes);
      if (!(error instanceof RangeError)) throw error;
      throw noRoom(bytes, label, "memory of this process for all arrays together");
    }
    const allocation = { address: globalBase + offset, bytes, label };
    if (this.#isLent) this.#late.push(allocation);
    else this.#show([allocation]);
    return allocation.address;
  }

  /** Sees to it that there are buffers for so many bytes: twice as many as before where the process has them. */
  #reserve(needed: number): void {
    const { capacity } = this;
    if (needed <= capacity) return;
    this.#larger = grown(memoryOf, { needed, before: capacity, largest: largestHeap });
    if (!this.#isLent) this.#move();
  }

  /** Lends memory to a launch. */
  lend(): void {
    this.#requireRest();
    this.#isLent = true;
  }

  /** The launch has ended, however it did: what was allocated meanwhile appears. */
  takeBack(): void {
    if (!this.#isLent) throw new Error("memory was not lent");
    this.#isLent = false;
    this.#move();
    const late = this.#late;
    this.#late = [];
    this.#show(late);
  }

  #move(): void {
    const larger = this.#larger;
    if (larger === undefined) return;
    larger.bytes.set(this.#views.bytes.subarray(0, this.#extent));
    larger.states.set(this.#views.states.subarray(0, this.#extent));
    this.#views = larger;
    this.#larger = undefined;
  }

  #show(allocations: readonly Allocation[]): void {
    for (const allocation of allocations) {
      const offset = allocation.address - globalBase;
      this.#allocations.set(allocation.address, allocation);
      this.#views.states.fill(byteStates.unwritten, offset, offset + allocation.bytes);
    }
    this.#extent = this.#places.end;
  }

  /* ---- at rest ---- */

  free(address: number): void {
    this.#requireRest();
    const allocation = this.#allocations.get(address);
    if (allocation === undefined) throw new RangeError(`nothing is allocated at ${address}`);
    const offset = address - globalBase;
    this.#allocations.delete(address);
    this.#views.states.fill(byteStates.absent, offset, offset + allocation.bytes);
    this.#places.giveBack(offset, allocation.bytes);
    this.#extent = this.#places.end;
  }

  write(address: number, bytes: Uint8Array): void {
    const offset = this.#inside(address, bytes.length);
    this.#views.bytes.set(bytes, offset);
    this.#views.states.fill(byteStates.written, offset, offset + bytes.length);
  }

  /** Repeats a pattern, as a launch of a memory fill would. */
  fill(address: number, length: number, pattern: Uint8Array): void {
    const offset = this.#inside(address, length);
    repeatBytes(this.#views.bytes.subarray(offset, offset + length), pattern);
    this.#views.states.fill(byteStates.written, offset, offset + length);
  }

  /** Copies bytes with their states: what was never written stays so. */
  copy(from: number, to: number, length: number): void {
    const [source, target] = [this.#inside(from, length), this.#inside(to, length)];
    this.#views.bytes.copyWithin(target, source, source + length);
    this.#views.states.copyWithin(target, source, source + length);
  }

  /** A copy of the bytes. */
  read(address: number, length: number): Uint8Array {
    const offset = this.#inside(address, length);
    return this.#views.bytes.slice(offset, offset + length);
  }

  /** Copies bytes to where they are wanted. */
  readInto(address: number, target: Uint8Array): void {
    const offset = this.#inside(address, target.length);
    target.set(this.#views.bytes.subarray(offset, offset + target.length));
  }

  /** How many of the bytes nothing has written. */
  unwritten(address: number, length: number): number {
    const offset = this.#inside(address, length);
    let count = 0;
    for (let at = offset; at < offset + length; at++)
      if (this.#views.states[at] !== byteStates.written) count += 1;
    return count;
  }

  #inside(address: number, length: number): number {
    this.#requireRest();
    const { below: holder } = this.around(address);
    if (holder === undefined || address + length > holder.address + holder.bytes)
      throw new RangeError(`${length} bytes at ${address} are in no allocation`);
    return address - globalBase;
  }

  #requireRest(): void {
    if (this.#isLent) throw new Error("the memory is lent to a launch");
  }
}

function noRoom(bytes: number, label: string | undefined, expected: string): TilewrightError {
  return new TilewrightError({
    code: "TW8005",
    message: `the emulator has no room for ${label ?? "an array"}`,
    expected,
    found: `${bytes} bytes more`,
    remedy: "give back arrays that are no longer needed, or use smaller ones",
  });
}
