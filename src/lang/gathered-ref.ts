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
import type { Size } from "../ir/size.ts";
import { atLocation } from "../support/location.ts";
import type { Location } from "../support/location.ts";
import { Accessible, picked } from "./access.ts";
import type { PickedElements } from "./access.ts";
import { joinShapes, shapeOf } from "./broadcast.ts";
import { constant } from "./create.ts";
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
  readonly #window: readonly Size[];
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
    this.#window = window.shape;
    this.#rank = joined.length;
  }

  /** @internal */
  [picked](location: Location): PickedElements {
    return {
      indices: this.#axes.map(({ tile }) => this.#index(tile, location)),
      indexed: this.#axes.map(({ axis }) => axis),
      inside: () => this.#inside(location),
    };
  }

  /** Which elements have indices in bounds along each axis that tiles pick along. */
  #inside(location: Location): Tile<"bool"> {
    return atLocation(location, () => {
      const tests = this.#axes.map(({ axis, tile }) => {
        const extent = constant(tile.dtype, this.#window[axis] ?? 1);
        return tile.ge(0).and(tile.lt(extent));
      });
      const [first, ...others] = tests;
      if (first === undefined) throw new Error("what is picked is picked by tiles");
      const all = others.reduce((some, test) => some.and(test), first);
      // Axes that no tile picks along come before and behind; extents of 1 repeat.
      const before = this.#axes[0]?.axis ?? 0;
      const behind = this.shape.length - before - this.#rank;
      const ones = (count: number): readonly number[] => Array.from({ length: count }, () => 1);
      const missing = this.#rank - all.shape.length;
      return all.reshape([...ones(before + missing), ...all.shape, ...ones(behind)]);
    });
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
