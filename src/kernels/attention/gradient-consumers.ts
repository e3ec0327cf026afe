/**
 * The consumers of the warp-specialized gradients: what they multiply for each tile of rows, and what they store in the end
 * (`backward-warp-specialized.ts` has the whole, `gradient-partition.ts` which part of it each of them has).
 */
import {
  accumulator,
  all,
  commitGroup,
  commitShared,
  copyAsync,
  iota,
  loop,
  setRegisters,
  slice,
  waitGroup,
  wgmma,
  when,
  zeros,
} from "../../lang/index.ts";
import type { Accumulator, Ref, Slice, Tile } from "../../lang/index.ts";
import { dtypes } from "../../formats/dtype.ts";
import type { DType } from "../../formats/dtype.ts";
import { consumerRows } from "./configuration.ts";
import type { AttentionForm } from "./dimensions.ts";
import { gradientConsumers, gradientDivision } from "./gradient-partition.ts";
import { gradientHead, gradientRows, scatteredSums } from "./gradient-sums.ts";
import { placeOfTurn, registers, stages } from "./gradient-context.ts";
import type { Half, Index, Refs, Work } from "./gradient-context.ts";
import { inSpan } from "./packing.ts";
import { finishScores, keptWeights, scaleOf, throughScores } from "./scores.ts";
import type { ScoreRules, ScoreTile } from "./scores.ts";

/** Which of the groups of columns of the block a consumer has. */
function groupOf({ form }: Work, part: number): number {
  return part % gradientDivision(form.sizes).groups;
}

/** Which columns of the gradient of a head of this size a consumer has. */
function shareOf({ form }: Work, part: number, size: number): Slice {
  const { shares } = gradientDivision(form.sizes);
  const own = gradientHead(size) / shares;
  return slice((part % shares) * own, own);
}

/** What a consumer has summed up, and the piece of dq of the step before that has not left yet. */
type Sums = { readonly [N in "dk" | "dv"]: Accumulator<"f32"> } & {
  readonly rest: readonly Tile<"f32">[];
};

/** 64 columns of scores, and the rows of dk and dv that belong to them. */
export function consume(work: Work, part: number): void {
  const { form, refs } = work;
  const { sizes, problem } = form;
  setRegisters(registers.consumer);
  const [d, e] = [gradientHead(sizes.d), gradientHead(sizes.e)];
  const { groups, shares, pieces } = gradientDivision(sizes);
  for (let each = 0; each < groups; each += 1) refs.fullK.at(each).wait();
  refs.fullV.at(groupOf(work, part)).wait();
  if (sizes.ends > 0) clearOtherColumns(work, part);
  const start: Sums = {
    dk: accumulator(dtypes.f32, [consumerRows, d / shares]),
    dv: accumulator(dtypes.f32, [consumerRows, e / shares]),
    rest: pieces === 1 ? [] : [zeros(dtypes.f32, [gradientRows, d / gradientConsumers / pieces])],
  };
  const turns = work.visits.steps;
  const end = loop({ to: turns, carry: start }, (turn, sums) =>
    addTurn(work, part, turn, turns, sums),
  );
  for (const rest of end.rest)
    when(turns.gt(0), () => {
      sendPiece(work, part, rest);
    });
  const dv = end.dv.wait();
  const dk = end.dk.wait().mul(scaleOf(problem, sizes));
  storeGradient(work, part, "v", dv);
  storeGradient(work, part, "k", dk);
}

/**
 * What lies behind a sequence belongs to another one, and may be no number. Its weights are 0, and so has it to be, since 0 times such
 * a number is none either. Each consumer clears its own columns of k and v, of the last block of a sequence; where both have the same, one
 * clears those of k and the other those of v.
 */
function clearOtherColumns(work: Work, part: number): void {
  const { form, refs, sequence, left } = work;
  const { count } = sequence.columns;
  const { tileK, tileV } = refs;
  const { groups } = gradientDivision(form.sizes);
  const group = groupOf(work, part);
  when(left.add(groups * consumerRows).gt(count), () => {
    const column = iota(dtypes.i32, [consumerRows, 1], { axis: 0 }).add(
      left.add(group * consumerRows),
    );
    const shared = part === 0 ? [tileK] : [tileV];
    for (const tile of groups === 1 ? shared : [tileK, tileV])
      tile.at(group).store(0, { where: column.ge(count) });
    awaitClearing(refs);
  });
}

