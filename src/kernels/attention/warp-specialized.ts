/**
 * Attention on wgmma and TMA. One warp copies; consumers of 64 rows start q · k of a step together with powers · v of
 * the step before, and three of them take turns. So a softmax runs under the products of another consumer, and begins under the
 * values of its own:
 *
 *   copy      q   k0 v0   k1 v1   wait, k2 v2 …
 *   first     q·k0  softmax | q·k1 p0·v0 | softmax    | q·k2 p1·v1 | …
 *   second          q·k0 softmax         | q·k1 p0·v0 | softmax    | …
 *
 * Powers are rounded behind the values, which read those before from the same registers: an assembler that finds them written earlier makes
 * every product wait for the one before.
 *
 * A block takes tile after tile of rows (`tile-scheduler.ts`), so that the operands of the next come under the last steps of one.
 */
import {
  accumulator,
  barrier,
  commitGroup,
  commitShared,
  constant,
  copyAsync,
  dim,
  iota,
  kernel,
  loop,
  scalar,
  setRegisters,
  slice,
  smem,
  waitGroup,
  warps,
  wgmma,
  when,
  zeros,
} from "../../lang/index.ts";
import type {
  Accumulator,
  Barrier,
  KernelDefinition,
  Ref,
  Scalar,
  Tile,
} from "../../lang/index.ts";
import { dtypes } from "../../formats/dtype.ts";
import type { DType } from "../../formats/dtype.ts";
import { followPrevious } from "../support/programmatic-dependent-launch.ts";
import { consumerRows } from "./configuration.ts";
import type { WarpSpecializedAttention } from "./configuration.ts";
import { attentionArrays, optionalRefs, paddedHead } from "./dimensions.ts";
import type { AttentionForm } from "./dimensions.ts";
import { isNarrow } from "./problem.ts";
import type { AttentionProblem } from "./problem.ts";
import { fromSpan, inSpan } from "./packing.ts";
import { columnsAtEnds, isEnding } from "./tail-columns.ts";
import type { EndingColumns } from "./tail-columns.ts";
import { clearTiles, finishScores, keptWeights } from "./scores.ts";
import type { ScoreRules } from "./scores.ts";
import { addColumns, finishedRows, startingRows } from "./softmax.ts";
import type { PowerFormat, RowSums } from "./softmax.ts";
import { heads, onesColumns, spareOf, sumsByProduct } from "./shared-memory.ts";
import { dealtPowers, turnedSpec } from "./transposed-values.ts";
import { hasShortTiles } from "./tail-tiles.ts";
import { tileOrder } from "./tile-scheduler.ts";
import type { Place, TileOrder } from "./tile-scheduler.ts";
import type { Visit, VisitLists } from "./block-mask.ts";

type Index = Scalar<"i32">;
type Half = "bf16";

const consumerNames = ["first", "second", "third"] as const;
/** Registers of a lane of the copying thread, and of the consumers, by how many there are. */
const registers = {
  1: undefined,
  2: { copy: 24, consumer: 240 },
  3: { copy: 32, consumer: 160 },
} as const;

/**
 * Whether consumers start their products in turns. Two find their places by themselves, and a turn that is handed over late leaves tensor cores idle
 * (1.5% for heads of 128); three would meet in their products, and then in their softmaxes (7% for heads of 64).
 */
function takesTurns(consumers: number): boolean {
  return consumers > 2;
}

/** What a consumer hands from step to step: its rows so far, the powers of the last step, and the sums of values without those. */
type Carried = {
  readonly largest: Tile<"f32">;
  readonly sum: Tile<"f32">;
  readonly powers: Tile<Half>;
  readonly sums: Tile<"f32">;
};

/** What the threads of the kernel share. */
interface Work {
  readonly form: AttentionForm;
  readonly configuration: WarpSpecializedAttention;
  readonly rules: ScoreRules;
  readonly order: TileOrder;
  readonly refs: Refs;
  readonly sinks: Ref<"f32"> | undefined;
  readonly logSumExp: Ref<"f32"> | undefined;
  readonly scales: { readonly [N in "q" | "k" | "v"]: Ref<"f32"> } | undefined;
}

