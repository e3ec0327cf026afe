/**
 * The thread that copies. It keeps the ring of slots full, tile after tile, ahead of those who multiply:
 *
 *   where the first tile lies   wait for the kernel before   fill 0  fill 1 …  wait empty 0, fill 0 …
 *
 * Finding out where a tile lies takes divisions one after the other, which is why the first one is found while the kernel
 * before still runs; those of later tiles are found while slots are full.
 */
import {
  all,
  constant,
  copyAsync,
  loop,
  setRegisters,
  slice,
  warps,
  when,
} from "../../../lang/index.ts";
import type { Ref, Scalar, Slice } from "../../../lang/index.ts";
import { dtypes } from "../../../formats/dtype.ts";
import { followPrevious } from "../../support/programmatic-dependent-launch.ts";
import { turnsBack } from "../scheduler/l2-reuse.ts";
import { threadRows } from "../configuration.ts";
import { notBefore } from "../scheduler/tile-scheduler.ts";
import type { TilePlace } from "../scheduler/tile-scheduler.ts";
import type { Work } from "../kernel-context.ts";
import { copyScales, scalesTravel } from "../block-scales.ts";
import { inputWindow } from "../prologue/prologue.ts";
import { slotParts } from "../f32-emulation.ts";
import { heldDepth, sideWindow } from "./operands.ts";
import type { Side } from "./operands.ts";
import { block, metadataWindow } from "../weights/sparse-weights.ts";
import { eachSegment } from "../scheduler/work-loop.ts";
import { tradedRegisters, tradesRegisters } from "../tile-shapes.ts";

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
  if (form.sums === "registers" && tradesRegisters(form.problem, form.configuration))
    setRegisters(tradedRegisters(form.recipe).copy);
  warps((warp) => {
    when(warp.eq(0), () => {
      // Tables of rows that are dealt on the device are what the kernel before writes.
      const waitsFirst = form.dealt !== undefined;
      if (waitsFirst) followPrevious();
      // 1 where a tile is multiplied from the end of k.
      const back = turnsBack(form) ? [zero] : [];
      const start = { ring: { slot: zero, count: zero }, back };
      eachSegment(work, segments, "leads", start, (segment, before, isFirst) => {
        const { tile, from, steps, half } = segment;
        const place = { ...work.place(tile), half };
        if (!waitsFirst) when(isFirst(), followPrevious);
        const first = form.parts === 1 ? from : from.add(place.batch.mul(work.steps));
        const [isBack] = before.back;
        const alongK = (step: Integer): Integer =>
          isBack === undefined
            ? step
            : isBack.eq(1).select(steps.sub(1).sub(step).maximum(0), step);
        const ring = loop({ to: steps, carry: before.ring }, (step, carried) =>
          fillSlots(work, place, first.add(alongK(step)), carried),
        );
        return { ring, back: before.back.map((each) => each.xor(1)) };
      });
    });
  });
}

/** The slot to be filled next, and how many were. */
interface Ring {
  readonly slot: Integer;
  readonly count: Integer;
}

/** Where a tile lies, and which half of its columns is copied, where that may be one. */
interface CopiedPlace extends TilePlace {
  readonly half: Integer | undefined;
}

