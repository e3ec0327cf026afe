/**
 * What the warp-specialized gradients need before and after: logarithms and deltas side by side for each tile of rows, and the
 * sums of dq in f32.
 *
 * Sums lie in memory in the order in which lanes hold them, 4 numbers of a lane after those of the lane before, so that
 * they go through shared memory without conflicts of banks and TMA adds them in whole rows:
 *
 *   a tile of dq      row 16w + 8h + g    column 16m + 8l + 2t + p        w warp, g and t lane, the others registers
 *   its sums          [m, h, w, g, t, l, p]
 */
import { tensor, full, iota, kernel, slice, zeros } from "../../lang/index.ts";
import type { TensorSpec, KernelDefinition, Ref, Tile } from "../../lang/index.ts";
import { dtypes } from "../../formats/dtype.ts";
import { attentionArrays, paddedHead, rowOffsets } from "./dimensions.ts";
import type { AttentionForm } from "./dimensions.ts";
import { inSpan, rowBlocks, rowsEnd, rowSpanOfBlock } from "./packing.ts";
import { scaleOf } from "./scores.ts";

/** Rows of a tile of scores: those of one wgmma, where dq is made. */
export const gradientRows = 64;

/** Columns that a consumer has of dq are a multiple of 16. */
export function gradientHead(size: number): number {
  return Math.max(32, paddedHead(size));
}

type Dimensions = ReturnType<typeof attentionArrays>["dimensions"];

/** The logarithm to base 2 of each row, and its delta: [b, h, tiles of rows, 2, rows]. */
export function rowValuesArray(dimensions: Dimensions): TensorSpec<"f32"> {
  const { b, h } = dimensions;
  return tensor(dtypes.f32, [b, h, rowBlocks(dimensions, gradientRows), 2, gradientRows]);
}

/** Sums of dq in f32, padded: [b, h, tiles of rows, lines, 256]. */
export function sumsArray({ sizes }: AttentionForm, dimensions: Dimensions): TensorSpec<"f32"> {
  const { b, h } = dimensions;
  const lines = (gradientRows * gradientHead(sizes.d)) / 256;
  return tensor(dtypes.f32, [b, h, rowBlocks(dimensions, gradientRows), lines, 256]);
}

/** A tile of sums, [rows, half], in the order of memory: [count / 256, 256]. */
export function scatteredSums(tile: Tile<"f32">): Tile<"f32"> {
  const [rows = 0, half = 0] = tile.shape;
  return tile
    .reshape([rows / 16, 2, 8, half / 16, 2, 4, 2])
    .transpose([3, 1, 0, 2, 5, 4, 6])
    .reshape([(rows * half) / 256, 256]);
}

/** And back. */
export function gatheredSums(tile: Tile<"f32">, rows: number, half: number): Tile<"f32"> {
  return tile
    .reshape([half / 16, 2, rows / 16, 8, 4, 2, 2])
    .transpose([2, 1, 3, 0, 5, 4, 6])
    .reshape([rows, half]);
}

/** Logarithms and deltas of the rows, and sums of dq that begin at 0. */
export function prepareGradients(form: AttentionForm): KernelDefinition {
  const rows = gradientRows;
  const { outputs, dimensions } = attentionArrays(form);
  const { out, logSumExp } = outputs;
  if (!out || !logSumExp) throw new Error("attention has these arrays");
  const e = paddedHead(form.sizes.e);
  return kernel(
    {
      name: "attention_prepare",
      grid: { tile: rowBlocks(dimensions, rows), head: dimensions.h, batch: dimensions.b },
      inputs: { out, dOut: out, logSumExp, ...rowOffsets(dimensions) },
      outputs: {
        rowValues: rowValuesArray(dimensions),
        sums: sumsArray(form, dimensions),
      },
    },
    (argument) => {
      const { tile, head, batch, rowValues, sums } = argument;
      const place = { batch, block: tile };
      const { memory, span, top } = rowSpanOfBlock(argument, dimensions, place, rows);
      const down = inSpan(span, top, rows);
      const loaded = (ref: Ref): Tile<"f32"> =>
        ref.at(memory, down, head, slice(0, e)).load().cast(dtypes.f32);
      const delta = loaded(argument.out as Ref)
        .mul(loaded(argument.dOut as Ref))
        .sum({ axis: 1 });
      const logarithms = (argument.logSumExp as Ref<"f32">).at(memory, head, down).load();
      // A row that saw nothing, lies behind its sequence or is nobody's has no powers: beneath +∞ they are 0.
      const places = iota(dtypes.i32, [rows], { axis: 0 }).add(top);
      const isBehind =
        span.from === undefined
          ? places.ge(span.count)
          : places.ge(span.count).or(places.add(span.from).ge(rowsEnd(argument, dimensions)));
      const base = logarithms
        .eq(-Infinity)
        .or(isBehind)
        .select(full(dtypes.f32, [rows], Infinity), logarithms.mul(Math.LOG2E));
      rowValues.at(batch, head, tile, 0).store(base);
      // Nothing but 0 is without a share of what is no number.
      rowValues.at(batch, head, tile, 1).store(isBehind.select(zeros(dtypes.f32, [rows]), delta));
      sums.at(batch, head, tile).store(0);
    },
  ) as unknown as KernelDefinition;
}

/** dq: the sums, scaled, unless they were before, and rounded. */
export function finishGradients(form: AttentionForm, isScaled: boolean): KernelDefinition {
  const rows = gradientRows;
  const { problem, sizes } = form;
  const { inputs, dimensions } = attentionArrays(form);
  const { q } = inputs;
  if (!q) throw new Error("attention has this array");
  const half = gradientHead(sizes.d) / 2;
  const lines = (rows * half) / 256;
  return kernel(
    {
      name: "attention_finish",
      grid: { tile: rowBlocks(dimensions, rows), head: dimensions.h, batch: dimensions.b },
      inputs: { sums: sumsArray(form, dimensions), ...rowOffsets(dimensions) },
      outputs: { dq: q },
    },
    (argument) => {
      const { tile, head, batch, sums, dq } = argument;
      const place = { batch, block: tile };
      const { memory, span, top } = rowSpanOfBlock(argument, dimensions, place, rows);
      const down = inSpan(span, top, rows);
      for (const part of [0, 1]) {
        const found = sums.at(batch, head, tile, slice(part * lines, lines)).load();
        const values = gatheredSums(found, rows, half);
        const scaled = isScaled ? values : values.mul(scaleOf(problem, sizes));
        dq.at(memory, down, head, slice(part * half, half)).store(scaled.cast(problem.q.dtype));
      }
    },
  );
}
