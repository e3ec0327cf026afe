/**
 * Rows by number: `gather` reads them, `scatter` combines others into them. Arrays are seen as [outer, axis, inner], and
 * a block moves some rows, as widely as they lie in memory:
 *
 *   embedding    table [v, d], ids [b, s]    gather({ x: table, indices: ids })       [b, s, d]
 *   gradient     dOut [b, s, d]              scatter({ out: [v, d], indices: ids, combine: "add", … })
 *
 * An index outside its axis is a mistake, which stops the kernel.
 */
import type { DType, DTypeName } from "../../formats/dtype.ts";
import { isInteger } from "../../formats/dtype.ts";
import { operation } from "../../device/operation.ts";
import type { Operation } from "../../device/operation.ts";
import { atomicFormats } from "../../ir/infer/memory.ts";
import { array, cdiv, dim, iota, kernel, slice } from "../../lang/index.ts";
import type { ArraySpec, Empty, KernelDefinition } from "../../lang/index.ts";
import { captureLocation } from "../../support/location.ts";
import type { Location } from "../../support/location.ts";
import { optionText } from "../../support/options.ts";
import { dtypes } from "../../formats/dtype.ts";
import { givenAxis, refused, requireFields, requiredArray } from "../support/given.ts";
import { alignedDimension, alignment, laidOut, lanes, powerOfTwoFrom } from "../support/sizes.ts";

export interface GatherSpec<D extends DTypeName, I extends "i32" | "i64"> {
  readonly x: ArraySpec<D>;
  /** Positions along the axis. */
  readonly indices: ArraySpec<I>;
  /** The axis that indices pick along; their own axes stand in its place. The first unless told. */
  readonly axis?: number;
}

/** How many rows, and how much of each, a block moves. */
export interface RowMoves {
  readonly rows: number;
  readonly columns: number;
}

export type GatherOperation<D extends DTypeName, I extends DTypeName> = Operation<
  { readonly x: ArraySpec<D>; readonly indices: ArraySpec<I> },
  { readonly out: ArraySpec<D> },
  Empty,
  RowMoves
>;

/** Elements along an axis by number. */
export function gather<D extends DTypeName, I extends "i32" | "i64">(
  spec: GatherSpec<D, I>,
): GatherOperation<D, I> {
  const location = captureLocation();
  requireFields("gather", spec, { x: "array", indices: "array", axis: "number" }, location);
  const x = contiguous("x", "gather", spec.x, location);
  const indices = indexArray("gather", spec.indices, location);
  const axis = givenAxis("gather", spec.axis ?? 0, x.shape.length, location);
  const out = array(x.dtype, x.shape.toSpliced(axis, 1, ...indices.shape));
  const kernels = new Map<string, KernelDefinition>();
  return operation({
    name: "gather",
    inputs: { x, indices },
    outputs: { out },
    plan: (dimensions, target) => {
      const sizes = sizesOf(x, indices, axis, dimensions);
      const { outer, extent, inner, count } = sizes;
      const moves = chooseMoves(x.dtype, inner, count * outer, target.processors);
      if (outer * inner * count === 0)
        return { configuration: moves, source: "heuristic", launches: [] };
      return {
        configuration: moves,
        source: "heuristic",
        launches: () => {
          const text = JSON.stringify([moves, alignment(inner)]);
          const known = kernels.get(text) ?? gatherKernel(x.dtype, indices.dtype, inner, moves);
          kernels.set(text, known);
          return [
            {
              kernel: known,
              arguments: {
                x: { argument: "x", shape: [outer, extent, inner] },
                indices: { argument: "indices", shape: [count] },
                out: { argument: "out", shape: [outer, count, inner] },
              },
            },
          ];
        },
      };
    },
  }) as unknown as GatherOperation<D, I>;
}

