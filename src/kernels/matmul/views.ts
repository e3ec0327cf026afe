/**
 * Operands and results that are parts of larger arrays: rows any distance apart, and batches of one or two axes, each any distance
 * apart too. An axis along which an operand has one matrix for all is no axis of its array.
 *
 *   q of [b, s, 3, h, d]      [b, h, s, d], strides [3·s·h·d, d, 3·h·d, 1]      outer 3·s·h·d, inner d, pitch 3·h·d
 *   k of [b, t, g, d]         [b, 1, t, d] for each b and all heads             outer t·g·d, pitch g·d
 *
 * Strides are numbers, which kernels are told when they are launched: they are made for the powers of two that these are multiples of, and for the axes of the batch.
 */
import type { DType } from "../../formats/dtype.ts";
import { multiplySizes } from "../../ir/size.ts";
import type { Dimension, Size } from "../../ir/size.ts";
import type { PlannedArgument } from "../../device/operation.ts";
import { tensor } from "../../lang/index.ts";
import type { Ref, Scalar, TensorSpec } from "../../lang/index.ts";
import { aligned } from "./dimensions.ts";

export interface MatrixView {
  /** Elements from matrix to matrix along the axes of the batch; undefined where one is for all. */
  readonly outer: number | undefined;
  readonly inner: number | undefined;
  /** Elements from row to row, or from column to column where columns are contiguous. */
  readonly pitch: number;
  /** The axes of the product's batch. */
  readonly batch: BatchAxes;
}

/** The axes of a batch. */
export interface BatchAxes {
  readonly outer: number;
  readonly inner: number;
}

/** What of a product is part of a larger array. */
export interface Views {
  readonly batch: BatchAxes;
  readonly a: MatrixView | undefined;
  readonly b: MatrixView | undefined;
  readonly out: MatrixView | undefined;
}

export type ViewName = "a" | "b" | "out";

const strideAxes = ["outer", "inner", "pitch"] as const;

function strideName(axis: (typeof strideAxes)[number], name: ViewName): string {
  return `stride_${axis}_${name}`;
}

/** The strides of a view as kernels know them. */
function stridesOf(name: ViewName, view: MatrixView): readonly Dimension[] {
  return strideAxes.flatMap((axis) => {
    const stride = view[axis];
    return stride === undefined ? [] : [aligned(strideName(axis, name), stride)];
  });
}

/** The array that a view is. */
export function viewSpec(
  dtype: DType,
  name: ViewName,
  view: MatrixView,
  rows: Size,
  columns: Size,
): TensorSpec {
  const shape = [
    ...(view.outer === undefined ? [] : [view.batch.outer]),
    ...(view.inner === undefined ? [] : [view.batch.inner]),
    ...[rows, columns],
  ];
  return tensor(dtype, shape, { strides: [...stridesOf(name, view), 1] });
}

/** The matrix of a view that belongs to one of the batch. */
export function viewMatrix(ref: Ref, view: MatrixView, batch: Scalar<"i32">): Ref {
  if (view.outer === undefined && view.inner === undefined) return ref;
  const { inner } = view.batch;
  if (view.inner === undefined) return ref.at(batch.div(inner));
  if (view.outer === undefined) return ref.at(batch.rem(inner));
  // A remainder is known not to be negative, as TMA has to know.
  return ref.at(batch.div(inner), batch.rem(inner));
}

/** The matrix of a view by its number among those that the view has. */
export function ownMatrix(ref: Ref, view: MatrixView, index: Scalar<"i32">): Ref {
  if (view.outer === undefined && view.inner === undefined) return ref;
  if (view.outer === undefined || view.inner === undefined) return ref.at(index);
  return viewMatrix(ref, view, index);
}

