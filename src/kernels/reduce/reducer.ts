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
 * How a lane goes through neighbouring elements of the only reduced axis, a run of them at a time, where that is less work than
 * states of single elements. Tiles of runs are [lanes, elements of each], and what belongs to a lane is [lanes, 1].
 */
export interface RunReducer {
  /** What a lane keeps: a number of its own, or one for each element of a run. */
  readonly kept: { readonly [name: string]: StatePart & { readonly per: "lane" | "element" } };
  /** What stands for elements beyond the end. */
  readonly beyond: HostValue;
  /** What is kept after a run, which is the step-th of the axis. */
  readonly merge: (kept: ReduceTiles, tiles: ReduceTiles, step: Scalar<"i32">) => ReduceTiles;
  /** The state of each lane; `position` is where an element of the step-th run lies, of each lane its own. */
  readonly state: (
    kept: ReduceTiles,
    position: (step: Tile<"i32">, element: Tile<"i32">) => Tile<"i32">,
  ) => ReduceTiles;
}

export interface Reducer {
  readonly runs?: RunReducer;
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