interface Refs {
  readonly q: Ref<Half>;
  readonly k: Ref<Half>;
  readonly v: Ref<Half>;
  readonly out: Ref;
  readonly tileQ: Ref<Half>;
  readonly tileK: Ref<Half>;
  readonly tileV: Ref<Half>;
  readonly tileOut: Ref<Half>;
  /** Of kernels that sum powers by products. */
  readonly ones: Ref<Half>;
  readonly fullQ: Barrier;
  readonly fullK: Barrier;
  readonly fullV: Barrier;
  readonly emptyQ: Barrier;
  readonly emptyK: Barrier;
  readonly emptyV: Barrier;
  /** Of consumers that take turns. */
  readonly turn: Barrier;
  /** Of kernels with offsets. */
  readonly cleared: Barrier;
}

/** FP8 powers have three bits behind the point, whatever the operands have. */
function powersOf(problem: AttentionProblem): PowerFormat<Half> {
  return isNarrow(problem)
    ? { dtype: dtypes.f8e4m3fn as unknown as DType<Half>, lift: 8, dealt: dealtPowers }
    : { dtype: problem.q.dtype as DType<Half>, lift: 0 };
}

/**
 * Whether sums are scaled only where a row has an exponent that is too large for the format of its powers: where a lane has more sums than scores. Where it has fewer,
 * asking whether some row of the warp has takes longer than scaling all (0.97 of the rate for heads of 128 in bf16, where FP8 gains 1% and heads of 256 gain 3%).
 */
function isSeldomScaled({ sizes }: AttentionForm, { columns }: WarpSpecializedAttention): boolean {
  return paddedHead(sizes.e) > columns;
}

/** By how much exponents may pass what powers are taken beneath: FP8 ends at 448, between 2⁸ and 2⁹, where those of the others could be much larger. */
function slackOf({ problem }: AttentionForm): number {
  return isNarrow(problem) ? 0.75 : 8;
}

export function warpSpecializedAttention(
  form: AttentionForm,
  configuration: WarpSpecializedAttention,
  lists: VisitLists | undefined,
): KernelDefinition {
  const { problem, sizes, location } = form;
  const { consumers, columns, stages } = configuration;
  const { inputs, outputs, dimensions } = attentionArrays(form);
  const { d, e } = heads(problem, sizes);
  const format = problem.q.dtype;
  const isTurned = isNarrow(problem);
  const names = consumerNames.slice(0, consumers);
  const { queries, hasOut } = spareOf(form, configuration);
  return kernel(
    {
      name: "attention",
      grid: { worker: dim("workers") },
      threads: ["copy", ...names],
      inputs: {
        ...inputs,
        ...(isTurned && { v: turnedSpec(form) }),
        ...(lists && { visits: lists.spec }),
        ...(hasShortTiles(form, configuration) && { whole: scalar(dtypes.i32) }),
      },
      outputs,
      scratch: {
        tileQ: smem(format, [queries * consumers, consumerRows, d]),
        tileK: smem(format, [stages, columns, d]),
        tileV: smem(format, isTurned ? [stages, e, columns] : [stages, columns, e]),
        ...(hasOut && {
          tileOut: smem(problem.out.dtype, [consumers, consumerRows, e]),
        }),
        ...(sumsByProduct(form.problem) && {
          ones: smem(powersOf(problem).dtype, [consumers, onesColumns, columns]),
        }),
        fullQ: barrier({ count: queries * consumers }),
        emptyQ: barrier({ count: queries * consumers }),
        fullK: barrier({ count: stages }),
        fullV: barrier({ count: stages }),
        emptyK: barrier({ count: stages, arrivals: consumers }),
        emptyV: barrier({ count: stages, arrivals: consumers }),
        ...(takesTurns(consumers) && { turn: barrier({ count: consumers }) }),
        ...(sizes.ends > 0 && { cleared: barrier({ arrivals: consumers }) }),
      },
    },
    (argument) => {
      followPrevious();
      const { worker } = argument as unknown as { readonly worker: Index };
      const { bias, key, segments, ...optional } = optionalRefs(form, argument);
      const zero = constant(dtypes.i32, 0);
      const rules: ScoreRules = {
        ...{ problem, sizes, location },
        t: zero.add(dimensions.t),
        ...{ bias, key, segments },
      };
      const order = tileOrder(form, configuration, argument, lists, worker);
      const refs = argument as unknown as Refs;
      const work: Work = { form, configuration, rules, order, refs, ...optional };
      const threads = argument as unknown as {
        readonly [name: string]: (body: () => void) => void;
      };
      threads["copy"]?.(() => {
        copyOperands(work);
      });
      names.forEach((name, part) => {
        threads[name]?.(() => {
          consume(work, part);
        });
      });
    },
  ) as unknown as KernelDefinition;
}