/** The matrix of one of the batch, of matrices that were copied one after the other, one for each that the view has. */
export function copiedMatrix(ref: Ref, view: MatrixView | undefined, batch: Scalar<"i32">): Ref {
  if (view === undefined || (view.outer !== undefined && view.inner !== undefined))
    return ref.at(batch);
  const { inner } = view.batch;
  return ref.at(view.inner === undefined ? batch.div(inner) : batch.rem(inner));
}

/** Matrices that a view has. */
export function viewCount(view: MatrixView): number {
  const { outer, inner } = view.batch;
  return (view.outer === undefined ? 1 : outer) * (view.inner === undefined ? 1 : inner);
}

/** What kernels are told of views. */
export function viewValues(views: Views | undefined): { readonly [name: string]: number } {
  if (views === undefined) return {};
  const values: { [name: string]: number } = {};
  for (const name of ["a", "b", "out"] as const)
    for (const axis of strideAxes) {
      const stride = views[name]?.[axis];
      if (stride !== undefined) values[strideName(axis, name)] = stride;
    }
  return values;
}

/** Elements of which all places where rows begin are multiples; those of a row where the array is no view. */
export function rowAlignment(view: MatrixView | undefined, along: number): number {
  if (view === undefined) return along;
  return [view.outer, view.inner, view.pitch]
    .filter((stride) => stride !== undefined)
    .reduce((divisor, stride) => greatestCommonDivisor(divisor, stride), 0);
}

function greatestCommonDivisor(one: number, other: number): number {
  return other === 0 ? one : greatestCommonDivisor(other, one % other);
}

/** The result as launches are given it. */
export function outputArgument(views: Views | undefined): PlannedArgument {
  return views?.out === undefined ? { argument: "out" } : { argument: "out", flat: true };
}

/** A matrix, or a batch of them, that is part of a larger array. */
export interface ViewedMatrix {
  readonly batch: number | undefined;
  readonly rows: number;
  readonly columns: number;
  readonly byRows: boolean;
  readonly view: MatrixView;
}

/** A matrix, or a batch of them, that lies otherwise than by rows or columns, with neighbours along either. */
export function viewedMatrix({
  shape,
  strides = rowMajorStrides(shape),
}: TensorSpec): ViewedMatrix | undefined {
  const sizes = shape.filter((size) => typeof size === "number");
  const lies = strides.filter((size) => typeof size === "number");
  const rank = shape.length;
  if (sizes.length !== rank || lies.length !== rank || rank < 2 || rank > 4) return undefined;
  const matrix = neighbours(sizes.slice(-2), lies.slice(-2));
  if (matrix === undefined) return undefined;
  const { rows, columns, byRows, pitch, width } = matrix;
  const [outer = 1, inner = 1] = sizes.slice(0, -2);
  const [far, near] = lies.slice(0, -2);
  if (pitch === width && (rank === 2 || (rank === 3 && far === rows * columns))) return undefined;
  return {
    ...{ rows, columns, byRows },
    batch: rank === 2 ? undefined : outer * inner,
    view: {
      outer: outer > 1 ? far : undefined,
      inner: inner > 1 ? near : undefined,
      pitch,
      batch: { outer, inner },
    },
  };
}

/** How the rows and columns of a matrix lie whose neighbours lie together along either. */
function neighbours(
  [rows = 1, columns = 1]: readonly number[],
  [down = 1, along = 1]: readonly number[],
):
  | (Pick<ViewedMatrix, "rows" | "columns" | "byRows"> & {
      readonly pitch: number;
      readonly width: number;
    })
  | undefined {
  if (along !== 1 && down !== 1 && rows !== 1 && columns !== 1) return undefined;
  const byRows = along === 1 || (down !== 1 && columns === 1);
  const [pitch, width] = byRows ? [down, columns] : [along, rows];
  return pitch < width ? undefined : { rows, columns, byRows, pitch, width };
}

export function rowMajorStrides(shape: readonly Size[]): readonly Size[] {
  return shape.map((_, axis) =>
    shape.slice(axis + 1).reduce<Size>((all, size) => multiplySizes(all, size), 1),
  );
}
