/** Making arrays, and moving their elements. */
import { dtypes } from "../formats/dtype.ts";
import type { DTypeName } from "../formats/dtype.ts";
import { fromNumbers, isHostArray } from "../formats/hostarray.ts";
import type { HostArray, Nested } from "../formats/hostarray.ts";
import { TilewrightError } from "../support/diagnostics.ts";
import { tensor, tensorOfArray } from "../graph/evaluate/index.ts";
import type { Tensor } from "../graph/evaluate/index.ts";
import { elementsOfNumbers } from "../graph/evaluate/scalars.ts";
import { literal } from "../graph/ops/literal.ts";
import { graphValue } from "../graph/ops/node.ts";
import { sizeOf, tensorType } from "../graph/ops/types.ts";
import { elementOf, NDArray, recordAll, setData, typeOfArray } from "./array.ts";
import { astype, full, one } from "./functions.ts";
import { requireListed } from "./dtype-checks.ts";
import type { Listed } from "./dtype-checks.ts";
import { isRecording } from "./trace-function.ts";

function isList(nested: Nested<Listed>): nested is readonly Nested<Listed>[] {
  return Array.isArray(nested);
}

/** The shape of nested lists. */
function shapeOf(nested: Nested<Listed>): readonly number[] {
  if (!isList(nested)) return [];
  const [first] = nested;
  return [nested.length, ...(first === undefined ? [] : shapeOf(first))];
}

/** Along which axis an operation goes. */
export interface AxisOption {
  /** The axis; a negative one counts from the end. */
  readonly axis?: number | undefined;
}

/** The axis of what has no usual one. */
export interface RequiredAxisOption {
  /** The axis; a negative one counts from the end. */
  readonly axis: number;
}

/** An array of numbers in nested lists, or of a host array. */
export function array(data: Nested<Listed>): NDArray<"f32">;
export function array<D extends DTypeName>(data: HostArray<D>, dtype?: D): NDArray<D>;
export function array<D extends DTypeName>(
  data: Nested<Listed> | HostArray<D>,
  dtype: D,
): NDArray<D>;
export function array(data: Nested<Listed> | HostArray, dtype?: DTypeName): NDArray {
  const made = isHostArray(data) ? copied(data, dtype) : listed(data, dtype ?? "f32");
  const type = tensorType(made.element, made.shape);
  // A single number of a recorded function is a constant of its program: a loop's trips are counted from such.
  if (type.shape.length === 0 && isRecording())
    return one(recordAll("stablehlo.constant", {}, { value: literal(type, made.data) }));
  const value = graphValue(type);
  setData(value, made);
  return new NDArray(value);
}

/** A tensor of a host array's elements as they are now: who changes the host array later does not change the array. */
function copied(data: HostArray, dtype: DTypeName | undefined): Tensor {
  const { element, shape, data: elements } = tensorOfArray(data);
  if (dtype === undefined || data.dtype.name === dtype)
    return tensor(element, shape, elements.slice());
  throw new TilewrightError({
    code: "TW9305",
    message: `an array of ${dtype} cannot be made of a host array of ${data.dtype.name}`,
    expected: `a host array of ${dtype}, or no dtype`,
    found: data.dtype.name,
    remedy: "leave the dtype out, and convert with astype",
  });
}

function* leavesOf(nested: Nested<Listed>): Generator<Listed> {
  if (!isList(nested)) yield nested;
  else for (const each of nested) yield* leavesOf(each);
}

function hasShape(nested: Nested<Listed>, [extent, ...inner]: readonly number[]): boolean {
  if (!isList(nested) || extent === undefined) return !isList(nested) && extent === undefined;
  return nested.length === extent && nested.every((each) => hasShape(each, inner));
}

/** Numbers of lists become elements as those beside arrays do: floats are rounded, integers and truths have them. */
function listed(data: Nested<Listed>, dtype: DTypeName): Tensor {
  const shape = shapeOf(data);
  const numbers = [...leavesOf(data)];
  if (!hasShape(data, shape))
    throw new TilewrightError({
      code: "TW9306",
      message: "the lists of an array have different lengths",
      expected: `${sizeOf(shape)} numbers, as [${shape.join(", ")}] has`,
      found: `${numbers.length}`,
    });
  for (const number of numbers) requireListed(number, dtype);
  if (dtypes[dtype].kind !== "float")
    return tensorOfArray(fromNumbers(dtypes[dtype], shape, numbers));
  const element = elementOf(dtype);
  return tensor(element, shape, elementsOfNumbers(element, Float64Array.from(numbers, Number)));
}

