/**
 * `reduceWith`: a reduction by a function of one's own, over any axes of arrays with any strides. What is combined is a state of
 * one or more numbers, made of each element by `load`, and made into results by `finish`:
 *
 *   logsumexp     load (x, 1)              combine (m = max, s = s₀·exp(m₀ − m) + s₁·exp(m₁ − m))     finish m + log s
 *   mean and      load (1, x, 0)           combine counts, means and squares (Chan)                  finish mean, m2 / count
 *   deviation
 *   nearest one   load (distance, index)   combine the less, of equal ones the first                 finish both
 *
 * Blocks combine what lies in one place of their windows first, and lanes at the end, so that neighbours do not meet in their
 * order: the function has to be associative and commutative. The order is the same whenever sizes and processors are, so that
 * results repeat bit for bit.
 */
import { dtypes } from "../../formats/dtype.ts";
import type { DType, HostValue } from "../../formats/dtype.ts";
import type { Operation } from "../../device/operation.ts";
import { array, dim, reduceWith as combineTiles } from "../../lang/index.ts";
import type { ArraySpec, Empty, Tile } from "../../lang/index.ts";
import { captureLocation } from "../../support/location.ts";
import type { Location } from "../../support/location.ts";
import { isRecord, optionText } from "../../support/options.ts";
import { broadcastShape } from "../elementwise/map.ts";
import { tracedResults } from "../elementwise/traced-results.ts";
import { givenArray, givenAxis, refused, requireFields } from "../support/given.ts";
import type { FormatOf } from "../support/given.ts";
import { reducing } from "./reduce.ts";
import type { ReduceInputs } from "./reduce.ts";
import type { ReduceConfiguration } from "./reduce-kernel.ts";
import type { Reducer, ReduceTiles, StatePart } from "./reducer.ts";

export interface ReduceWithSpec<
  Inputs extends ReduceInputs,
  State extends ReduceTiles,
  Results extends ReduceTiles,
> {
  /** Arrays that broadcast to one shape; a format is an array of n elements. */
  readonly inputs: Inputs;
  /** Axes that disappear; all of them unless told. */
  readonly axes?: readonly number[];
  /** Whether reduced axes stay, with extent 1. */
  readonly keep?: boolean;
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
  /** Results, from the state of all elements; the state itself unless told. */
  readonly finish?: (state: NoInfer<State>) => Results;
}

export type ReduceWithOperation<
  Inputs extends ReduceInputs,
  Results extends ReduceTiles,
> = Operation<
  { readonly [N in keyof Inputs]: ArraySpec<FormatOf<Inputs[N]>> },
  { readonly [N in keyof Results]: Results[N] extends Tile<infer D> ? ArraySpec<D> : never },
  Empty,
  ReduceConfiguration
>;

const fields = {
  inputs: "named",
  axes: "axes",
  keep: "flag",
  load: "function",
  combine: "function",
  identity: "settings",
  finish: "function",
} as const;

/** Elements combined over axes by a function of one's own, which is associative and commutative. */
export function reduceWith<
  const Inputs extends ReduceInputs,
  State extends ReduceTiles,
  Results extends ReduceTiles = State,
>(spec: ReduceWithSpec<Inputs, State, Results>): ReduceWithOperation<Inputs, Results> {
  const location = captureLocation();
  requireFields("reduceWith", spec, fields, location);
  return reduction(spec as never, location) as unknown as ReduceWithOperation<Inputs, Results>;
}

interface AnySpec {
  readonly inputs: ReduceInputs;
  readonly axes?: readonly number[];
  readonly keep?: boolean;
  readonly load: (tiles: ReduceTiles) => ReduceTiles;
  readonly combine: (left: ReduceTiles, right: ReduceTiles) => ReduceTiles;
  readonly identity: { readonly [name: string]: HostValue };
  readonly finish?: (state: ReduceTiles) => ReduceTiles;
}

function requireParts(spec: { readonly [field: string]: unknown }, location: Location): void {
  for (const [field, expected] of [
    ["inputs", "arrays by name"],
    ["load", "a function"],
    ["combine", "a function"],
  ] as const)
    if (spec[field] === undefined)
      throw refused(
        field === "inputs" ? "TW9902" : "TW9905",
        `reduceWith has no ${field}`,
        `${field}: ${expected}`,
        "nothing",
        location,
      );
}

