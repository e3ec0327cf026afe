/**
 * The thread that copies. It keeps the ring of slots full, tile after tile, ahead of those who multiply:
 *
 *   where the first tile lies   wait for the kernel before   fill 0  fill 1 …  wait empty 0, fill 0 …
 *
 * Finding out where a tile lies takes divisions one after the other, which is why the first one is found while the kernel
 * before still runs; those of later tiles are found while slots are full.
 */
import { constant, copyAsync, loop, setRegisters, slice, warps, when } from "../../lang/index.ts";
import type { Scalar, Slice } from "../../lang/index.ts";
import { dtypes } from "../../formats/dtype.ts";
import type { Segments } from "../../lang/pipeline/segments.ts";
import { followPrevious } from "../support/early-start.ts";
import { notBefore } from "./order.ts";
import type { TilePlace } from "./order.ts";
import type { Work } from "./persistent.ts";
import { inputWindow } from "./prologue.ts";
import { heldDepth, sideWindow } from "./sides.ts";
import { block, metadataWindow } from "./sparse-weights.ts";
import { tradedRegisters, tradesRegisters } from "./tile-shapes.ts";

type Integer = Scalar<"i32">;

/** The slot after this one. */
export function following(slot: Integer, stages: number): Integer {
  const next = slot.add(1);
  return next.eq(stages).select(0, next);
}

/** One warp keeps the ring full. */
export function copyTiles(work: Work): void {
  const { form } = work;
  const segments = work.deal();
  const zero = constant(dtypes.i32, 0);
  if (tradesRegisters(form.problem, form.configuration))
    setRegisters(tradedRegisters(form.recipe).copy);
  warps((warp) => {
    when(warp.eq(0), () => {
      // Tables of rows that are dealt on the device are what the kernel before writes.
      const first = form.dealt === undefined ? startOf(work, segments, zero) : undefined;
      if (first === undefined) followPrevious();
      loop({ to: segments.count, carry: { slot: zero, count: zero } }, (index, before) => {
        const later = (): TileStart => startOf(work, segments, index);
        const begin = (known: TileStart): TileStart => {
          followPrevious();
          return known;
        };
        const start = first === undefined ? later() : when(index.eq(0), () => begin(first), later);
        const { from, steps } = segments.at(index);
        return loop({ to: steps, carry: before }, (step, carried) =>
          fillSlots(work, start, from.add(step), carried),
        );
      });
    });
  });
}

/** Where a tile begins. */
type TileStart = Pick<TilePlace, "batch" | "top" | "left">;

function startOf({ place }: Work, segments: Segments, index: Integer): TileStart {
  const { batch, top, left } = place(segments.at(index).tile);
  return { batch, top, left };
}

/** The slot to be filled next, and how many were. */
interface Ring {
  readonly slot: Integer;
  readonly count: Integer;
}

/** Fetches what a step multiplies: a slot for each of the products that it is made of. */
function fillSlots(work: Work, start: TileStart, position: Integer, ring: Ring): Ring {
  const { form, shapes, sides, left: ofRows, full, empty } = work;
  const { stages } = form.configuration;
  const { rows, columns, depth } = shapes;
  const { batch } = start;
  const [top, left] = [notBefore(start.top), notBefore(start.left)];
  const [down, across] = [slice(top, rows), slice(left, columns)];
  const along = slice(position.mul(depth), depth);
  const held = heldDepth(sides.rows, depth);
  let { slot, count } = ring;
  for (const [ofA, ofB] of form.recipe.terms) {
    when(count.ge(stages), () => {
      empty.at(slot).wait();
    });
    const landed = { barrier: full.at(slot) };
    const [part, other] = sides.rows.name === "a" ? [ofA, ofB] : [ofB, ofA];
    const ofStep = slice(position.mul(held), held);
    const source = sideWindow(sides.rows, ofRows, part, batch, down, ofStep);
    copyAsync(source, work.leftTiles.at(slot), landed);
    if (work.metadata !== undefined) {
      const { all, tiles } = work.metadata;
      const first = position.mul(depth / block);
      copyAsync(metadataWindow(all, top, rows, first, depth), tiles.at(slot), landed);
    }
    copyColumns(work, { part: other, batch, across, along, slot });
    for (const { input, all, tiles } of work.prologueInputs)
      if (tiles !== undefined)
        copyAsync(
          inputWindow(input, all, { batch, along: position.mul(depth), start: top, count: rows }),
          tiles.at(slot),
          landed,
        );
    slot = following(slot, stages);
    count = count.add(1);
  }
  return { slot, count };
}

/** The columns of a step, by which operand, and where they go. */
interface ColumnsOfStep {
  readonly part: number;
  readonly batch: Integer;
  readonly across: Slice;
  readonly along: Slice;
  readonly slot: Integer;
}

/** Fetches the columns of a step: all of them, or this block's share for the whole cluster. */
function copyColumns(work: Work, { part, batch, across, along, slot }: ColumnsOfStep): void {
  const { sides, right, rightTiles, full, rank, shapes } = work;
  const { cluster } = work.form.configuration;
  const landed = { barrier: full.at(slot) };
  const { alongK } = sides.columns;
  const share = (alongK ? shapes.columns : shapes.depth) / cluster;
  const first = rank.mul(share);
  const mine = ({ start }: Slice): Slice => slice(first.add(start), share);
  const source = sideWindow(
    sides.columns,
    right,
    part,
    batch,
    cluster > 1 && alongK ? mine(across) : across,
    cluster > 1 && !alongK ? mine(along) : along,
  );
  if (cluster === 1) copyAsync(source, rightTiles.at(slot), landed);
  else
    copyAsync(source, rightTiles.at(slot, slice(first, share)), { ...landed, multicast: ["rank"] });
}
