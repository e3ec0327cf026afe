/**
 * `reduceWith`: a reduction with a user-defined operator, over any axes of arrays with any strides. The operator combines states of one or
 * more numbers, which `load` makes of each element and `finish` makes into results:
 *
 *   logsumexp     load (x, 1)              combine (m = max, s = s₀·exp(m₀ − m) + s₁·exp(m₁ − m))     finish m + log s
 *   mean and      load (1, x, 0)           combine counts, means and squares (Chan)                  finish mean, m2 / count
 *   deviation
 *   nearest one   load (distance, index)   combine the less, of equal ones the first                 finish both
 *
 * Blocks accumulate element by element over their windows and combine threads at the end, so elements are not combined in order: the
 * operator must be associative and commutative. The order depends on the sizes and the number of processors alone, so results repeat
 * bit for bit.
 */
import type { HostValue } from "../../formats/dtype.ts";
import type { Operation } from "../../device/operation.ts";
import type { TensorSpec, Empty, Tile } from "../../lang/index.ts";
import { captureLocation } from "../../support/location.ts";
import type { Location } from "../../support/location.ts";
import { broadcastShape } from "../elementwise/map.ts";
import { givenAxes, requireFields } from "../support/arguments.ts";
import type { FormatOf } from "../support/arguments.ts";
import { combinedAlong, givenInputs, resultsOf, stateOf, underFreeNames } from "./user-combiner.ts";
import type { UserCombiner } from "./user-combiner.ts";
import { reducing, reduceNames } from "./reduce.ts";
import type { ReduceInputs } from "./reduce.ts";
import type { ReduceConfiguration } from "./reduce-kernel.ts";
import type { Reducer, ReduceTiles } from "./reducer.ts";

/** What `reduceWith` is made for: its inputs, the state of an element, and how two states combine. */
export interface ReduceWithSpec<
  Inputs extends ReduceInputs,
  State extends ReduceTiles,
  Results extends ReduceTiles,
> {
  /** Arrays that broadcast to one shape; a format is an array of n elements. */
  readonly inputs: Inputs;
  /** One axis or several that disappear; all of them by default. */
  readonly axis?: number | readonly number[];
  /** Whether reduced axes stay, with extent 1. */
  readonly keepDims?: boolean;
  /** The state of single elements. `index` is where each lies along the axis, where one axis is reduced. */
  readonly load: (
    tiles: { readonly [N in keyof Inputs]: Tile<FormatOf<Inputs[N]>> } & {
      readonly index: Tile<"i32">;
    },
  ) => State;
  /** Two states as one. */
  readonly combine: (left: NoInfer<State>, right: NoInfer<State>) => NoInfer<State>;
  /** A number for each part of the state: what changes nothing. */
  readonly identity: { readonly [N in keyof NoInfer<State>]: HostValue };
  /** Results, from the state of all elements; the state itself by default. */
  readonly finish?: (state: NoInfer<State>) => Results;
}

/** The operation that `reduceWith` makes. */
export type ReduceWithOperation<
  Inputs extends ReduceInputs,
  Results extends ReduceTiles,
> = Operation<
  { readonly [N in keyof Inputs]: TensorSpec<FormatOf<Inputs[N]>> },
  { readonly [N in keyof Results]: Results[N] extends Tile<infer D> ? TensorSpec<D> : never },
  Empty,
  ReduceConfiguration
>;

const fields = {
  inputs: "named",
  axis: "axisOrAxes",
  keepDims: "flag",
  load: "function",
  combine: "function",
  identity: "settings",
  finish: "function",
} as const;

/** Reduces axes with a user-defined operator, which is associative and commutative. */
export function reduceWith<
  const Inputs extends ReduceInputs,
  State extends ReduceTiles,
  Results extends ReduceTiles = State,
>(spec: ReduceWithSpec<Inputs, State, Results>): ReduceWithOperation<Inputs, Results> {
  const location = captureLocation();
  requireFields("reduceWith", spec, fields, location);
  return reduction(spec as never, location) as unknown as ReduceWithOperation<Inputs, Results>;
}

interface AnySpec extends UserCombiner {
  readonly axis?: number | readonly number[];
  readonly keepDims?: boolean;
}

function reduction(spec: AnySpec, location: Location): Operation {
  const specs = givenInputs("reduceWith", spec, location);
  const shape = broadcastShape("reduceWith", Object.values(specs), location);
  const axes = givenAxes("reduceWith", spec.axis, shape.length, location);
  const state = stateOf("reduceWith", spec, specs, axes.length === 1, location);
  const { finish = (tiles: ReduceTiles) => tiles } = spec;
  const results = resultsOf("reduceWith", finish, state, specs, location);
  const renamed = underFreeNames(spec, [specs, state, results], reduceNames, (inside) =>
    reduction(inside, location),
  );
  if (renamed !== undefined) return renamed;
  const { combine } = spec;
  const reducer: Reducer = {
    state: inKernel(state),
    lift: (tiles, index) => {
      const given = axes.length === 1 ? { ...tiles, index: index() } : tiles;
      const whole = windowShape(Object.values(given));
      const lifted = Object.entries(spec.load(given));
      return inKernel(
        Object.fromEntries(lifted.map(([name, tile]) => [name, tile.broadcastTo(whole)])),
      );
    },
    merge: (left, right) => inKernel(combine(asGiven(left), asGiven(right))),
    collapse: (tiles, along) =>
      inKernel(
        along.reduce((own, axis) => combinedAlong(own, axis, state, combine), asGiven(tiles)),
      ),
    finish: (tiles) => finish(asGiven(tiles)),
  };
  // Where a reduction is split, the kernel gives its state.
  return reducing("reduce_with", specs, shape, axes, spec.keepDims === true, reducer, results);
}

/** Parts of the state may be called like inputs, which kernels do not allow their arrays. */
const prefix = "part_";

function inKernel<T>(state: { readonly [name: string]: T }): { readonly [name: string]: T } {
  return Object.fromEntries(Object.entries(state).map(([name, part]) => [prefix + name, part]));
}

function asGiven<T>(state: { readonly [name: string]: T }): { readonly [name: string]: T } {
  return Object.fromEntries(
    Object.entries(state).map(([name, part]) => [name.slice(prefix.length), part]),
  );
}

/** The shape that tiles of a window broadcast to. */
function windowShape(tiles: readonly Tile[]): readonly number[] {
  return [0, 1].map((axis) => Math.max(...tiles.map(({ shape }) => shape[axis] ?? 1)));
}
