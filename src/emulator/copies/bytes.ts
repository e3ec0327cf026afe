/** Bytes under way, with what is known of each: whether anything was ever written there. */
import type { MemoryViews } from "../memory.ts";
import { byteStates } from "../memory.ts";

export class CarriedBytes {
  readonly data: Uint8Array;
  readonly states: Uint8Array;

  constructor(length: number) {
    this.data = new Uint8Array(length);
    this.states = new Uint8Array(length).fill(byteStates.written);
  }

  /** Takes bytes from memory. */
  take(at: number, { bytes, states }: MemoryViews, offset: number, length: number): void {
    this.data.set(bytes.subarray(offset, offset + length), at);
    this.states.set(states.subarray(offset, offset + length), at);
  }

  /** Puts bytes into memory. */
  put(at: number, { bytes, states }: MemoryViews, offset: number, length: number): void {
    bytes.set(this.data.subarray(at, at + length), offset);
    states.set(this.states.subarray(at, at + length), offset);
  }
}
