/**
 * The gradients of attention on wgmma and the copy engine, all three in one pass. A block keeps 128 rows of k and v and
 * goes over the tiles of q and dOut that see them; one warp copies, and each of two consumers has 64 of the 128 columns
 * of scores. Scores are made transposed, so that they come out of the tensor cores as the left operands of dv and dk:
 *
 *   consumer     sᵀ = k · qᵀ     dpᵀ = v · dOutᵀ             64 columns of its own, both of shared memory
 *                pᵀ = 2^(sᵀ − logarithm)                     under the product dpᵀ
 *                dsᵀ = pᵀ · (dpᵀ − delta)                    kept in registers, and put into shared memory
 *                dv += pᵀ · dOut    dk += dsᵀ · q            64 rows of its own, over all steps
 *                dq = ds · k                                 half of the columns of dq, of the ds of both
 *
 * Sums of dq are added to memory by the copy engine, from every block that a row of q sees: as they come, or in one order
 * where results must repeat bit for bit. Blocks that are launched later then wait for earlier ones, tile by tile. With an
 * end to the right that order goes down, since a block begins with rows that none of the columns behind it are seen by:
 *
 *   causal, tiles of rows   0    1    2    3         turns at each tile, one after the other
 *   columns 0               2nd  3rd  …
 *   columns 1               1st  2nd  3rd            launched before columns 0
 *   columns 2                    1st  2nd            launched before columns 1
 */
import {
  accumulator,
  all,
  barrier,
  cdiv,
  commitGroup,
  commitShared,
  constant,
  copyAsync,
  iota,
  kernel,
  loop,
  semaphore,
  setRegisters,
  slice,
  smem,
  waitGroup,
  warps,
  wgmma,
  when,
} from "../../lang/index.ts";
import type {
  Accumulator,
  Barrier,
  KernelDefinition,
  Ref,
  Scalar,
  Semaphore,
  Tile,
} from "../../lang/index.ts";
import { dtypes } from "../../formats/dtype.ts";
import type { DType } from "../../formats/dtype.ts";
import { consumerRows } from "./configuration.ts";
import { attentionArrays, offsetArrays } from "./dimensions.ts";
import type { AttentionForm } from "./dimensions.ts";
import {
  gradientHead,
  gradientRows,
  rowValuesArray,
  scatteredSums,
  sumsArray,
} from "./gradient-sums.ts";
import { rulesOf } from "./backward-kernels.ts";
import {
  columnBlocks,
  firstBlock,
  fromSpan,
  inSpan,
  offsetsOf,
  rowBlocks,
  sequenceOfBlock,
  wholeBatch,
} from "./packing.ts";
import type { Sequence } from "./packing.ts";
import {
  droppedOut,
  finishScores,
  keptWeights,
  rowTiles,
  scaleOf,
  throughScores,
} from "./scores.ts";
import type { ScoreRules, ScoreTile } from "./scores.ts";
import { headByHead, headOf } from "./visit-lists.ts";
import type { Visit, VisitLists, VisitRanks, Visits } from "./visit-lists.ts";

type Index = Scalar<"i32">;
type Half = "bf16";

/** Consumers of a block, each with 64 columns of scores. */
export const gradientConsumers = 2;
const consumerNames = ["first", "second"] as const;
const stages = 2;
const registers = { copy: 24, consumer: 240 } as const;

interface Refs {
  readonly q: Ref<Half>;
  readonly k: Ref<Half>;
  readonly v: Ref<Half>;
  readonly dOut: Ref<Half>;
  readonly rowValues: Ref<"f32">;
  readonly ranks: Ref<"i32">;
  readonly sums: Ref<"f32">;
  readonly dk: Ref<Half>;
  readonly dv: Ref<Half>;
  readonly tileK: Ref<Half>;
  readonly tileV: Ref<Half>;
  readonly tileQ: Ref<Half>;
  readonly tileOut: Ref<Half>;
  readonly tileRows: Ref<"f32">;
  readonly tileScores: Ref<Half>;
  readonly tileSums: Ref<"f32">;
  readonly fullK: Barrier;
  readonly fullV: Barrier;
  readonly fullQ: Barrier;
  readonly fullOut: Barrier;
  readonly empty: Barrier;
  readonly ready: Barrier;
  readonly fullSums: Barrier;
  readonly emptySums: Barrier;
  readonly added: Semaphore;
  /** Of kernels with offsets. */
  readonly cleared: Barrier;
}

