/**
 * The arrays of the kernels, and how rows of tiles are packed. The heads of q that share one of k and v are rows of one tile, so
 * that the cache is read once for all of them; where they leave room, further tokens of q are, too:
 *
 *   4 heads share one, tiles of 16 rows      rows 0 to 3     heads of token 0
 *                                            rows 4 to 7     heads of token 1
 *                                            …
 */
import { dtypes } from "../../formats/dtype.ts";
import { tensor, constant, dim } from "../../lang/index.ts";
import type { TensorSpec, LaunchSize } from "../../lang/index.ts";
import { powerOfTwoFrom } from "../support/sizes.ts";
import type { PagedConfiguration } from "./configuration.ts";
import type { PagedProblem, PagedSizes } from "./problem.ts";
import type { Integer } from "./tile-scheduler.ts";

/** What a kernel is made for. */
export interface PagedForm {
  readonly problem: PagedProblem;
  readonly sizes: PagedSizes;
  readonly configuration: PagedConfiguration;
}

/** The size of tiles that hold a head; what lies beyond it reads as zero. */
export function paddedHead(size: number): number {
  return powerOfTwoFrom(Math.max(16, size));
}

/** How rows of a tile stand for heads and tokens of q. */
export interface Packing {
  /** Heads of q that share one of k and v. */
  readonly group: number;
  /** Heads and tokens of a tile. */
  readonly heads: number;
  readonly tokens: number;
  /** Tiles that the heads of a group take. */
  readonly parts: number;
}

export function packingOf(
  { h, kv }: Pick<PagedSizes, "h" | "kv">,
  { rows }: Pick<PagedConfiguration, "rows">,
): Packing {
  const group = h / kv;
  const heads = Math.min(rows, powerOfTwoFrom(group));
  return { group, heads, tokens: rows / heads, parts: Math.ceil(group / heads) };
}

export type PagedDimensions = {
  readonly [N in "b" | "s" | "pages" | "most" | "splits"]: LaunchSize;
};

export function pagedDimensions(): PagedDimensions {
  const [b, s, pages, most] = [dim("b"), dim("s"), dim("pages"), dim("most")];
  return { b, s, pages, most, splits: dim("splits") };
}

/** The arguments of the operation as both kernels see them. */
export function pagedArrays(
  { problem, sizes }: Pick<PagedForm, "problem" | "sizes">,
  { b, s, pages, most }: PagedDimensions,
): {
  readonly inputs: { readonly [name: string]: TensorSpec };
  readonly outputs: { readonly [name: string]: TensorSpec };
} {
  const { h, kv, d, e, size } = sizes;
  const { q, k, v, out, logSumExp, kScale, vScale } = problem;
  const scale = tensor(dtypes.f32, [kv]);
  return {
    inputs: {
      q: tensor(q.dtype, [b, s, h, d]),
      k: tensor(k.dtype, [pages, size, kv, d]),
      v: tensor(v.dtype, [pages, size, kv, e]),
      table: tensor(dtypes.i32, [b, most]),
      lengths: tensor(dtypes.i32, [b]),
      ...(kScale !== undefined && { kScale: scale }),
      ...(vScale !== undefined && { vScale: scale }),
    },
    outputs: {
      out: tensor(out.dtype, [b, s, h, e]),
      ...(logSumExp !== undefined && { logSumExp: tensor(dtypes.f32, [b, h, s]) }),
    },
  };
}

/** Parts of rows that splits leave: the end of a sequence that another began, and the beginning of one that another ends. */
export function partArrays(
  { sizes: { kv, e }, configuration: { rows } }: PagedForm,
  { splits }: PagedDimensions,
): { readonly [N in "parts" | "weights"]: TensorSpec<"f32"> } {
  return {
    parts: tensor(dtypes.f32, [splits, kv, 2, rows, e]),
    weights: tensor(dtypes.f32, [splits, kv, 2, rows]),
  };
}

/** Blocks of rows of q. */
export function blocksOf({ s }: PagedDimensions, { tokens, parts }: Packing): Integer {
  return constant(dtypes.i32, 0)
    .add(s)
    .add(tokens - 1)
    .div(tokens)
    .mul(parts);
}
