/**
 * `map`: an elementwise operation from a TypeScript function, for any sizes and strides.
 *
 *   map({ x: bf16, y: bf16 }, ({ x, y }) => ({ sum: x.add(y) }))
 *
 *   function, traced once   ──▶ names and formats of the results; refused where it is not elementwise
 *   shapes, broadcast       ──▶ the results' shape
 *   sizes                   ──▶ axes, collapsed ──▶ window ──▶ one launch
 */
import type { DType } from "../../formats/dtype.ts";
import { operation } from "../../device/operation.ts";
import type { Operation, Planned } from "../../device/operation.ts";
import { sameSize, shapeText } from "../../ir/size.ts";
import type { Size } from "../../ir/size.ts";
import { tensor, dim } from "../../lang/index.ts";
import type { TensorSpec, Empty, KernelDefinition, ScalarSpec } from "../../lang/index.ts";
import type { Scalar, Tile } from "../../lang/index.ts";
import { captureLocation } from "../../support/location.ts";
import type { Location } from "../../support/location.ts";
import { isRecord, optionText, requireKnownOptions } from "../../support/options.ts";
import type { Target } from "../../targets/target.ts";
import { ReservedNames } from "../support/reserved-names.ts";
import { givenArray, refused } from "../support/arguments.ts";
import type { FormatOf, GivenArray } from "../support/arguments.ts";
import { broadcastStrides, laidOut } from "../support/sizes.ts";
import type { MapBody, MapConfiguration, MappedArray } from "./map-kernel.ts";
import { planStridedMap } from "./strided-map.ts";
import { tracedResults } from "./traced-results.ts";

/** Arrays that are broadcast against each other, and single numbers. A format alone is an array of n elements. */
export interface MapInputs {
  readonly [name: string]: GivenArray | ScalarSpec;
}

type MapTiles<I extends MapInputs> = {
  readonly [N in keyof I]: I[N] extends ScalarSpec<infer D> ? Scalar<D> : Tile<FormatOf<I[N]>>;
};

type MapInputSpecs<I extends MapInputs> = {
  readonly [N in keyof I]: I[N] extends ScalarSpec ? I[N] : TensorSpec<FormatOf<I[N]>>;
};

/** The results of the function, by name. */
export interface MapResults {
  readonly [name: string]: Tile;
}

type MapOutputSpecs<R extends MapResults> = {
  readonly [N in keyof R]: R[N] extends Tile<infer D> ? TensorSpec<D> : never;
};

/** Options of `map`. */
export interface MapOptions<R extends MapResults> {
  /** Of kernels and reports; `map` by default. */
  readonly name?: string;
  /** Arrays for results that are not contiguous, or whose shape does not follow from the inputs. */
  readonly outputs?: { readonly [N in keyof R]?: TensorSpec };
}

/** The operation that `map` makes. */
export type MapOperation<I extends MapInputs, R extends MapResults> = Operation<
  MapInputSpecs<I>,
  MapOutputSpecs<R>,
  Empty,
  MapConfiguration
>;

interface Mapping {
  readonly name: string;
  readonly arrays: readonly MappedArray[];
  readonly specs: { readonly [name: string]: TensorSpec };
  readonly scalars: { readonly [name: string]: ScalarSpec };
  readonly shape: readonly Size[];
  readonly body: MapBody;
}

/** An operation that computes every element of its results from elements of its inputs. */
export function map<const I extends MapInputs, R extends MapResults>(
  inputs: I,
  body: (tiles: MapTiles<I>) => R,
  options: MapOptions<R> = {},
): MapOperation<I, R> {
  const location = captureLocation();
  requireKnownOptions("map", options, ["name", "outputs"], "TW1033", location);
  if (!isRecord(inputs))
    throw refused(
      "TW9902",
      "the inputs of map have no names",
      "{ x: f32, … }",
      optionText(inputs),
      location,
    );
  return mapping(inputs, body as unknown as MapBody, options, location) as unknown as MapOperation<
    I,
    R
  >;
}

