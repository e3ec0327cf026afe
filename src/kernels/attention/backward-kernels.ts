/** The kernels of the gradients of attention; `backward.ts` has their formulas. */
import { tensor, cdiv, dot, kernel, loop, slice, zeros } from "../../lang/index.ts";
import type { KernelDefinition, Ref, Scalar, Tile } from "../../lang/index.ts";
import { dtypes } from "../../formats/dtype.ts";
import type { DType } from "../../formats/dtype.ts";
import type { PlainGradients } from "./configuration.ts";
import { attentionArrays, offsetArrays, paddedHead, segmentArrays } from "./dimensions.ts";
import type { AttentionForm } from "./dimensions.ts";
import { columnBlocks, columnsOfBlock, inSpan, rowBlocks, rowsOfBlock } from "./packing.ts";
import type { Sequence } from "./packing.ts";
import {
  columnTiles,
  droppedOut,
  finishScores,
  keptWeights,
  rowTiles,
  scaleOf,
  throughScore,
  throughScores,
} from "./scores.ts";
import type { ScoreRules, ScoreTile, SegmentRefs } from "./scores.ts";
import { factorOf, scoreProducts, turned } from "./score-products.ts";
import type { Factor } from "./score-products.ts";
import { headByHead, headOf, stretch } from "./block-mask.ts";
import type { VisitLists } from "./block-mask.ts";

type Index = Scalar<"i32">;
type Half = "bf16";

/** Σ out · dOut over e, for every row. */
export function deltaKernel(form: AttentionForm, { rows }: PlainGradients): KernelDefinition {
  const { outputs, dimensions } = attentionArrays(form);
  const { b, s, h } = dimensions;
  const out = outputs["out"] ?? tensor(dtypes.f32, [1]);
  const e = paddedHead(form.sizes.e);
  return kernel(
    {
      name: "attention_delta",
      grid: { head: h, batch: b, block: cdiv(s, rows) },
      inputs: { out, dOut: out },
      outputs: { delta: tensor(dtypes.f32, [b, h, s]) },
    },
    (argument) => {
      const { head, batch, block, delta } = argument;
      const down = slice(block.mul(rows), rows);
      const loaded = (ref: Ref): Tile<"f32"> =>
        ref.at(batch, down, head, slice(0, e)).load().cast(dtypes.f32);
      const products = loaded(argument.out).mul(loaded(argument.dOut));
      delta.at(batch, head, down).store(products.sum({ axis: 1 }));
    },
  );
}

/** What both kernels of gradients share: their arrays, and a tile of p and ds. */
export function gradientArrays(form: AttentionForm, results: readonly ("q" | "k" | "v")[]) {
  const { inputs, outputs, dimensions } = attentionArrays(form);
  const rows = tensor(dtypes.f32, [dimensions.b, dimensions.h, dimensions.s]);
  const { q, k, v, bias, key } = inputs;
  const { out } = outputs;
  if (!q || !k || !v || !out) throw new Error("attention has these arrays");
  const specs = { q, k, v };
  return {
    dimensions,
    inputs: {
      ...{
        ...specs,
        dOut: out,
        logSumExp: rows,
        delta: rows,
        ...(bias && { bias }),
        ...(key && { key }),
      },
      ...offsetArrays(dimensions),
      ...segmentArrays(form.problem, dimensions),
    },
    outputs: Object.fromEntries(results.map((name) => [`d${name}`, specs[name]] as const)),
  };
}

export interface GradientRefs {
  readonly q: Ref<Half>;
  readonly k: Ref<Half>;
  readonly v: Ref<Half>;
  readonly dOut: Ref<Half>;
  readonly logSumExp: Ref<"f32">;
  readonly delta: Ref<"f32">;
}

interface Gradients {
  /** e^(score − logSumExp), in the format of the operands. */
  readonly powers: Tile<Half>;
  /** The gradient of the products q · k, in the format of the operands. */
  readonly products: Tile<Half>;
  /** The gradient of the scores as the bias left them. */
  readonly biased: Tile<"f32">;
}

/** What a tile of scores is made from. */
interface TileOperands {
  readonly queries: Factor;
  readonly keys: Factor;
  readonly values: Factor;
  readonly upstream: Factor;
}