/** Fetches what a step multiplies: a slot for each of the parts that operands are made of. */
function fillSlots(work: Work, start: CopiedPlace, position: Integer, ring: Ring): Ring {
  const { form, shapes, sides, left: ofRows, full, empty } = work;
  const { stages } = form.configuration;
  const { rows, depth } = shapes;
  const { batch } = start;
  const [top, left] = [notBefore(start.top), notBefore(start.left)];
  const along = slice(position.mul(depth), depth);
  const held = heldDepth(sides.rows, depth);
  let { slot, count } = ring;
  for (const parts of slotParts(form.recipe)) {
    when(count.ge(stages), () => {
      empty.at(slot).wait();
    });
    const landed = { barrier: full.at(slot) };
    const ofStep = slice(position.mul(held), held);
    const filled = count;
    const isFirst = (): Scalar<"bool"> => filled.lt(stages);
    const rowsOf = { ...sides.rows, ...dealtEdge(work, start), start: top, count: rows, isFirst };
    copyInside(rowsOf, (inside) => {
      copyAsync(
        sideWindow(sides.rows, ofRows, parts[sides.rows.name], batch, slice(top, inside), ofStep),
        inside === rows
          ? work.leftTiles.at(slot)
          : startOfTile(rowsOf, work.leftTiles.at(slot), inside),
        landed,
      );
    });
    if (work.metadata !== undefined) {
      const { all, tiles } = work.metadata;
      const first = position.mul(depth / block);
      copyAsync(metadataWindow(all, top, rows, first, depth), tiles.at(slot), landed);
    }
    if (scalesTravel(form.problem, form.sizes.k))
      for (const [{ name }, first, count] of [
        [sides.rows, top, rows],
        [sides.columns, left, shapes.columns],
      ] as const)
        copyScales(
          form.problem,
          work.named,
          { operand: name, batch, start: first, count },
          position,
          slot,
          landed,
        );
    const part = parts[sides.columns.name];
    copyColumns(work, { part, batch, left, along, slot, isFirst, half: start.half });
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

/** Rows or columns of a tile that a copy is of. */
interface CopiedSide extends Pick<Side, "alongK" | "extent"> {
  readonly start: Integer;
  readonly count: number;
  /** Those that the windows of the last tiles have, where these are not whole ones. */
  readonly edge: number | undefined;
  /** Windows of tiles with few rows, the smallest first, where that is not found from the end of the array. */
  readonly some?: readonly { readonly count: number; readonly suffice: Scalar<"bool"> }[];
  /** Whether nothing was in the slot before. */
  readonly isFirst: () => Scalar<"bool">;
}

/** Rows of a group up to which no others are copied: 64 rows are a third of what a step of half the columns of a tile copies. */
const fewRows = 16;

/** Which rows of a tile are copied: of a group with few, only those that the first thread multiplies, or the first of them. */
function dealtEdge({ form }: Work, { top, end }: TilePlace): Pick<CopiedSide, "edge" | "some"> {
  const { swapAB, consumers } = form.configuration;
  if (form.dealt === undefined || end === undefined || swapAB) return { edge: form.edges.row };
  const rows = end.sub(notBefore(top));
  const counts = consumers === 1 ? [fewRows] : [fewRows, threadRows];
  return { edge: undefined, some: counts.map((count) => ({ count, suffice: rows.le(count) })) };
}

/**
 * Copies rows or columns of a tile, or as many of them as the windows of the last tiles have. A slot that is filled first is filled
 * as a whole: what is left out is multiplied as well, and should be something.
 */
function copyInside(
  { extent, start, count, edge, isFirst, some }: CopiedSide,
  copy: (count: number) => void,
): void {
  if (some !== undefined) {
    // One branch after the other: with two branches of one the assembler spills a register.
    let taken = isFirst().not();
    for (const { count: few, suffice } of some) {
      when(taken.and(suffice), () => {
        copy(few);
      });
      taken = taken.and(suffice.not());
    }
    when(taken.or(isFirst()), () => {
      copy(count);
    });
    return;
  }
  if (edge === undefined) {
    copy(count);
    return;
  }
  const end = constant(dtypes.i32, 0).add(extent);
  when(
    isFirst().or(start.add(count).le(end)),
    () => {
      copy(count);
    },
    () => {
      copy(edge);
    },
  );
}

/** The first rows or columns of a tile in shared memory. */
function startOfTile({ alongK }: Pick<Side, "alongK">, tile: Ref, count: number): Ref {
  return alongK ? tile.at(slice(0, count)) : tile.at(all, slice(0, count));
}

/** The columns of a step, by which operand, and where they go. */
interface ColumnsOfStep {
  readonly part: number;
  readonly batch: Integer;
  readonly left: Integer;
  readonly along: Slice;
  readonly slot: Integer;
  readonly isFirst: () => Scalar<"bool">;
  readonly half: Integer | undefined;
}

/** Fetches the columns of a step: all of them, or this block's share for the whole cluster. */
function copyColumns(work: Work, step: ColumnsOfStep): void {
  const { part, batch, left, along, slot, isFirst, half } = step;
  const { sides, right, rightTiles, full, rank, shapes, form } = work;
  const { cluster } = form.configuration;
  const shares = cluster > 1;
  const { alongK } = sides.columns;
  const share = (alongK ? shapes.columns : shapes.depth) / cluster;
  const first = rank.mul(share);
  const own = shares && alongK ? first.add(left) : left;
  const end = constant(dtypes.i32, 0).add(sides.columns.extent);
  const columns: CopiedSide = {
    ...sides.columns,
    start: form.edges.moved === true ? notBefore(own.lt(end).select(own, 0)) : own,
    count: alongK ? share : shapes.columns,
    edge: form.edges.column,
    isFirst,
  };
  const depth = shares && !alongK ? slice(first.add(along.start), share) : along;
  const tile = shares ? rightTiles.at(slot, slice(first, share)) : rightTiles.at(slot);
  const copy = (inside: number, start = columns.start): void => {
    copyAsync(
      sideWindow(sides.columns, right, part, batch, slice(start, inside), depth),
      inside === columns.count ? tile : startOfTile(columns, tile, inside),
      { barrier: full.at(slot), ...(shares && { multicast: ["rank"] }) },
    );
  };
  if (half === undefined) {
    copyInside(columns, copy);
    return;
  }
  when(half.eq(0), () => {
    copyInside(columns, copy);
  });
  when(half.gt(0), () => {
    const count = columns.count / 2;
    copy(count, notBefore(own.add(half.sub(1).mul(count))));
  });
}
