/**
 * The gradients of sinks. A sink takes the share e^(sink − logarithm) of a row and gives nothing, so its gradient is that of a score
 * whose values are 0:
 *
 *   dSink of a head = − Σ over batches and rows of e^(sink − logarithm) · delta
 *
 * A block has a head, and adds up its rows in one order. The logarithms and deltas are those that the other kernels left: of rows as they
 * are, or tile by tile and to base 2.
 */
import { tensor, constant, full, iota, kernel, loop, slice, zeros } from "../../lang/index.ts";
import type { TensorSpec, KernelDefinition, Ref, Scalar, Tile } from "../../lang/index.ts";
import { dtypes } from "../../formats/dtype.ts";
import { attentionArrays, rowOffsets } from "./dimensions.ts";
import type { AttentionForm } from "./dimensions.ts";
import { gradientRows, rowValuesArray } from "./gradient-sums.ts";
import { rowsEnd } from "./packing.ts";

type Index = Scalar<"i32">;

/** Rows, or tiles of rows, that are looked at together. */
const together = 1024;

/** From deltas and logarithms of rows, [b, h, s] each. */
export function sinkGradientsOfRows(form: AttentionForm): KernelDefinition {
  const { dimensions } = attentionArrays(form);
  const { b, h, s } = dimensions;
  const rows = tensor(dtypes.f32, [b, h, s]);
  const inputs = { logSumExp: rows, delta: rows, ...rowOffsets(dimensions) };
  return sinkKernel(form, inputs, (argument) => {
    const { logSumExp, delta } = argument as { readonly [N in "logSumExp" | "delta"]: Ref<"f32"> };
    const zero = constant(dtypes.i32, 0);
    const start = zeros(dtypes.f32, [together]);
    const end = rowsEnd(argument, dimensions);
    return {
      steps: zero
        .add(s)
        .add(together - 1)
        .div(together),
      valuesOf: (batch, head, step) => {
        const here = slice(step.mul(together), together);
        const logarithms = logSumExp.at(batch, head, here).load().mul(Math.LOG2E);
        // A row that saw nothing, not even the sink, has no share of it; nor has one that is nobody's, whose delta may be no number.
        const isBehind = iota(dtypes.i32, [together], { axis: 0 }).add(step.mul(together)).ge(end);
        const base = logarithms
          .eq(-Infinity)
          .or(isBehind)
          .select(full(dtypes.f32, [together], Infinity), logarithms);
        const deltas = delta.at(batch, head, here).load();
        return { base, delta: isBehind.select(start, deltas) };
      },
    };
  });
}

/** From the values of tiles of rows, as the warp-specialized kernel has them. */
export function sinkGradientsOfTiles(form: AttentionForm): KernelDefinition {
  const { dimensions } = attentionArrays(form);
  const tiles = together / gradientRows;
  return sinkKernel(form, { rowValues: rowValuesArray(dimensions) }, (argument) => {
    const { rowValues } = argument as { readonly rowValues: Ref<"f32"> };
    const { s, ends } = dimensions;
    const rows = constant(dtypes.i32, 0).add(s);
    const count =
      ends === undefined
        ? rows.add(gradientRows - 1).div(gradientRows)
        : rows.div(gradientRows).add(ends);
    return {
      steps: count.add(tiles - 1).div(tiles),
      valuesOf: (batch, head, step) => {
        const here = slice(step.mul(tiles), tiles);
        const valueOf = (which: 0 | 1) => rowValues.at(batch, head, here, which).load();
        return { base: valueOf(0), delta: valueOf(1) };
      },
    };
  });
}

interface RowValues {
  readonly steps: Index;
  /** Logarithms to base 2, +∞ for rows without any, and deltas. */
  readonly valuesOf: (
    batch: Index,
    head: Index,
    step: Index,
  ) => { readonly base: Tile<"f32">; readonly delta: Tile<"f32"> };
}

function sinkKernel(
  form: AttentionForm,
  inputs: { readonly [name: string]: TensorSpec },
  valuesIn: (argument: unknown) => RowValues,
): KernelDefinition {
  const { dimensions } = attentionArrays(form);
  const sinks = tensor(dtypes.f32, [dimensions.h]);
  return kernel(
    {
      name: "attention_dsinks",
      grid: { head: dimensions.h },
      inputs: { sinks, ...inputs },
      outputs: { dSinks: sinks },
    },
    (argument) => {
      const { head } = argument;
      const { steps, valuesOf } = valuesIn(argument);
      const sink = argument.sinks.at(head).loadScalar().mul(Math.LOG2E);
      const batches = constant(dtypes.i32, 0).add(dimensions.b);
      const start = zeros(dtypes.f32, [together]);
      const sums = loop({ to: batches.mul(steps), carry: start }, (turn, before) => {
        const batch = turn.div(steps);
        const { base, delta } = valuesOf(batch, head, turn.sub(batch.mul(steps)));
        const share = base.neg().add(sink).exp2();
        return before.sub(share.mul(delta).reshape([together]));
      });
      argument.dSinks.at(slice(head, 1)).store(sums.sum({ axis: 0, keepDims: true }));
    },
  );
}
