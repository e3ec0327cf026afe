/**
 * The gradient of the bias: that of the scores, summed over the axes along which the bias is broadcast. A block has a tile of the bias and goes
 * over the batches, heads, rows and columns that share it in one order, so results repeat bit for bit:
 *
 *   bias [1, h, s, t]      a tile of rows and columns of one head, over all batches
 *   bias [b, 1, 1, t]      columns of one batch, over all heads and all tiles of rows
 */
import { dtypes } from "../../formats/dtype.ts";
import type { SymbolicSize } from "../../ir/size.ts";
import { cdiv, constant, kernel, loop, slice, when, zeros } from "../../lang/index.ts";
import type { KernelDefinition, Ref, Scalar, Slice, Tile } from "../../lang/index.ts";
import { gradientArrays, gradientsOf, rulesOf } from "./backward-kernels.ts";
import type { GradientRefs } from "./backward-kernels.ts";
import { factorOf } from "./score-products.ts";
import type { Factor } from "./score-products.ts";
import type { PlainGradients } from "./configuration.ts";
import { paddedHead } from "./dimensions.ts";
import type { AttentionForm } from "./dimensions.ts";
import { wholeBatch } from "./packing.ts";
import type { Window } from "./problem.ts";

type Index = Scalar<"i32">;

/** The axes of a bias, in their order. */
const axes = ["batch", "head", "row", "column"] as const;
type Axis = (typeof axes)[number];

export function biasGradient(
  form: AttentionForm,
  { rows, columns }: PlainGradients,
): KernelDefinition {
  const { problem, sizes } = form;
  const { dimensions, inputs } = gradientArrays(form, []);
  const { bias } = inputs;
  if (!bias) throw new Error("there is a bias");
  const { b, h, s, t } = dimensions;
  const extents = { batch: b, head: h, row: cdiv(s, rows), column: cdiv(t, columns) };
  const isShared = (axis: Axis): boolean => bias.shape[axes.indexOf(axis)] === 1;
  const grid = { column: extents.column, row: extents.row, head: h, batch: b };
  const ownGrid = Object.fromEntries(
    (["column", "row", "head", "batch"] as const).map(
      (axis) => [axis, isShared(axis) ? 1 : grid[axis]] as const,
    ),
  );
  const [d, e] = [paddedHead(sizes.d), paddedHead(sizes.e)];
  return kernel(
    { name: "attention_dbias", grid: ownGrid, inputs, outputs: { dBias: bias } },
    (argument) => {
      const own = argument as unknown as { readonly [A in Axis]: Index };
      const refs = argument as unknown as GradientRefs & { readonly dBias: Ref };
      const zero = constant(dtypes.i32, 0);
      const shared = axes.filter(isShared);
      const turns = shared.reduce((all, axis) => all.mul(extents[axis]), zero.add(1));
      const start = zeros(dtypes.f32, [rows, columns]);
      const sums = loop({ to: turns, carry: start }, (turn, before) => {
        const { batch, head, row, column } = placeOfTurn(own, shared, extents, turn);
        const { sequence } = wholeBatch(dimensions, { batch, block: zero });
        const rules = rulesOf(form, argument, sequence.columns.count);
        const tile = { batch, head, top: row.mul(rows), left: column.mul(columns), rows, columns };
        const added = (): Tile<"f32"> => {
          // Where there are no heads, nothing comes here.
          const kvHead = head.div(sizes.h === 0 ? 1 : sizes.h / sizes.kv);
          const [down, across] = [slice(tile.top, rows), slice(tile.left, columns)];
          const factor = (size: number, array: Ref<"bf16">, place: Slice, own: Index): Factor =>
            factorOf(problem.q.dtype, size, (along) => array.at(batch, place, own, along).load());
          const operands = {
            queries: factor(d, refs.q, down, head),
            upstream: factor(e, refs.dOut, down, head),
            keys: factor(d, refs.k, across, kvHead),
            values: factor(e, refs.v, across, kvHead),
          };
          return before.add(gradientsOf(rules, refs, operands, tile, sequence).biased);
        };
        const isSeen = mayBeSeen(problem.window, tile);
        return isSeen === undefined ? added() : when(isSeen, added, () => before);
      });
      const down = isShared("row") ? sums.sum({ axis: 0, keepDims: true }) : sums;
      const result = isShared("column") ? down.sum({ axis: 1, keepDims: true }) : down;
      refs.dBias
        .at(
          ...[own.batch, own.head],
          slice(own.row.mul(rows), isShared("row") ? 1 : rows),
          slice(own.column.mul(columns), isShared("column") ? 1 : columns),
        )
        .store(result.cast(bias.dtype));
    },
  ) as unknown as KernelDefinition;
}

/** Where a turn is: the block's own place, and a number along each axis that it goes over, the last changing fastest. */
function placeOfTurn(
  own: { readonly [A in Axis]: Index },
  shared: readonly Axis[],
  extents: { readonly [A in Axis]: SymbolicSize },
  turn: Index,
): { readonly [A in Axis]: Index } {
  let rest = turn;
  const place: { [A in Axis]: Index } = { ...own };
  for (const axis of shared.toReversed()) {
    const extent = constant(dtypes.i32, 0).add(extents[axis]);
    const above = rest.div(extent);
    place[axis] = rest.sub(above.mul(extent));
    rest = above;
  }
  return place;
}

/** Whether a row of the tile may see a column of it; undefined where there is no window. */
function mayBeSeen(
  { left, right }: Window,
  {
    top,
    left: from,
    rows,
    columns,
  }: { readonly top: Index; readonly left: Index } & {
    readonly rows: number;
    readonly columns: number;
  },
): Scalar<"bool"> | undefined {
  const ahead = right === undefined ? undefined : from.le(top.add(rows - 1 + right));
  const behind = left === undefined ? undefined : top.le(from.add(columns - 1 + left));
  return ahead && behind ? ahead.and(behind) : (ahead ?? behind);
}