/** One warp brings the rows of q, and k and v step by step, tile after tile. */
function copyOperands(work: Work): void {
  const given = registers[work.configuration.consumers];
  if (given !== undefined) setRegisters(given.copy);
  warps((warp) => {
    when(warp.eq(0), () => {
      const bounds = { to: work.order.count, carry: constant(dtypes.i32, 0) };
      loop(bounds, (turn, done) => copyTile(work, turn, done));
    });
  });
}

/** Gives how many steps there have been, in all tiles. */
function copyTile({ form, configuration, order, refs }: Work, turn: Index, done: Index): Index {
  const { consumers, columns, stages } = configuration;
  const { queries } = spareOf(form, configuration);
  const { sizes } = form;
  const { q, k, v, tileQ, tileK, tileV, fullQ, fullK, fullV, emptyQ, emptyK, emptyV } = refs;
  const { sequence, head, top, visits } = order.placeOf(turn);
  const { memory } = sequence;
  const kvHead = head.div(sizes.h / sizes.kv);
  const { d, e } = heads(form.problem, sizes);
  const [along, across] = [slice(0, d), slice(0, e)];
  const isTurned = isNarrow(form.problem);
  const copyRows = (part: number): void => {
    const slot = queryOf(turn, part, consumers, queries);
    when(turn.ge(queries), () => {
      emptyQ.at(slot).wait();
    });
    const rows = fromSpan(sequence.rows, top.add(part * consumerRows), consumerRows);
    copyAsync(q.at(memory, rows, head, along), tileQ.at(slot), { barrier: fullQ.at(slot) });
  };
  copyRows(0);
  loop(visits.steps, (step) => {
    const passed = done.add(step);
    const slot = passed.and(stages - 1);
    const here = fromSpan(sequence.columns, visits.at(step).tile.mul(columns), columns);
    const isUsed = passed.ge(stages);
    when(isUsed, () => {
      emptyK.at(slot).wait();
    });
    copyAsync(k.at(memory, here, kvHead, along), tileK.at(slot), { barrier: fullK.at(slot) });
    // The first consumer is the first to be done with a tile, and begins the next while others still have rows of the one before.
    if (consumers > 1)
      when(step.eq(0), () => {
        for (let part = 1; part < consumers; part += 1) copyRows(part);
      });
    when(isUsed, () => {
      emptyV.at(slot).wait();
    });
    const values = isTurned
      ? v.at(memory, kvHead, across, here)
      : v.at(memory, here, kvHead, across);
    copyAsync(values, tileV.at(slot), { barrier: fullV.at(slot) });
  });
  return done.add(visits.steps);
}

/** Where the rows of a consumer's tile lie. */
function queryOf(turn: Index, part: number, consumers: number, queries: 1 | 2): Index {
  return turn
    .and(queries - 1)
    .mul(consumers)
    .add(part);
}

