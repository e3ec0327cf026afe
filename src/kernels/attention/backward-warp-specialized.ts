/**
 * The gradients of attention on wgmma and TMA, all three in one pass. A block keeps 128 rows of k and v, or 64 of
 * wide heads, and goes over the tiles of q and dOut that see them; one warp copies, and two consumers divide the rest
 * (`gradient-partition.ts`), here for heads up to 128. Scores are made transposed, so that they come out of the tensor cores as the left operands of dv and dk:
 *
 *   consumer     sᵀ = k · qᵀ     dpᵀ = v · dOutᵀ             64 columns of its own, both of shared memory
 *                pᵀ = 2^(sᵀ − logarithm)                     under the product dpᵀ
 *                dsᵀ = pᵀ · (dpᵀ − delta)                    kept in registers, and put into shared memory
 *                dv += pᵀ · dOut    dk += dsᵀ · q            64 rows of its own, over all steps
 *                dq = ds · k                                 half of the columns of dq, of the ds of both
 *
 * Sums of dq are added to memory by TMA, from every block that a row of q sees: as they come, or in one order
 * where results must repeat bit for bit. Blocks that are launched later then wait for earlier ones, tile by tile. With an
 * end to the right that order goes down, since a block begins with rows that none of the columns behind it are seen by:
 *
 *   causal, tiles of rows   0    1    2    3         turns at each tile, one after the other
 *   columns 0               2nd  3rd  …
 *   columns 1               1st  2nd  3rd            launched before columns 0
 *   columns 2                    1st  2nd            launched before columns 1
 */
import {
  barrier,
  cdiv,
  commitGroup,
  constant,
  copyAsync,
  kernel,
  loop,
  semaphore,
  setRegisters,
  slice,
  smem,
  waitGroup,
  warps,
  when,
} from "../../lang/index.ts";
import type { KernelDefinition } from "../../lang/index.ts";
import { dtypes } from "../../formats/dtype.ts";
import { rulesOf } from "./backward-kernels.ts";
import { consumerRows } from "./configuration.ts";
import { attentionArrays, offsetArrays, segmentArrays } from "./dimensions.ts";
import type { AttentionForm } from "./dimensions.ts";
import { consume } from "./gradient-consumers.ts";
import { gradientColumns, gradientConsumers, gradientDivision } from "./gradient-partition.ts";
import { gradientHead, gradientRows, rowValuesArray, sumsArray } from "./gradient-sums.ts";
import { placeOfTurn, registers, stages } from "./gradient-context.ts";
import type { Index, Refs, Work } from "./gradient-context.ts";
import {
  columnBlocks,
  firstBlock,
  fromSpan,
  offsetsOf,
  rowBlocks,
  sequenceOfBlock,
  wholeBatch,
} from "./packing.ts";
import { rowTiles } from "./scores.ts";
import type { AttentionSizes } from "./scores.ts";
import { headByHead } from "./block-mask.ts";
import type { VisitLists, VisitRanks } from "./block-mask.ts";
import type { TileShape } from "./block-mask-rules.ts";

const consumerNames = ["first", "second"] as const;

/** The tiles that a block looks at: those of both consumers. */
export function gradientTiles(sizes: AttentionSizes): TileShape {
  return { rows: gradientRows, columns: gradientColumns(sizes) };
}

/** Lists of the tiles to look at, and the ranks of blocks at them, of problems with a mask. */
export interface GradientLists {
  readonly visits: VisitLists | undefined;
  readonly ranks: VisitRanks | undefined;
}

