/**
 * Gathers and scatters: accesses to elements of a window by tiles of indices. The index tiles broadcast as NumPy's shapes do, and the axes of what they join to stand where the first indexed axis stood:
 *
 *   x: [n, 16, 64]     x.at(rows, all, columns), rows: [8, 1], columns: [1, 4]
 *
 *   | axis of the window | indexed by | axes of the tile          |
 *   |--------------------|------------|---------------------------|
 *   | 0                  | rows       | 0 and 1: rows and columns |
 *   | 1                  |            | 2                         |
 *   | 2                  | columns    |                           |
 *
 *   element (i, j, k) of the tile is x[rows[i, 0], k, columns[0, j]]
 */
import type { OpOf, Value } from "./node.ts";
import type { Size } from "./size.ts";
import { dataShape, isData } from "./types.ts";
import type { TileType, Type } from "./types.ts";

/** The ops that access elements of a window at once. */
export type AccessOp = OpOf<
  "load" | "store" | "atomic" | "atomic_compare_exchange" | "atomic_load" | "atomic_store"
>;

export interface IndexedShape {
  /** The shape of the tile; extents of axes that are not indexed are the window's own. */
  readonly shape: readonly Size[];
  /** The axes of the tile that the index tiles have, in order. */
  readonly indexAxes: readonly number[];
  /** For each axis of the window the axis of the tile that runs along it; undefined where it is indexed. */
  readonly axisOf: readonly (number | undefined)[];
}

/** The extents that index tiles of one rank join to; undefined where they do not fit together. */
export function joinedExtents(tiles: readonly TileType[]): readonly number[] | undefined {
  const [first, ...others] = tiles.map(({ shape }) => shape);
  if (first === undefined) return [];
  let joined = first;
  for (const shape of others) {
    const fits =
      shape.length === joined.length &&
      shape.every((extent, axis) => extent === 1 || joined[axis] === 1 || extent === joined[axis]);
    if (!fits) return undefined;
    joined = joined.map((extent, axis) => (extent === 1 ? (shape[axis] ?? 1) : extent));
  }
  return joined;
}

/** How a tile lies over a window of which the axes `indexed`, in order, are picked by joined index tiles. */
export function indexedShape(
  window: readonly Size[],
  indexed: readonly number[],
  joined: readonly number[],
): IndexedShape {
  const first = indexed[0] ?? 0;
  const kept = window.map((_, axis) => axis).filter((axis) => !indexed.includes(axis));
  const rank = indexed.length === 0 ? 0 : joined.length;
  const axisOf = window.map((_, axis) => {
    const position = kept.indexOf(axis);
    if (position < 0) return undefined;
    return position < first ? position : position + rank;
  });
  const sizes = kept.map((axis) => window[axis] ?? 1);
  return {
    shape: [...sizes.slice(0, first), ...(rank === 0 ? [] : joined), ...sizes.slice(first)],
    indexAxes: Array.from({ length: rank }, (_, axis) => first + axis),
    axisOf,
  };
}

/** How an access that passed inference lies over its window. */
export function gatheredShape({ operands, attributes }: AccessOp): IndexedShape {
  const window = operands.ref.type.kind === "ref" ? operands.ref.type.shape : [];
  const joined = joinedExtents(operands.indices.map(({ type }) => tileTypeOf(type)));
  if (joined === undefined) throw new Error("index tiles that do not fit together");
  return indexedShape(window, attributes.indexed ?? [], joined);
}

function tileTypeOf(type: Type): TileType {
  if (type.kind !== "tile") throw new Error("an index that is no tile");
  return type;
}

/** How an operand is repeated over the tile: its extents, the tile's, and the tile's axis for each of its own. */
export interface Repetition {
  readonly value: Value;
  readonly from: readonly number[];
  readonly to: readonly number[];
  readonly axes: readonly number[];
}

/** The index tiles and the mask of an access, as they repeat over its tile; nothing for a scalar. */
export function repetitionsOf(op: AccessOp, to: readonly number[]): readonly Repetition[] {
  const { indices, where } = op.operands;
  const { indexAxes } = gatheredShape(op);
  const repeat = (value: Value, axes: readonly number[]): Repetition => ({
    value,
    from: isData(value.type) ? dataShape(value.type) : [],
    to,
    axes,
  });
  const masks =
    where?.type.kind === "tile"
      ? [
          repeat(
            where,
            to.map((_, axis) => axis),
          ),
        ]
      : [];
  return [...indices.map((index) => repeat(index, indexAxes)), ...masks];
}
