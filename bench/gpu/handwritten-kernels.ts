/**
 * Kernels with every copy, barrier and wait written by hand, in the language alone: what the compiler makes of them when
 * nothing helps it. A thread copies ahead into a ring of stages, and two multiply, 64 rows each.
 *
 *   copy      wait empty[s] ── copy into stage s ──▶ full[s] … s + 1 … s + 2
 *   multiply                   wait full[s] ── wgmma ── the one before is done: arrive empty[s - 1]
 */
import {
  accumulator,
  array,
  barrier,
  bf16,
  cdiv,
  clusterRank,
  clusterSync,
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
  warps,
  wgmma,
  when,
  zeros,
} from "tilewright";
import type { Scalar, Tile } from "tilewright";

type Index = Scalar<"i32">;

const half = 64;

/** The stage of a counter, which may wrap: its low bits are a stage even then, so that nothing has to be tested. */
function stageOf(stages: 2 | 4): (count: Index) => Index {
  return (count) => count.and(stages - 1);
}

/** One warp of the thread works, the others wait at its end. */
function byOneWarp(body: () => void): void {
  warps((warp) => {
    when(warp.eq(0), body);
  });
}

export interface ProductOptions {
  /** Blocks that run at once, which take all tiles among them. */
  readonly blocks: number;
  /** Blocks, one above the other, that share columns of b: each copies its part of them for all. */
  readonly sharing?: 1 | 2;
}

/**
 * out = a · b, persistent: a block takes tile after tile of 128 × 256, in groups of 8 rows of tiles, of which every other one
 * is walked backwards, so that what the cache holds is used again.
 */
export function handwrittenProduct({ blocks, sharing = 1 }: ProductOptions) {
  const [columns, depth, stages, group, piece] = [256, 64, 4, 8, 64] as const;
  const [m, n, k] = [dim("m"), dim("n", { multipleOf: 8 }), dim("k", { multipleOf: 8 })];
  const [height, workers] = [2 * half, Math.floor(blocks / sharing)];
  const slotOf = stageOf(stages);
  return kernel(
    {
      name: `handwritten_product_${sharing}`,
      grid: { worker: workers, member: sharing },
      ...(sharing > 1 && { cluster: { member: sharing } }),
      threads: ["copy", "first", "second"],
      inputs: { a: array(bf16, [m, k]), b: array(bf16, [k, n]) },
      outputs: { out: array(bf16, [m, n]) },
      scratch: {
        left: smem(bf16, [stages, height, depth]),
        right: smem(bf16, [stages, depth, columns]),
        result: smem(bf16, [2, 2, half, piece]),
        full: barrier({ count: stages, arrivals: 1 + sharing }),
        empty: barrier({ count: stages, arrivals: 2 * sharing }),
      },
    },
    ({ worker, member, a, b, out, left, right, result, full, empty, copy, first, second }) => {
      const zero = constant(i32, 0);
      const steps = cdiv(k, depth);
      const down = zero.add(cdiv(m, height * sharing));
      const across = zero.add(cdiv(n, columns));
      const rank = sharing > 1 ? clusterRank("member") : member;
      const eachTile = (body: (at: { top: Index; start: Index }, count: Index) => Index): void => {
        const dealt = { from: worker, to: down.mul(across), step: workers, carry: zero };
        loop(dealt, (tile, count) => {
          const before = tile.div(across.mul(group));
          const rows = down.sub(before.mul(group)).minimum(group);
          const within = tile.sub(before.mul(group).mul(across));
          const column = within.div(rows);
          const row = before.mul(group).add(within.sub(column.mul(rows)));
          const turned = before.and(1).eq(0).select(column, across.sub(1).sub(column));
          const top = row.mul(sharing).add(rank).mul(height);
          return body({ top, start: turned.mul(columns) }, count);
        });
      };

      copy(() => {
        setRegisters(40);
        byOneWarp(() => {
          eachTile(({ top, start }, before) =>
            loop({ to: steps, carry: before }, (step, count) => {
              const slot = slotOf(count);
              const along = slice(step.mul(depth), depth);
              const landed = { barrier: full.at(slot) };
              when(count.ge(stages), () => {
                empty.at(slot).wait();
              });
              copyAsync(a.at(slice(top, height), along), left.at(slot), landed);
              const part = columns / sharing;
              const own = slice(start.add(rank.mul(part)), part);
              const room = right.at(slot, slice(0, depth), slice(rank.mul(part), part));
              const everywhere =
                sharing > 1 ? { ...landed, multicast: ["member"] as const } : landed;
              copyAsync(b.at(along, own), room, everywhere);
              return count.add(1);
            }),
          );
        });
      });

      for (const [part, multiply] of [first, second].entries())
        multiply(() => {
          setRegisters(232);
          const release = (count: Index): void => {
            const slot = slotOf(count.add(stages - 1));
            if (sharing === 1) empty.at(slot).arrive();
            else for (let peer = 0; peer < sharing; peer += 1) empty.at(slot).arrive({ peer });
          };
          eachTile(({ top, start }, before) => {
            const { sum, count } = loop(
              { to: steps, carry: { sum: accumulator(f32, [half, columns]), count: before } },
              (step, carried) => {
                const slot = slotOf(carried.count);
                full.at(slot).wait();
                const rows = left.at(slot, slice(part * half, half));
                const running = wgmma(carried.sum, rows, right.at(slot)).waitPending(1);
                when(step.gt(0), () => {
                  release(carried.count);
                });
                return { sum: running, count: carried.count.add(1) };
              },
            );
            const product = sum.wait();
            release(count);
            for (let at = 0; at < columns; at += piece) {
              waitGroup(1, { read: true }); // the piece before the last has left its buffer
              const buffer = result.at(part, (at / piece) % 2);
              buffer.store(product.slice([0, at], [half, piece]).cast(bf16));
              commitShared();
              const rows = slice(top.add(part * half), half);
              copyAsync(buffer, out.at(rows, slice(start.add(at), piece)));
              commitGroup();
            }
            return count;
          });
          waitGroup(0, { read: true });
        });
      // No block ends while another may still arrive on its barriers.
      if (sharing > 1) clusterSync();
    },
  );
}

