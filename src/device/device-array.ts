/**
 * Arrays on a device, and the record of those not yet given back. Memory is freed by `dispose()`, never
 * by the garbage collector, so an array that is forgotten is a leak and is reported with the line that
 * made it.
 */
/// <reference lib="esnext.disposable" preserve="true" />
import type { DType, DTypeName } from "../formats/dtype.ts";
import type { HostArray } from "../formats/hostarray.ts";
import { elementCount, rowMajorStrides } from "../formats/shape.ts";
import { runEach } from "../support/run-all.ts";
import { fieldsOf } from "../support/checked-call.ts";
import { madeBy, thisCopy } from "../support/duplicate-library.ts";
import { TilewrightError } from "../support/diagnostics.ts";
import type { DiagnosticCode, RelatedNote } from "../support/diagnostics.ts";
import { captureLocation, formatPosition } from "../support/location.ts";
import { optionText, requireKnownOptions } from "../support/options.ts";
import type { Location, Position } from "../support/location.ts";
import type { Allocation, Backend } from "./backend.ts";
import { isContiguous, spanOf } from "./strided-view.ts";

// Hosts without `using` still get the method, under the symbol that their polyfill would use.
const disposeSymbol: typeof Symbol.dispose =
  (Symbol as { dispose?: typeof Symbol.dispose }).dispose ??
  (Symbol.for("Symbol.dispose") as typeof Symbol.dispose);

export { disposeSymbol };

/** Along which axis `slice` takes elements. */
export interface SliceOptions {
  /** The first by default. */
  readonly axis?: number;
}

/** An array in a device's memory. Launches take it without copying; `read` brings it to the host. */
export class DeviceArray<N extends DTypeName = DTypeName> {
  /** The format of the elements. */
  readonly dtype: DType<N>;
  /** The extents of the axes. */
  readonly shape: readonly number[];
  /** Where the user's program made it. */
  readonly location: Location;
  readonly #owner: ArrayRegistry;
  /** What this is a part of; itself where it is whole. */
  readonly #whole: DeviceArray;
  /** Where it begins in the whole. */
  readonly #offset: number;
  /** Of a view that was cut from rows or transposed; elements lie one after the other elsewhere. */
  readonly #strides: readonly number[] | undefined;
  #allocation: Allocation | undefined;

  /** @internal */
  constructor(
    owner: ArrayRegistry,
    dtype: DType<N>,
    shape: readonly number[],
    allocation: Allocation,
    part?: {
      readonly of: DeviceArray;
      readonly offset: number;
      readonly strides?: readonly number[] | undefined;
    },
  ) {
    this.dtype = dtype;
    this.shape = Object.freeze([...shape]);
    this.location = captureLocation();
    this.#owner = owner;
    this.#allocation = allocation;
    this.#whole = part?.of ?? this;
    this.#offset = part?.offset ?? 0;
    this.#strides = part?.strides && Object.freeze([...part.strides]);
  }

  /** @internal */
  get [madeBy](): object {
    return thisCopy;
  }

  /** Bytes from its first element to its last. */
  get bytes(): number {
    return this.#allocation?.bytes ?? 0;
  }

  /** Whether its memory was given back. */
  get disposed(): boolean {
    return this.#allocation === undefined || this.#whole.#allocation === undefined;
  }

  /** How far apart its elements are along each axis, in elements. */
  get strides(): readonly number[] {
    return this.#strides ?? rowMajorStrides(this.shape);
  }

  /** Whether its elements lie one after the other, last axis fastest. */
  get contiguous(): boolean {
    return isContiguous(this);
  }

  /**
   * Elements `start` to `end`, without the last, along an axis, the first unless given: a view, which shares this
   * array's memory.
   */
  slice(start: number, end?: number, options: SliceOptions = {}): DeviceArray<N> {
    requireKnownOptions("slice", options, ["axis"], "TW4025", captureLocation());
    const { axis = 0 } = options;
    const extent = this.#extent(axis);
    const last = end === undefined ? extent : end;
    const inOrder = [start, last].every(Number.isSafeInteger) && 0 <= start && start <= last;
    if (!inOrder || last > extent)
      throw new TilewrightError({
        code: "TW4025",
        message: `${this.#text} has no elements ${optionText(start)} to ${optionText(last)} along axis ${axis}`,
        expected: `elements from 0 to ${extent}`,
        found: `${optionText(start)} to ${optionText(last)}`,
      });
    const bits = (this.strides[axis] ?? 0) * start * this.dtype.bits;
    if (bits % 8 !== 0)
      throw new TilewrightError({
        code: "TW4025",
        message: `element ${start} along axis ${axis} of ${this.#text} begins within a byte`,
        expected: "an element that begins at a whole byte",
        found: `${this.dtype.bits} bits an element`,
      });
    const shape = this.shape.with(axis, last - start);
    // Whole rows lie one after the other as before.
    const strides = axis === 0 ? this.#strides : this.strides;
    return this.#view(bits / 8, shape, strides);
  }

