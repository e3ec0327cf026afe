/**
 * User-defined operators of reductions and scans: their states and results, found by tracing them on small tiles, and how states are combined
 * along an axis.
 *
 *   load ({ x }) ──▶ state ──combine──▶ state ──finish──▶ results
 */
import type { Operation } from "../../device/operation.ts";
import { dtypes } from "../../formats/dtype.ts";
import type { DType, HostValue } from "../../formats/dtype.ts";
import { tensor, dim, reduceWith, scanWith } from "../../lang/index.ts";
import type { TensorSpec, Tile } from "../../lang/index.ts";
import type { Location } from "../../support/location.ts";
import { isRecord, optionText, requireKnownOptions } from "../../support/options.ts";
import { tracedResults } from "../elementwise/traced-results.ts";
import { ReservedNames } from "../support/reserved-names.ts";
import { givenArray, refused } from "../support/arguments.ts";
import type { ReduceInputs } from "./reduce.ts";
import type { ReduceTiles, StatePart } from "./reducer.ts";

/** The functions of the user, without the types of their tiles. */
export interface UserCombiner {
  readonly inputs: ReduceInputs;
  readonly load: (tiles: ReduceTiles) => ReduceTiles;
  readonly combine: (left: ReduceTiles, right: ReduceTiles) => ReduceTiles;
  readonly identity: { readonly [name: string]: HostValue };
  readonly finish?: (state: ReduceTiles) => ReduceTiles;
}

function requireParts(
  of: string,
  spec: { readonly [field: string]: unknown },
  location: Location,
): void {
  for (const [field, expected] of [
    ["inputs", "arrays by name"],
    ["load", "a function"],
    ["combine", "a function"],
  ] as const)
    if (spec[field] === undefined)
      throw refused(
        field === "inputs" ? "TW9902" : "TW9905",
        `${of} has no ${field}`,
        `${field}: ${expected}`,
        "nothing",
        location,
      );
}

/** The arrays that are combined; a format is one of n elements. */
export function givenInputs(
  of: string,
  spec: UserCombiner,
  location: Location,
): { readonly [name: string]: TensorSpec } {
  requireParts(of, spec as never, location);
  const specs: { [name: string]: TensorSpec } = {};
  for (const [name, given] of Object.entries(spec.inputs))
    specs[name] = givenArray(name, of, given, [dim("n")], location);
  if (Object.keys(specs).length > 0 && !Object.hasOwn(specs, "index")) return specs;
  throw refused(
    "TW9902",
    `${of} has no arrays, or one whose name is taken`,
    "{ x: f32, … }, and none of them index",
    optionText(Object.keys(specs)),
    location,
  );
}

/** The formats of the state, as `load` gives them, with what changes nothing; `combine` has to keep them. */
export function stateOf(
  of: string,
  { load, combine, identity }: UserCombiner,
  specs: { readonly [name: string]: TensorSpec },
  hasIndex: boolean,
  location: Location,
): { readonly [name: string]: StatePart } {
  const given = hasIndex ? { ...specs, index: tensor(dtypes.i32, [1]) } : specs;
  const loaded = tracedResults(
    of,
    given,
    {},
    (tiles) => load(tiles as ReduceTiles) as never,
    location,
  );
  const sides = ["left", "right"].flatMap((side) =>
    Object.entries(loaded).map(([name, dtype]) => [`${side}_${name}`, tensor(dtype, [1])] as const),
  );
  const combined = tracedResults(
    of,
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
      `what ${of} combines is another state than what it loads`,
      text(loaded),
      text(combined),
      location,
    );
  const state = Object.fromEntries(
    Object.entries(loaded).map(([name, dtype]) => {
      const own: unknown = isRecord(identity) ? identity[name] : undefined;
      if (!["number", "bigint", "boolean"].includes(typeof own))
        throw refused(
          "TW9904",
          `the identity of ${of} has no ${name}`,
          `a number for each of ${Object.keys(loaded).join(", ")}`,
          optionText(identity),
          location,
        );
      return [name, { dtype, identity: own as HostValue }];
    }),
  );
  requireKnownOptions(`the identity of ${of}`, identity, Object.keys(state), "TW1033", location);
  return state;
}

/** Names and formats of what `finish` makes of the state. */
export function resultsOf(
  of: string,
  finish: (state: ReduceTiles) => ReduceTiles,
  state: { readonly [name: string]: StatePart },
  specs: { readonly [name: string]: TensorSpec },
  location: Location,
): { readonly [name: string]: DType } {
  const formats = Object.fromEntries(
    Object.entries(state).map(([name, { dtype }]) => [name, tensor(dtype, [1])]),
  );
  const results = tracedResults(
    of,
    formats,
    {},
    (tiles) => finish(tiles as ReduceTiles) as never,
    location,
  );
  const taken = Object.keys(results).find((name) => Object.hasOwn(specs, name));
  if (taken === undefined) return results;
  throw refused(
    "TW9905",
    `a result of ${of} is called like an input`,
    `other names than ${Object.keys(specs).join(", ")}`,
    taken,
    location,
  );
}

/** The same under names that kernels leave free; undefined where all names can stay. */
export function underFreeNames<S extends UserCombiner>(
  spec: S,
  given: readonly object[],
  taken: RegExp,
  make: (spec: S) => Operation,
): Operation | undefined {
  const names = ReservedNames.of(
    given.flatMap((each) => Object.keys(each)),
    taken,
  );
  if (names === undefined) return undefined;
  const { inputs, load, combine, identity, finish } = spec;
  return names.operation(
    make({
      ...spec,
      inputs: names.inside(inputs),
      load: names.around(load),
      combine: names.around(combine),
      identity: names.inside(identity),
      ...(finish !== undefined && { finish: names.around(finish) }),
    }),
  );
}

/** A state as the list of tiles that the language combines, and back. */
class ListedState {
  readonly #names: readonly string[];
  readonly #combine: UserCombiner["combine"];
  readonly identity: readonly HostValue[];

  constructor(state: { readonly [name: string]: StatePart }, combine: UserCombiner["combine"]) {
    this.#names = Object.keys(state);
    this.#combine = combine;
    this.identity = this.#names.map((name) => state[name]?.identity ?? 0);
  }

  named(list: readonly Tile[]): ReduceTiles {
    return Object.fromEntries(
      this.#names.flatMap((name, at) => (list[at] ? [[name, list[at]]] : [])),
    );
  }

  listed(own: ReduceTiles): readonly Tile[] {
    return this.#names.flatMap((name) => (own[name] ? [own[name]] : []));
  }

  combine = (left: readonly Tile[], right: readonly Tile[]): readonly Tile[] =>
    this.listed(this.#combine(this.named(left), this.named(right)));
}

/** A state along one axis of its tiles, which keeps extent 1. */
export function combinedAlong(
  tiles: ReduceTiles,
  axis: number,
  state: { readonly [name: string]: StatePart },
  combine: UserCombiner["combine"],
): ReduceTiles {
  const list = new ListedState(state, combine);
  const options = { axis, identity: list.identity, keepDims: true };
  return list.named(reduceWith(list.listed(tiles), list.combine, options));
}

/** Every state along one axis of its tiles with those before it, or behind it in reverse. */
export function runningAlong(
  tiles: ReduceTiles,
  axis: number,
  reverse: boolean,
  state: { readonly [name: string]: StatePart },
  combine: UserCombiner["combine"],
): ReduceTiles {
  const list = new ListedState(state, combine);
  const options = { axis, identity: list.identity, reverse };
  return list.named(scanWith(list.listed(tiles), list.combine, options));
}