/** `map` without its types, for functions of the library that say where they were called. */
export function mapping(
  inputs: MapInputs,
  body: MapBody,
  { name = "map", outputs = {} }: { readonly name?: string; readonly outputs?: object },
  location: Location,
): Operation {
  const scalars: { [name: string]: ScalarSpec } = {};
  const specs: { [name: string]: TensorSpec } = {};
  for (const [own, given] of Object.entries(inputs)) {
    if (isScalar(given)) scalars[own] = given;
    else specs[own] = givenArray(own, name, given, [dim("n")], location);
  }
  const results = tracedResults(name, specs, scalars, body, location);
  const names = ReservedNames.of([...Object.keys(inputs), ...Object.keys(results)], /^block\d+$/u);
  if (names !== undefined) {
    const inside = { name, outputs: names.inside(outputs as { readonly [own: string]: unknown }) };
    const around = names.around(body as never) as MapBody;
    return names.operation(
      mapping(names.inside(inputs as never) as MapInputs, around, inside, location),
    );
  }
  const given = outputSpecs(name, outputs, results, location);
  const shape = broadcastShape(name, [...Object.values(specs), ...Object.values(given)], location);
  const made: { [name: string]: TensorSpec } = {};
  for (const [own, dtype] of Object.entries(results)) {
    made[own] = given[own] ?? tensor(dtype, shape);
    requireWhole(name, own, made[own], shape, location);
  }
  const named = (own: string) => ({ name: own, parameter: own });
  const arrays = [
    ...Object.entries(made).map(([own, { dtype }]) => ({
      ...named(own),
      dtype,
      isOutput: true,
    })),
    ...Object.entries(specs).map(([own, { dtype }]) => ({
      ...named(own),
      dtype,
      isOutput: false,
    })),
  ];
  const problem = {
    name,
    arrays,
    specs: { ...specs, ...made },
    scalars,
    shape,
    body,
  };
  const kernels = new Map<string, KernelDefinition>();
  return operation({
    name,
    inputs: { ...specs, ...scalars },
    outputs: made,
    plan: (dimensions, target) => planOf(problem, kernels, dimensions, target),
  }) as unknown as Operation;
}

function isScalar(given: unknown): given is ScalarSpec {
  return typeof given === "object" && given !== null && "kind" in given && given.kind === "scalar";
}

/** The arrays that were given for results, each of which the function has. */
function outputSpecs(
  name: string,
  outputs: object,
  results: { readonly [name: string]: DType },
  location: Location,
): { readonly [name: string]: TensorSpec } {
  const checked: { [name: string]: TensorSpec } = {};
  for (const [own, given] of Object.entries(outputs)) {
    if (given === undefined) continue;
    const spec = givenArray(own, name, given, [dim("n")], location);
    const dtype = Object.hasOwn(results, own) ? results[own] : undefined;
    if (dtype === spec.dtype) checked[own] = spec;
    else
      throw refused(
        "TW9905",
        `the function of ${name} gives no ${own} of ${spec.dtype.name}`,
        `${own}: a tile of ${spec.dtype.name}`,
        dtype === undefined ? "nothing" : `a tile of ${dtype.name}`,
        location,
      );
  }
  return checked;
}

/** The shape that all arrays repeat to, by NumPy's rule. */
export function broadcastShape(
  name: string,
  arrays: readonly TensorSpec[],
  location: Location,
): readonly Size[] {
  const rank = Math.max(0, ...arrays.map(({ shape }) => shape.length));
  const result = Array.from({ length: rank }, (): Size => 1);
  for (const { shape } of arrays)
    for (const [axis, size] of shape.entries()) {
      const place = rank - shape.length + axis;
      const known = result[place] ?? 1;
      if (size === 1 || sameSize(size, known)) continue;
      if (known !== 1)
        throw refused(
          "TW9902",
          `the arrays of ${name} do not broadcast`,
          "extents that are equal or 1, aligned at the last axis",
          arrays.map((each) => shapeText(each.shape)).join(" and "),
          location,
        );
      result[place] = size;
    }
  return result;
}

/** A result has every element of the shape. */
function requireWhole(
  name: string,
  own: string,
  spec: TensorSpec,
  shape: readonly Size[],
  location: Location,
): void {
  const whole =
    spec.shape.length === shape.length &&
    shape.every((size, axis) => sameSize(size, spec.shape[axis] ?? -1));
  if (whole) return;
  throw refused(
    "TW9902",
    `the result ${own} of ${name} is smaller than what its inputs broadcast to`,
    shapeText(shape),
    shapeText(spec.shape),
    location,
  );
}

function planOf(
  { name, arrays, specs, scalars, shape, body }: Mapping,
  kernels: Map<string, KernelDefinition>,
  dimensions: { readonly [name: string]: number },
  target: Target,
): Planned<MapConfiguration> {
  const { shape: extents } = laidOut({ shape, strides: undefined }, dimensions);
  const placed = arrays.map((each) => ({
    ...each,
    argument: each.name,
    strides: broadcastStrides(specs[each.name], extents, dimensions),
    offset: 0,
  }));
  return planStridedMap({ name, arrays: placed, scalars, extents, body }, kernels, target);
}