/** A consumer's 64 rows of each tile. */
function consume(work: Work, part: number): void {
  const { configuration, order, refs } = work;
  const { consumers } = configuration;
  const given = registers[consumers];
  if (given !== undefined) setRegisters(given.consumer);
  if (part === 0 && takesTurns(consumers)) refs.turn.at(0).arrive();
  if (sumsByProduct(work.form.problem)) {
    refs.ones.at(part).store(1);
    commitShared();
  }
  const bounds = { to: order.count, carry: constant(dtypes.i32, 0) };
  loop(bounds, (turn, done) => {
    const place = order.placeOf(turn);
    const take = () => {
      consumeTile(work, part, turn, place, done);
    };
    if (place.isShort === undefined || part + 1 < consumers) take();
    else
      when(
        place.isShort,
        () => {
          passTile(work, part, turn, done, done.add(place.visits.steps));
        },
        take,
      );
    return done.add(place.visits.steps);
  });
  waitGroup(0, { read: true });
}

/** Lets a tile pass of which a consumer has no rows. */
function passTile(work: Work, part: number, turn: Index, from: Index, to: Index): void {
  const { form, configuration, refs } = work;
  const { queries } = spareOf(form, configuration);
  const query = queryOf(turn, part, configuration.consumers, queries);
  refs.fullQ.at(query).wait();
  refs.emptyQ.at(query).arrive();
  passStep(work, from); // the first step of a tile is nobody's turn
  passSteps(work, part, from.add(1), to);
}

/** `done` is how many steps there have been, in all tiles. */
function consumeTile(work: Work, part: number, turn: Index, place: Place, done: Index): void {
  const { form, configuration, refs } = work;
  const { sequence, head, visits } = place;
  const steps = place.stepsOf?.(part) ?? visits.steps;
  const { consumers, columns, stages } = configuration;
  const { tileQ, tileK, fullQ, fullK, fullV, emptyQ, emptyK, emptyV } = refs;
  const { lift } = powersOf(form.problem);
  const zero = constant(dtypes.i32, 0);
  const top = place.top.add(part * consumerRows);
  const spare = spareOf(form, configuration);
  const query = queryOf(turn, part, consumers, spare.queries);
  const slotOf = (step: Index): Index => done.add(step).and(stages - 1);
  const products = (step: Index, width: number) => {
    fullK.at(slotOf(step)).wait();
    const start = accumulator(dtypes.f32, [consumerRows, width]);
    const keys = tileK.at(slotOf(step), slice(0, width)).transpose();
    return wgmma(start, tileQ.at(query), keys, { accumulation: "fast" });
  };
  const values = (step: Index, sums: Tile<"f32">, powers: Tile<Half>, isLast = false) => {
    fullV.at(slotOf(step)).wait();
    if (isLast && form.sizes.ends > 0) clearOthers(work, part, place, slotOf(step));
    const start = accumulator(dtypes.f32, [consumerRows, heads(form.problem, form.sizes).e], sums);
    const ofColumns = valuesIn(work, slotOf(step), powers.shape[1] ?? columns);
    return wgmma(start, powers, ofColumns, { accumulation: "fast" });
  };
  const byProduct = sumsByProduct(form.problem);
  const release = (ring: Barrier, step: Index) => {
    ring.at(slotOf(step)).arrive();
  };
  const { added, ofValues } = tileSoftmax(work, { ...place, top });
  const stepOf =
    (isClear: boolean, width = columns) =>
    (step: Index, carried: Carried): Carried => {
      const visit = visits.at(step.add(1)); // read from a list, it comes under the products
      if (takesTurns(consumers)) refs.turn.at(part).wait();
      const next = products(step.add(1), width);
      const running = values(step, carried.sums, carried.powers);
      const counting = byProduct ? summedPowers(work, part, carried.powers) : undefined;
      if (takesTurns(consumers)) refs.turn.at((part + 1) % consumers).arrive();
      const later = next.wait({ pending: byProduct ? 2 : 1 });
      release(emptyK, step.add(1));
      const { rows, powers, change } = added(visit, later, carried, isClear);
      const sums = running.wait({ pending: byProduct ? 1 : 0 });
      const sum = counting?.wait().add(carried.sum).mul(change) ?? rows.sum;
      release(emptyV, step);
      const rounded = powers(); // before a branch around the scaling, which an assembler moves nothing over
      const scaled = sums.mul(change, { oftenOne: isSeldomScaled(form, configuration) });
      return { largest: rows.largest, sum, powers: rounded, sums: scaled };
    };

  const opening = visits.at(zero);
  fullQ.at(query).wait();
  const { first, ending } = columnsAtEnds(form, configuration);
  const scores = products(zero, first.width).wait();
  release(emptyK, zero);
  const empty = startingRows(consumerRows, head, work.sinks, lift);
  const begun = added(opening, scores, empty, first.isClear);
  const none = zeros(dtypes.f32, [consumerRows, onesColumns]);
  const start = {
    largest: begun.rows.largest,
    sum: byProduct ? none.add(empty.sum.mul(begun.change)) : begun.rows.sum,
    powers: begun.powers(),
    sums: zeros(dtypes.f32, [consumerRows, heads(form.problem, form.sizes).e]),
  };
  const clear = clearTiles({ ...work.rules, t: sequence.columns.count }, top, columns);
  const end = stepsInOrder(ending ?? clear, steps.sub(1), start, stepOf);
  if (spare.hasOut) emptyQ.at(query).arrive();
  const running = values(steps.sub(1), end.sums, end.powers, true);
  const counting = byProduct ? summedPowers(work, part, end.powers) : undefined;
  const sums = running.wait({ pending: byProduct ? 1 : 0 });
  const sum = counting?.wait().add(end.sum).max({ axis: 1, keepDims: true }) ?? end.sum;
  release(emptyV, steps.sub(1));
  if (place.stepsOf !== undefined) passSteps(work, part, done.add(steps), done.add(visits.steps));
  const options = { dropout: form.problem.dropout, lift, factor: ofValues() };
  const finished = finishedRows(sums, { largest: end.largest, sum }, options);
  storeRows(work, part, query, { ...place, top }, finished.values);
  if (!spare.hasOut) emptyQ.at(query).arrive();
  work.logSumExp
    ?.at(sequence.memory, head, inSpan(sequence.rows, top, consumerRows))
    .store(finished.logSumExp.reshape([consumerRows]));
}

