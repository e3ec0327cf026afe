/**
 * Memory that lanes take from their stacks while they run, `alloca`. It lies behind a fixed offset of the
 * local window, apart from the variables of functions, and each lane has as much as the one with the most:
 *
 *   local window   0 … variables of frames     2^24 … top of the lane
 */
import { memoryOf, noMemory } from "../memory.ts";
import type { MemoryViews } from "../memory.ts";
import { warpLanes } from "../program/registers.ts";
import { eachLane } from "../program/lanes.ts";

export const dynamicStart = 2 ** 24;

/** Of local memory, a lane; what is taken beyond is outside of memory. */
const largestStack = 2 ** 19;
const smallestStack = 1024;

export class DynamicStack {
  /** All lanes' parts, one behind the other, and the bytes of each. */
  views: MemoryViews = noMemory;
  elementBytes = 0;
  /** The end of what each lane has taken, from the start of its part. */
  readonly #tops = new Float64Array(warpLanes);

  /** The address of fresh memory of a lane. */
  take(lane: number, bytes: number, alignment: number): number {
    const start = alignment * Math.ceil((this.#tops[lane] as number) / alignment);
    this.#tops[lane] = start + bytes;
    if (start + bytes > this.elementBytes && start + bytes <= largestStack)
      this.#grow(start + bytes);
    return dynamicStart + start;
  }

  top(lane: number): number {
    return dynamicStart + (this.#tops[lane] as number);
  }

  /** Gives back what a lane took since its end was there. */
  restore(lane: number, top: number): void {
    this.#tops[lane] = Math.max(0, top - dynamicStart);
  }

  /** The ends of all lanes; undefined as long as none has taken anything. */
  save(): Float64Array | undefined {
    return this.elementBytes === 0 ? undefined : this.#tops.slice();
  }

  /** Gives back what lanes took since `save`. */
  restoreAll(mask: number, saved: Float64Array | undefined): void {
    if (this.elementBytes === 0) return;
    eachLane(mask, (lane) => {
      this.#tops[lane] = saved?.[lane] ?? 0;
    });
  }

  #grow(needed: number): void {
    const old = this.views;
    const oldBytes = this.elementBytes;
    this.elementBytes = 16 * Math.ceil(Math.max(smallestStack, 2 * oldBytes, needed) / 16);
    this.views = memoryOf(warpLanes * this.elementBytes);
    for (let lane = 0; lane < warpLanes; lane++) {
      const part = old.bytes.subarray(lane * oldBytes, (lane + 1) * oldBytes);
      this.views.bytes.set(part, lane * this.elementBytes);
    }
  }
}
