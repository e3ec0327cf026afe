/**
 * What a device's memory is used for, and the limit that a program has set to it. Every back end keeps its account
 * here, so that the numbers mean the same on each of them:
 *
 *   take(512)   used 512   peak 512            a launch's scratch memory counts while the launch is issued
 *   take(256)   used 768   peak 768
 *   give(512)   used 256   peak 768
 */
import { TilewrightError } from "../support/diagnostics.ts";

/** How much of a device's memory this program holds. */
export interface MemoryUse {
  /** Bytes that arrays, bound launches and scratch memory hold now. */
  readonly used: number;
  /** The most that they have held at once. */
  readonly peak: number;
  /** Bytes that the device has from the system: used ones, and those kept for the next who asks. */
  readonly reserved: number;
  /** Pieces of memory that are held now. */
  readonly allocations: number;
  /** The bytes that may be used at once; undefined where none were set. */
  readonly limit: number | undefined;
}

export class MemoryAccount {
  readonly limit: number | undefined;
  #used = 0;
  #peak = 0;
  #allocations = 0;

  constructor(limit?: number) {
    this.limit = limit;
  }

  /** Counts what `allocate` gives, unless that would be too much. */
  take<T>(bytes: number, allocate: () => T): T {
    if (this.limit !== undefined && this.#used + bytes > this.limit)
      throw new TilewrightError({
        code: "TW4030",
        message: `${bytes} bytes more are beyond the memoryLimit of this device`,
        expected: `at most ${this.limit} bytes in use`,
        found: `${this.#used} bytes in use already`,
      });
    const taken = allocate();
    this.#used += bytes;
    this.#allocations += 1;
    this.#peak = Math.max(this.#peak, this.#used);
    return taken;
  }

  give(bytes: number): void {
    this.#used -= bytes;
    this.#allocations -= 1;
  }

  /** The numbers; `reserved` where the system gave more than is used. */
  use(reserved = this.#used): MemoryUse {
    return {
      used: this.#used,
      peak: this.#peak,
      reserved,
      allocations: this.#allocations,
      limit: this.limit,
    };
  }
}