/** The values of the first columns of a tile, by columns. */
function valuesIn({ form, refs: { tileV } }: Work, slot: Index, width: number): Ref<Half> {
  const { e } = heads(form.problem, form.sizes);
  const here = slice(0, width);
  return isNarrow(form.problem)
    ? tileV.at(slot, slice(0, e), here).transpose()
    : tileV.at(slot, here);
}

/** The sums of a step's powers, in each of the columns. */
function summedPowers({ refs }: Work, part: number, powers: Tile<Half>): Accumulator<"f32"> {
  const start = accumulator(dtypes.f32, [consumerRows, onesColumns]);
  const ones = refs.ones.at(part, slice(0, onesColumns), slice(0, powers.shape[1] ?? 0));
  return wgmma(start, powers, ones.transpose(), { accumulation: "fast" });
}

/**
 * Steps of which nothing is compared come first, in a loop of their own: their softmax begins under the values of their own thread, which a branch
 * would have to wait for.
 */
function stepsInOrder(
  clear: ReturnType<typeof clearTiles> | EndingColumns,
  last: Index,
  start: Carried,
  stepOf: (isClear: boolean, width?: number) => (step: Index, carried: Carried) => Carried,
): Carried {
  if (clear === "all") return loop({ to: last, carry: start }, stepOf(true));
  if (clear === undefined) return loop({ to: last, carry: start }, stepOf(false));
  if (isEnding(clear)) {
    if (clear.isOnly) return start;
    const carry = loop({ to: last.sub(1), carry: start }, stepOf(true));
    return stepOf(clear.isClear, clear.width)(last.sub(1), carry);
  }
  const middle = clear.sub(1).maximum(0).minimum(last);
  const carry = loop({ to: middle, carry: start }, stepOf(true));
  return loop({ from: middle, to: last, carry }, stepOf(false));
}

/** Lets steps pass whose columns none of a consumer's rows sees: operands come and are given back, and turns go around. */
function passSteps(work: Work, part: number, from: Index, to: Index): void {
  const { consumers } = work.configuration;
  loop({ from, to }, (step) => {
    if (takesTurns(consumers)) {
      work.refs.turn.at(part).wait();
      work.refs.turn.at((part + 1) % consumers).arrive();
    }
    passStep(work, step);
  });
}

