/**
 * The consumers of the specialised gradients: what they multiply for each tile of rows, and what they store in the end
 * (`backward-specialised.ts` has the whole, `gradient-division.ts` which part of it each of them has).
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
} from "../../lang/index.ts";
import type { Accumulator, Ref, Slice, Tile } from "../../lang/index.ts";
import { dtypes } from "../../formats/dtype.ts";
import type { DType } from "../../formats/dtype.ts";
import { consumerRows } from "./configuration.ts";
import type { AttentionForm } from "./dimensions.ts";
import { gradientConsumers, gradientDivision } from "./gradient-division.ts";
import { gradientHead, gradientRows, scatteredSums } from "./gradient-sums.ts";
import { placeOfTurn, registers, stages } from "./gradient-work.ts";
import type { Half, Index, Refs, Work } from "./gradient-work.ts";
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

type Sums = { readonly [N in "dk" | "dv"]: Accumulator<"f32"> };

/** 64 columns of scores, and the rows of dk and dv that belong to them. */
export function consume(work: Work, part: number): void {
  const { form, refs } = work;
  const { sizes, problem } = form;
  setRegisters(registers.consumer);
  const [d, e] = [gradientHead(sizes.d), gradientHead(sizes.e)];
  const { groups, shares } = gradientDivision(sizes);
  for (let each = 0; each < groups; each += 1) refs.fullK.at(each).wait();
  refs.fullV.at(groupOf(work, part)).wait();
  if (sizes.ends > 0) clearOtherColumns(work, part);
  const start: Sums = {
    dk: accumulator(dtypes.f32, [consumerRows, d / shares]),
    dv: accumulator(dtypes.f32, [consumerRows, e / shares]),
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
    const column = iota(dtypes.i32, [consumerRows, 1], 0).add(left.add(group * consumerRows));
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
    const row = iota(dtypes.i32, [gradientRows, 1], 0).add(top);
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
  const { form, rules, refs, sequence, left } = work;
  const { tileK, tileV, tileQ, tileOut, tileRows, tileScores } = refs;
  const format = form.problem.q.dtype as DType<Half>;
  const d = gradientHead(form.sizes.d);
  const half = d / gradientConsumers;
  const { groups, shares, outStages } = gradientDivision(form.sizes);
  const group = groupOf(work, part);
  const slot = turn.and(stages - 1);
  const outSlot = turn.and(outStages - 1);
  const { head, tile, isMasked } = placeOfTurn(work, turn);
  const transposed = () => accumulator(dtypes.f32, [consumerRows, gradientRows]);

  const top = tile.mul(gradientRows);
  const isPacked = form.sizes.ends > 0;
  refs.fullQ.at(slot).wait();
  if (isPacked) {
    refs.fullOut.at(outSlot).wait();
    clearOtherRows(work, part, top, turn);
  }
  const products = wgmma(transposed(), tileK.at(group), tileQ.at(slot).transpose());
  if (!isPacked) refs.fullOut.at(outSlot).wait();
  const changes = wgmma(transposed(), tileV.at(group), tileOut.at(outSlot).transpose());
  const raw = products.wait({ pending: 1 }).transpose();
  // The products of the step before are over with this one, which was started after them.
  when(turn.ge(1).and(turn.add(stages - 1).lt(turns)), () => {
    refs.empty.at(turn.sub(1).and(stages - 1)).arrive();
  });
  const place = {
    ...{ batch: sequence.batch, head, top },
    left: left.add(group * consumerRows),
    ...{ rows: gradientRows, columns: consumerRows, run: groups * consumerRows },
    isMasked,
  };
  const { scores, scale } = finishScores(rules, raw, place);
  const valueOf = (which: 0 | 1) => tileRows.at(slot, which).load().reshape([gradientRows, 1]);
  const exponents = scores.fma(scale, valueOf(0).neg());
  const signed = signedPowers(rules, exponents.exp2({ approximate: true }), place);
  const { change, weight } = changesOf(form, signed, changes.wait().transpose(), valueOf(1));
  const gradient = throughScores(rules, raw, change, place).cast(format).transpose();
  const ofValues = tileOut.at(outSlot, all, shareOf(work, part, form.sizes.e));
  const weights = weight.cast(format).transpose();
  const dv = wgmma(sums.dv, weights, ofValues);
  // Of columns that both have, each stores the scores of half of the rows.
  const stored = gradientRows / shares;
  const first = (part % shares) * stored;
  tileScores
    .at(slot, group, all, slice(first, stored))
    .store(shares === 1 ? gradient : gradient.slice([0, first], [consumerRows, stored]));
  commitShared();
  refs.ready.at(slot).arrive();
  refs.ready.at(slot).wait();
  const startRows = () => {
    let running = accumulator(dtypes.f32, [gradientRows, half]);
    for (let each = 0; each < groups; each += 1)
      running = wgmma(
        running,
        tileScores.at(slot, each).transpose(),
        tileK.at(each, all, slice(part * half, half)),
      );
    return running;
  };
  const ofKeys = tileQ.at(slot, all, shareOf(work, part, form.sizes.d));
  if (shares === 1) {
    const running = startRows();
    const dk = wgmma(sums.dk, gradient, ofKeys);
    sendSums(work, part, turn, running.wait({ pending: 1 }));
    return { dk, dv };
  }
  // The registers of dq are those of the factors of dk and dv: it begins when they are done, and dOut can come meanwhile.
  const own = { dk: wgmma(sums.dk, gradient, ofKeys).wait(), dv: dv.wait() };
  when(turn.add(1).lt(turns), () => {
    refs.emptyOut.arrive();
  });
  sendSums(work, part, turn, startRows().wait());
  return {
    dk: accumulator(dtypes.f32, own.dk.shape, own.dk),
    dv: accumulator(dtypes.f32, own.dv.shape, own.dv),
  };
}

/** Hands the sums of dq of a turn to the warp that adds them to memory. */
function sendSums({ form, refs }: Work, part: number, turn: Index, sums: Tile<"f32">): void {
  const { pieces } = gradientDivision(form.sizes);
  const [rows = 0, half = 0] = sums.shape;
  const width = half / pieces;
  for (let piece = 0; piece < pieces; piece += 1) {
    const takeBack = () => {
      refs.emptySums.at(part).wait();
    };
    if (piece === 0) when(turn.ge(1), takeBack);
    else takeBack();
    const own = pieces === 1 ? sums : sums.slice([0, piece * width], [rows, width]);
    refs.tileSums.at(part).store(scatteredSums(own));
    commitShared();
    refs.fullSums.at(part).arrive();
  }
}

/** By the copy engine through the tile of v, which the consumer alone has used, or by the lanes themselves. */
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
  // The copy engine knows no end of a sequence.
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