export interface AttentionOptions {
  readonly causal?: boolean;
}

/**
 * Attention of heads of 128, forward: 128 rows a block, 64 for each of the multiplying threads, and keys and values in stages
 * of 128. The scores of a step and the values of the one before are started together; a softmax runs under the values of its
 * own thread, and under the products of the other, since the two take turns.
 */
export function handwrittenAttention({ causal = false }: AttentionOptions = {}) {
  const [width, span, stages] = [128, 128, 2] as const;
  const rows = 2 * half;
  const scale = Math.LOG2E / Math.sqrt(width);
  const fast = { approximate: true } as const;
  const [heads, length] = [dim("heads"), dim("length", { multipleOf: 128 })];
  const operand = array(bf16, [heads, length, width]);
  const slotOf = stageOf(stages);
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
    ({ head, block, q, k, v, out, copy, first, second, ...shared }) => {
      const { queries, keys, values, fullQueries, fullKeys, fullValues } = shared;
      const { emptyKeys, emptyValues, turn } = shared;
      const zero = constant(i32, 0);
      // Blocks with the most work come first.
      const place = causal ? zero.add(cdiv(length, rows)).sub(1).sub(block) : block;
      const top = place.mul(rows);
      const steps = causal ? top.add(rows).div(span) : zero.add(cdiv(length, span));

      copy(() => {
        setRegisters(24);
        byOneWarp(() => {
          for (const part of [0, 1]) {
            const own = slice(top.add(part * half), half);
            copyAsync(q.at(head, own), queries.at(part), { barrier: fullQueries.at(part) });
          }
          loop(steps, (step) => {
            const [slot, here] = [slotOf(step), slice(step.mul(span), span)];
            when(step.ge(stages), () => {
              emptyKeys.at(slot).wait();
            });
            copyAsync(k.at(head, here), keys.at(slot), { barrier: fullKeys.at(slot) });
            when(step.ge(stages), () => {
              emptyValues.at(slot).wait();
            });
            copyAsync(v.at(head, here), values.at(slot), { barrier: fullValues.at(slot) });
          });
        });
      });

      for (const [part, multiply] of [first, second].entries())
        multiply(() => {
          setRegisters(240);
          const own = queries.at(part);
          const ownTop = top.add(part * half);
          const startScores = (step: Index) => {
            fullKeys.at(slotOf(step)).wait();
            return wgmma(accumulator(f32, [half, span]), own, keys.at(slotOf(step)).transpose());
          };
          const startValues = (step: Index, sums: Tile<"f32">, powers: Tile<"bf16">) => {
            fullValues.at(slotOf(step)).wait();
            return wgmma(accumulator(f32, [half, width], sums), powers, values.at(slotOf(step)));
          };
          const release = (ring: typeof emptyKeys, step: Index): void => {
            when(step.add(stages).lt(steps), () => {
              ring.at(slotOf(step)).arrive();
            });
          };
          const seen = (step: Index, scores: Tile<"f32">): Tile<"f32"> =>
            when(
              step
                .mul(span)
                .add(span - 1)
                .gt(ownTop),
              () => {
                const row = iota(i32, [half, span], 0).add(ownTop);
                const column = iota(i32, [half, span], 1).add(step.mul(span));
                return column.le(row).select(scores, full(f32, [half, span], -Infinity));
              },
              () => scores,
            );
          const softmax = (
            step: Index,
            raw: Tile<"f32">,
            greatest: Tile<"f32">,
            sum: Tile<"f32">,
          ) => {
            const scores = causal ? seen(step, raw) : raw;
            const high = greatest.maximum(scores.max(1, { keep: true }).mul(scale));
            const shrink = greatest.sub(high).exp2(fast);
            const powers = scores.fma(scale, high.neg()).exp2(fast);
            const total = sum.mul(shrink).add(powers.sum(1, { keep: true }));
            return { greatest: high, sum: total, powers: powers.cast(bf16), shrink };
          };

          fullQueries.at(part).wait();
          if (part === 0) turn.at(0).arrive();
          const scores = startScores(zero).wait();
          release(emptyKeys, zero);
          const lowest = full(f32, [half, 1], -Infinity);
          const { shrink: _, ...begun } = softmax(zero, scores, lowest, zeros(f32, [half, 1]));
          const carry = { ...begun, sums: zeros(f32, [half, width]) };
          const end = loop({ to: steps.sub(1), carry }, (step, carried) => {
            turn.at(part).wait();
            const next = startScores(step.add(1));
            const running = startValues(step, carried.sums, carried.powers);
            turn.at(1 - part).arrive();
            const raw = next.wait({ pending: 1 });
            release(emptyKeys, step.add(1));
            const { shrink, ...rest } = softmax(step.add(1), raw, carried.greatest, carried.sum);
            const sums = running.wait().mul(shrink);
            release(emptyValues, step);
            return { ...rest, sums };
          });
          const sums = startValues(steps.sub(1), end.sums, end.powers).wait();
          own.store(sums.div(end.sum, fast).cast(bf16));
          commitShared();
          copyAsync(own, out.at(head, slice(ownTop, half)));
          commitGroup();
          waitGroup(0, { read: true });
        });
    },
  );
}