/** Operands of a step come, and are given back. */
function passStep({ configuration, refs }: Work, step: Index): void {
  const slot = step.and(configuration.stages - 1);
  refs.fullK.at(slot).wait();
  refs.emptyK.at(slot).arrive();
  refs.fullV.at(slot).wait();
  refs.emptyV.at(slot).arrive();
}

/**
 * Values that lie behind a sequence belong to another one, and may be no numbers. Their weights are 0, and so have they to be, since 0
 * times such a value is none either. They are in the last tile that is looked at; the first consumer clears them for all.
 */
function clearOthers(
  { configuration, refs: { tileV, cleared } }: Work,
  part: number,
  { sequence, visits }: Place,
  slot: Index,
): void {
  const { columns, consumers } = configuration;
  const left = visits.at(visits.steps.sub(1)).tile.mul(columns);
  const { count } = sequence.columns;
  when(left.add(columns).gt(count), () => {
    if (part === 0) {
      const column = iota(dtypes.i32, [columns, 1], { axis: 0 }).add(left);
      tileV.at(slot).store(0, { where: column.ge(count) });
      commitShared();
    }
    if (consumers === 1) return;
    cleared.arrive();
    cleared.wait();
  });
}

/** What adds the scores of a tile of columns to the rows so far, and what values are multiplied by in the end. */
function tileSoftmax(
  { form, configuration, rules, scales }: Work,
  { sequence, head, top }: Place,
): {
  readonly added: (
    visit: Visit,
    scores: Tile<"f32">,
    before: RowSums,
    isClear: boolean,
  ) => {
    readonly rows: RowSums;
    readonly powers: () => Tile<Half>;
    readonly change: Tile<"f32">;
  };
  readonly ofValues: () => Scalar<"f32"> | undefined;
} {
  const { problem, sizes } = form;
  const { columns } = configuration;
  const kvHead = head.div(sizes.h / sizes.kv);
  const factor = scales?.q.at(head).loadScalar().mul(scales.k.at(kvHead).loadScalar());
  const own = { ...rules, t: sequence.columns.count, factor };
  const slack = isSeldomScaled(form, configuration) ? slackOf(form) : 0;
  return {
    added: ({ tile, isMasked }, scores, before, isClear) => {
      const there = {
        ...{ batch: sequence.batch, head, top, rows: consumerRows },
        ...{ left: tile.mul(columns), columns: scores.shape[1] ?? columns, run: columns },
        ...{ isMasked, isClear },
      };
      const exponents = finishScores(own, scores, there);
      const kept = () => keptWeights(own, there);
      return addColumns(exponents, before, { ...powersOf(problem), slack }, kept);
    },
    ofValues: () => scales?.v.at(kvHead).loadScalar(),
  };
}

/** By TMA through shared memory, or by the lanes themselves where the tile of q would not do. */
function storeRows(
  { form, configuration, refs }: Work,
  part: number,
  query: Index,
  { sequence, head, top }: Place,
  values: Tile<"f32">,
): void {
  const { problem, sizes } = form;
  const { d, e } = heads(problem, sizes);
  // At least 0 as facts see it, too: TMA writes nothing that might begin before the array.
  const rows = inSpan(sequence.rows, top.maximum(0), consumerRows);
  const window = refs.out.at(sequence.memory.maximum(0), rows, head.maximum(0), slice(0, e));
  const result = values.cast(problem.out.dtype);
  const { hasOut } = spareOf(form, configuration);
  const isAlike = d === e && problem.out.dtype === problem.q.dtype;
  // TMA knows no end of a sequence.
  if (sizes.ends > 0 || !(isAlike || hasOut)) {
    window.store(result);
    return;
  }
  const own = (hasOut ? refs.tileOut.at(part) : refs.tileQ.at(query)) as Ref;
  if (hasOut) waitGroup(0, { read: true }); // what the tile before left there
  own.store(result);
  commitShared();
  copyAsync(own, window);
  commitGroup();
  if (!hasOut) waitGroup(0, { read: true });
}
