/**
 * Elements of a window that tiles of indices pick. They can be loaded, stored and updated; they are no window, since
 * they lie wherever the indices say.
 *
 *   table: [n, 64], ids: tile<i32, [16]>
 *
 *   table.at(ids).load()              tile [16, 64]: row ids[i] of the table is row i
 *   table.at(ids, columns).load()     tile [16], columns: [16]: element (ids[i], columns[i])
 */
import type { DType, DTypeName } from "../formats/dtype.ts";
import { indexedShape } from "../ir/indexed.ts";
import type { Value } from "../ir/node.ts";
import type { RefType } from "../ir/types.ts";
import type { Location } from "../support/location.ts";
import { Accessible, picked } from "./access.ts";
import type { PickedElements } from "./access.ts";
import { joinShapes, shapeOf } from "./broadcast.ts";
import type { Tile } from "./tile.ts";
import { emitValue } from "./trace.ts";
import type { Origin } from "./trace.ts";
import { useValue } from "./traced.ts";

/** A tile of positions along an axis. */
export type TileIndex = Tile<"i32"> | Tile<"i64"> | Tile<"i32" | "i64">;

/** An axis of a window, and the tile that picks along it. */
export interface IndexedAxis {
  readonly axis: number;
  readonly tile: Tile;
}

/** Rows or elements of an array that index tiles pick, to gather from and scatter to. */
export class PickedRef<D extends DTypeName = DTypeName> extends Accessible<D> {
  /** Tells picked elements from a window. */
  readonly kind = "picked";
  readonly #axes: readonly IndexedAxis[];
  readonly #rank: number;

  /** @internal */
  constructor(made: Origin, window: RefType, axes: readonly IndexedAxis[], location: Location) {
    const joined = joinShapes(
      "at",
      axes.map(({ tile }) => tile.shape),
      location,
    );
    const indexed = axes.map(({ axis }) => axis);
    super(made, window.dtype as DType<D>, indexedShape(window.shape, indexed, joined).shape);
    this.#axes = axes;
    this.#rank = joined.length;
  }

  /** @internal */
  [picked](location: Location): PickedElements {
    return {
      indices: this.#axes.map(({ tile }) => this.#index(tile, location)),
      indexed: this.#axes.map(({ axis }) => axis),
    };
  }

  /** The tile with leading axes of extent 1 where others have more axes. */
  #index(tile: Tile, location: Location): Value {
    const source = useValue(tile, location);
    const own = shapeOf(source);
    if (own.length === this.#rank) return source;
    const shape = [...Array.from({ length: this.#rank - own.length }, () => 1), ...own];
    return emitValue("reshape", { source }, { shape }, location);
  }
}
