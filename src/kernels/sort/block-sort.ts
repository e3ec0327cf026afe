/** Block sort: rows that a block sorts in its registers, several at a time where they are short. */
import { dtypes } from "../../formats/dtype.ts";
import type { DType } from "../../formats/dtype.ts";
import { tensor, cdiv, dim, full, iota, kernel, slice } from "../../lang/index.ts";
import type { KernelDefinition } from "../../lang/index.ts";
import { alignedDimension, powerOfTwoFrom } from "../support/sizes.ts";
import { greatestKey, keyFormat, keysOf, numbersOf } from "./sortable-keys.ts";

/** Elements that a block sorts. */
export const mostInBlock = 4096;

/** Elements of short rows that a block has at a time. */
const severalRows = 1024;

export interface BlockSortForm {
  readonly dtype: DType;
  readonly descending: boolean;
  /** Rows of a block, and columns of a row, a power of two. */
  readonly rows: number;
  readonly columns: number;
  /** How many of each row are stored; all of them by default. */
  readonly kept?: number;
  readonly writesKeys: boolean;
  readonly writesIndices: boolean;
}

/** How many rows and columns a block takes. */
export function chooseBlockSort(
  rows: number,
  length: number,
  processors: number,
): Pick<BlockSortForm, "rows" | "columns"> {
  const columns = powerOfTwoFrom(length);
  let each = Math.max(1, Math.min(severalRows / columns, powerOfTwoFrom(rows)));
  while (each > 1 && rows / each < processors) each /= 2;
  return { rows: each, columns };
}

/** Arrays: x [rows, length]; keys `out` and indices `to`, as far as they are written, both [rows, kept or length]. */
export function sortRowsKernel(form: BlockSortForm, length: number): KernelDefinition {
  const { dtype, descending, columns } = form;
  const [count, width] = [dim("rows"), alignedDimension("length", length)];
  const shape = [form.rows, columns];
  return kernel(
    {
      name: "sort_rows",
      grid: { block: cdiv(count, form.rows) },
      inputs: { x: tensor(dtype, [count, width]) },
      outputs: {
        ...(form.writesKeys && { out: tensor(dtype, [count, form.kept ?? width]) }),
        ...(form.writesIndices && { to: tensor(dtypes.i32, [count, form.kept ?? width]) }),
      },
    },
    (given) => {
      const first = given.block.mul(form.rows);
      const window = [slice(first, form.rows), slice(0, columns)] as const;
      const indices = iota(dtypes.i32, shape, { axis: 1 });
      // Elements beyond the end sort last: the sort is stable.
      const beyond = full(keyFormat(dtype), [1, 1], greatestKey(dtype));
      const loaded = keysOf(given.x.at(...window).load(), descending);
      const keys = indices.lt(width).select(loaded, beyond);
      const [sorted, moved] = form.writesIndices
        ? keys.sortWith([indices], { axis: 1 })
        : [keys.sort({ axis: 1 }), undefined];
      const kept = [form.rows, form.kept ?? columns];
      const stored = [slice(first, form.rows), slice(0, form.kept ?? columns)] as const;
      if (form.writesKeys)
        given["out"]?.at(...stored).store(numbersOf(sorted.slice([0, 0], kept), dtype, descending));
      if (moved !== undefined) given["to"]?.at(...stored).store(moved.slice([0, 0], kept));
    },
  );
}