export function warpSpecializedGradients(
  form: AttentionForm,
  isOrdered: boolean,
  lists: GradientLists,
): KernelDefinition {
  const { problem } = form;
  const { inputs, outputs, dimensions } = attentionArrays(form);
  const { q, k, v, bias, key } = inputs;
  const { out } = outputs;
  if (!q || !k || !v || !out) throw new Error("attention has these arrays");
  const columns = gradientColumns(form.sizes);
  return kernel(
    {
      name: "attention_gradients",
      grid: gridOf(form),
      threads: ["copy", ...consumerNames],
      inputs: {
        ...{ q, k, v, dOut: out, rowValues: rowValuesArray(dimensions) },
        ...{ ...(bias && { bias }), ...(key && { key }), ...offsetArrays(dimensions) },
        ...segmentArrays(problem, dimensions),
        ...(lists.visits && { visits: lists.visits.spec }),
        ...(lists.ranks && { ranks: lists.ranks.spec }),
      },
      inouts: { sums: sumsArray(form, dimensions) },
      outputs: { dk: k, dv: v },
      scratch: scratchOf(form, isOrdered),
    },
    (argument) => {
      const {
        block,
        head: kvHead,
        batch,
      } = argument as unknown as {
        readonly [N in "block" | "head" | "batch"]: Index;
      };
      const goesDown = isOrdered && problem.window.right !== undefined;
      const place = placeOfBlock(argument, dimensions, { batch, block }, columns, goesDown);
      const { sequence, left } = place;
      const rules = rulesOf(form, argument, sequence.columns.count);
      const range = rowTiles(rules, sequence.rows.count, left, gradientRows, columns);
      const refs = argument as unknown as Refs;
      const visits =
        lists.visits?.read(argument, { batch, head: kvHead, block: place.number }) ??
        headByHead(form.sizes.h / form.sizes.kv, range);
      const { ranks } = lists;
      const rankOf =
        ranks &&
        ((head: Index, tile: Index) => {
          const rows = { batch: sequence.batch, head, block: place.tiles.add(tile) };
          return ranks.read(refs.ranks, rows, left.div(columns));
        });
      const work: Work = { form, isOrdered, rules, refs, kvHead, ...place, visits, rankOf };
      const threads = argument as unknown as {
        readonly [name: string]: (body: () => void) => void;
      };
      threads["copy"]?.(() => {
        copy(work);
      });
      consumerNames.forEach((name, part) => {
        threads[name]?.(() => {
          consume(work, part);
        });
      });
    },
  ) as unknown as KernelDefinition;
}

/** The columns of a block, and where the tiles of rows of its sequence lie. */
function placeOfBlock(
  argument: unknown,
  dimensions: ReturnType<typeof attentionArrays>["dimensions"],
  place: { readonly batch: Index; readonly block: Index },
  columns: number,
  goesDown: boolean,
): Pick<Work, "sequence" | "left" | "last" | "number" | "tiles"> {
  const zero = constant(dtypes.i32, 0);
  const offsets = offsetsOf(argument, dimensions);
  if (offsets === undefined) {
    const { sequence, block } = wholeBatch(dimensions, place);
    const last = zero.add(cdiv(dimensions.t, columns)).sub(1);
    const number = goesDown ? last.sub(block) : block;
    return { sequence, last, number, tiles: zero, left: number.mul(columns) };
  }
  const { sequence, block } = sequenceOfBlock(offsets, "k", place.block, columns);
  const last = sequence.columns.count
    .add(columns - 1)
    .div(columns)
    .sub(1);
  // A block behind the last column has no rows, and stays there.
  const isBehind = block.gt(last);
  const count = isBehind.select(zero, sequence.rows.count);
  const own = goesDown ? isBehind.select(block, last.sub(block)) : block;
  return {
    sequence: { ...sequence, rows: { ...sequence.rows, count } },
    ...{ last, left: own.mul(columns), number: place.block.sub(block).add(own) },
    tiles: firstBlock(offsets.q, sequence.batch, gradientRows),
  };
}

/** Which blocks run together: those of different heads, or where heads share k and v those of one. */
function gridOf(form: AttentionForm) {
  const { dimensions } = attentionArrays(form);
  const { b, kv } = dimensions;
  const block = columnBlocks(dimensions, gradientColumns(form.sizes));
  return form.sizes.h === form.sizes.kv
    ? { head: kv, batch: b, block }
    : { block, head: kv, batch: b };
}

/** Tiles of operands, of which those of q and dOut come in turns, and the barriers that say when. */
function scratchOf(form: AttentionForm, isOrdered: boolean) {
  const { sizes, problem } = form;
  const { dimensions } = attentionArrays(form);
  const { b, h } = dimensions;
  const format = problem.q.dtype;
  const [d, e] = [gradientHead(sizes.d), gradientHead(sizes.e)];
  const { groups, shares, outStages, pieces } = gradientDivision(sizes);
  const tile = (size: number) => smem(format, [groups, consumerRows, size]);
  return {
    tileK: tile(d),
    tileV: tile(e),
    tileQ: smem(format, [stages, gradientRows, d]),
    tileOut: smem(format, [outStages, gradientRows, e]),
    tileRows: smem(dtypes.f32, [stages, 2, gradientRows]),
    tileScores: smem(format, [stages, groups, consumerRows, gradientRows]),
    ...(shares > 1 && { tileWeights: smem(format, [stages, consumerRows, gradientRows]) }),
    tileSums: smem(dtypes.f32, [
      gradientConsumers,
      (gradientRows * d) / gradientConsumers / pieces / 256,
      256,
    ]),
    fullK: barrier({ count: groups }),
    fullV: barrier({ count: groups }),
    fullQ: barrier({ count: stages, arrivals: 2 }),
    fullOut: barrier({ count: outStages }),
    empty: barrier({ count: stages, arrivals: gradientConsumers }),
    ...(outStages === 1 && { emptyOut: barrier({ arrivals: gradientConsumers }) }),
    ready: barrier({ count: stages, arrivals: gradientConsumers }),
    fullSums: barrier({ count: gradientConsumers }),
    emptySums: barrier({ count: gradientConsumers }),
    ...(sizes.ends > 0 && { cleared: barrier({ arrivals: gradientConsumers }) }),
    ...(isOrdered && {
      added: semaphore([b, h, rowBlocks(dimensions, gradientRows), 2]),
    }),
  };
}

