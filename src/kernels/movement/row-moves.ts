/** What `gather` and `scatter` share: which arrays they take, and how much of them a block moves. */
import { dtypes } from "../../formats/dtype.ts";
import type { DType } from "../../formats/dtype.ts";
import type { TensorSpec } from "../../lang/index.ts";
import type { Location } from "../../support/location.ts";
import { refused, requiredArray } from "../support/arguments.ts";
import { laidOut, threadsPerBlock, powerOfTwoFrom } from "../support/sizes.ts";

/** How many rows, and how much of each, a block moves. */
export interface RowMoves {
  /** Rows of a block. */
  readonly rows: number;
  /** Columns of a block. */
  readonly columns: number;
}

/** Requires a contiguous array. */
export function contiguous(
  name: string,
  of: string,
  given: unknown,
  location: Location,
): TensorSpec {
  const found = requiredArray(name, of, given, location);
  if (found.strides === undefined) return found;
  throw refused(
    "TW9902",
    `${name} of ${of} lies by strides`,
    "an array by rows",
    "strides",
    location,
  );
}

export function indexArray(
  of: string,
  given: unknown,
  location: Location,
): TensorSpec<"i32" | "i64"> {
  const found = contiguous("indices", of, given, location);
  if (found.dtype === dtypes.i32 || found.dtype === dtypes.i64)
    return found as TensorSpec<"i32" | "i64">;
  throw refused(
    "TW9901",
    `the indices of ${of} have another format`,
    "i32 or i64",
    found.dtype.name,
    location,
  );
}

export function sizesOf(
  x: TensorSpec,
  indices: TensorSpec,
  axis: number,
  dimensions: { readonly [name: string]: number },
) {
  const product = (extents: readonly number[]): number =>
    extents.reduce((all, extent) => all * extent, 1);
  const { shape } = laidOut(x, dimensions);
  return {
    outer: product(shape.slice(0, axis)),
    extent: shape[axis] ?? 1,
    inner: product(shape.slice(axis + 1)),
    count: product(laidOut(indices, dimensions).shape),
  };
}

/** Bytes of rows that a thread has in flight. */
const bytesInFlight = 32;

export function chooseMoves(
  dtype: DType,
  inner: number,
  rows: number,
  processors: number,
): RowMoves {
  const span = (threadsPerBlock * bytesInFlight * 8) / dtype.bits;
  const columns = Math.min(span, powerOfTwoFrom(inner));
  let each = Math.min(span / columns, powerOfTwoFrom(rows));
  while (each > 1 && rows / each < 2 * processors) each /= 2;
  return { rows: each, columns };
}