  #extent(axis: number): number {
    const extent = Number.isSafeInteger(axis) ? this.shape[axis] : undefined;
    if (extent !== undefined) return extent;
    throw new TilewrightError({
      code: "TW4025",
      message: `${this.#text} has no axis ${optionText(axis)}`,
      expected: this.shape.length === 0 ? "an array with an axis" : axesText(this.shape.length),
      found: optionText(axis),
    });
  }

  /** The same elements with their axes in another order, reversed unless given: a view, which shares this array's memory. */
  transpose(axes: readonly number[] = this.shape.map((_, axis) => axis).reverse()): DeviceArray<N> {
    const rank = this.shape.length;
    const given: unknown = axes;
    const listed: readonly unknown[] | undefined = Array.isArray(given) ? given : undefined;
    if (listed?.length !== rank || !this.shape.every((_, axis) => listed.includes(axis)))
      throw new TilewrightError({
        code: "TW4025",
        message: `the axes of ${this.#text} cannot be put into this order`,
        expected: `each of ${axesText(rank)} once`,
        found: listed === undefined ? optionText(axes) : `[${listed.map(optionText).join(", ")}]`,
      });
    const { shape, strides } = this;
    const permuted = (sizes: readonly number[]): readonly number[] =>
      axes.map((axis) => sizes[axis] ?? 0);
    return this.#view(0, permuted(shape), permuted(strides));
  }

  /** The same elements under another shape: a view, which shares this array's memory. */
  reshape(shape: readonly number[]): DeviceArray<N> {
    const count = elementCount(shape);
    if (count !== elementCount(this.shape))
      throw new TilewrightError({
        code: "TW4025",
        message: `${this.#text} has not the elements of [${shape.join(", ")}]`,
        expected: `${elementCount(this.shape)} elements`,
        found: `${count} elements`,
      });
    if (this.contiguous) return this.#view(0, shape, undefined);
    throw new TilewrightError({
      code: "TW4025",
      message: `${this.#text} is a view with strides, which has no other shape without a copy`,
      expected: "elements that lie one after the other",
      found: `strides of [${this.strides.join(", ")}]`,
      remedy: "copy it into an array of its own first: await device.copy(view, array)",
    });
  }

  /** @internal All that lies from its first element to its last, as one axis. */
  span(): DeviceArray<N> {
    return this.#view(0, [spanOf(this)], undefined);
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

  #view(
    offset: number,
    shape: readonly number[],
    strides: readonly number[] | undefined,
  ): DeviceArray<N> {
    const allocation = this.allocationFor(this.#owner);
    const extents = strides === undefined ? shape : [spanOf({ shape, strides })];
    const part = this.#owner.viewOf(allocation, offset, this.dtype, extents);
    const whole = { of: this.#whole, offset: this.#offset + offset, strides };
    return new DeviceArray(this.#owner, this.dtype, shape, part, whole);
  }

  /** @internal Of a view that was cut from rows or transposed; undefined elsewhere. */
  get viewStrides(): readonly number[] | undefined {
    return this.#strides;
  }

  /** @internal A copy of it on the host, by the device that owns it. */
  fetch(): Promise<HostArray<N>> {
    return this.#owner.fetch(this);
  }

  /** @internal */
  belongsTo(owner: ArrayRegistry): boolean {
    return owner === this.#owner;
  }

  /** @internal Whether the bytes that two arrays span have some in common. */
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
        expected: "an array that is kept until its last use",
        found: "one that was disposed of",
        notes: [{ message: "the array was made here", location: this.location }],
      });
    if (owner !== this.#owner)
      throw new TilewrightError({
        code: "TW4011",
        message: `the array ${this.dtype.name}[${this.shape.join(", ")}] belongs to another device`,
        expected: "an array that this device made",
        found: "one that another device made",
        notes: [{ message: "the array was made here", location: this.location }],
      });
    return this.#allocation;
  }
}

/** An array that was never disposed of. */
export interface Leak {
  /** The format of its elements. */
  readonly dtype: DType;
  /** The extents of its axes. */
  readonly shape: readonly number[];
  /** The bytes of device memory that it holds. */
  readonly bytes: number;
  /** Where the program made it. */
  readonly position: Position | undefined;
}

function described({ dtype, shape, bytes, location }: DeviceArray): Leak {
  return { dtype, shape, bytes, position: location.position };
}

function axesText(rank: number): string {
  return rank === 1 ? "axis 0" : `the axes 0 to ${rank - 1}`;
}

/** What arrays need from their device. */
export interface ArrayOwner {
  readonly release: (allocation: Allocation) => void;
  readonly viewOf: Backend["view"];
  readonly fetch: <N extends DTypeName>(array: DeviceArray<N>) => Promise<HostArray<N>>;
}

/** What is said where memory runs out. */
const memoryCodes: ReadonlySet<DiagnosticCode> = new Set(["TW4510", "TW4030", "TW4701", "TW8005"]);