export function gradientsOf(
  rules: ScoreRules,
  { logSumExp, delta }: GradientRefs,
  { queries, keys, values, upstream }: TileOperands,
  tile: ScoreTile,
  { memory, rows }: Sequence,
): Gradients {
  const { problem, sizes } = rules;
  const format = problem.q.dtype as DType<Half>;
  const products = (left: Factor, right: Factor, size: number): Tile<"f32"> =>
    scoreProducts(format, paddedHead(size), left, turned(right), [tile.rows, tile.columns]);
  const column = (ref: Ref<"f32">): Tile<"f32"> =>
    ref
      .at(memory, tile.head, inSpan(rows, tile.top, tile.rows))
      .load()
      .reshape([tile.rows, 1]);
  const raw = products(queries, keys, sizes.d);
  const { scores, scale } = finishScores(rules, raw, tile);
  const logarithms = column(logSumExp).mul(Math.LOG2E);
  // A row that saw nothing, or lies beyond the last, has no powers.
  const isSeen = logarithms.gt(-Infinity);
  const base = isSeen.select(logarithms, zeros(dtypes.f32, logarithms.shape));
  const seen = isSeen.select(scores, zeros(dtypes.f32, scores.shape).sub(Infinity));
  const powers = seen.fma(scale, base.neg()).exp2({ approximate: true });
  const change = products(upstream, values, sizes.e);
  const kept = keptWeights(rules, tile);
  const ofScores = powers.mul(droppedOut(rules, change, kept).sub(column(delta)));
  return {
    powers: droppedOut(rules, powers, kept).cast(format),
    biased: throughScore(rules, raw, ofScores, tile),
    products: throughScores(rules, raw, ofScores, tile).mul(scaleOf(problem, sizes)).cast(format),
  };
}

function exactly(format: DType): { readonly precision?: "ieee" } {
  return format.bits === 32 ? { precision: "ieee" } : {};
}

/** dq: a block takes rows of one head, over the columns that they see. */
export function rowGradients(
  form: AttentionForm,
  { rows, columns }: PlainGradients,
  lists: VisitLists | undefined,
): KernelDefinition {
  const { problem, sizes } = form;
  const { dimensions, inputs, outputs } = gradientArrays(form, ["q"]);
  const [d, e] = [paddedHead(sizes.d), paddedHead(sizes.e)];
  const exact = exactly(problem.q.dtype);
  const factor = (size: number, load: Parameters<typeof factorOf>[2]): Factor =>
    factorOf(problem.q.dtype, size, load);
  return kernel(
    {
      name: "attention_dq",
      grid: { head: dimensions.h, batch: dimensions.b, block: rowBlocks(dimensions, rows) },
      inputs: { ...inputs, ...(lists && { visits: lists.spec }) },
      outputs,
    },
    (argument) => {
      const { head, batch, block } = argument as unknown as Places;
      const refs = argument as unknown as GradientRefs & { readonly dq: Ref };
      const { sequence, top } = rowsOfBlock(argument, dimensions, { batch, block }, rows);
      const { memory } = sequence;
      const rules = rulesOf(form, argument, sequence.columns.count);
      const down = inSpan(sequence.rows, top, rows);
      const kvHead = head.div(sizes.h / sizes.kv);
      const along = slice(0, d);
      const queries = factor(d, (along) => refs.q.at(memory, down, head, along).load());
      const upstream = factor(e, (across) => refs.dOut.at(memory, down, head, across).load());
      const visits =
        lists?.read(argument, { batch, head, block }) ??
        stretch(columnTiles({ ...rules, s: sequence.rows.count }, top, rows, columns));
      const start = zeros(dtypes.f32, [rows, d]);
      // Of a sequence without columns nothing is read: it may lie behind the last, and be no numbers.
      const { count } = sequence.columns;
      const steps = sizes.ends > 0 ? count.gt(0).select(visits.steps, count.mul(0)) : visits.steps;
      const sums = loop({ to: steps, carry: start }, (step, accumulator) => {
        const { tile: number, isMasked } = visits.at(step);
        const left = number.mul(columns);
        const here = inSpan(sequence.columns, left, columns);
        const keys = factor(d, (along) => refs.k.at(memory, here, kvHead, along).load());
        const values = factor(e, (across) => refs.v.at(memory, here, kvHead, across).load());
        const tile = { batch: sequence.batch, head, top, left, rows, columns, isMasked };
        const operands = { queries, keys, values, upstream };
        const { products } = gradientsOf(rules, refs, operands, tile, sequence);
        return dot(products, keys.whole(), {
          accumulator,
          dtype: dtypes.f32,
          ...exact,
        });
      });
      refs.dq.at(memory, down, head, along).store(sums.cast(problem.q.dtype));
    },
  ) as unknown as KernelDefinition;
}

