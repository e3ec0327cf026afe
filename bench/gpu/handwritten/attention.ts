/**
 * Attention of heads of 128, forward, with every copy, barrier and wait written by hand: 128 rows a block, 64 for each of the
 * multiplying threads, and keys and values in stages of 128. The scores of a step and the values of the one before are
 * started together; a softmax runs under the values of its own thread, and under the products of the other, since the two
 * take turns.
 *
 *   first     scores 1, values 0 ── softmax 1 ──────────── scores 2, values 1 ── softmax 2
 *   second                          scores 1, values 0 ── softmax 1 ──────────── scores 2, values 1
 */
import {
  accumulator,
  array,
  barrier,
  bf16,
  cdiv,
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

const [width, span, stages] = [128, 128, 2] as const;
const rows = 2 * half;
const scale = Math.LOG2E / Math.sqrt(width);
const fast = { approximate: true } as const;
const [heads, length] = [dim("heads"), dim("length", { multipleOf: 128 })];
const slotOf = stageOf(stages);

export interface AttentionOptions {
  readonly causal?: boolean;
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
  readonly turn: Barrier;
  readonly head: Index;
  /** The block's first row. */
  readonly top: Index;
  readonly steps: Index;
  readonly causal: boolean;
}

function copyBlocks(parts: Parts): void {
  const { q, k, v, queries, keys, values, head, top, steps } = parts;
  setRegisters(24);
  byOneWarp(() => {
    for (const part of [0, 1]) {
      const own = slice(top.add(part * half), half);
      copyAsync(q.at(head, own), queries.at(part), { barrier: parts.fullQueries.at(part) });
    }
    loop(steps, (step) => {
      const [slot, here] = [slotOf(step), slice(step.mul(span), span)];
      when(step.ge(stages), () => {
        parts.emptyKeys.at(slot).wait();
      });
      copyAsync(k.at(head, here), keys.at(slot), { barrier: parts.fullKeys.at(slot) });
      when(step.ge(stages), () => {
        parts.emptyValues.at(slot).wait();
      });
      copyAsync(v.at(head, here), values.at(slot), { barrier: parts.fullValues.at(slot) });
    });
  });
}

/** The scores that rows see, where the step reaches beyond the first of them. */
function seen(step: Index, top: Index, scores: Numbers): Numbers {
  return when(
    step
      .mul(span)
      .add(span - 1)
      .gt(top),
    () => {
      const row = iota(i32, [half, span], 0).add(top);
      const column = iota(i32, [half, span], 1).add(step.mul(span));
      return column.le(row).select(scores, full(f32, [half, span], -Infinity));
    },
    () => scores,
  );
}

/** Of each row the greatest score so far, and the sum of the powers. */
interface Totals {
  readonly greatest: Numbers;
  readonly sum: Numbers;
}

function softmax(scores: Numbers, { greatest, sum }: Totals) {
  const high = greatest.maximum(scores.max(1, { keep: true }).mul(scale));
  const shrink = greatest.sub(high).exp2(fast);
  const powers = scores.fma(scale, high.neg()).exp2(fast);
  const total = sum.mul(shrink).add(powers.sum(1, { keep: true }));
  return { greatest: high, sum: total, powers: powers.cast(bf16), shrink };
}

function multiplyBlocks(parts: Parts, part: number): void {
  const { queries, keys, values, turn, head, steps, causal, out } = parts;
  setRegisters(240);
  const own = queries.at(part);
  const top = parts.top.add(part * half);
  const startScores = (step: Index) => {
    parts.fullKeys.at(slotOf(step)).wait();
    return wgmma(accumulator(f32, [half, span]), own, keys.at(slotOf(step)).transpose());
  };
  const startValues = (step: Index, sums: Numbers, powers: Tile<"bf16">) => {
    parts.fullValues.at(slotOf(step)).wait();
    return wgmma(accumulator(f32, [half, width], sums), powers, values.at(slotOf(step)));
  };
  const release = (ring: Barrier, step: Index): void => {
    when(step.add(stages).lt(steps), () => {
      ring.at(slotOf(step)).arrive();
    });
  };
  const softmaxOf = (step: Index, scores: Numbers, totals: Totals) =>
    softmax(causal ? seen(step, top, scores) : scores, totals);

  const zero = constant(i32, 0);
  parts.fullQueries.at(part).wait();
  if (part === 0) turn.at(0).arrive();
  const scores = startScores(zero).wait();
  release(parts.emptyKeys, zero);
  const none = { greatest: full(f32, [half, 1], -Infinity), sum: zeros(f32, [half, 1]) };
  const { shrink: _, ...begun } = softmaxOf(zero, scores, none);
  const carry = { ...begun, sums: zeros(f32, [half, width]) };
  const end = loop({ to: steps.sub(1), carry }, (step, carried) => {
    turn.at(part).wait();
    const next = startScores(step.add(1));
    const running = startValues(step, carried.sums, carried.powers);
    turn.at(1 - part).arrive();
    const raw = next.wait({ pending: 1 });
    release(parts.emptyKeys, step.add(1));
    const { shrink, ...rest } = softmaxOf(step.add(1), raw, carried);
    const sums = running.wait().mul(shrink);
    release(parts.emptyValues, step);
    return { ...rest, sums };
  });
  const sums = startValues(steps.sub(1), end.sums, end.powers).wait();
  own.store(sums.div(end.sum, fast).cast(bf16));
  commitShared();
  // The engine writes nothing that may begin before the array, which arithmetic that wraps could.
  copyAsync(own, out.at(head, slice(top.maximum(0), half)));
  commitGroup();
  waitGroup(0, { read: true });
}

export function handwrittenAttention({ causal = false }: AttentionOptions = {}) {
  const operand = array(bf16, [heads, length, width]);
  return kernel(
    {
      name: causal ? "handwritten_attention_causal" : "handwritten_attention",
      grid: { head: heads, block: cdiv(length, rows) },
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
        turn: barrier({ count: 2 }),
      },
    },
    ({ block, copy, first, second, ...memory }) => {
      const zero = constant(i32, 0);
      // Blocks with the most work come first.
      const place = causal ? zero.add(cdiv(length, rows)).sub(1).sub(block) : block;
      const top = place.mul(rows);
      const steps = causal ? top.add(rows).div(span) : zero.add(cdiv(length, span));
      const parts: Parts = { ...memory, top, steps, causal };
      copy(() => {
        copyBlocks(parts);
      });
      for (const [part, multiply] of [first, second].entries())
        multiply(() => {
          multiplyBlocks(parts, part);
        });
    },
  );
}