/** Rows are moved through one piece of an array, which lies by rows. */
function contiguous(name: string, of: string, given: unknown, location: Location): ArraySpec {
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

function indexArray(of: string, given: unknown, location: Location): ArraySpec<"i32" | "i64"> {
  const found = contiguous("indices", of, given, location);
  if (found.dtype === dtypes.i32 || found.dtype === dtypes.i64)
    return found as ArraySpec<"i32" | "i64">;
  throw refused(
    "TW9901",
    `the indices of ${of} have another format`,
    "i32 or i64",
    found.dtype.name,
    location,
  );
}

function sizesOf(
  x: ArraySpec,
  indices: ArraySpec,
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

/** Bytes of rows that a lane has in flight. */
const bytesInFlight = 64;

function chooseMoves(dtype: DType, inner: number, rows: number, processors: number): RowMoves {
  const span = (lanes * bytesInFlight * 8) / dtype.bits;
  const columns = Math.min(span, powerOfTwoFrom(inner));
  let each = Math.min(span / columns, powerOfTwoFrom(rows));
  while (each > 1 && rows / each < 2 * processors) each /= 2;
  return { rows: each, columns };
}

function gatherKernel(
  dtype: DType,
  indexed: DType<"i32" | "i64">,
  width: number,
  { rows, columns }: RowMoves,
): KernelDefinition {
  const [outer, extent, count] = [dim("outer"), dim("extent"), dim("count")];
  const inner = alignedDimension("inner", width);
  return kernel(
    {
      name: "gather",
      grid: { layer: outer, i: cdiv(count, rows), j: cdiv(inner, columns) },
      inputs: {
        x: array(dtype, [outer, extent, inner]),
        indices: array(indexed, [count]),
      },
      outputs: { out: array(dtype, [outer, count, inner]) },
    },
    ({ layer, i, j, x, indices, out }) => {
      const here = slice(i.mul(rows), rows);
      const across = slice(j.mul(columns), columns);
      const own = indices.at(here).load();
      const where = iota(dtypes.i32, [rows, 1], 0).add(i.mul(rows)).lt(count);
      const moved = x.at(layer, own, across).load({ where });
      out.at(layer, here, across).store(moved);
    },
  ) as unknown as KernelDefinition;
}

export interface ScatterSpec<D extends DTypeName, I extends "i32" | "i64"> {
  /** What rows are combined into: [v, …]. */
  readonly out: ArraySpec<D>;
  /** Which row of it each update goes to. */
  readonly indices: ArraySpec<I>;
  readonly combine: "add" | "min" | "max";
  /**
   * Rows of one number are combined in any order, by atomic updates. Sums of floats then differ from run to run in their
   * last bits, which has to be said: `false`.
   */
  readonly deterministic?: boolean;
}

export type ScatterOperation<D extends DTypeName, I extends DTypeName> = Operation<
  { readonly indices: ArraySpec<I>; readonly updates: ArraySpec<D> },
  Empty,
  { readonly out: ArraySpec<D> },
  RowMoves
>;

/** Rows combined into those of an array that is given and updated; `updates` are [...indices, …]. */
export function scatter<D extends DTypeName, I extends "i32" | "i64">(
  spec: ScatterSpec<D, I>,
): ScatterOperation<D, I> {
  const location = captureLocation();
  const fields = {
    out: "array",
    indices: "array",
    combine: "choice",
    deterministic: "flag",
  } as const;
  requireFields("scatter", spec, fields, location);
  const out = contiguous("out", "scatter", spec.out, location);
  const indices = indexArray("scatter", spec.indices, location);
  const { combine } = spec;
  requireAtomic(combine, out.dtype, location);
  if (combine === "add" && !isInteger(out.dtype) && spec.deterministic !== false)
    throw refused(
      "TW9904",
      `sums of ${out.dtype.name} by scatter depend on the order of updates`,
      "deterministic: false",
      optionText(spec.deterministic),
      location,
    );
  const updates = array(out.dtype, [...indices.shape, ...out.shape.slice(1)]);
  const kernels = new Map<string, KernelDefinition>();
  return operation({
    name: "scatter",
    inputs: { indices, updates },
    inouts: { out },
    plan: (dimensions, target) => {
      const { extent, inner, count } = sizesOf(out, indices, 0, dimensions);
      const moves = chooseMoves(out.dtype, inner, count, target.processors);
      if (inner * count === 0) return { configuration: moves, source: "heuristic", launches: [] };
      return {
        configuration: moves,
        source: "heuristic",
        launches: () => {
          const text = JSON.stringify([moves, alignment(inner)]);
          const known =
            kernels.get(text) ?? scatterKernel(out.dtype, indices.dtype, combine, inner, moves);
          kernels.set(text, known);
          return [
            {
              kernel: known,
              arguments: {
                indices: { argument: "indices", shape: [count] },
                updates: { argument: "updates", shape: [count, inner] },
                out: { argument: "out", shape: [extent, inner] },
              },
            },
          ];
        },
      };
    },
  }) as unknown as ScatterOperation<D, I>;
}

function requireAtomic(combine: unknown, dtype: DType, location: Location): void {
  if (combine !== "add" && combine !== "min" && combine !== "max")
    throw refused(
      "TW9904",
      "scatter cannot combine like this",
      "add, min or max",
      optionText(combine),
      location,
    );
  const formats = atomicFormats[combine];
  if (formats.includes(dtype.name)) return;
  throw refused(
    "TW9901",
    `no GPU updates ${dtype.name} atomically by ${combine}`,
    formats.join(", "),
    dtype.name,
    location,
  );
}

function scatterKernel(
  dtype: DType,
  indexed: DType<"i32" | "i64">,
  combine: "add" | "min" | "max",
  width: number,
  { rows, columns }: RowMoves,
): KernelDefinition {
  const [extent, count] = [dim("extent"), dim("count")];
  const inner = alignedDimension("inner", width);
  return kernel(
    {
      name: "scatter",
      grid: { i: cdiv(count, rows), j: cdiv(inner, columns) },
      inputs: { indices: array(indexed, [count]), updates: array(dtype, [count, inner]) },
      inouts: { out: array(dtype, [extent, inner]) },
    },
    ({ i, j, indices, updates, out }) => {
      const here = slice(i.mul(rows), rows);
      const across = slice(j.mul(columns), columns);
      const own = indices.at(here).load();
      const where = iota(dtypes.i32, [rows, 1], 0).add(i.mul(rows)).lt(count);
      const added = updates.at(here, across).load();
      out.at(own, across).atomic(combine, added, { where });
    },
  ) as unknown as KernelDefinition;
}
