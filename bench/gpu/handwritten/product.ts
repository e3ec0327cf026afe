/**
 * out = a · b with every copy, barrier and wait written by hand, in the language alone: what the compiler makes of it when
 * nothing helps it. A thread copies ahead into a ring of stages, and two multiply, 64 rows each. The kernel is persistent: a
 * block takes tile after tile of 128 × 256, in groups of 8 rows of tiles, of which every other one is walked backwards, so
 * that what the cache holds is used again.
 *
 *   copy      wait empty[s] ── copy into stage s ──▶ full[s] … s + 1 … s + 2
 *   multiply                   wait full[s] ── wgmma ── the one before is done: arrive empty[s - 1]
 */
import {
  accumulator,
  tensor,
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
  i32,
  kernel,
  loop,
  setRegisters,
  slice,
  smem,
  waitGroup,
  wgmma,
  when,
} from "tilewright";
import type { Barrier, Ref, Tile } from "tilewright";
import { byOneWarp, half, stageOf } from "./ring.ts";
import type { Index } from "./ring.ts";

const [columns, depth, stages, group, piece] = [256, 64, 4, 8, 64] as const;
const [m, n, k] = [dim("m"), dim("n", { multipleOf: 8 }), dim("k", { multipleOf: 8 })];
const height = 2 * half;
const steps = cdiv(k, depth);
const slotOf = stageOf(stages);

export interface ProductOptions {
  /** Blocks that run at once, which take all tiles among them. */
  readonly blocks: number;
  /** Blocks, one above the other, that share columns of b: each copies its part of them for all. */
  readonly sharing?: 1 | 2;
}

type Matrices = { readonly [N in "a" | "b" | "out" | "left" | "right" | "result"]: Ref<"bf16"> };

/** What threads of a block work on. */
interface Parts extends Matrices {
  readonly full: Barrier;
  readonly empty: Barrier;
  readonly sharing: 1 | 2;
  /** The block's number among those that share. */
  readonly rank: Index;
  /** Runs the body for each tile of the block; it is given how many steps came before, and gives how many have come. */
  readonly eachTile: (body: (corner: Corner, before: Index) => Index) => void;
}

/** The first row and column of a tile. */
interface Corner {
  readonly top: Index;
  readonly start: Index;
}

function copyTiles({ a, b, left, right, full, empty, sharing, rank, eachTile }: Parts): void {
  setRegisters(40);
  const part = columns / sharing;
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
        const own = slice(start.add(rank.mul(part)), part);
        const room = right.at(slot, slice(0, depth), slice(rank.mul(part), part));
        const everywhere = sharing > 1 ? { ...landed, multicast: ["member"] } : landed;
        copyAsync(b.at(along, own), room, everywhere);
        return count.add(1);
      }),
    );
  });
}

function multiplyTiles(parts: Parts, part: number): void {
  const { left, right, full, empty, sharing, eachTile } = parts;
  setRegisters(232);
  /** The stage before that of the counter may be filled again. */
  const release = (count: Index): void => {
    const slot = slotOf(count.add(stages - 1));
    if (sharing === 1) empty.at(slot).arrive();
    else for (let peer = 0; peer < sharing; peer += 1) empty.at(slot).arrive({ peer });
  };
  eachTile((corner, before) => {
    const carry = { sum: accumulator(f32, [half, columns]), count: before };
    const { sum, count } = loop({ to: steps, carry }, (step, carried) => {
      const slot = slotOf(carried.count);
      full.at(slot).wait();
      const rows = left.at(slot, slice(part * half, half));
      const running = wgmma(carried.sum, rows, right.at(slot)).waitPending(1);
      when(step.gt(0), () => {
        release(carried.count);
      });
      return { sum: running, count: carried.count.add(1) };
    });
    const product = sum.wait();
    release(count);
    storeTile(parts, part, corner, product);
    return count;
  });
  waitGroup(0, { read: true });
}

/** A tile leaves piece by piece, through two buffers in turn. */
function storeTile(
  { result, out }: Parts,
  part: number,
  { top, start }: Corner,
  product: Tile<"f32">,
): void {
  for (let at = 0; at < columns; at += piece) {
    waitGroup(1, { read: true }); // the piece before the last has left its buffer
    const buffer = result.at(part, (at / piece) % 2);
    buffer.store(product.slice([0, at], [half, piece]).cast(bf16));
    commitShared();
    // The engine writes nothing that may begin before the array, which arithmetic that wraps could.
    const rows = slice(top.add(part * half).maximum(0), half);
    copyAsync(buffer, out.at(rows, slice(start.add(at).maximum(0), piece)));
    commitGroup();
  }
}

export function handwrittenProduct({ blocks, sharing = 1 }: ProductOptions) {
  const workers = Math.floor(blocks / sharing);
  return kernel(
    {
      name: `handwritten_product_${sharing}`,
      grid: { worker: workers, member: sharing },
      ...(sharing > 1 && { cluster: { member: sharing } }),
      threads: ["copy", "first", "second"],
      inputs: { a: tensor(bf16, [m, k]), b: tensor(bf16, [k, n]) },
      outputs: { out: tensor(bf16, [m, n]) },
      scratch: {
        left: smem(bf16, [stages, height, depth]),
        right: smem(bf16, [stages, depth, columns]),
        result: smem(bf16, [2, 2, half, piece]),
        full: barrier({ count: stages, arrivals: 1 + sharing }),
        empty: barrier({ count: stages, arrivals: 2 * sharing }),
      },
    },
    ({ worker, member, copy, first, second, ...memory }) => {
      const zero = constant(i32, 0);
      const down = zero.add(cdiv(m, height * sharing));
      const across = zero.add(cdiv(n, columns));
      const rank = sharing > 1 ? clusterRank("member") : member;
      const eachTile: Parts["eachTile"] = (body) => {
        const assigned = { from: worker, to: down.mul(across), step: workers, carry: zero };
        loop(assigned, (tile, count) => {
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
      const parts: Parts = { ...memory, sharing, rank, eachTile };
      copy(() => {
        copyTiles(parts);
      });
      for (const [part, multiply] of [first, second].entries())
        multiply(() => {
          multiplyTiles(parts, part);
        });
      // No block ends while another may still arrive on its barriers.
      if (sharing > 1) clusterSync();
    },
  );
}
