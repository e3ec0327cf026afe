/**
 * Arrays on a device, and the record of those not yet given back. Memory is freed by `dispose()`, never
 * by the garbage collector, so an array that is forgotten is a leak and is reported with the line that
 * made it.
 */
/// <reference lib="esnext.disposable" preserve="true" />
import type { DType, DTypeName } from "../formats/dtype.ts";
import { takeAllSteps } from "../support/all-steps.ts";
import { madeBy, thisCopy } from "../support/copies.ts";
import { TilewrightError } from "../support/diagnostics.ts";
import type { RelatedNote } from "../support/diagnostics.ts";
import { captureLocation, formatPosition } from "../support/location.ts";
import type { Location, Position } from "../support/location.ts";
import type { Allocation } from "./backend.ts";

// Hosts without `using` still get the method, under the symbol that their polyfill would use.
const disposeSymbol: typeof Symbol.dispose =
  (Symbol as { dispose?: typeof Symbol.dispose }).dispose ??
  (Symbol.for("Symbol.dispose") as typeof Symbol.dispose);

export { disposeSymbol };

export class DeviceArray<N extends DTypeName = DTypeName> {
  readonly dtype: DType<N>;
  readonly shape: readonly number[];
  /** Where the user's program made it. */
  readonly location: Location;
  readonly #owner: ArrayRegistry;
  #allocation: Allocation | undefined;

  /** @internal */
  constructor(
    owner: ArrayRegistry,
    dtype: DType<N>,
    shape: readonly number[],
    allocation: Allocation,
  ) {
    this.dtype = dtype;
    this.shape = Object.freeze([...shape]);
    this.location = captureLocation();
    this.#owner = owner;
    this.#allocation = allocation;
  }

  /** @internal */
  get [madeBy](): object {
    return thisCopy;
  }

  get bytes(): number {
    return this.#allocation?.bytes ?? 0;
  }

  get disposed(): boolean {
    return this.#allocation === undefined;
  }

  /** Gives the memory back. Doing it twice is harmless. */
  dispose(): void {
    const allocation = this.#allocation;
    this.#allocation = undefined;
    if (allocation !== undefined) this.#owner.remove(this, allocation);
  }

  [disposeSymbol](): void {
    this.dispose();
  }

  /** @internal The memory, for the device that owns it. */
  allocationFor(owner: ArrayRegistry): Allocation {
    if (this.#allocation === undefined)
      throw new TilewrightError({
        code: "TW4010",
        message: `the array ${this.dtype.name}[${this.shape.join(", ")}] was disposed of before this use`,
        notes: [{ message: "the array was made here", location: this.location }],
      });
    if (owner !== this.#owner)
      throw new TilewrightError({
        code: "TW4011",
        message: `the array ${this.dtype.name}[${this.shape.join(", ")}] belongs to another device`,
        notes: [{ message: "the array was made here", location: this.location }],
      });
    return this.#allocation;
  }
}

/** An array that was never disposed of. */
export interface Leak {
  readonly dtype: DType;
  readonly shape: readonly number[];
  readonly bytes: number;
  readonly position: Position | undefined;
}

/** The live arrays of one device. */
export class ArrayRegistry {
  readonly #release: (allocation: Allocation) => void;
  readonly #live = new Set<DeviceArray>();

  constructor(release: (allocation: Allocation) => void) {
    this.#release = release;
  }

  add<N extends DTypeName>(
    dtype: DType<N>,
    shape: readonly number[],
    allocation: Allocation,
  ): DeviceArray<N> {
    const array = new DeviceArray(this, dtype, shape, allocation);
    this.#live.add(array);
    return array;
  }

  remove(array: { readonly dtype: DType }, allocation: Allocation): void {
    this.#live.delete(array as DeviceArray);
    this.#release(allocation);
  }

  leaks(): readonly Leak[] {
    return [...this.#live].map(({ dtype, shape, bytes, location }) => ({
      dtype,
      shape,
      bytes,
      position: location.position,
    }));
  }

  disposeAll(): void {
    disposeAll([...this.#live]);
  }
}

/** Disposes of every array, also where that fails for one of them. */
export function disposeAll(arrays: readonly DeviceArray[]): void {
  takeAllSteps(
    arrays.map((array) => () => {
      array.dispose();
    }),
  );
}

export function formatLeaks(leaks: readonly Leak[]): string {
  const total = leaks.reduce((bytes, leak) => bytes + leak.bytes, 0);
  const lines = leaks.map(
    ({ dtype, shape, bytes, position }) =>
      `  ${dtype.name}[${shape.join(", ")}], ${bytes} bytes, made at ${formatPosition(position)}`,
  );
  const [noun, verb] = leaks.length === 1 ? ["array", "was"] : ["arrays", "were"];
  const heading = `${leaks.length} ${noun} (${total} bytes) ${verb} never disposed of:`;
  return [heading, ...lines].join("\n");
}

/** Arrays that are named when memory runs out. */
const namedArrays = 5;

/** What holds a device's memory: the total, and the largest arrays with the lines that made them. */
export function describeLargest(leaks: readonly Leak[]): readonly RelatedNote[] {
  const total = leaks.reduce((bytes, leak) => bytes + leak.bytes, 0);
  const largest = [...leaks].sort((left, right) => right.bytes - left.bytes).slice(0, namedArrays);
  return [
    { message: `arrays of this device hold ${total} bytes: ${leaks.length} of them` },
    ...largest.map(({ dtype, shape, bytes, position }) => ({
      message: `${dtype.name}[${shape.join(", ")}], ${bytes} bytes, made here`,
      location: { position },
    })),
  ];
}
