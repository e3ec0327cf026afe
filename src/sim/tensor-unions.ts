/**
 * Unions in tensor memory, of which members share columns. The simulator's tensor memory has tiles row by row, not lane by lane; a union has as many bytes
 * for each row as its columns have, and each member its columns of them:
 *
 *   union({ sums: tmem(f32, [128, 4]) }, { factor: tmem(bf16, [128, 8], { packed: true }) })
 *
 *     bytes of a row   0    4    8    12
 *     sums             0    1    2    3
 *     factor           0 1  2 3  4 5  6 7
 *
 * Windows have all rows of their tile, so two of them share bytes where they share columns. Sums of a pair's 64 rows take half a column for
 * an element: their whole tile has the bytes of its columns, a part of it those of other columns.
 */
import { tmemColumnCount } from "../ir/infer/tensor-memory.ts";
import type { Kernel, Op } from "../ir/node.ts";
import { refOf, walkOps } from "../ir/traverse.ts";

const bytesPerColumn = 8;
const leastRows = 128;

/** Bytes of the memory of a union, and of its smallest element; undefined of what is no union. */
export function unionExtent(
  { body }: Kernel,
  { results, attributes }: Op<"alloc_tmem">,
): { readonly bytes: number; readonly granuleBytes: number } | undefined {
  let [rows, granuleBytes] = [0, 4];
  walkOps(body, (op) => {
    if (op.kind !== "tmem_member" || op.operands.union !== results[0]) return;
    const { shape, dtype } = op.attributes;
    rows = Math.max(rows, leastRows, shape.at(-2) ?? 0);
    granuleBytes = Math.min(granuleBytes, dtype.bits / 8);
  });
  const columns = attributes.shape[1] ?? 0;
  return rows === 0 ? undefined : { bytes: rows * columns * bytesPerColumn, granuleBytes };
}

/** Where a member begins, and the steps along its axes, in its elements. */
export function memberPlacement({ operands, attributes }: Op<"tmem_member">): {
  readonly offset: number;
  readonly strides: readonly number[];
} {
  const { column, dtype, shape } = attributes;
  const [, unionColumns = 0] = refOf(operands.union).shape.map(Number);
  const elements = (columns: number): number => (columns * bytesPerColumn * 8) / dtype.bits;
  const perTile = tmemColumnCount({ ...attributes, shape: shape.slice(-2) });
  const outer = shape.slice(0, -2);
  const tiles = outer.map((_, axis) =>
    outer.slice(axis + 1).reduce((step, extent) => step * extent, elements(perTile)),
  );
  const strides = [...tiles, elements(unionColumns), elements(perTile) / (shape.at(-1) ?? 1)];
  return { offset: elements(column), strides };
}
