/**
 * `scanWith`: a scan with a user-defined associative operator, along an axis of arrays with any strides and of any length, in one pass
 * over memory. The operator combines states of one or more numbers, as for `reduceWith`:
 *
 *   linear recurrence     load (a, b)         combine (a₀·a₁, a₁·b₀ + b₁)                      finish b: h = a·h' + b
 *   running logsumexp     load (x, 1)         combine (m = max, s = s₀·exp(m₀ − m) + …)        finish m + log s
 *   sums by segments      load (start, x)     combine (s₀ | s₁, s₁ ? x₁ : x₀ + x₁)             finish x
 *
 * States are combined in their order along the scan: the operator must be associative and need not be commutative. The order of
 * combining depends on the sizes and the number of processors alone, so results repeat bit for bit.
 */
import type { HostValue } from "../../formats/dtype.ts";
import type { Operation } from "../../device/operation.ts";
import { tensor } from "../../lang/index.ts";
import type { TensorSpec, Empty, Tile } from "../../lang/index.ts";
import { captureLocation } from "../../support/location.ts";
import { broadcastShape } from "../elementwise/map.ts";
import {
  combinedAlong,
  givenInputs,
  resultsOf,
  runningAlong,
  stateOf,
  underFreeNames,
} from "../reduce/user-combiner.ts";
import type { UserCombiner } from "../reduce/user-combiner.ts";
import type { ReduceInputs } from "../reduce/reduce.ts";
import type { ReduceTiles } from "../reduce/reducer.ts";
import { givenAxis, refused, requireFields } from "../support/arguments.ts";
import type { FormatOf } from "../support/arguments.ts";
import { scanning } from "./plan-scan.ts";
import type { ScanConfiguration, ScanRule } from "./scan-kernel.ts";

/** What `scanWith` is made for: its inputs, the state of an element, and how two states combine. */
export interface ScanWithSpec<
  Inputs extends ReduceInputs,
  State extends ReduceTiles,
  Results extends ReduceTiles,
> {
  /** Arrays that broadcast to one shape; a format is an array of n elements. */
  readonly inputs: Inputs;
  /** The last by default. */
  readonly axis?: number;
  /** Whether it runs from the last element to the first. */
  readonly reverse?: boolean;
  /** The state of single elements. */
  readonly load: (tiles: {
    readonly [N in keyof Inputs]: Tile<FormatOf<Inputs[N]>>;
  }) => State;
  /** Two states as one: what was met first, and what was met after it. */
  readonly combine: (before: NoInfer<State>, after: NoInfer<State>) => NoInfer<State>;
  /** A number for each part of the state: what changes nothing. */
  readonly identity: { readonly [N in keyof NoInfer<State>]: HostValue };
  /** Results, from the state of all elements so far; the state itself by default. */
  readonly finish?: (state: NoInfer<State>) => Results;
  /** Instead of what the model would choose. */
  readonly configuration?: ScanConfiguration;
}

/** The operation that `scanWith` makes. */
export type ScanWithOperation<Inputs extends ReduceInputs, Results extends ReduceTiles> = Operation<
  { readonly [N in keyof Inputs]: TensorSpec<FormatOf<Inputs[N]>> },
  { readonly [N in keyof Results]: Results[N] extends Tile<infer D> ? TensorSpec<D> : never },
  Empty,
  ScanConfiguration
>;

const fields = {
  inputs: "named",
  axis: "number",
  reverse: "flag",
  load: "function",
  combine: "function",
  identity: "settings",
  finish: "function",
  configuration: "settings",
} as const;

/** Names that kernels of scans use themselves: grid axes, program threads, buffers, the mailbox. */
export const scanNames = new RegExp(
  `^(${[
    ...["block\\d+", "row", "worker", "main", "scan", "exchange", "loaded", "prefixed", "scanned"],
    ...["aggregated", "told_by_blocks", "(base|before|total|queue)_\\w+"],
  ].join("|")})$`,
  "u",
);

/** An inclusive scan with a user-defined associative operator. */
export function scanWith<
  const Inputs extends ReduceInputs,
  State extends ReduceTiles,
  Results extends ReduceTiles = State,
>(spec: ScanWithSpec<Inputs, State, Results>): ScanWithOperation<Inputs, Results> {
  const location = captureLocation();
  const name = "scanWith";
  requireFields(name, spec, fields, location);
  const given = spec as unknown as UserCombiner;
  const inputs = givenInputs(name, given, location);
  const shape = broadcastShape(name, Object.values(inputs), location);
  const axis = givenAxis(name, spec.axis ?? -1, shape.length, location);
  const state = stateOf(name, given, inputs, false, location);
  for (const [own, { dtype }] of Object.entries(state))
    if (dtype.kind === "bool" || dtype.bits < 8 || (dtype.kind === "float" && dtype.bits < 16))
      throw refused(
        "TW9901",
        `${name} does not combine ${own}`,
        "integers of 8 bits or more, floats of 16 bits or more",
        dtype.name,
        location,
      );
  const { finish = (tiles: ReduceTiles) => tiles, combine, load } = given;
  const results = resultsOf(name, finish, state, inputs, location);
  const renamed = underFreeNames(given, [inputs, state, results], scanNames, (inside) =>
    scanWith(inside as never),
  );
  if (renamed !== undefined) return renamed as unknown as ScanWithOperation<Inputs, Results>;
  const { reverse = false, configuration } = spec;
  const outputs = Object.fromEntries(
    Object.entries(results).map(([own, dtype]) => [own, tensor(dtype, shape)]),
  );
  const specs: { readonly [name: string]: TensorSpec } = { ...inputs, ...outputs };
  const rule: ScanRule = {
    arrays: Object.entries(specs).map(([own, { dtype }]) => ({
      ...{ name: own, dtype },
      role: Object.hasOwn(inputs, own) ? "input" : "output",
    })),
    ...{ state, reverse, merge: combine, finish },
    lift: load,
    total: (tiles) => combinedAlong(tiles, 1, state, reverse ? flipped(combine) : combine),
    together: (tiles) => combinedAlong(tiles, 1, state, combine),
    running: (tiles) => runningAlong(tiles, 1, reverse, state, combine),
  };
  return scanning(
    { name, rule, specs, shape, axis, ...(configuration !== undefined && { configuration }) },
    location,
  ) as unknown as ScanWithOperation<Inputs, Results>;
}

/** The operator with its operands swapped, for reverse scans. */
function flipped(combine: UserCombiner["combine"]): UserCombiner["combine"] {
  return (left, right) => combine(right, left);
}
