/**
 * Grids of steps: what a pipeline counts through, last axis fastest. The indices advance like an odometer, so that
 * finding them takes no division:
 *
 *   { i: 2, k: 3 }    step   0      1      2      3      4      5
 *                     i, k   0, 0   0, 1   0, 2   1, 0   1, 1   1, 2
 */
import { i32 } from "../../formats/dtype.ts";
import type { Location } from "../../support/location.ts";
import { isReadable, isRecord } from "../../support/options.ts";
import { constant } from "../create.ts";
import { isIndex } from "../indices.ts";
import type { Index } from "../indices.ts";
import { Scalar } from "../elementwise.ts";
import { wrongKind } from "../traced.ts";
import { asScalar } from "./ring.ts";

/** How many steps there are along each named axis. */
export interface StepGrid {
  readonly [axis: string]: Index;
}

/** The indices of a step, by the names of the axes. */
export type AxesOf<G> = { readonly [N in keyof G]: Scalar<"i32"> };

export type Axes = { readonly [axis: string]: Scalar<"i32"> };

/** A position in the grid, to be carried by a loop: nothing where the loop's own index says it. */
export type Odometer = readonly Scalar<"i32">[];

export class Steps {
  readonly names: readonly string[];
  /** How many steps there are in all. */
  readonly total: Scalar<"i32">;
  readonly #extents: readonly Scalar<"i32">[];
  readonly #from: Scalar<"i32"> | undefined;
  readonly #grid: StepGrid;
  readonly #location: Location;

  /** All steps of a grid, or so many, of one axis from some step on. */
  constructor(
    grid: StepGrid,
    location: Location,
    part?: { readonly from?: Scalar<"i32"> | undefined; readonly steps: Scalar<"i32"> },
  ) {
    if (!isRecord(grid) || !isReadable(grid, []) || Object.keys(grid).length === 0)
      wrongKind("a grid of steps", "an object with a count for each axis", grid, location);
    this.names = Object.keys(grid);
    this.#extents = Object.entries(grid).map(([name, extent]) => countOf(name, extent, location));
    const [first, ...others] = this.#extents;
    if (first === undefined) throw new Error("a grid of steps has an axis");
    this.total = part?.steps ?? others.reduce((product, extent) => product.mul(extent), first);
    this.#from = part?.from;
    this.#grid = grid;
    this.#location = location;
  }

  /** The same without the last ones. */
  but(last: number): Steps {
    if (last === 0) return this;
    const steps = this.total.sub(last);
    return new Steps(this.#grid, this.#location, { from: this.#from, steps });
  }

  start(): Odometer {
    if (this.#extents.length === 1) return [];
    return this.#extents.map(() => constant(i32, 0));
  }

  next(odometer: Odometer): Odometer {
    let carried: Scalar<"i32"> | undefined;
    const advanced = odometer.toReversed().map((index, position) => {
      const extent = this.#extents.at(-1 - position);
      const outermost = position === odometer.length - 1;
      const following = carried === undefined ? index.add(1) : index.add(carried);
      if (outermost || extent === undefined) return following;
      const wraps = following.eq(extent);
      carried = wraps.cast(i32);
      return wraps.select(0, following);
    });
    return advanced.toReversed();
  }

  /** The indices by name, of step `step` at `odometer`. */
  axes(step: Scalar<"i32">, odometer: Odometer): Axes {
    const [only] = this.names;
    if (odometer.length === 0 && only !== undefined)
      return { [only]: this.#from === undefined ? step : this.#from.add(step) };
    return Object.fromEntries(
      this.names.flatMap((name, axis) => {
        const index = odometer[axis];
        return index === undefined ? [] : [[name, index] as const];
      }),
    );
  }
}

/** A count that is known only as the kernel runs may come out below 0, and then there are no steps. */
function countOf(name: string, extent: unknown, location: Location): Scalar<"i32"> {
  if (!isIndex(extent) || (typeof extent === "number" && !isCount(extent)))
    return wrongKind(
      `the number of steps along ${name}`,
      "a whole number from 0, an i32 scalar or a size",
      extent,
      location,
    );
  return extent instanceof Scalar ? extent.maximum(0) : asScalar(extent);
}

function isCount(extent: number): boolean {
  return Number.isSafeInteger(extent) && extent >= 0;
}
