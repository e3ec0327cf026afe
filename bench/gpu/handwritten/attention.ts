/**
 * Attention of heads of 128, forward, with every copy, barrier and wait written by hand. A tile has 128 rows, 64 for each of
 * the two multiplying threads, and goes over keys and values in a ring of two stages. The scores of a step and the values of
 * the one before are started together, so that the softmax of a thread runs under the products of the other:
 *
 *   first     scores 1, values 0 ── softmax 1 ──────────── scores 2, values 1 ── softmax 2
 *   second                          scores 1, values 0 ── softmax 1 ──────────── scores 2, values 1
 *
 * The kernel is persistent: a block takes tile after tile, of which the copying thread brings the first keys while the others
 * finish the one before. Tiles go in pairs, one as far from the last rows of a head as the other is from the first. Causal, a
 * tile has the more steps the farther down it lies, and all pairs have as many.
 */
import {
  accumulator,
  tensor,
  barrier,
  bf16,
  commitGroup,
  commitShared,
  constant,
  copyAsync,
  dim,
  f32,
  full,
  i32,
  iota,
  kernel,
  loop,
  setRegisters,
  slice,
  smem,
  waitGroup,
  wgmma,
  when,
  zeros,
} from "tilewright";
import type { Barrier, Ref, Tile } from "tilewright";
import { byOneWarp, half, stageOf } from "./ring.ts";
import type { Index } from "./ring.ts";

const [width, stages] = [128, 2] as const;
const rows = 2 * half;
const scale = Math.LOG2E / Math.sqrt(width);
const fast = { approximate: true } as const;
const heads = dim("heads");
const slotOf = stageOf(stages);

export interface AttentionOptions {
  /** Rows of a head, and its columns: a multiple of two tiles. */
  readonly length: number;
  readonly causal?: boolean;
  /** Blocks that run at once, which take all tiles among them. */
  readonly blocks: number;
}

/**
 * Columns of a step. Fewer steps take fewer barriers, and 192 columns are as many as registers hold the scores of: a head of
 * 4096 has 21 such steps, and one of 64 columns. A causal tile ends with the columns of its own rows, of which there are 128.
 */
function stepsOf({ length, causal = false }: AttentionOptions) {
  const span = causal ? rows : 192;
  return { span, rest: length % span, most: Math.ceil(length / span) };
}

type Matrices = {
  readonly [N in "q" | "k" | "v" | "out" | "queries" | "keys" | "values"]: Ref<"bf16">;
};
type Numbers = Tile<"f32">;

/** What threads of a block work on. */
interface Parts extends Matrices {
  readonly fullQueries: Barrier;
  readonly fullKeys: Barrier;
  readonly fullValues: Barrier;
  readonly emptyKeys: Barrier;
  readonly emptyValues: Barrier;
  readonly options: AttentionOptions;
  /** Runs the body for each tile of the block; its argument is the number of steps before. */
  readonly eachTile: (body: (tile: RowTile, before: Index) => void) => void;
}

interface RowTile {
  readonly head: Index;
  /** The first row. */
  readonly top: Index;
  readonly steps: Index;
}

/** Where the columns of a step begin. Causal, those that rows see in part come first, so that nothing else is compared. */
function columnsOf({ options }: Parts, { steps }: RowTile, step: Index): Index {
  const place = options.causal === true ? steps.sub(1).sub(step) : step;
  return place.mul(stepsOf(options).span);
}

function copyTiles(parts: Parts): void {
  const { k, v, keys, values, eachTile } = parts;
  const { span } = stepsOf(parts.options);
  setRegisters(24);
  byOneWarp(() => {
    eachTile((tile, before) => {
      loop(tile.steps, (step) => {
        const count = before.add(step);
        const slot = slotOf(count);
        const columns = slice(columnsOf(parts, tile, step), span);
        const isUsed = count.ge(stages);
        when(isUsed, () => {
          parts.emptyKeys.at(slot).wait();
        });
        copyAsync(k.at(tile.head, columns), keys.at(slot), { barrier: parts.fullKeys.at(slot) });
        when(isUsed, () => {
          parts.emptyValues.at(slot).wait();
        });
        const landed = { barrier: parts.fullValues.at(slot) };
        copyAsync(v.at(tile.head, columns), values.at(slot), landed);
      });
    });
  });
}

/** Scores of a causal tile and the columns of its own rows: a row sees those up to itself. */
function seen(part: number, scores: Numbers): Numbers {
  const shape = [half, rows];
  const isSeen = iota(i32, shape, { axis: 1 }).le(iota(i32, shape, { axis: 0 }).add(part * half));
  return isSeen.select(scores, full(f32, shape, -Infinity));
}

/** Of each row the greatest score so far, and the sum of the powers. */
type Totals = { readonly greatest: Numbers; readonly sum: Numbers };

function softmax(scores: Numbers, { greatest, sum }: Totals) {
  const high = greatest.maximum(scores.max({ axis: 1, keepDims: true }).mul(scale));
  const shrink = greatest.sub(high).exp2(fast);
  const powers = scores.fma(scale, high.neg()).exp2(fast);
  const total = sum.mul(shrink).add(powers.sum({ axis: 1, keepDims: true }));
  return { totals: { greatest: high, sum: total }, powers, shrink };
}

/** What a thread hands from step to step: the powers of the last one, and the sums of values without those. */
type Carried = Totals & { readonly powers: Tile<"bf16">; readonly sums: Numbers };

