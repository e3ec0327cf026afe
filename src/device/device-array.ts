/**
 * Arrays on a device, and the record of those not yet given back. Memory is freed by `dispose()`, never
 * by the garbage collector, so an array that is forgotten is a leak and is reported with the line that
 * made it.
 */
/// <reference lib="esnext.disposable" preserve="true" />
import type { DType, DTypeName } from "../formats/dtype.ts";
import { elementCount } from "../formats/shape.ts";
import { takeAllSteps } from "../support/all-steps.ts";
import { madeBy, thisCopy } from "../support/copies.ts";
import { TilewrightError } from "../support/diagnostics.ts";
import type { RelatedNote } from "../support/diagnostics.ts";
import { captureLocation, formatPosition } from "../support/location.ts";
import { optionText } from "../support/options.ts";
import type { Location, Position } from "../support/location.ts";
import type { Allocation, Backend } from "./backend.ts";

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
  /** What this is a part of; itself where it is whole. */
  readonly #whole: DeviceArray;
  /** Where it begins in the whole. */
  readonly #offset: number;
  #allocation: Allocation | undefined;

  /** @internal */
  constructor(
    owner: ArrayRegistry,
    dtype: DType<N>,
    shape: readonly number[],
    allocation: Allocation,
    part?: { readonly of: DeviceArray; readonly offset: number },
  ) {
    this.dtype = dtype;
    this.shape = Object.freeze([...shape]);
    this.location = captureLocation();
    this.#owner = owner;
    this.#allocation = allocation;
    this.#whole = part?.of ?? this;
    this.#offset = part?.offset ?? 0;
  }

  /** @internal */
  get [madeBy](): object {
    return thisCopy;
  }

  get bytes(): number {
    return this.#allocation?.bytes ?? 0;
  }

  get disposed(): boolean {
    return this.#allocation === undefined || this.#whole.#allocation === undefined;
  }

  /** Rows `start` to `end`, without the last, of the first axis: a view, which shares this array's memory. */
  slice(start: number, end: number = this.shape[0] ?? 0): DeviceArray<N> {
    const [rows = 0, ...others] = this.shape;
    const inOrder = [start, end].every(Number.isSafeInteger) && 0 <= start && start <= end;
    if (this.shape.length === 0 || !inOrder || end > rows)
      throw new TilewrightError({
        code: "TW4025",
        message: `${this.#text} has no rows ${optionText(start)} to ${optionText(end)}`,
        expected: this.shape.length === 0 ? "an array with an axis" : `rows from 0 to ${rows}`,
        found: `${optionText(start)} to ${optionText(end)}`,
      });
    const bits = elementCount(others) * start * this.dtype.bits;
    if (bits % 8 !== 0)
      throw new TilewrightError({
        code: "TW4025",
        message: `row ${start} of ${this.#text} begins within a byte`,
        expected: "a row that begins at a whole byte",
        found: `${this.dtype.bits} bits an element`,
      });
    return this.#view(bits / 8, [end - start, ...others]);
  }

  /** The same elements under another shape: a view, which shares this array's memory. */
  reshape(shape: readonly number[]): DeviceArray<N> {
    if (elementCount(shape) === elementCount(this.shape)) return this.#view(0, shape);
    throw new TilewrightError({
      code: "TW4025",
      message: `${this.#text} has not the elements of [${shape.join(", ")}]`,
      expected: `${elementCount(this.shape)} elements`,
      found: `${elementCount(shape)} elements`,
    });
  }

  /** @internal Bytes of this array, from `offset` on, as elements of another format. */
  part<M extends DTypeName>(
    dtype: DType<M>,
    shape: readonly number[],
    offset: number,
  ): DeviceArray<M> {
    const allocation = this.allocationFor(this.#owner);
    const part = this.#owner.viewOf(allocation, offset, dtype, shape);
    return new DeviceArray(this.#owner, dtype, shape, part, {
      of: this.#whole,
      offset: this.#offset + offset,
    });
  }

  /** Gives the memory back; a view has none of its own. Doing it twice is harmless. */
  dispose(): void {
    const allocation = this.#allocation;
    this.#allocation = undefined;
    if (allocation !== undefined) this.#owner.remove(this, allocation);
  }

  get #text(): string {
    return `${this.dtype.name}[${this.shape.join(", ")}]`;
  }

  #view(offset: number, shape: readonly number[]): DeviceArray<N> {
    return this.part(this.dtype, shape, offset);
  }

  /** @internal Whether two arrays have bytes in common. */
  overlaps(other: DeviceArray): boolean {
    const [first, second] = [this.#offset, other.#offset];
    return (
      this.#whole === other.#whole && first < second + other.bytes && second < first + this.bytes
    );
  }

  /** @internal Where it begins in the memory that was allocated. */
  get offset(): number {
    return this.#offset;
  }

  [disposeSymbol](): void {
    this.dispose();
  }

  /** @internal The memory, for the device that owns it. */
  allocationFor(owner: ArrayRegistry): Allocation {
    if (this.#allocation === undefined || this.#whole.#allocation === undefined)
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
  readonly viewOf: Backend["view"];
  readonly #live = new Set<DeviceArray>();

  constructor(release: (allocation: Allocation) => void, viewOf: Backend["view"]) {
    this.#release = release;
    this.viewOf = viewOf;
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
    // Views and memory of others are none of ours.
    if (this.#live.delete(array as DeviceArray)) this.#release(allocation);
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