/** Rows likewise, of the last tile of a sequence: one consumer those of q, the other those of dOut. */
function clearOtherRows(work: Work, part: number, top: Index, turn: Index): void {
  const { form, refs, sequence } = work;
  const { count } = sequence.rows;
  const { outStages } = gradientDivision(form.sizes);
  when(top.add(gradientRows).gt(count), () => {
    const row = iota(dtypes.i32, [gradientRows, 1], { axis: 0 }).add(top);
    const tile =
      part === 0 ? refs.tileQ.at(turn.and(stages - 1)) : refs.tileOut.at(turn.and(outStages - 1));
    tile.store(0, { where: row.ge(count) });
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

/**
 * The gradient of scores, and the weights that go with them. With dropout, a weight is its power or nothing, by the sign, and what has
 * no weight changes by −power · delta alone: nothing is compared, since a lane would hold the outcomes until the weights are made.
 */
function changesOf(
  { problem: { dropout } }: AttentionForm,
  signed: Tile<"f32">,
  ofWeights: Tile<"f32">,
  delta: Tile<"f32">,
): { readonly change: Tile<"f32">; readonly weight: Tile<"f32"> } {
  if (dropout === undefined) return { change: signed.mul(ofWeights.sub(delta)), weight: signed };
  const weight = signed.maximum(0).mul(1 / (1 - dropout));
  return { change: weight.fma(ofWeights, signed.abs().neg().mul(delta)), weight };
}

/** What one tile of rows adds. */
function addTurn(work: Work, part: number, turn: Index, turns: Index, sums: Sums): Sums {
  const { form, refs } = work;
  const { tileK, tileQ, tileOut, tileScores } = refs;
  const half = gradientHead(form.sizes.d) / gradientConsumers;
  const { groups, shares, outStages } = gradientDivision(form.sizes);
  const group = groupOf(work, part);
  const slot = turn.and(stages - 1);
  const outSlot = turn.and(outStages - 1);
  const { first, count } = scoreRows(work, part);
  const rows = slice(first, count);
  const { weights, gradient } = scoresOfTurn(work, part, turn, turns, sums.rest);
  const ofValues = tileOut.at(outSlot, all, shareOf(work, part, form.sizes.e));
  // Those who have half of the rows of a score each multiply by what both have put into shared memory.
  const early = shares === 1 ? wgmma(sums.dv, weights, ofValues) : undefined;
  if (early === undefined) refs.tileWeights.at(slot, all, rows).store(weights);
  tileScores.at(slot, group, all, rows).store(gradient);
  commitShared();
  refs.ready.at(slot).arrive();
  refs.ready.at(slot).wait();
  const dv = early ?? wgmma(sums.dv, refs.tileWeights.at(slot), ofValues);
  let running = accumulator(dtypes.f32, [gradientRows, half]);
  for (let each = 0; each < groups; each += 1)
    running = wgmma(
      running,
      tileScores.at(slot, each).transpose(),
      tileK.at(each, all, slice(part * half, half)),
    );
  const ofKeys = tileQ.at(slot, all, shareOf(work, part, form.sizes.d));
  const factor = shares === 1 ? gradient : tileScores.at(slot, group);
  const dk = wgmma(sums.dk, factor, ofKeys);
  const ofRows = running.wait({ pending: 1 });
  if (outStages === 1)
    when(turn.add(1).lt(turns), () => {
      refs.emptyOut.arrive();
    });
  return { dk, dv, rest: sendFirst(work, part, turn, ofRows) };
}

/** Which rows of a tile a consumer has the scores of. */
function scoreRows(
  { form }: Work,
  part: number,
): { readonly first: number; readonly count: number } {
  const { shares } = gradientDivision(form.sizes);
  const count = gradientRows / shares;
  return { first: (part % shares) * count, count };
}

/** The weights of a consumer's part of a tile, and the gradients of its scores, [columns, rows]. */
function scoresOfTurn(
  work: Work,
  part: number,
  turn: Index,
  turns: Index,
  rest: Sums["rest"],
): { readonly weights: Tile<Half>; readonly gradient: Tile<Half> } {
  const { form, rules, refs, sequence, left } = work;
  const { tileK, tileV, tileQ, tileOut, tileRows } = refs;
  const format = form.problem.q.dtype as DType<Half>;
  const { groups, outStages } = gradientDivision(form.sizes);
  const group = groupOf(work, part);
  const { first, count } = scoreRows(work, part);
  const rows = slice(first, count);
  const slot = turn.and(stages - 1);
  const outSlot = turn.and(outStages - 1);
  const { head, tile, isMasked } = placeOfTurn(work, turn);
  const transposed = () => accumulator(dtypes.f32, [consumerRows, count]);

  const top = tile.mul(gradientRows);
  const isPacked = form.sizes.ends > 0;
  refs.fullQ.at(slot).wait();
  if (isPacked) {
    refs.fullOut.at(outSlot).wait();
    clearOtherRows(work, part, top, turn);
  }
  const products = wgmma(transposed(), tileK.at(group), tileQ.at(slot, rows).transpose());
  if (!isPacked) refs.fullOut.at(outSlot).wait();
  const changes = wgmma(transposed(), tileV.at(group), tileOut.at(outSlot, rows).transpose());
  for (const piece of rest)
    when(turn.ge(1), () => {
      sendPiece(work, part, piece);
    });
  const raw = products.wait({ pending: 1 }).transpose();
  // The products of the step before are over with this one, which was started after them.
  when(turn.ge(1).and(turn.add(stages - 1).lt(turns)), () => {
    refs.empty.at(turn.sub(1).and(stages - 1)).arrive();
  });
  const place = {
    ...{ batch: sequence.batch, head, top: top.add(first) },
    left: left.add(group * consumerRows),
    ...{ rows: count, columns: consumerRows, run: groups * consumerRows },
    isMasked,
  };
  const { scores, scale } = finishScores(rules, raw, place);
  const valueOf = (which: 0 | 1) => tileRows.at(slot, which, rows).load().reshape([count, 1]);
  const exponents = scores.fma(scale, valueOf(0).neg());
  const signed = signedPowers(rules, exponents.exp2({ approximate: true }), place);
  const { change, weight } = changesOf(form, signed, changes.wait().transpose(), valueOf(1));
  return {
    gradient: throughScores(rules, raw, change, place).cast(format).transpose(),
    weights: weight.cast(format).transpose(),
  };
}

/**
 * Hands sums of dq of a turn to the warp that adds them to memory: of two pieces the first one, since the place that they leave by is taken until
 * it has been read. Gives those that are left, which leave under the products of the next turn.
 */
function sendFirst(work: Work, part: number, turn: Index, sums: Tile<"f32">): Sums["rest"] {
  const { pieces } = gradientDivision(work.form.sizes);
  const [rows = 0, half = 0] = sums.shape;
  const width = half / pieces;
  const scale = scaleOf(work.form.problem, work.form.sizes);
  // Registers that products have written would be waited for where they are read under the products of the next turn: scaling fills others.
  const piece = (index: number) => sums.slice([0, index * width], [rows, width]).mul(scale);
  when(turn.ge(1), () => {
    work.refs.emptySums.at(part).wait();
  });
  storePiece(work, part, pieces === 1 ? sums : piece(0));
  return pieces === 1 ? [] : [piece(1)];
}

/** Hands the second piece on, when the first one has been read. */
function sendPiece(work: Work, part: number, sums: Tile<"f32">): void {
  work.refs.emptySums.at(part).wait();
  storePiece(work, part, sums);
}

function storePiece({ refs }: Work, part: number, sums: Tile<"f32">): void {
  refs.tileSums.at(part).store(scatteredSums(sums));
  commitShared();
  refs.fullSums.at(part).arrive();
}

/** By TMA through the tile of v, which the consumer alone has used, or by the lanes themselves. */
function storeGradient(work: Work, part: number, name: "k" | "v", sums: Tile<"f32">): void {
  const { form, refs, sequence, kvHead, left } = work;
  const { sizes, problem } = form;
  const size = { k: sizes.d, v: sizes.e }[name];
  const { shares } = gradientDivision(sizes);
  const here = inSpan(sequence.columns, left.add(groupOf(work, part) * consumerRows), consumerRows);
  const window = (name === "k" ? refs.dk : refs.dv).at(
    sequence.memory,
    here,
    kvHead,
    shareOf(work, part, size),
  );
  const result = sums.cast(problem[name].dtype) as Tile;
  // TMA knows no end of a sequence.
  if (sizes.ends > 0 || shares > 1 || gradientHead(sizes.d) !== gradientHead(sizes.e)) {
    (window as Ref).store(result);
    return;
  }
  const own = refs.tileV.at(part) as Ref;
  own.store(result);
  commitShared();
  copyAsync(own, window as Ref);
  commitGroup();
  waitGroup(0, { read: true });
}
