/**
 * `reduce`: sums, products, extremes and the like over any axes, of an array or of what a function makes of several.
 *
 *   reduce({ x: tensor(bf16, [m, n]), axis: 1, combine: "max" })
 *   reduce({ x: f32, inputs: { y: f32 }, load: ({ x, y }) => x.mul(y), axis: 0 })       a dot product
 */
import { dtypes, isInteger } from "../../formats/dtype.ts";
import type { DType, DTypeName } from "../../formats/dtype.ts";
import { operation } from "../../device/operation.ts";
import type { Operation } from "../../device/operation.ts";
import type { Size } from "../../ir/size.ts";
import { tensor, dim } from "../../lang/index.ts";
import type { TensorSpec, Empty, KernelDefinition, Tile } from "../../lang/index.ts";
import { captureLocation } from "../../support/location.ts";
import type { Location } from "../../support/location.ts";
import { isRecord, optionText } from "../../support/options.ts";
import { broadcastShape } from "../elementwise/map.ts";
import { tracedResults } from "../elementwise/traced-results.ts";
import { ReservedNames } from "../support/reserved-names.ts";
import { givenArray, givenAxes, refused, requireFields } from "../support/arguments.ts";
import type { Fields, FormatOf, GivenArray } from "../support/arguments.ts";
import { collapsed, combinations, stateFormat } from "./combiners.ts";
import type { Combination } from "./combiners.ts";
import { planOver } from "./reduction-axes.ts";
import type { ReduceArray, ReduceConfiguration } from "./reduce-kernel.ts";
import type { Reducer, ReduceTiles } from "./reducer.ts";

/** Further inputs of a reduction, by name. */
export interface ReduceInputs {
  readonly [name: string]: GivenArray;
}

/** What `reduce` is made for. */
export interface ReduceSpec<
  X extends DTypeName,
  Loaded extends DTypeName,
  Out extends DTypeName,
  Inputs extends ReduceInputs,
> {
  /** A format is an array of n elements. */
  readonly x: GivenArray<X>;
  /** One axis or several that disappear; all of them by default. */
  readonly axis?: number | readonly number[];
  /** `"sum"` by default. */
  readonly combine?: Combination;
  /** Whether reduced axes stay, with extent 1. */
  readonly keepDims?: boolean;
  /** Further arrays for `load`, which broadcast to x. */
  readonly inputs?: Inputs;
  /** What is reduced, from x and the inputs, element by element; x itself by default. */
  readonly load?: (
    tiles: { readonly x: Tile<X> } & {
      readonly [N in keyof Inputs]: Tile<FormatOf<Inputs[N]>>;
    },
  ) => Tile<Loaded>;
  /** What is done with results before they are stored, in the format that is combined in. */
  readonly epilogue?: (result: Tile<"f32">) => Tile;
  /** The format of the result; that of what is reduced by default, i32 of sums of shorter integers. */
  readonly out?: DType<Out>;
}

const fields: Fields = {
  x: "array",
  axis: "axisOrAxes",
  combine: "choice",
  keepDims: "flag",
  inputs: "named",
  load: "function",
  epilogue: "function",
  out: "format",
};

/** The operation that `reduce` makes. */
export type ReduceOperation<
  X extends DTypeName,
  Out extends DTypeName,
  Inputs extends ReduceInputs,
> = Operation<
  { readonly x: TensorSpec<X> } & {
    readonly [N in keyof Inputs]: TensorSpec<FormatOf<Inputs[N]>>;
  },
  { readonly out: TensorSpec<Out> },
  Empty,
  ReduceConfiguration
>;

/** Elements combined over axes. */
export function reduce<
  X extends DTypeName,
  Loaded extends DTypeName = X,
  Out extends DTypeName = Loaded,
  const Inputs extends ReduceInputs = Empty,
>(spec: ReduceSpec<X, Loaded, Out, Inputs>): ReduceOperation<X, Out, Inputs> {
  const location = captureLocation();
  requireFields("reduce", spec, fields, location);
  return reduction(spec as never, location) as unknown as ReduceOperation<X, Out, Inputs>;
}

/** What kernels of reductions call their own: axes of the grid, and the state that parts leave. */
export const reduceNames = /^(block\d+|part(_\w+)?|state_\w+|main)$/u;

type AnySpec = ReduceSpec<DTypeName, DTypeName, DTypeName, ReduceInputs>;

