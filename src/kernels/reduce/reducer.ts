/**
 * What a reduction computes, independent of its axes. Elements are lifted into states, states are merged element by element while a
 * block loops over its share, and collapsed across threads at the end:
 *
 *   sum       lift x            merge a + b                      collapse sum
 *   argmax    lift (x, index)   merge the greater, then first    collapse the greatest, and of its indices the least
 *
 * Where a reduction is split, states go through memory, and a second launch lifts them as they are.
 */
import type { DType } from "../../formats/dtype.ts";
import type { HostValue } from "../../formats/dtype.ts";
import type { Scalar, Tile } from "../../lang/index.ts";

export interface ReduceTiles {
  readonly [name: string]: Tile;
}

/** A number of the state, and what it is before anything is merged. */
export interface StatePart {
  readonly dtype: DType;
  readonly identity: HostValue;
}

/**
 * How a thread reduces neighbouring elements of the only reduced axis, a vector at a time, where that is cheaper than a state for each element.
 * Tiles of vectors are [threads, elements of a thread], per-thread values [threads, 1].
 */
export interface VectorReducer {
  /** What a thread keeps: one number, or one for each element of a vector. */
  readonly kept: { readonly [name: string]: StatePart & { readonly per: "lane" | "element" } };
  /** What stands for elements beyond the end. */
  readonly beyond: HostValue;
  /** What is kept after a run, which is the step-th of the axis. */
  readonly merge: (kept: ReduceTiles, tiles: ReduceTiles, step: Scalar<"i32">) => ReduceTiles;
  /** The state of each thread; `position` gives the position of an element of its vector in a step. */
  readonly state: (
    kept: ReduceTiles,
    position: (step: Tile<"i32">, element: Tile<"i32">) => Tile<"i32">,
  ) => ReduceTiles;
}

export interface Reducer {
  readonly runs?: VectorReducer;
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
export function ofStates({ runs: _, ...reducer }: Reducer): Reducer {
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
