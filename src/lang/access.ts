/**
 * Loads, stores and atomic updates, which a window has as a whole, or at the elements that tiles of indices pick:
 *
 *   x.at(slice(0, 64)).load()               the window
 *   x.at(ids).load({ where: ids.ge(0) })    elements by number, where they have one
 */
import { isWide } from "../formats/dtype.ts";
import type { DType, DTypeName, HostValue } from "../formats/dtype.ts";
import type { Value } from "../ir/node.ts";
import type { evictions } from "../ir/ops/asynchronous.ts";
import type { atomicFunctions } from "../ir/ops/memory.ts";
import { shapeText } from "../ir/size.ts";
import type { Size } from "../ir/size.ts";
import { typeText } from "../ir/types.ts";
import type { MemorySpace } from "../ir/types.ts";
import { TilewrightError } from "../support/diagnostics.ts";
import { captureLocation } from "../support/location.ts";
import type { Location } from "../support/location.ts";
import { requireKnownOptions } from "../support/options.ts";
import { broadcasts, broadcastValue, shapeOf } from "./broadcast.ts";
import { constantValue, isPlain } from "./constants.ts";
import type { Operand } from "./elementwise.ts";
import { wrongOperand } from "./operands.ts";
import { isDataObject } from "./elementwise.ts";
import type { Scalar } from "./elementwise.ts";
import {
  loadOrder,
  orderOptions,
  refuseEviction,
  storeOrder,
  updateOrder,
} from "./memory-order.ts";
import type { LoadOrder, MemoryOrder, ScopeOption, StoreOrder } from "./memory-order.ts";
import { dataObject, refuseTileMethods, Tile } from "./tile.ts";
import { emit, emitOrigin, emitValue, originOf } from "./trace.ts";
import type { Origin } from "./trace.ts";
import { origin, Traced, useValue, wrongKind } from "./traced.ts";
import { tmemShapes } from "../ir/ops/tensor-memory.ts";
import type { TmemShape } from "../ir/ops/tensor-memory.ts";

/** How an atomic update combines the old element and the new value. */
export type AtomicFunction = (typeof atomicFunctions)[number];

/** Which elements are accessed. */
export interface AccessOptions {
  /** One bool for each element, or one that repeats: the others are left alone. */
  readonly where?: Tile<"bool"> | Scalar<"bool">;
  /** Leaves elements alone whose index in a tile is out of bounds; otherwise that is a mistake, and stops the kernel. */
  readonly outOfBounds?: "drop";
  /** Promises that all that is accessed is in bounds: nothing is masked or tested. Simulator and emulator find broken promises. */
  readonly inBounds?: boolean;
}

/** Which elements are updated, and what the update orders. */
export interface AtomicOptions extends AccessOptions, ScopeOption {
  /** Whether the update acquires what others released through its elements, and releases what was done before it; relaxed unless given. */
  readonly memoryOrder?: MemoryOrder;
}

/** Which elements are written, and what the store orders. */
export interface StoreOptions extends AccessOptions, ScopeOption {
  /** Whether others may access the elements meanwhile (relaxed), and whoever acquires them sees what was done before (release); weak unless given. */
  readonly memoryOrder?: StoreOrder;
  /** By which instructions tensor memory is written, as loads have it. */
  readonly shape?: TmemShape;
}

/** What a load of one element orders. */
export interface LoadScalarOptions extends ScopeOption, Pick<AccessOptions, "inBounds"> {
  /** Whether others may write the elements meanwhile (relaxed), and what was done before they were released is visible from here on (acquire); weak unless given. */
  readonly memoryOrder?: LoadOrder;
}

/** What a load takes, and what it gives elsewhere. */
export interface LoadOptions<D extends DTypeName = DTypeName>
  extends Omit<AccessOptions, "outOfBounds">, LoadScalarOptions {
  /** What stands where the window overhangs the array and where `where` is false, a value or one for each element; 0 without it. */
  readonly fill?: number | HostValue<D> | Scalar<D> | Tile<D>;
  /** Lets `fill` stand for elements whose index in a tile is out of bounds; otherwise that is a mistake, and stops the kernel. */
  readonly outOfBounds?: "pad";
  /** Tells the L2 cache to drop what is read first, or last; the window is one of global memory. */
  readonly evict?: (typeof evictions)[number];
  /** By which instructions tensor memory is read: lanes and bits of each; a row to each thread unless given. */
  readonly shape?: TmemShape;
}

