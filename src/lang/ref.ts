/**
 * Refs: windows on global or shared memory. Making a window moves no data; loads and stores do.
 *
 *   x.at(slice(i.mul(64), 64), all)    a window of 64 rows
 *     .transpose()                     the same elements, axes exchanged
 *     .load()                          a tile
 */
import type { DType, DTypeName, HostValue } from "../formats/dtype.ts";
import type { Value } from "../ir/node.ts";
import type { atomicFunctions } from "../ir/ops/memory.ts";
import { shapeText } from "../ir/size.ts";
import type { Size } from "../ir/size.ts";
import type { MemorySpace, RefType } from "../ir/types.ts";
import { typeText } from "../ir/types.ts";
import { TilewrightError } from "../support/diagnostics.ts";
import { captureLocation } from "../support/location.ts";
import type { Location } from "../support/location.ts";
import { requireKnownOptions } from "../support/options.ts";
import { broadcasts, broadcastValue, shapeOf } from "./broadcast.ts";
import { constantValue, isPlain } from "./constants.ts";
import type { Operand } from "./elementwise.ts";
import { indexValue } from "./indices.ts";
import type { Index } from "./indices.ts";
import { isDataObject, wrongOperand } from "./operands.ts";
import { Scalar } from "./scalar.ts";
import { isSize } from "./sizes.ts";
import { dataObject, Tile } from "./tile.ts";
import { emit, emitOrigin, emitValue, originOf } from "./trace.ts";
import type { Origin } from "./trace.ts";
import { numberList, origin, Traced, useValue, wrongKind } from "./traced.ts";
import { resolveWindow } from "./window.ts";
import type { WindowIndex } from "./window.ts";

/** How an atomic update combines the old element and the new value. */
export type AtomicFunction = (typeof atomicFunctions)[number];

type AtomicResult<V, D extends DTypeName> = [Extract<V, { readonly kind: "tile" }>] extends [never]
  ? Scalar<D>
  : Tile<D>;

function refTypeOf(value: Value): RefType {
  if (value.type.kind !== "ref") throw new Error(`${typeText(value.type)} is not a ref`);
  return value.type;
}

export class Ref<D extends DTypeName = DTypeName> extends Traced {
  /** Tells a ref from tiles and scalars. */
  readonly kind = "ref";
  /** The number format of the elements. */
  readonly dtype: DType<D>;
  /** The extents of the window; named dimensions where they are known at launch. */
  readonly shape: readonly Size[];
  /** Which memory it lies in; `peer` is shared memory of another block of the cluster. */
  readonly space: MemorySpace;

  /** @internal */
  constructor(made: Origin) {
    super(made);
    const type = refTypeOf(made.value);
    this.dtype = type.dtype as DType<D>;
    this.shape = type.shape;
    this.space = type.space;
  }

  /**
   * A window: for each axis a slice, `all`, or an index, which drops the axis. Axes that are not
   * mentioned are taken whole.
   */
  at(...indices: readonly WindowIndex[]): Ref<D> {
    const location = captureLocation();
    const ref = useValue(this, location);
    const { offsets, sizes, dropped } = resolveWindow(refTypeOf(ref), indices, location);
    const operands = {
      ref,
      offsets: offsets.map((offset) => indexValue("an index", offset, location)),
    };
    return new Ref(emitOrigin("slice_ref", operands, { sizes, dropped }, location));
  }

  /** Axis i of the result is this window's axis `permutation[i]`; all axes reversed without one. */
  transpose(permutation: readonly number[] = this.shape.map((_, axis) => axis).reverse()): Ref<D> {
    const location = captureLocation();
    const ref = useValue(this, location);
    const axes = numberList("the permutation of transpose", permutation, location);
    return new Ref(emitOrigin("transpose_ref", { ref }, { permutation: axes }, location));
  }

  /** The same elements, in row-major order, under another shape. */
  reshape(shape: readonly Size[]): Ref<D> {
    const location = captureLocation();
    const ref = useValue(this, location);
    if (!Array.isArray(shape) || !shape.every(isSize))
      wrongKind("the shape of reshape", "a list of sizes", shape, location);
    return new Ref(emitOrigin("reshape_ref", { ref }, { shape: [...shape] }, location));
  }

  /** The same shared memory in the block of the cluster with the given rank. */
  peer(rank: Index): Ref<D> {
    const location = captureLocation();
    const operands = {
      ref: useValue(this, location),
      rank: indexValue("the rank of a peer", rank, location),
    };
    return new Ref(emitOrigin("peer_ref", operands, {}, location));
  }