function multiplyTiles(parts: Parts, part: number): void {
  setRegisters(240);
  parts.eachTile((tile, before) => {
    multiplyTile(parts, part, tile, before);
  });
}

function multiplyTile(parts: Parts, part: number, tile: RowTile, before: Index): void {
  const { queries, keys, values, options, q, out } = parts;
  const { span, rest } = stepsOf(options);
  const { head, steps } = tile;
  const own = queries.at(part);
  // The engine writes nothing that may begin before the array, which arithmetic that wraps could.
  const place = slice(tile.top.add(part * half).maximum(0), half);
  const at = (ring: Barrier, step: Index): Barrier => ring.at(slotOf(before.add(step)));
  const startScores = (step: Index, columns: number) => {
    at(parts.fullKeys, step).wait();
    const stage = keys.at(slotOf(before.add(step)), slice(0, columns));
    return wgmma(accumulator(f32, [half, columns]), own, stage.transpose());
  };
  const startValues = (step: Index, { sums, powers }: Carried) => {
    at(parts.fullValues, step).wait();
    const stage = values.at(slotOf(before.add(step)), slice(0, powers.shape[1] ?? span));
    return wgmma(accumulator(f32, [half, width], sums), powers, stage);
  };
  const stepOver =
    (columns: number) =>
    (step: Index, carried: Carried): Carried => {
      const next = startScores(step.add(1), columns);
      const running = startValues(step, carried);
      const scores = next.wait({ pending: 1 });
      at(parts.emptyKeys, step.add(1)).arrive();
      const { totals, powers, shrink } = softmax(scores, carried);
      const sums = running.wait();
      at(parts.emptyValues, step).arrive();
      // Rounded ones lie where those are that the values were multiplied by.
      return { ...totals, powers: powers.cast(bf16), sums: sums.mul(shrink) };
    };

  copyAsync(q.at(head, place), own, { barrier: parts.fullQueries.at(part) });
  parts.fullQueries.at(part).wait();
  const zero = constant(i32, 0);
  const first = startScores(zero, span).wait();
  at(parts.emptyKeys, zero).arrive();
  const none = { greatest: full(f32, [half, 1], -Infinity), sum: zeros(f32, [half, 1]) };
  const begun = softmax(options.causal === true ? seen(part, first) : first, none);
  const carry: Carried = {
    ...begun.totals,
    powers: begun.powers.cast(bf16),
    sums: zeros(f32, [half, width]),
  };
  const last = steps.sub(1);
  const whole = loop({ to: rest === 0 ? last : last.sub(1), carry }, stepOver(span));
  const end = rest === 0 ? whole : stepOver(rest)(last.sub(1), whole);
  const sums = startValues(last, end).wait();
  at(parts.emptyValues, last).arrive();
  const share = full(f32, [half, 1], 1).div(end.sum, fast);
  own.store(sums.mul(share).cast(bf16));
  commitShared();
  copyAsync(own, out.at(head, place));
  commitGroup();
  waitGroup(0, { read: true }); // the rows of the next tile come to where these lie
}

/** Deals pairs of tiles, head by head, so that blocks find keys and values of others in the cache. */
function dealer(options: AttentionOptions, worker: Index): Parts["eachTile"] {
  const { length, causal = false, blocks } = options;
  const { span, most } = stepsOf(options);
  const pairs = length / rows / 2;
  const zero = constant(i32, 0);
  return (body) => {
    const tiles = { from: worker, to: zero.add(heads).mul(pairs), step: blocks, carry: zero };
    loop(tiles, (number, before) => {
      const head = number.div(pairs);
      const pair = number.sub(head.mul(pairs));
      return loop({ to: 2, carry: before }, (side, count) => {
        const top = side
          .eq(0)
          .select(pair.neg().add(2 * pairs - 1), pair)
          .mul(rows);
        const steps = causal ? top.div(span).add(1) : zero.add(most);
        body({ head, top, steps }, count);
        return count.add(steps);
      });
    });
  };
}

export function handwrittenAttention(options: AttentionOptions) {
  const { length, causal = false, blocks } = options;
  if (length % (2 * rows) !== 0) throw new RangeError(`${length} rows are no pairs of tiles`);
  const operand = tensor(bf16, [heads, length, width]);
  const { span } = stepsOf(options);
  return kernel(
    {
      name: causal ? "handwritten_attention_causal" : "handwritten_attention",
      grid: { worker: blocks },
      threads: ["copy", "first", "second"],
      inputs: { q: operand, k: operand, v: operand },
      outputs: { out: operand },
      scratch: {
        queries: smem(bf16, [2, half, width]),
        keys: smem(bf16, [stages, span, width]),
        values: smem(bf16, [stages, span, width]),
        fullQueries: barrier({ count: 2 }),
        fullKeys: barrier({ count: stages }),
        fullValues: barrier({ count: stages }),
        emptyKeys: barrier({ count: stages, arrivals: 2 }),
        emptyValues: barrier({ count: stages, arrivals: 2 }),
      },
    },
    ({ worker, copy, first, second, ...memory }) => {
      const parts: Parts = { ...memory, options, eachTile: dealer(options, worker) };
      copy(() => {
        copyTiles(parts);
      });
      for (const [part, multiply] of [first, second].entries())
        multiply(() => {
          multiplyTiles(parts, part);
        });
    },
  );
}