/** Whether an error says that there is not enough memory. */
export function isShortage(error: unknown): error is TilewrightError {
  return error instanceof TilewrightError && memoryCodes.has(error.code);
}

/** The live arrays of one device. */
export class ArrayRegistry {
  readonly #owner: ArrayOwner;
  readonly #live = new Set<DeviceArray>();
  /** Those among them that the library gives back by itself. */
  readonly #entrusted = new WeakSet<DeviceArray>();
  #isEntrusting = false;
  readonly #keepers = new Set<() => boolean>();

  constructor(owner: ArrayOwner) {
    this.#owner = owner;
  }

  get viewOf(): Backend["view"] {
    return this.#owner.viewOf;
  }

  fetch<N extends DTypeName>(array: DeviceArray<N>): Promise<HostArray<N>> {
    return this.#owner.fetch(array);
  }

  /** An array of what `allocate` gives; where there is no memory, what is kept for speed is given back first. */
  allocate<N extends DTypeName>(
    dtype: DType<N>,
    shape: readonly number[],
    allocate: () => Allocation,
  ): DeviceArray<N> {
    const allocation = this.explainingMemory(() => {
      try {
        return allocate();
      } catch (error) {
        const isSome = isShortage(error) && [...this.#keepers].some((giveBack) => giveBack());
        if (!isSome) throw error;
        return allocate();
      }
    });
    const array = new DeviceArray(this, dtype, shape, allocation);
    this.#live.add(array);
    if (this.#isEntrusting) this.#entrusted.add(array);
    return array;
  }

  /**
   * Has `giveBack` called where an allocation would fail: it gives back what is kept for speed alone, and says whether that was
   * anything. Returns a function that ends this.
   */
  onShortage(giveBack: () => boolean): () => void {
    this.#keepers.add(giveBack);
    return () => {
      this.#keepers.delete(giveBack);
    };
  }

  /** Runs `work`, whose arrays the library gives back by itself: they are never leaks. */
  entrusted<T>(work: () => T): T {
    const before = this.#isEntrusting;
    this.#isEntrusting = true;
    try {
      return work();
    } finally {
      this.#isEntrusting = before;
    }
  }

  remove(array: { readonly dtype: DType }, allocation: Allocation): void {
    // Views and memory of others are none of ours.
    if (this.#live.delete(array as DeviceArray)) this.#owner.release(allocation);
  }

  /** Runs `work`; where memory runs out, the report says which arrays hold it. */
  explainingMemory<T>(work: () => T): T {
    try {
      return work();
    } catch (error) {
      if (!isShortage(error)) throw error;
      throw error.withNotes(describeLargest([...this.#live].map(described)));
    }
  }

  /** What programs made and have not disposed of. */
  leaks(): readonly Leak[] {
    return [...this.#live].filter((array) => !this.#entrusted.has(array)).map(described);
  }

  disposeAll(): void {
    disposeAll([...this.#live]);
  }
}

/** Disposes of every array, also where that fails for one of them. */
export function disposeAll(arrays: readonly DeviceArray[]): void {
  runEach(
    arrays.map((array) => () => {
      array.dispose();
    }),
  );
}

/** The arrays that were never disposed of, as text: a line each, with the place where it was made. */
export function formatLeaks(leaks: readonly Leak[]): string {
  if (!isLeaks(leaks))
    throw new TilewrightError({
      code: "TW4023",
      message: "formatLeaks takes a list of leaks",
      expected: "what device.leaks or onLeak gave",
      found: optionText(leaks),
    });
  const total = leaks.reduce((bytes, leak) => bytes + leak.bytes, 0);
  const counts = new Map<string, number>();
  for (const { dtype, shape, bytes, position } of leaks) {
    const line = `${dtype.name}[${shape.join(", ")}], ${bytes} bytes, made at ${formatPosition(position)}`;
    counts.set(line, (counts.get(line) ?? 0) + 1);
  }
  const lines = [...counts]
    .slice(0, leakLines)
    .map(([line, count]) => `  ${count === 1 ? "" : `${count} × `}${line}`);
  const [noun, verb] = leaks.length === 1 ? ["array", "was"] : ["arrays", "were"];
  const heading = `${leaks.length} ${noun} (${total} bytes) ${verb} never disposed of:`;
  const left = [...counts.values()].slice(leakLines).reduce((sum, count) => sum + count, 0);
  return [heading, ...lines, ...(left === 0 ? [] : [`  and ${left} more`])].join("\n");
}

/** Kinds of leaked arrays that are named one by one: a loop that forgets one an iteration forgets many. */
const leakLines = 20;

function isLeaks(value: unknown): boolean {
  const isLeak = (each: unknown): boolean =>
    typeof fieldsOf(each, ["bytes", "dtype", "shape"])["bytes"] === "number";
  return Array.isArray(value) && value.every(isLeak);
}

/** Arrays that are named when memory runs out. */
const namedArrays = 5;

/** What holds a device's memory: the total, and the largest arrays with the lines that made them. */
function describeLargest(leaks: readonly Leak[]): readonly RelatedNote[] {
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
