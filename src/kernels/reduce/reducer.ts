/**
 * What a reduction computes, apart from which axes it goes along. Elements are lifted into a state, states are merged
 * element by element while a block goes through its part, and collapsed across lanes at the end:
 *
 *   sum       lift x            merge a + b                      collapse sum
 *   argmax    lift (x, index)   merge the greater, then first    collapse the greatest, and of its indices the least
 *
 * Where a reduction is split, states go through memory, and a second launch lifts them as they are.
 */
import type { DType } from "../../formats/dtype.ts";
import type { HostValue } from "../../formats/dtype.ts";
import type { Tile } from "../../lang/index.ts";

export interface ReduceTiles {
  readonly [name: string]: Tile;
}

/** A number of the state, and what it is before anything is merged. */
export interface StatePart {
  readonly dtype: DType;
  readonly identity: HostValue;
}

export interface Reducer {
  readonly state: { readonly [name: string]: StatePart };
  /** The state of single elements; `index` is the position of each along the reduced axis, where there is one. */
  readonly lift: (tiles: ReduceTiles, index: () => Tile<"i32">) => ReduceTiles;
  readonly merge: (left: ReduceTiles, right: ReduceTiles) => ReduceTiles;
  /** The state along axes of a tile, which keep extent 1. */
  readonly collapse: (state: ReduceTiles, axes: readonly number[]) => ReduceTiles;
  readonly finish: (state: ReduceTiles) => ReduceTiles;
}

/** What a part of the state is called where it is read again. */
export function stateName(name: string): string {
  return `state_${name}`;
}

/** A reducer whose elements are states already. */
export function ofStates(reducer: Reducer): Reducer {
  const names = Object.keys(reducer.state);
  return {
    ...reducer,
    lift: (tiles) =>
      Object.fromEntries(
        names.flatMap((name) => {
          const tile = tiles[stateName(name)];
          return tile === undefined ? [] : [[name, tile]];
        }),
      ),
  };
}

/** A reducer that gives its state. */
export function unfinished(reducer: Reducer): Reducer {
  return { ...reducer, finish: (state) => state };
}