/** One warp brings operands, and one for each consumer takes its sums of dq away. */
function copy(work: Work): void {
  setRegisters(registers.copy);
  warps((warp) => {
    when(warp.eq(0), () => {
      copyOperands(work);
    });
    for (let part = 0; part < gradientConsumers; part += 1)
      when(warp.eq(1 + part), () => {
        addSums(work, part);
      });
  });
}

/** k and v, and then q, dOut and what belongs to their rows step by step. */
function copyOperands(work: Work): void {
  const { form, refs, sequence, kvHead, left } = work;
  const { memory } = sequence;
  const { sizes } = form;
  const [along, across] = [slice(0, gradientHead(sizes.d)), slice(0, gradientHead(sizes.e))];
  const { groups, outStages } = gradientDivision(sizes);
  for (let group = 0; group < groups; group += 1) {
    const here = fromSpan(sequence.columns, left.add(group * consumerRows), consumerRows);
    const [fullK, fullV] = [refs.fullK.at(group), refs.fullV.at(group)];
    copyAsync(refs.k.at(memory, here, kvHead, along), refs.tileK.at(group), { barrier: fullK });
    copyAsync(refs.v.at(memory, here, kvHead, across), refs.tileV.at(group), { barrier: fullV });
  }
  loop(work.visits.steps, (turn) => {
    const slot = turn.and(stages - 1);
    const { head, tile } = placeOfTurn(work, turn);
    const down = fromSpan(sequence.rows, tile.mul(gradientRows), gradientRows);
    when(turn.ge(stages), () => {
      refs.empty.at(slot).wait();
    });
    const fullQ = refs.fullQ.at(slot);
    copyAsync(refs.q.at(memory, down, head, along), refs.tileQ.at(slot), { barrier: fullQ });
    const values = refs.rowValues.at(memory, head, work.tiles.add(tile));
    copyAsync(values, refs.tileRows.at(slot), { barrier: fullQ });
    const outSlot = turn.and(outStages - 1);
    if (outStages === 1)
      when(turn.ge(1), () => {
        refs.emptyOut.wait();
      });
    copyAsync(refs.dOut.at(memory, down, head, across), refs.tileOut.at(outSlot), {
      barrier: refs.fullOut.at(outSlot),
    });
  });
}

/** How many blocks add to a tile of rows before this one. */
function blocksBefore({ form, left: from, last, rankOf }: Work, head: Index, tile: Index): Index {
  if (rankOf !== undefined) return rankOf(head, tile);
  const { left, right } = form.problem.window;
  const columns = gradientColumns(form.sizes);
  const own = from.div(columns);
  const top = tile.mul(gradientRows);
  if (right !== undefined)
    return top
      .add(gradientRows - 1 + right)
      .div(columns)
      .minimum(last)
      .sub(own);
  return left === undefined ? own : own.sub(top.sub(left).maximum(0).div(columns));
}

/** Adds a consumer's half of dq to memory, step by step. */
function addSums(work: Work, part: number): void {
  const { form, isOrdered, refs, tiles } = work;
  const { memory } = work.sequence;
  const turns = work.visits.steps;
  const { pieces } = gradientDivision(form.sizes);
  const lines = (gradientRows * gradientHead(form.sizes.d)) / gradientConsumers / pieces / 256;
  loop(turns, (turn) => {
    const { head, tile } = placeOfTurn(work, turn);
    const added = isOrdered ? refs.added.at(memory, head, tiles.add(tile), part) : undefined;
    for (let piece = 0; piece < pieces; piece += 1) {
      refs.fullSums.at(part).wait();
      const window = refs.sums.at(
        memory,
        head.maximum(0),
        tiles.add(tile).maximum(0),
        slice((part * pieces + piece) * lines, lines),
      );
      if (piece === 0) added?.wait(blocksBefore(work, head, tile));
      copyAsync(refs.tileSums.at(part), window, { reduction: "add" });
      commitGroup();
      waitGroup(0, { read: !isOrdered });
      const isLast = piece === pieces - 1;
      if (isLast) added?.signal();
      const giveBack = () => {
        refs.emptySums.at(part).arrive();
      };
      if (isLast) when(turn.add(1).lt(turns), giveBack);
      else giveBack();
    }
  });
  waitGroup(0);
}