interface Places {
  readonly head: Index;
  readonly batch: Index;
  readonly block: Index;
}

export function rulesOf(
  { problem, sizes, location }: AttentionForm,
  argument: unknown,
  t: Index,
): ScoreRules {
  const named = argument as SegmentRefs & { readonly bias: Ref; readonly key: Ref<"u32"> };
  const bias = problem.bias && named.bias;
  const key = problem.key && named.key;
  const segments = problem.querySegmentIds && named;
  return { problem, sizes, location, bias, segments, key, t };
}

/** dk and dv: a block takes columns of one head of k and v, over the rows of its heads of q that see them. */
export function columnGradients(
  form: AttentionForm,
  { rows, columns }: PlainGradients,
  lists: VisitLists | undefined,
): KernelDefinition {
  const { problem, sizes } = form;
  const { dimensions, inputs, outputs } = gradientArrays(form, ["k", "v"]);
  const [d, e] = [paddedHead(sizes.d), paddedHead(sizes.e)];
  const exact = exactly(problem.q.dtype);
  const factor = (size: number, load: Parameters<typeof factorOf>[2]): Factor =>
    factorOf(problem.q.dtype, size, load);
  const group = sizes.h / sizes.kv;
  return kernel(
    {
      name: "attention_dkv",
      grid: {
        ...{ head: dimensions.kv, batch: dimensions.b },
        block: columnBlocks(dimensions, columns),
      },
      inputs: { ...inputs, ...(lists && { visits: lists.spec }) },
      outputs,
    },
    (argument) => {
      const { head: kvHead, batch, block } = argument as unknown as Places;
      const refs = argument as unknown as GradientRefs & { readonly dk: Ref; readonly dv: Ref };
      const { sequence, left } = columnsOfBlock(argument, dimensions, { batch, block }, columns);
      const { memory } = sequence;
      const rules = rulesOf(form, argument, sequence.columns.count);
      const here = inSpan(sequence.columns, left, columns);
      const [along, across] = [slice(0, d), slice(0, e)];
      const keys = factor(d, (along) => refs.k.at(memory, here, kvHead, along).load());
      const values = factor(e, (across) => refs.v.at(memory, here, kvHead, across).load());
      const visits =
        lists?.read(argument, { batch, head: kvHead, block }) ??
        headByHead(group, rowTiles(rules, sequence.rows.count, left, rows, columns));
      const start = {
        dk: zeros(dtypes.f32, [columns, d]),
        dv: zeros(dtypes.f32, [columns, e]),
      };
      const sums = loop({ to: visits.steps, carry: start }, (turn, { dk, dv }) => {
        const { tile: number, own, isMasked } = visits.at(turn);
        const head = headOf(kvHead, group, own);
        const top = number.mul(rows);
        const down = inSpan(sequence.rows, top, rows);
        const queries = factor(d, (along) => refs.q.at(memory, down, head, along).load());
        const upstream = factor(e, (across) => refs.dOut.at(memory, down, head, across).load());
        const tile = { batch: sequence.batch, head, top, left, rows, columns, isMasked };
        const operands = { queries, keys, values, upstream };
        const { powers, products } = gradientsOf(rules, refs, operands, tile, sequence);
        const added = (left: Tile<Half>, right: Tile<Half>, accumulator: Tile<"f32">) =>
          dot(left.transpose(), right, { accumulator, dtype: dtypes.f32, ...exact });
        return {
          dk: added(products, queries.whole(), dk),
          dv: added(powers, upstream.whole(), dv),
        };
      });
      refs.dk.at(memory, here, kvHead, along).store(sums.dk.cast(problem.k.dtype));
      refs.dv.at(memory, here, kvHead, across).store(sums.dv.cast(problem.v.dtype));
    },
  ) as unknown as KernelDefinition;
}