export function zeros(shape: readonly number[]): NDArray<"f32">;
export function zeros<D extends DTypeName>(shape: readonly number[], dtype: D): NDArray<D>;
export function zeros(shape: readonly number[], dtype: DTypeName = "f32"): NDArray {
  return full(shape, 0, dtype);
}

export function ones(shape: readonly number[]): NDArray<"f32">;
export function ones<D extends DTypeName>(shape: readonly number[], dtype: D): NDArray<D>;
export function ones(shape: readonly number[], dtype: DTypeName = "f32"): NDArray {
  return full(shape, 1, dtype);
}

/** 0, 1, … along the last axis of a shape. */
export function iota<D extends DTypeName>(
  shape: readonly number[],
  dtype: D,
  { axis }: RequiredAxisOption,
): NDArray<D> {
  const types = [tensorType(elementOf(dtype), shape)];
  const along = axisOf(axis, shape.length);
  return one(recordAll("stablehlo.iota", {}, { iota_dimension: along }, { types }));
}

export function arange(count: number): NDArray<"i32">;
export function arange<D extends DTypeName>(count: number, dtype: D): NDArray<D>;
export function arange(count: number, dtype: DTypeName = "i32"): NDArray {
  return iota([count], dtype, { axis: 0 });
}

/** An axis counted from the end where it is negative. */
export function axisOf(axis: number, rank: number): number {
  const found = axis < 0 ? axis + rank : axis;
  if (Number.isInteger(axis) && found >= 0 && found < rank) return found;
  throw new TilewrightError({
    code: "TW9307",
    message: `an array of rank ${rank} has no axis ${axis}`,
    expected: rank === 0 ? "an array with axes" : `${-rank} to ${rank - 1}`,
    found: `${axis}`,
  });
}

/** Another shape; one extent may be -1. */
export function reshape<D extends DTypeName>(x: NDArray<D>, shape: readonly number[]): NDArray<D> {
  const known = sizeOf(shape.filter((extent) => extent !== -1));
  const open = shape.filter((extent) => extent === -1).length;
  const left = sizeOf(x.shape) / known;
  if (open > 0 && (open > 1 || !Number.isInteger(left)))
    throw new TilewrightError({
      code: "TW9307",
      message: `${x.toString()} has no shape [${shape.join(", ")}]`,
      expected: "at most one -1, beside extents whose product divides the number of elements",
      found: open > 1 ? `${open} of them` : `${sizeOf(x.shape)} elements, ${known} of them known`,
      remedy: "give all extents, or all but one",
    });
  const filled = shape.map((extent) => (extent === -1 ? left : extent));
  const types = [tensorType(typeOfArray(x.value).element, filled)];
  return one(recordAll("stablehlo.reshape", { operand: x.value }, {}, { types }));
}

export function transpose<D extends DTypeName>(
  x: NDArray<D>,
  axes?: readonly number[],
): NDArray<D> {
  const permutation = axes ?? x.shape.map((_, axis) => x.rank - 1 - axis);
  return one(
    recordAll(
      "stablehlo.transpose",
      { operand: x.value },
      { permutation: permutation.map((axis) => axisOf(axis, x.rank)) },
    ),
  );
}

export function flip<D extends DTypeName>(
  x: NDArray<D>,
  { axis = 0 }: AxisOption = {},
): NDArray<D> {
  const dimensions = [axisOf(axis, x.rank)];
  return one(recordAll("stablehlo.reverse", { operand: x.value }, { dimensions }));
}

export function concatenate<D extends DTypeName>(
  arrays: readonly NDArray<D>[],
  { axis = 0 }: AxisOption = {},
): NDArray<D> {
  const dimension = axisOf(axis, arrays[0]?.rank ?? 0);
  const inputs = arrays.map(({ value }) => value);
  return one(recordAll("stablehlo.concatenate", { inputs }, { dimension }));
}

export function expandDims<D extends DTypeName>(
  x: NDArray<D>,
  { axis }: RequiredAxisOption,
): NDArray<D> {
  const place = axisOf(axis, x.rank + 1);
  return reshape(x, [...x.shape.slice(0, place), 1, ...x.shape.slice(place)]);
}

