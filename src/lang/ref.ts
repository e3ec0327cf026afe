/**
 * Refs: windows on global or shared memory. Making a window moves no data; loads and stores do.
 *
 *   x.at(slice(i.mul(64), 64), all)    a window of 64 rows
 *     .transpose()                     the same elements, axes exchanged
 *     .load()                          a tile
 */
import type { DType, DTypeName } from "../formats/dtype.ts";
import type { Value } from "../ir/node.ts";
import type { Size } from "../ir/size.ts";
import type { MemorySpace, RefType } from "../ir/types.ts";
import { typeText } from "../ir/types.ts";
import { captureLocation } from "../support/location.ts";
import type { Location } from "../support/location.ts";
import { Accessible, picked, refuseAxes } from "./access.ts";
import type { LoadScalarOptions, PickedElements } from "./access.ts";
import { indexValue } from "./indices.ts";
import type { Index } from "./indices.ts";
import { endedWindow } from "./clipped-slice.ts";
import { PickedRef } from "./gathered-ref.ts";
import type { TileIndex } from "./gathered-ref.ts";
import { Scalar } from "./elementwise.ts";
import { isSize } from "./sizes.ts";
import { emitOrigin, originOf } from "./trace.ts";
import type { Origin } from "./trace.ts";
import { numberList, useValue, wrongKind } from "./traced.ts";
import { resolveWindow } from "./window.ts";
import type { WindowIndex } from "./window.ts";

function refTypeOf(value: Value): RefType {
  if (value.type.kind !== "ref") throw new Error(`${typeText(value.type)} is not a ref`);
  return value.type;
}

const whole: PickedElements = Object.freeze({ indices: Object.freeze([]) });

/** A window of an array in global, shared or tensor memory: what kernels load from, store to and copy. */
export class Ref<D extends DTypeName = DTypeName> extends Accessible<D> {
  /** Tells a ref from tiles and scalars. */
  readonly kind = "ref";
  /** Which memory it lies in; `peer` is shared memory of another block of the cluster. */
  readonly space: MemorySpace;

  /** @internal */
  constructor(made: Origin) {
    const { dtype, shape, space } = refTypeOf(made.value);
    super(made, dtype as DType<D>, shape);
    this.space = space;
  }

  /** @internal */
  [picked](): PickedElements {
    return whole;
  }

  /**
   * A window: for each axis a slice, `all`, or an index, which drops the axis. Axes that are not
   * mentioned are taken whole. Tiles of indices pick elements, which can be loaded, stored and updated; their own
   * axes stand where the first of them stands.
   */
  at(...indices: readonly WindowIndex[]): Ref<D>;
  at(...indices: readonly (WindowIndex | TileIndex)[]): PickedRef<D>;
  at(...indices: readonly (WindowIndex | TileIndex)[]): Ref<D> | PickedRef<D> {
    const location = captureLocation();
    const source = useValue(this, location);
    const window = resolveWindow(refTypeOf(source), indices, location);
    const { sizes, dropped, indexed } = window;
    const starts = window.offsets.map((offset) => indexValue("an index", offset, location));
    const { ref, offsets } = endedWindow(source, starts, window.ends, location);
    const operands = { ref, offsets };
    const made = emitOrigin("slice_ref", operands, { sizes, dropped }, location);
    if (indexed.length === 0) return new Ref(made);
    return new PickedRef(made, refTypeOf(made.value), indexed, location);
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

  /** Reads the element of a window without axes. */
  loadScalar(options: LoadScalarOptions = {}): Scalar<D> {
    const location = captureLocation();
    useValue(this, location);
    if (this.shape.length > 0) refuseAxes(this, location);
    return new Scalar(this.readScalar(options, location));
  }
}

/** The ref that stands for a value made just now. */
export function refObject(value: Value, location: Location): Ref {
  return new Ref(originOf(value, location));
}