type AtomicResult<V, D extends DTypeName> = [Extract<V, { readonly kind: "tile" }>] extends [never]
  ? Scalar<D>
  : Tile<D>;

/** What picks elements of the window: index tiles, and the axes that they pick along. */
export interface PickedElements {
  readonly indices: readonly Value[];
  readonly indexed?: readonly number[];
  /** Which elements have all of their indices in bounds, with an axis for each of the accessed tile's. */
  readonly inside?: () => Tile<"bool">;
}

/** Gives the window's picked elements; a symbol, to stay out of the user's sight. */
export const picked = Symbol("picked");

const accessOptions: readonly (keyof AccessOptions)[] = ["where", "outOfBounds", "inBounds"];

/** What an access is said to promise, as attributes of its op. */
export function promiseOf(
  label: string,
  { inBounds, outOfBounds }: { readonly inBounds?: unknown; readonly outOfBounds?: unknown },
  location: Location,
): { readonly inBounds?: true } {
  if (inBounds === undefined || inBounds === false) return {};
  if (inBounds !== true)
    return wrongKind(`inBounds of ${label}`, "true or false", inBounds, location);
  if (outOfBounds !== undefined)
    return wrongKind(
      `inBounds of ${label}`,
      "inBounds or outOfBounds, which says what is done outside",
      inBounds,
      location,
    );
  return { inBounds };
}

/** The instructions by which tensor memory is accessed, where the user says so; tiles of it are whole, so that nothing else can be said. */
function tmemShape(
  label: "load" | "store",
  options: { readonly shape?: TmemShape },
  location: Location,
): { readonly shape?: TmemShape } {
  requireKnownOptions(`${label} of tensor memory`, options, ["shape"], "TW1033", location);
  const { shape } = options;
  if (shape === undefined) return {};
  if (!tmemShapes.includes(shape))
    wrongKind(
      `shape of ${label}`,
      tmemShapes.map((each) => `"${each}"`).join(", "),
      shape,
      location,
    );
  return { shape };
}

export abstract class Accessible<D extends DTypeName = DTypeName> extends Traced {
  static {
    refuseTileMethods(this.prototype);
  }

  /** The number format of the elements. */
  readonly dtype: DType<D>;
  /** The extents of what is accessed; named dimensions where they are known at launch. */
  readonly shape: readonly Size[];

  /** @internal */
  constructor(made: Origin, dtype: DType<D>, shape: readonly Size[]) {
    super(made);
    this.dtype = dtype;
    this.shape = shape;
  }

  /** @internal */
  abstract [picked](location: Location): PickedElements;