/** Without axes of extent 1: one that is named, or all of them. */
export function squeeze<D extends DTypeName>(x: NDArray<D>, { axis }: AxisOption = {}): NDArray<D> {
  const named = axis === undefined ? undefined : axisOf(axis, x.rank);
  if (named !== undefined && x.shape[named] !== 1)
    throw new TilewrightError({
      code: "TW9307",
      message: `axis ${named} of ${x.toString()} cannot be squeezed`,
      expected: "an axis of extent 1",
      found: `extent ${x.shape[named]}`,
    });
  const goes = (extent: number, each: number): boolean =>
    named === undefined ? extent === 1 : each === named;
  return reshape(
    x,
    x.shape.filter((extent, each) => !goes(extent, each)),
  );
}

export function stack<D extends DTypeName>(
  arrays: readonly NDArray<D>[],
  { axis = 0 }: AxisOption = {},
): NDArray<D> {
  return concatenate(
    arrays.map((each) => expandDims(each, { axis })),
    { axis },
  );
}

/** Where a slice of an axis begins, ends and how far it steps; an end from the end where negative. */
export type Range = readonly [start: number, stop: number, step?: number];

/** A slice: a range an axis, null for all of it. */
export function slice<D extends DTypeName>(
  x: NDArray<D>,
  ranges: readonly (Range | null)[],
): NDArray<D> {
  if (ranges.length > x.rank)
    throw new TilewrightError({
      code: "TW9307",
      message: `a slice of ${ranges.length} axes of ${x.toString()}`,
      expected: `at most ${x.rank} ranges`,
      found: `${ranges.length}`,
    });
  const bounds = x.shape.map((extent, axis) => {
    const [start, stop, step = 1] = ranges[axis] ?? [0, extent];
    const from = (place: number): number => (place < 0 ? place + extent : place);
    return [from(start), from(stop), step] as const;
  });
  return one(
    recordAll(
      "stablehlo.slice",
      { operand: x.value },
      {
        start_indices: bounds.map(([start]) => start),
        limit_indices: bounds.map(([, stop]) => stop),
        strides: bounds.map(([, , step]) => step),
      },
    ),
  );
}

/** Parts along an axis, the first by default, at given indices, which are clamped. */
export function take<D extends DTypeName>(
  x: NDArray<D>,
  indices: NDArray<"i32">,
  { axis = 0 }: AxisOption = {},
): NDArray<D> {
  const along = axisOf(axis, x.rank);
  const column = reshape(indices, [...indices.shape, 1]);
  const others = x.shape.map((_, each) => each).filter((each) => each !== along);
  return one(
    recordAll(
      "stablehlo.gather",
      { operand: x.value, start_indices: column.value },
      {
        dimension_numbers: {
          // The axes before keep their places, those behind follow the axes of the indices.
          offset_dims: others.map((each) => (each < along ? each : each - 1 + indices.rank)),
          collapsed_slice_dims: [along],
          operand_batching_dims: [],
          start_indices_batching_dims: [],
          start_index_map: [along],
          index_vector_dim: indices.rank,
        },
        slice_sizes: x.shape.map((extent, each) => (each === along ? 1 : extent)),
        indices_are_sorted: false,
      },
    ),
  );
}

/** 1 at each index, 0 elsewhere, along a new last axis. */
export function oneHot(indices: NDArray<"i32">, classes: number): NDArray<"f32">;
export function oneHot<D extends DTypeName>(
  indices: NDArray<"i32">,
  classes: number,
  dtype: D,
): NDArray<D>;
export function oneHot(
  indices: NDArray<"i32">,
  classes: number,
  dtype: DTypeName = "f32",
): NDArray {
  const shape = [...indices.shape, classes];
  const spread = recordAll(
    "stablehlo.broadcast_in_dim",
    { operand: indices.value },
    { broadcast_dimensions: indices.shape.map((_, axis) => axis) },
    { types: [tensorType("i32", shape)] },
  );
  const hits = recordAll(
    "stablehlo.compare",
    { lhs: one(spread).value, rhs: iota(shape, "i32", { axis: shape.length - 1 }).value },
    { comparison_direction: "EQ" },
  );
  return astype(one(hits), dtype);
}