function reduction(spec: AnySpec, location: Location): Operation {
  const { combine = "sum", keepDims: keep = false, inputs = {} } = spec;
  if (!Object.hasOwn(combinations, combine))
    throw refused(
      "TW9904",
      "reduce cannot combine like this",
      Object.keys(combinations).join(", "),
      optionText(combine),
      location,
    );
  const x = givenArray("x", "reduce", spec.x, [dim("n")], location);
  const specs: { [name: string]: TensorSpec } = { x };
  if (!isRecord(inputs))
    throw refused(
      "TW9902",
      "the inputs of reduce have no names",
      "{ y: f32, … }",
      optionText(inputs),
      location,
    );
  for (const [name, given] of Object.entries(inputs)) {
    if (name === "x" || name === "out")
      throw refused(
        "TW9905",
        `${name} is the name of what reduce ${name === "x" ? "takes" : "gives"} already`,
        "another name",
        name,
        location,
      );
    specs[name] = givenArray(name, "reduce", given, [dim("n")], location);
  }
  const names = ReservedNames.of(Object.keys(inputs), reduceNames);
  if (names !== undefined) {
    const load = spec.load && (names.around(spec.load as never) as unknown as AnySpec["load"]);
    const inside = { ...spec, inputs: names.inside(inputs), ...(load !== undefined && { load }) };
    return names.operation(reduction(inside as AnySpec, location));
  }
  const shape = broadcastShape("reduce", Object.values(specs), location);
  const axes = givenAxes("reduce", spec.axis, shape.length, location);
  const load = spec.load as ((tiles: ReduceTiles) => Tile) | undefined;
  const lifted = load === undefined ? (tiles: ReduceTiles) => tiles["x"] as Tile : load;
  const dtype = tracedFormat(specs, lifted, location);
  const state = stateFormat("reduce", dtype, combine, location);
  const out = spec.out ?? usualFormat(dtype, combine);
  const epilogue = spec.epilogue as ((result: Tile) => Tile) | undefined;
  if (epilogue !== undefined)
    tracedFormat(
      { result: tensor(state, [1]) },
      ({ result }) => epilogue(result as Tile),
      location,
    );
  const reducer = combiner(combine, state, lifted, (result) =>
    (epilogue?.(result) ?? result).cast(out),
  );
  return reducing("reduce", specs, shape, axes, keep, reducer, { out });
}

/** An operation that reduces arrays of one shape by a reducer. */
export function reducing(
  name: string,
  specs: { readonly [name: string]: TensorSpec },
  shape: readonly Size[],
  axes: readonly number[],
  keep: boolean,
  reducer: Reducer,
  results: { readonly [name: string]: DType },
): Operation {
  const kept = keep
    ? shape.map((size, axis) => (axes.includes(axis) ? 1 : size))
    : shape.filter((_, axis) => !axes.includes(axis));
  const outputs = Object.fromEntries(
    Object.entries(results).map(([own, dtype]) => [own, tensor(dtype, kept)]),
  );
  const arrays: readonly ReduceArray[] = [
    ...Object.entries(specs).map(([own, { dtype }]) => ({
      name: own,
      dtype,
      role: "input" as const,
    })),
    ...Object.entries(results).map(([own, dtype]) => ({
      name: own,
      dtype,
      role: "output" as const,
    })),
  ];
  const kernels = new Map<string, KernelDefinition>();
  return operation({
    name,
    inputs: { ...specs },
    outputs,
    plan: (dimensions, target) =>
      planOver({ name, arrays, reducer }, { specs, shape, axes }, kernels, dimensions, target),
  });
}

/** The format of what a function makes of tiles, which is by element. */
function tracedFormat(
  specs: { readonly [name: string]: TensorSpec },
  body: (tiles: ReduceTiles) => Tile,
  location: Location,
): DType {
  const { given } = tracedResults(
    "reduce",
    specs,
    {},
    (tiles) => ({ given: body(tiles as ReduceTiles) }),
    location,
  );
  if (given === undefined) throw new Error("the function gives what it was made to give");
  return given;
}

/** What the result has by default. */
function usualFormat(dtype: DType, combine: Combination): DType {
  const isShort = isInteger(dtype) && dtype.bits < 32 && (combine === "sum" || combine === "prod");
  return isShort ? dtypes.i32 : dtype;
}

function combiner(
  combine: Combination,
  dtype: DType,
  load: (tiles: ReduceTiles) => Tile,
  finish: (result: Tile) => Tile,
): Reducer {
  const { merge, identity } = combinations[combine];
  const only = (tiles: ReduceTiles): Tile<"f32"> => tiles["out"] as Tile<"f32">;
  return {
    state: { out: { dtype, identity: identity(dtype) } },
    lift: (tiles) => ({ out: load(tiles).cast(dtype) }),
    merge: (left, right) => ({ out: merge(only(left), only(right)) }),
    collapse: (state, axes) => ({ out: collapsed(only(state), combine, axes) }),
    finish: (state) => ({ out: finish(only(state)) }),
  };
}
