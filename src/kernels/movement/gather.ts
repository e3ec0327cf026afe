/**
 * `gather`: rows by index. Arrays are viewed as [outer, axis, inner], and a block moves some rows with the widest accesses possible:
 *
 *   embedding    table [v, d], ids [b, s]    gather({ x: table, indices: ids })       [b, s, d]
 *
 * An index out of range stops the kernel with an error.
 */
import type { DType, DTypeName } from "../../formats/dtype.ts";
import { operation } from "../../device/operation.ts";
import type { Operation } from "../../device/operation.ts";
import { tensor, cdiv, dim, iota, kernel, slice, waitForPreviousKernel } from "../../lang/index.ts";
import type { TensorSpec, Empty, KernelDefinition } from "../../lang/index.ts";
import { captureLocation } from "../../support/location.ts";
import { dtypes } from "../../formats/dtype.ts";
import { givenAxis, requireFields } from "../support/arguments.ts";
import { alignedDimension, alignment } from "../support/sizes.ts";
import { chooseMoves, contiguous, indexArray, sizesOf } from "./row-moves.ts";
import type { RowMoves } from "./row-moves.ts";

/** What `gather` is made for. */
export interface GatherSpec<D extends DTypeName, I extends "i32" | "i64"> {
  /** What is picked from. */
  readonly x: TensorSpec<D>;
  /** Positions along the axis. */
  readonly indices: TensorSpec<I>;
  /** The axis that indices pick along; their own axes stand in its place. The first by default. */
  readonly axis?: number;
}

/** The operation that `gather` makes. */
export type GatherOperation<D extends DTypeName, I extends DTypeName> = Operation<
  { readonly x: TensorSpec<D>; readonly indices: TensorSpec<I> },
  { readonly out: TensorSpec<D> },
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
  const out = tensor(x.dtype, x.shape.toSpliced(axis, 1, ...indices.shape));
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
        x: tensor(dtype, [outer, extent, inner]),
        indices: tensor(indexed, [count]),
      },
      outputs: { out: tensor(dtype, [outer, count, inner]) },
    },
    ({ layer, i, j, x, indices, out }) => {
      waitForPreviousKernel();
      const here = slice(i.mul(rows), rows);
      const across = slice(j.mul(columns), columns);
      const own = indices.at(here).load();
      const where = iota(dtypes.i32, [rows, 1], { axis: 0 }).add(i.mul(rows)).lt(count);
      const moved = x.at(layer, own, across).load({ where });
      out.at(layer, here, across).store(moved);
    },
  );
}