/** What the threads of the kernel share. */
interface Work {
  readonly form: AttentionForm;
  /** Whether blocks add to dq in one order. */
  readonly isOrdered: boolean;
  readonly rules: ScoreRules;
  readonly refs: Refs;
  readonly sequence: Sequence;
  readonly kvHead: Index;
  readonly left: Index;
  /** The last block of columns of the sequence, and the number of this one among all. */
  readonly last: Index;
  readonly number: Index;
  /** Where the tiles of rows of the sequence begin among all. */
  readonly tiles: Index;
  /** Tiles of rows that see the columns of the block, and their heads. */
  readonly visits: Visits;
  /** How many blocks add to a tile of rows before this one, of a mask. */
  readonly rankOf: ((head: Index, tile: Index) => Index) | undefined;
}

/** The tiles that a block looks at: those of both consumers. */
export const gradientTiles = { rows: gradientRows, columns: gradientConsumers * consumerRows };

/** Lists of the tiles to look at, and the ranks of blocks at them, of problems with a mask. */
export interface GradientLists {
  readonly visits: VisitLists | undefined;
  readonly ranks: VisitRanks | undefined;
}

export function specialisedGradients(
  form: AttentionForm,
  isOrdered: boolean,
  lists: GradientLists,
): KernelDefinition {
  const { problem } = form;
  const { inputs, outputs, dimensions } = attentionArrays(form);
  const { q, k, v, bias, key } = inputs;
  const { out } = outputs;
  if (!q || !k || !v || !out) throw new Error("attention has these arrays");
  const columns = gradientConsumers * consumerRows;
  return kernel(
    {
      name: "attention_gradients",
      grid: gridOf(form),
      threads: ["copy", ...consumerNames],
      inputs: {
        ...{ q, k, v, dOut: out, rowValues: rowValuesArray(dimensions) },
        ...{ ...(bias && { bias }), ...(key && { key }), ...offsetArrays(dimensions) },
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
      const place = placeOfBlock(argument, dimensions, { batch, block }, goesDown);
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
  goesDown: boolean,
): Pick<Work, "sequence" | "left" | "last" | "number" | "tiles"> {
  const columns = gradientConsumers * consumerRows;
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
  const block = columnBlocks(dimensions, gradientConsumers * consumerRows);
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
  const tile = (size: number) => smem(format, [gradientConsumers, consumerRows, size]);
  return {
    tileK: tile(d),
    tileV: tile(e),
    tileQ: smem(format, [stages, gradientRows, d]),
    tileOut: smem(format, [stages, gradientRows, e]),
    tileRows: smem(dtypes.f32, [stages, 2, gradientRows]),
    tileScores: smem(format, [stages, gradientConsumers, consumerRows, gradientRows]),
    tileSums: smem(dtypes.f32, [
      gradientConsumers,
      (gradientRows * d) / gradientConsumers / 256,
      256,
    ]),
    fullK: barrier({ count: gradientConsumers }),
    fullV: barrier({ count: gradientConsumers }),
    fullQ: barrier({ count: stages, arrivals: 2 }),
    fullOut: barrier({ count: stages }),
    empty: barrier({ count: stages, arrivals: gradientConsumers }),
    ready: barrier({ count: stages, arrivals: gradientConsumers }),
    fullSums: barrier({ count: gradientConsumers }),
    emptySums: barrier({ count: gradientConsumers }),
    ...(sizes.ends > 0 && { cleared: barrier({ arrivals: gradientConsumers }) }),
    ...(isOrdered && {
      added: semaphore([b, h, rowBlocks(dimensions, gradientRows), 2]),
    }),
  };
}

/** Which head and which tile of rows a turn takes, and whether the mask is asked there. */
function placeOfTurn(
  { form, kvHead, visits }: Work,
  turn: Index,
): Visit & { readonly head: Index } {
  const visit = visits.at(turn);
  return { ...visit, head: headOf(kvHead, form.sizes.h / form.sizes.kv, visit.own) };
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
  for (let part = 0; part < gradientConsumers; part += 1) {
    const here = fromSpan(sequence.columns, left.add(part * consumerRows), consumerRows);
    const [fullK, fullV] = [refs.fullK.at(part), refs.fullV.at(part)];
    copyAsync(refs.k.at(memory, here, kvHead, along), refs.tileK.at(part), { barrier: fullK });
    copyAsync(refs.v.at(memory, here, kvHead, across), refs.tileV.at(part), { barrier: fullV });
  }
  loop(work.visits.steps, (turn) => {
    const slot = turn.and(stages - 1);
    const { head, tile } = placeOfTurn(work, turn);
    const down = fromSpan(sequence.rows, tile.mul(gradientRows), gradientRows);
    when(turn.ge(stages), () => {
      refs.empty.at(slot).wait();
    });
    const [fullQ, fullOut] = [refs.fullQ.at(slot), refs.fullOut.at(slot)];
    copyAsync(refs.q.at(memory, down, head, along), refs.tileQ.at(slot), { barrier: fullQ });
    const values = refs.rowValues.at(memory, head, work.tiles.add(tile));
    copyAsync(values, refs.tileRows.at(slot), { barrier: fullQ });
    copyAsync(refs.dOut.at(memory, down, head, across), refs.tileOut.at(slot), {
      barrier: fullOut,
    });
  });
}

/** How many blocks add to a tile of rows before this one. */
function blocksBefore({ form, left: from, last, rankOf }: Work, head: Index, tile: Index): Index {
  if (rankOf !== undefined) return rankOf(head, tile);
  const { left, right } = form.problem.window;
  const columns = gradientConsumers * consumerRows;
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
  const lines = (gradientRows * gradientHead(form.sizes.d)) / gradientConsumers / 256;
  loop(turns, (turn) => {
    const { head, tile } = placeOfTurn(work, turn);
    refs.fullSums.at(part).wait();
    const window = refs.sums.at(
      memory,
      head.maximum(0),
      tiles.add(tile).maximum(0),
      slice(part * lines, lines),
    );
    const added = isOrdered ? refs.added.at(memory, head, tiles.add(tile), part) : undefined;
    added?.wait(blocksBefore(work, head, tile));
    copyAsync(refs.tileSums.at(part), window, { reduction: "add" });
    commitGroup();
    waitGroup(0, { read: !isOrdered });
    added?.signal();
    when(turn.add(1).lt(turns), () => {
      refs.emptySums.at(part).arrive();
    });
  });
  waitGroup(0);
}

type Sums = { readonly [N in "dk" | "dv"]: Accumulator<"f32"> };

/** 64 columns of scores, and the rows of dk and dv that belong to them. */
function consume(work: Work, part: number): void {
  const { form, refs } = work;
  const { sizes, problem } = form;
  setRegisters(registers.consumer);
  const [d, e] = [gradientHead(sizes.d), gradientHead(sizes.e)];
  for (let each = 0; each < gradientConsumers; each += 1) refs.fullK.at(each).wait();
  refs.fullV.at(part).wait();
  if (sizes.ends > 0) clearOtherColumns(work, part);
  const start: Sums = {
    dk: accumulator(dtypes.f32, [consumerRows, d]),
    dv: accumulator(dtypes.f32, [consumerRows, e]),
  };
  const turns = work.visits.steps;
  const end = loop({ to: turns, carry: start }, (turn, sums) =>
    addTurn(work, part, turn, turns, sums),
  );
  const dv = end.dv.wait();
  const dk = end.dk.wait().mul(scaleOf(problem, sizes));
  storeGradient(work, part, "v", dv);
  storeGradient(work, part, "k", dk);
}

/**
 * What lies behind a sequence belongs to another one, and may be no number. Its weights are 0, and so has it to be, since 0 times such
 * a number is none either. Each consumer clears its own columns of k and v, of the last block of a sequence.
 */
function clearOtherColumns({ refs, sequence, left }: Work, part: number): void {
  const { count } = sequence.columns;
  when(left.add(gradientTiles.columns).gt(count), () => {
    const column = iota(dtypes.i32, [consumerRows, 1], 0).add(left.add(part * consumerRows));
    for (const tile of [refs.tileK, refs.tileV])
      tile.at(part).store(0, { where: column.ge(count) });
    awaitClearing(refs);
  });
}

/** Rows likewise, of the last tile of a sequence: one consumer those of q, the other those of dOut. */
function clearOtherRows({ refs, sequence }: Work, part: number, top: Index, slot: Index): void {
  const { count } = sequence.rows;
  when(top.add(gradientRows).gt(count), () => {
    const row = iota(dtypes.i32, [gradientRows, 1], 0).add(top);
    const tile = part === 0 ? refs.tileQ : refs.tileOut;
    tile.at(slot).store(0, { where: row.ge(count) });
    awaitClearing(refs);
  });
}

/** Both consumers read what either of them has cleared. */
function awaitClearing({ cleared }: Refs): void {
  commitShared();
  cleared.arrive();
  cleared.wait();
}

/** Powers, less than 0 where dropout leaves them out, so that no registers hold what it keeps beside them. */
function signedPowers(rules: ScoreRules, powers: Tile<"f32">, place: ScoreTile): Tile<"f32"> {
  return keptWeights(rules, place)?.select(powers, powers.neg()) ?? powers;
}

/** What one tile of rows adds. */
function addTurn(work: Work, part: number, turn: Index, turns: Index, sums: Sums): Sums {
  const { form, rules, refs, sequence, left } = work;
  const { tileK, tileV, tileQ, tileOut, tileRows, tileScores, tileSums } = refs;
  const format = form.problem.q.dtype as DType<Half>;
  const d = gradientHead(form.sizes.d);
  const half = d / gradientConsumers;
  const slot = turn.and(stages - 1);
  const { head, tile, isMasked } = placeOfTurn(work, turn);
  const transposed = () => accumulator(dtypes.f32, [consumerRows, gradientRows]);

  const top = tile.mul(gradientRows);
  const isPacked = form.sizes.ends > 0;
  refs.fullQ.at(slot).wait();
  if (isPacked) {
    refs.fullOut.at(slot).wait();
    clearOtherRows(work, part, top, slot);
  }
  const products = wgmma(transposed(), tileK.at(part), tileQ.at(slot).transpose());
  if (!isPacked) refs.fullOut.at(slot).wait();
  const changes = wgmma(transposed(), tileV.at(part), tileOut.at(slot).transpose());
  const raw = products.wait({ pending: 1 }).transpose();
  // The products of the step before are over with this one, which was started after them.
  when(turn.ge(1).and(turn.add(stages - 1).lt(turns)), () => {
    refs.empty.at(turn.sub(1).and(stages - 1)).arrive();
  });
  const place = {
    ...{ batch: sequence.batch, head, top },
    left: left.add(part * consumerRows),
    ...{ rows: gradientRows, columns: consumerRows, run: gradientConsumers * consumerRows },
    isMasked,
  };
  const { scores, scale } = finishScores(rules, raw, place);
  const valueOf = (which: 0 | 1) => tileRows.at(slot, which).load().reshape([gradientRows, 1]);
  const exponents = scores.fma(scale, valueOf(0).neg());
  const signed = signedPowers(rules, exponents.exp2({ approximate: true }), place);
  const kept = form.problem.dropout === undefined ? undefined : signed.gt(0);
  const powers = kept === undefined ? signed : signed.abs();
  const change = droppedOut(rules, changes.wait().transpose(), kept).sub(valueOf(1));
  const gradient = throughScores(rules, raw, powers.mul(change), place).cast(format).transpose();
  const dv = wgmma(
    sums.dv,
    droppedOut(rules, signed, kept).cast(format).transpose(),
    tileOut.at(slot),
  );
  tileScores.at(slot, part).store(gradient);
  commitShared();
  refs.ready.at(slot).arrive();
  refs.ready.at(slot).wait();
  let running = accumulator(dtypes.f32, [gradientRows, half]);
  for (let each = 0; each < gradientConsumers; each += 1)
    running = wgmma(
      running,
      tileScores.at(slot, each).transpose(),
      tileK.at(each, all, slice(part * half, half)),
    );
  const dk = wgmma(sums.dk, gradient, tileQ.at(slot));
  const own = running.wait({ pending: 1 });
  when(turn.ge(1), () => {
    refs.emptySums.at(part).wait();
  });
  tileSums.at(part).store(scatteredSums(own));
  commitShared();
  refs.fullSums.at(part).arrive();
  return { dk, dv };
}

/** By the copy engine through the tile of v, which the consumer alone has used, or by the lanes themselves. */
function storeGradient(work: Work, part: number, name: "k" | "v", sums: Tile<"f32">): void {
  const { form, refs, sequence, kvHead, left } = work;
  const { sizes, problem } = form;
  const size = { k: sizes.d, v: sizes.e }[name];
  const own = refs.tileV.at(part) as Ref;
  const here = inSpan(sequence.columns, left.add(part * consumerRows), consumerRows);
  const window = (name === "k" ? refs.dk : refs.dv).at(
    sequence.memory,
    here,
    kvHead,
    slice(0, gradientHead(size)),
  );
  const result = sums.cast(problem[name].dtype) as Tile;
  // The copy engine knows no end of a sequence.
  if (sizes.ends > 0 || gradientHead(sizes.d) !== gradientHead(sizes.e)) {
    (window as Ref).store(result);
    return;
  }
  own.store(result);
  commitShared();
  copyAsync(own, window as Ref);
  commitGroup();
  waitGroup(0, { read: true });
}
