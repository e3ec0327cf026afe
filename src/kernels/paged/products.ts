/**
 * The two products of a tile. Tensor cores multiply 16 rows by 8 columns at a time. A tile of no more than 8 rows of q has these as the
 * columns, and tokens or elements of values as the rows, so that half as much is multiplied, summed and kept:
 *
 *   16 rows and more      scores [rows, tokens] = q · kᵀ        sums [rows, e] += powers · v
 *   8 rows                scoresᵀ [tokens, rows] = k · qᵀ       sumsᵀ [e, rows] += vᵀ · powersᵀ
 */
import { dtypes } from "../../formats/dtype.ts";
import { dot, zeros } from "../../lang/index.ts";
import type { Tile } from "../../lang/index.ts";
import { paddedHead } from "./arrays.ts";
import type { PagedForm } from "./arrays.ts";
import { keysLayout } from "./fp8-fragments.ts";

/** Whether rows of q are the columns of what is multiplied. */
function isTurned({ configuration: { rows } }: PagedForm): boolean {
  return rows === 8;
}

/** Products of q, [rows, d], and keys, [d, tokens]. */
export function productsOf(
  form: PagedForm,
  queries: Tile<"bf16">,
  keys: Tile<"bf16">,
): Tile<"f32"> {
  if (!isTurned(form)) return product(queries, keys);
  const d = paddedHead(form.sizes.d);
  const { rows, columns } = form.configuration;
  // Placed as they are read: in the order that the tensor cores' operand would ask for, bytes of two tokens were put together first.
  const placed = keys.transpose().layoutCast(keysLayout(columns, d));
  if (d < 32) return product(placed, queries.transpose()).transpose();
  // Each product waits for the one before it along d, so that two sums take half as long as one.
  const half = d / 2;
  const [first, second] = [0, half].map((from) =>
    product(
      placed.slice([0, from], [columns, half]),
      queries.slice([0, from], [rows, half]).transpose(),
    ),
  ) as [Tile<"f32">, Tile<"f32">];
  return first.add(second).transpose();
}

export function startingSums(form: PagedForm): Tile<"f32"> {
  const { rows } = form.configuration;
  const e = paddedHead(form.sizes.e);
  return zeros(dtypes.f32, isTurned(form) ? [e, rows] : [rows, e]);
}

/** Sums times the change of their rows, [rows, 1], and with powers, [rows, tokens], of values, [tokens, e]. */
export function addedValues(
  form: PagedForm,
  sums: Tile<"f32">,
  change: Tile<"f32">,
  powers: () => Tile<"bf16">,
  values: Tile<"bf16">,
): Tile<"f32"> {
  if (!isTurned(form)) {
    const accumulator = sums.mul(change);
    return product(powers(), values, accumulator);
  }
  const accumulator = sums.mul(change.transpose());
  return product(values.transpose(), powers().transpose(), accumulator);
}

/** Sums as [rows, e]. */
export function rowsOfSums(form: PagedForm, sums: Tile<"f32">): Tile<"f32"> {
  return isTurned(form) ? sums.transpose() : sums;
}

function product(a: Tile<"bf16">, b: Tile<"bf16">, accumulator?: Tile<"f32">): Tile<"f32"> {
  const from = accumulator === undefined ? {} : { accumulator };
  return dot(a, b, { ...from, dtype: dtypes.f32 });
}