function reduction(spec: AnySpec, location: Location): Operation {
  requireParts(spec as never, location);
  const specs: { [name: string]: ArraySpec } = {};
  for (const [name, given] of Object.entries(spec.inputs as object))
    specs[name] = givenArray(name, "reduceWith", given, [dim("n")], location);
  if (Object.keys(specs).length === 0 || Object.hasOwn(specs, "index"))
    throw refused(
      "TW9902",
      "reduceWith has no arrays, or one whose name is taken",
      "{ x: f32, … }, and none of them index",
      optionText(Object.keys(specs)),
      location,
    );
  const shape = broadcastShape("reduceWith", Object.values(specs), location);
  const axes = (spec.axes ?? shape.map((_, axis) => axis)).map((axis) =>
    givenAxis("reduceWith", axis, shape.length, location),
  );
  const state = stateOf(spec, specs, axes.length === 1, location);
  const { finish = (tiles: ReduceTiles) => tiles } = spec;
  const formats = Object.fromEntries(
    Object.entries(state).map(([name, { dtype }]) => [name, array(dtype, [1])]),
  );
  const results = tracedResults(
    "reduceWith",
    formats,
    {},
    (tiles) => finish(tiles as ReduceTiles) as never,
    location,
  );
  const taken = Object.keys(results).find((name) => Object.hasOwn(specs, name));
  if (taken !== undefined)
    throw refused(
      "TW9905",
      "a result of reduceWith is called like an input",
      `other names than ${Object.keys(specs).join(", ")}`,
      taken,
      location,
    );
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
      inKernel(along.reduce((own, axis) => collapsed(own, axis, state, combine), asGiven(tiles))),
    finish: (tiles) => finish(asGiven(tiles)),
  };
  // Where a reduction is split, the kernel gives its state.
  return reducing("reduce_with", specs, shape, axes, spec.keep === true, reducer, results);
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

/** The formats of the state, as `load` gives them, with what changes nothing; `combine` has to keep them. */
function stateOf(
  { load, combine, identity }: AnySpec,
  specs: { readonly [name: string]: ArraySpec },
  hasIndex: boolean,
  location: Location,
): { readonly [name: string]: StatePart } {
  const given = hasIndex ? { ...specs, index: array(dtypes.i32, [1]) } : specs;
  const loaded = tracedResults(
    "reduceWith",
    given,
    {},
    (tiles) => load(tiles as ReduceTiles) as never,
    location,
  );
  const sides = ["left", "right"].flatMap((side) =>
    Object.entries(loaded).map(([name, dtype]) => [`${side}_${name}`, array(dtype, [1])] as const),
  );
  const combined = tracedResults(
    "reduceWith",
    Object.fromEntries(sides),
    {},
    (tiles) => {
      const side = (prefix: string): ReduceTiles =>
        Object.fromEntries(
          Object.keys(loaded).map((name) => [name, tiles[`${prefix}_${name}`] as Tile]),
        );
      return combine(side("left"), side("right")) as never;
    },
    location,
  );
  const text = (formats: { readonly [name: string]: DType }): string =>
    Object.entries(formats)
      .map(([name, { name: format }]) => `${name}: ${format}`)
      .sort()
      .join(", ");
  if (text(loaded) !== text(combined))
    throw refused(
      "TW9905",
      "what reduceWith combines is another state than what it loads",
      text(loaded),
      text(combined),
      location,
    );
  return Object.fromEntries(
    Object.entries(loaded).map(([name, dtype]) => {
      const own: unknown = isRecord(identity) ? identity[name] : undefined;
      if (!["number", "bigint", "boolean"].includes(typeof own))
        throw refused(
          "TW9904",
          `the identity of reduceWith has no ${name}`,
          `a number for each of ${Object.keys(loaded).join(", ")}`,
          optionText(identity),
          location,
        );
      return [name, { dtype, identity: own as HostValue }];
    }),
  );
}

/** The shape that tiles of a window broadcast to. */
function windowShape(tiles: readonly Tile[]): readonly number[] {
  return [0, 1].map((axis) => Math.max(...tiles.map(({ shape }) => shape[axis] ?? 1)));
}

/** A state along one axis of its tiles, which keeps extent 1. */
function collapsed(
  tiles: ReduceTiles,
  axis: number,
  state: { readonly [name: string]: StatePart },
  combine: AnySpec["combine"],
): ReduceTiles {
  const names = Object.keys(state);
  const named = (list: readonly Tile[]): ReduceTiles =>
    Object.fromEntries(names.flatMap((name, at) => (list[at] ? [[name, list[at]]] : [])));
  const listed = (own: ReduceTiles): readonly Tile[] =>
    names.flatMap((name) => (own[name] ? [own[name]] : []));
  const reduced = combineTiles(
    listed(tiles),
    (left: readonly Tile[], right: readonly Tile[]) => listed(combine(named(left), named(right))),
    {
      axis,
      identity: names.map((name) => state[name]?.identity ?? 0),
      keep: true,
    } as never,
  );
  return named(reduced);
}
