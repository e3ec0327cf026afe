/**
 * `scan`: cumulative sums, products, minima and maxima along an axis of any length.
 *
 *   many rows     one launch: a block goes through its rows, one read and one write
 *   few, long     one launch: blocks share a row and exchange block aggregates
 *
 * Either way every element is read once and written once. The order of combining depends on the sizes and the number of processors
 * alone, so results repeat bit for bit.
 */
import type { DType, DTypeName } from "../../formats/dtype.ts";
import type { Operation } from "../../device/operation.ts";
import { tensor, dim } from "../../lang/index.ts";
import type { TensorSpec, Empty, Tile } from "../../lang/index.ts";
import { captureLocation } from "../../support/location.ts";
import { optionText } from "../../support/options.ts";
import { collapsed, combinations, stateFormat } from "../reduce/combiners.ts";
import type { Combination } from "../reduce/combiners.ts";
import type { ReduceTiles } from "../reduce/reducer.ts";
import { givenArray, givenAxis, refused, requireFields } from "../support/arguments.ts";
import type { Fields, GivenArray } from "../support/arguments.ts";
import { scanning } from "./plan-scan.ts";
import type { ScanConfiguration, ScanRule } from "./scan-kernel.ts";

/** How `scan` combines elements. */
export type ScanCombination = Extract<Combination, "sum" | "prod" | "min" | "max">;

/** What `scan` is made for. */
export interface ScanSpec<X extends DTypeName, Out extends DTypeName> {
  /** A format is an array of n elements. */
  readonly x: GivenArray<X>;
  /** The last by default. */
  readonly axis?: number;
  /** `"sum"` by default. */
  readonly combine?: ScanCombination;
  /** Whether it runs from the last element to the first. */
  readonly reverse?: boolean;
  /** The format of the result; x's own by default. */
  readonly out?: DType<Out>;
  /** Instead of what the model would choose. */
  readonly configuration?: ScanConfiguration;
}

/** The operation that `scan` makes. */
export type ScanOperation<X extends DTypeName, Out extends DTypeName> = Operation<
  { readonly x: TensorSpec<X> },
  { readonly out: TensorSpec<Out> },
  Empty,
  ScanConfiguration
>;

const fields: Fields = {
  x: "array",
  axis: "number",
  combine: "choice",
  reverse: "flag",
  out: "format",
  configuration: "settings",
};

/** Every element combined with all before it. */
export function scan<X extends DTypeName, Out extends DTypeName = X>(
  spec: ScanSpec<X, Out>,
): ScanOperation<X, Out> {
  const location = captureLocation();
  requireFields("scan", spec, fields, location);
  const { combine = "sum", reverse = false } = spec;
  if (!["sum", "prod", "min", "max"].includes(combine))
    throw refused(
      "TW9904",
      "scan cannot combine like this",
      "sum, prod, min, max",
      optionText(combine),
      location,
    );
  const x = givenArray("x", "scan", spec.x, [dim("n")], location);
  const axis = givenAxis("scan", spec.axis ?? -1, x.shape.length, location);
  const state = stateFormat("scan", x.dtype, combine, location);
  const out = tensor(spec.out ?? x.dtype, x.shape);
  const rule = ruleOf(combine, reverse, x.dtype, state, out.dtype);
  const { configuration } = spec;
  return scanning(
    {
      ...{ name: "scan", rule, specs: { x, out }, shape: x.shape, axis },
      ...(configuration !== undefined && { configuration }),
    },
    location,
  ) as unknown as ScanOperation<X, Out>;
}

function ruleOf(
  combine: ScanCombination,
  reverse: boolean,
  input: DType,
  state: DType,
  out: DType,
): ScanRule {
  const { merge, identity } = combinations[combine];
  const running = {
    sum: (tile: Tile) => tile.cumsum({ axis: 1, reverse }),
    prod: (tile: Tile) => tile.cumprod({ axis: 1, reverse }),
    min: (tile: Tile) => tile.cummin({ axis: 1, reverse }),
    max: (tile: Tile) => tile.cummax({ axis: 1, reverse }),
  };
  const only = (tiles: ReduceTiles): Tile<"f32"> => {
    const { x } = tiles;
    if (x === undefined) throw new Error("a scan has one number");
    return x as Tile<"f32">;
  };
  const total = (tiles: ReduceTiles): ReduceTiles => ({ x: collapsed(only(tiles), combine, [1]) });
  return {
    arrays: [
      { name: "x", dtype: input, role: "input" },
      { name: "out", dtype: out, role: "output" },
    ],
    state: { x: { dtype: state, identity: identity(state) } },
    reverse,
    fill: identity(state),
    lift: (tiles) => ({ x: only(tiles).cast(state) }),
    merge: (left, right) => ({ x: merge(only(left), only(right)) }),
    ...{ total, together: total },
    running: (tiles) => ({ x: running[combine](only(tiles)) }),
    finish: (tiles) => ({ out: only(tiles).cast(out) }),
  };
}
