/**
 * Attention on any GPU, of any format and head size: a block takes some rows of one head, and goes over the columns that
 * they see, reading k and v straight from memory, where windows beyond the edges read as zero.
 */
import { dot, kernel, loop, slice, zeros } from "../../lang/index.ts";
import type { KernelDefinition, Ref, Scalar, Tile } from "../../lang/index.ts";
import { dtypes } from "../../formats/dtype.ts";
import type { DType } from "../../formats/dtype.ts";
import type { PlainAttention } from "./configuration.ts";
import { attentionArrays, optionalRefs, paddedHead } from "./dimensions.ts";
import type { AttentionForm } from "./dimensions.ts";
import { isNarrow } from "./problem.ts";
import { columnTiles, finishScores, keptWeights } from "./scores.ts";
import { inSpan, rowBlocks, rowsOfBlock } from "./packing.ts";
import type { ScoreRules } from "./scores.ts";
import { factorOf, scoreProducts } from "./score-products.ts";
import { addColumns, finishedRows, startingRows } from "./softmax.ts";
import { stretch } from "./block-mask.ts";
import type { VisitLists } from "./block-mask.ts";

export function plainAttention(
  form: AttentionForm,
  { rows, columns }: PlainAttention,
  lists: VisitLists | undefined,
): KernelDefinition {
  const { problem, sizes, location } = form;
  const { inputs, outputs, dimensions } = attentionArrays(form);
  // FP8 is exact in bf16, of which powers keep more.
  const format = (isNarrow(problem) ? dtypes.bf16 : problem.q.dtype) as DType<"bf16">;
  const [d, e] = [paddedHead(sizes.d), paddedHead(sizes.e)];
  return kernel(
    {
      name: "attention_plain",
      grid: {
        ...{ head: dimensions.h, batch: dimensions.b },
        block: rowBlocks(dimensions, rows),
      },
      inputs: { ...inputs, ...(lists && { visits: lists.spec }) },
      outputs,
    },
    (argument) => {
      const { head, batch, block } = argument as unknown as {
        readonly [N in "head" | "batch" | "block"]: Scalar<"i32">;
      };
      const { q, k, v, out } = argument as unknown as {
        readonly [N in "q" | "k" | "v" | "out"]: Ref<"bf16">;
      };
      const { sinks, logSumExp, scales, ...changes } = optionalRefs(form, argument);
      const { sequence, top } = rowsOfBlock(argument, dimensions, { batch, block }, rows);
      const { memory } = sequence;
      const rules: ScoreRules = { problem, sizes, t: sequence.columns.count, ...changes, location };
      const kvHead = head.div(sizes.h / sizes.kv);
      const visits =
        lists?.read(argument, { batch, head, block }) ??
        stretch(columnTiles({ ...rules, s: sequence.rows.count }, top, rows, columns));
      const down = inSpan(sequence.rows, top, rows);
      const across = slice(0, e);
      const exact = format.bits === 32 ? ({ precision: "ieee" } as const) : {};
      const queries = factorOf(format, d, (along) =>
        q.at(memory, down, head, along).load().cast(format),
      );
      const powersFormat = { dtype: format, lift: 0 };
      const factor = scales?.q.at(head).loadScalar().mul(scales.k.at(kvHead).loadScalar());
      const start = {
        ...startingRows(rows, head, sinks),
        sums: zeros(dtypes.f32, [rows, e]),
      };
      const end = loop({ to: visits.steps, carry: start }, (step, { sums, ...before }) => {
        const { tile: number, isMasked } = visits.at(step);
        const left = number.mul(columns);
        const here = inSpan(sequence.columns, left, columns);
        const keys = factorOf(format, d, (along) =>
          k.at(memory, here, kvHead, along).transpose().load().cast(format),
        );
        const dots = scoreProducts(format, d, queries, keys, [rows, columns]);
        const products = factor === undefined ? dots : dots.mul(factor);
        const tile = { batch: sequence.batch, head, top, left, rows, columns, isMasked };
        const added = addColumns(finishScores(rules, products, tile), before, powersFormat, () =>
          keptWeights(rules, tile),
        );
        const values = v.at(memory, here, kvHead, across).load().cast(format);
        const accumulator = sums.mul(added.change);
        return {
          ...added.rows,
          sums: dot(added.powers(), values, {
            accumulator,
            dtype: dtypes.f32,
            ...exact,
          }),
        };
      });
      const done = finishedRows(end.sums, end, {
        ...{ dropout: problem.dropout, factor: scales?.v.at(kvHead).loadScalar() },
      });
      (out as Ref)
        .at(memory, down, head, across)
        .store(done.values.cast(problem.out.dtype) as Tile);
      logSumExp?.at(memory, head, down).store(done.logSumExp.reshape([rows]));
    },
  ) as unknown as KernelDefinition;
}