  /** Reads the window into a tile; `fill`, or 0, stands where it overhangs the array. */
  load(options: { readonly fill?: number | HostValue<D> | Scalar<D> } = {}): Tile<D> {
    const location = captureLocation();
    const ref = useValue(this, location);
    if (this.shape.length === 0) refuseRank(this, "load", "loadScalar", location);
    requireKnownOptions("load", options, ["fill"], "TW1033", location);
    const { fill } = options;
    const operands = fill === undefined ? { ref } : { ref, fill: this.#fill(fill, location) };
    return new Tile(emitOrigin("load", operands, {}, location));
  }

  /** Reads the element of a window without axes. */
  loadScalar(): Scalar<D> {
    const location = captureLocation();
    const ref = useValue(this, location);
    if (this.shape.length > 0) refuseRank(this, "loadScalar", "load", location);
    return new Scalar(emitOrigin("load", { ref }, {}, location));
  }

  /** Writes a value, broadcast to the window; what overhangs the array is dropped. */
  store(value: Operand<D>, ...others: readonly never[]): void {
    const location = captureLocation();
    if (others.length > 0)
      wrongKind(
        "the only argument of store",
        "the value",
        others[0],
        location,
        "store under a condition with when(…), or choose the elements first with mask.select(a, b)",
      );
    const ref = useValue(this, location);
    emit("store", { ref, value: this.#stored("store", value, location) }, {}, location);
  }

  /**
   * Updates each element atomically and gives the old ones. A number or scalar updates a window
   * without axes, a tile a window of its shape.
   */
  atomic<V extends Operand<D>>(fn: AtomicFunction, value: V): AtomicResult<V, D> {
    const location = captureLocation();
    return this.#atomic(fn, value, location);
  }

  /** Adds atomically and gives the old elements; see `atomic`. */
  atomicAdd<V extends Operand<D>>(value: V): AtomicResult<V, D> {
    const location = captureLocation();
    return this.#atomic("add", value, location);
  }

  /** Stores `value` where the element equals `expected`, atomically; gives the old elements. */
  compareExchange<E extends Operand<D>, V extends Operand<D>>(
    expected: E,
    value: V,
  ): AtomicResult<E | V, D> {
    const location = captureLocation();
    const ref = useValue(this, location);
    this.#requireAtomicShape("compareExchange", [expected, value], location);
    const operands = {
      ref,
      expected: this.#stored("compareExchange", expected, location),
      value: this.#stored("compareExchange", value, location),
    };
    const old = emitValue("atomic_compare_exchange", operands, {}, location);
    return dataObject(old, location) as AtomicResult<E | V, D>;
  }

  #atomic<V>(fn: AtomicFunction, value: V, location: Location): AtomicResult<V, D> {
    const ref = useValue(this, location);
    this.#requireAtomicShape("atomic", [value], location);
    const operands = { ref, value: this.#stored("atomic", value, location) };
    const old = emitValue("atomic", operands, { fn }, location);
    return dataObject(old, location) as AtomicResult<V, D>;
  }

  /** The types promise a scalar for a scalar and a tile for a tile. */
  #requireAtomicShape(method: string, values: readonly unknown[], location: Location): void {
    const hasTile = values.some((value) => value instanceof Tile);
    if (hasTile || this.shape.length === 0) return;
    throw new TilewrightError({
      code: "TW1032",
      message: `${method} of a single value on ${typeText(refTypeOf(this[origin].value))}`,
      location,
      expected: `a tile of shape ${shapeText(this.shape)}`,
      found: "a number or a scalar",
    });
  }

  #fill(fill: unknown, location: Location): Value {
    if (isPlain(fill)) return constantValue(this.dtype, [], fill, location);
    if (isDataObject(fill)) return useValue(fill, location);
    return wrongKind("fill of load", `a number or a scalar of ${this.dtype.name}`, fill, location);
  }

  /** A value in the window's shape where it broadcasts to it; inference judges what does not. */
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

function refuseRank(ref: Ref, method: string, other: string, location: Location): never {
  throw new TilewrightError({
    code: "TW1018",
    message: `${method} on a window ${ref.shape.length === 0 ? "without axes" : "with axes"}`,
    location,
    expected: method === "load" ? "a window with axes" : "a window without axes",
    found: typeText(ref[origin].value.type),
    remedy: `write ${other}()`,
  });
}

/** The ref that stands for a value made just now. */
export function refObject(value: Value, location: Location): Ref {
  return new Ref(originOf(value, location));
}