  /** Reads the elements into a tile; `fill`, or 0, stands where the window overhangs the array. */
  load(options: LoadOptions<D> = {}): Tile<D> {
    const location = captureLocation();
    if (this.#space === "tmem") {
      const ref = useValue(this, location);
      return new Tile(
        emitOrigin("tmem_load", { ref }, tmemShape("load", options, location), location),
      );
    }
    const { ref, indices, attributes, inside } = this.#elements(location);
    const known = ["where", "fill", "evict", "outOfBounds", "inBounds", ...orderOptions];
    requireKnownOptions("load", options, known, "TW1033", location);
    const { fill, evict } = options;
    const mask = this.#mask("load", options, inside, location);
    const order = loadOrder(options, this.#space, location);
    const promise = promiseOf("load", options, location);
    if (order !== undefined) {
      refuseEviction(evict, location);
      const filled = this.#stored("load", fill ?? this.#zero, location);
      const operands = { ref, fill: filled, indices, ...mask };
      const said = { ...attributes, ...promise, ...order };
      return new Tile(emitOrigin("atomic_load", operands, said, location));
    }
    const operands = {
      ref,
      indices,
      ...mask,
      ...(fill !== undefined && { fill: this.#fill(fill, location) }),
    };
    const hints = { ...attributes, ...promise, ...(evict !== undefined && { evict }) };
    return new Tile(emitOrigin("load", operands, hints, location));
  }

  /** Writes a value, broadcast to the elements; what overhangs the array is dropped. */
  store(value: Operand<D>, options: StoreOptions = {}): void {
    const location = captureLocation();
    if (this.#space === "tmem") {
      const ref = useValue(this, location);
      const tile = this.#stored("store", value, location);
      emit("tmem_store", { ref, value: tile }, tmemShape("store", options, location), location);
      return;
    }
    const { ref, indices, attributes, inside } = this.#elements(location);
    const mask = this.#mask("store", options, inside, location);
    const stored = this.#stored("store", value, location);
    const operands = { ref, value: stored, indices, ...mask };
    const order = storeOrder(options, this.#space, location);
    const said = { ...attributes, ...promiseOf("store", options, location) };
    if (order === undefined) emit("store", operands, said, location);
    else emit("atomic_store", operands, { ...said, ...order }, location);
  }

  /**
   * Updates each element atomically and gives the old ones. A number or scalar updates a window
   * without axes, a tile a window of its shape.
   */
  atomic<V extends Operand<D>>(
    fn: AtomicFunction,
    value: V,
    options: AtomicOptions = {},
  ): AtomicResult<V, D> {
    const location = captureLocation();
    return this.#atomic(fn, value, options, location);
  }

  /** Adds atomically and gives the old elements; see `atomic`. */
  atomicAdd<V extends Operand<D>>(value: V, options: AtomicOptions = {}): AtomicResult<V, D> {
    const location = captureLocation();
    return this.#atomic("add", value, options, location);
  }

  /** Stores `value` where the element equals `expected`, atomically; gives the old elements. */
  compareExchange<E extends Operand<D>, V extends Operand<D>>(
    expected: E,
    value: V,
    options: AtomicOptions = {},
  ): AtomicResult<E | V, D> {
    const location = captureLocation();
    const { ref, indices, attributes, inside } = this.#elements(location);
    this.#requireAtomicShape("compareExchange", [expected, value], location);
    const operands = {
      ref,
      indices,
      expected: this.#stored("compareExchange", expected, location),
      value: this.#stored("compareExchange", value, location),
      ...this.#mask("compareExchange", options, inside, location),
    };
    const order = updateOrder("compareExchange", options, this.#space, location);
    const promise = promiseOf("compareExchange", options, location);
    const all = { ...attributes, ...promise, ...order };
    const old = emitValue("atomic_compare_exchange", operands, all, location);
    return oldElements(old, [expected, value], location) as AtomicResult<E | V, D>;
  }

  #atomic<V>(
    fn: AtomicFunction,
    value: V,
    options: AtomicOptions,
    location: Location,
  ): AtomicResult<V, D> {
    const { ref, indices, attributes, inside } = this.#elements(location);
    this.#requireAtomicShape("atomic", [value], location);
    const mask = this.#mask("atomic", options, inside, location);
    const operands = { ref, value: this.#stored("atomic", value, location), indices, ...mask };
    const order = updateOrder("atomic", options, this.#space, location);
    const promise = promiseOf("atomic", options, location);
    const all = { fn, ...attributes, ...promise, ...order };
    const old = emitValue("atomic", operands, all, location);
    return oldElements(old, [value], location) as AtomicResult<V, D>;
  }

  get #space(): MemorySpace {
    const { type } = this[origin].value;
    if (type.kind !== "ref") throw new Error(`${typeText(type)} is not a ref`);
    return type.space;
  }

  get #zero(): number | bigint | boolean {
    if (this.dtype.kind === "bool") return false;
    return isWide(this.dtype) ? 0n : 0;
  }

  /** Reads the one element there is. */
  protected readScalar(options: LoadScalarOptions, location: Location): Origin {
    const ref = useValue(this, location);
    const known = ["inBounds", ...orderOptions];
    requireKnownOptions("loadScalar", options, known, "TW1033", location);
    const order = loadOrder(options, this.#space, location);
    const promise = promiseOf("loadScalar", options, location);
    if (order === undefined) return emitOrigin("load", { ref, indices: [] }, promise, location);
    const fill = constantValue(this.dtype, [], this.#zero, location);
    const said = { ...promise, ...order };
    return emitOrigin("atomic_load", { ref, fill, indices: [] }, said, location);
  }

  #elements(location: Location) {
    const ref = useValue(this, location);
    const { indices, indexed, inside } = this[picked](location);
    return { ref, indices, inside, attributes: indexed === undefined ? {} : { indexed } };
  }

  /** The mask with an axis for each of the tile's; inference judges its extents. */
  #mask(
    label: "load" | "store" | "atomic" | "compareExchange",
    options: AccessOptions | LoadOptions<D>,
    inside: PickedElements["inside"],
    location: Location,
  ): { readonly where?: Value } {
    const given: unknown = options;
    if (given instanceof Traced)
      wrongKind(
        `the options of ${label}`,
        "{ where }",
        given,
        location,
        `write ${label}(…, { where: mask })`,
      );
    const known = [...accessOptions, ...orderOptions];
    if (label !== "load") requireKnownOptions(label, options, known, "TW1033", location);
    const where = this.#where(label, options, inside, location);
    if (where === undefined) return {};
    const value = useValue(where, location);
    const own = shapeOf(value);
    const missing = this.shape.length - own.length;
    if (missing <= 0) return { where: value };
    const shape = [...Array.from({ length: missing }, () => 1), ...own];
    if (own.length === 0)
      return { where: emitValue("broadcast", { source: value }, { shape, axes: [] }, location) };
    return { where: emitValue("reshape", { source: value }, { shape }, location) };
  }

  /** The user's mask, and where indices are in bounds if others are to be left alone. */
  #where(
    label: "load" | "store" | "atomic" | "compareExchange",
    { where, outOfBounds }: AccessOptions | LoadOptions<D>,
    inside: PickedElements["inside"],
    location: Location,
  ): Tile<"bool"> | Scalar<"bool"> | undefined {
    if (where !== undefined && !isDataObject(where))
      wrongKind(`where of ${label}`, "a tile or a scalar of bool", where, location);
    if (outOfBounds === undefined) return where;
    const word = label === "load" ? "pad" : "drop";
    if (outOfBounds !== word)
      wrongKind(`outOfBounds of ${label}`, `"${word}"`, outOfBounds, location);
    if (inside === undefined)
      return wrongKind(
        `outOfBounds of ${label}`,
        "elements that tiles of indices pick",
        this,
        location,
        "leave it out: where a window overhangs its array, loads pad and stores drop anyway",
      );
    return where === undefined ? inside() : inside().and(where);
  }

  /** The types promise a scalar for a scalar and a tile for a tile. */
  #requireAtomicShape(method: string, values: readonly unknown[], location: Location): void {
    const hasTile = values.some((value) => value instanceof Tile);
    if (hasTile || this.shape.length === 0) return;
    throw new TilewrightError({
      code: "TW1032",
      message: `${method} of a single value on ${typeText(this[origin].value.type)}`,
      location,
      expected: `a tile of shape ${shapeText(this.shape)}`,
      found: "a number or a scalar",
    });
  }

  #fill(fill: unknown, location: Location): Value {
    if (isPlain(fill)) return constantValue(this.dtype, [], fill, location);
    const expected = `a number, a scalar or a tile of ${this.dtype.name}`;
    if (!isDataObject(fill)) return wrongKind("fill of load", expected, fill, location);
    return fill instanceof Tile ? this.#stored("fill", fill, location) : useValue(fill, location);
  }

  /** A value in the accessed shape where it broadcasts to it; inference judges what does not. */
  #stored(label: string, value: unknown, location: Location): Value {
    const shape = this.shape.filter((size) => typeof size === "number");
    const isStatic = shape.length === this.shape.length;
    if (isPlain(value)) return constantValue(this.dtype, isStatic ? shape : [], value, location);
    if (!isDataObject(value)) return wrongOperand(label, value, location);
    const given = useValue(value, location);
    const fits = isStatic && broadcasts(shapeOf(given), shape);
    return fits ? broadcastValue(given, shape, location) : given;
  }
}

/** What an update gives: a tile where it was given one, which may have no axes. */
function oldElements(old: Value, given: readonly unknown[], location: Location): Scalar | Tile {
  const isOfTiles = given.some((value) => value instanceof Tile);
  return isOfTiles ? new Tile(originOf(old, location)) : dataObject(old, location);
}

/** Refuses to read a window with axes as one element. */
export function refuseAxes(item: Accessible, location: Location): never {
  throw new TilewrightError({
    code: "TW1018",
    message: "loadScalar on a window with axes",
    location,
    expected: "a window without axes",
    found: typeText(item[origin].value.type),
    remedy: "write load()",
  });
}
