/**
 * The threads that multiply and store where sums lie in tensor memory: one starts products, and one takes finished tiles from the other of two
 * places, so that tensor cores go on with the next tile meanwhile.
 *
 *   copy        fill 0  fill 1  fill 2 …
 *   multiply    wait full 0, product ▶ empty 0 …  ▶ summed 0 │ next tile, into place 1 …      ▶ summed 1 │ wait taken 0 …
 *   store                                                     wait summed 0, load pieces, taken 0, store │ wait summed 1 …
 *
 * A commit (▶) arrives when the products before it are over.
 */
import {
  all,
  constant,
  loop,
  slice,
  tcgen05Commit,
  tcgen05Mma,
  when,
} from "../../../lang/index.ts";
import type { Ref, Scalar } from "../../../lang/index.ts";
import { barrier, tmem, waitGroup } from "../../../lang/index.ts";
import { dtypes } from "../../../formats/dtype.ts";
import { storeTile } from "../epilogue/store-tile.ts";
import { eachSegment } from "../scheduler/work-loop.ts";
import { columnsOfTile, wholeRowsOfTile } from "./operands.ts";
import { following } from "./producer.ts";
import type { PersistentForm, Shapes, TensorSums, Work } from "../kernel-context.ts";

type Integer = Scalar<"i32">;

/** Places for the sums of a tile: one is stored while the other is added up. */
const places = 2;

/** The threads beside the one that copies. */
export const tensorThreads = ["multiply", "store"] as const;

/** What they need besides the ring. */
export function tensorScratch(
  { problem }: PersistentForm,
  { rows, columns }: Shapes,
): {
  readonly sums: ReturnType<typeof tmem>;
  readonly summed: ReturnType<typeof barrier>;
  readonly taken: ReturnType<typeof barrier>;
} {
  return {
    sums: tmem(problem.accumulator, [places, rows, columns]),
    summed: barrier({ count: places }),
    taken: barrier({ count: places }),
  };
}

function sumsOf({ tensor }: Work): TensorSums {
  if (tensor === undefined) throw new Error("the kernel has no sums in tensor memory");
  return tensor;
}

/** Starts the products of tile after tile. */
export function startProducts(work: Work): void {
  const { sums, summed, taken } = sumsOf(work);
  const { sides, full, empty, leftTiles, rightTiles, form } = work;
  const { stages } = form.configuration;
  const zero: Integer = constant(dtypes.i32, 0);
  const start = { slot: zero, turn: zero };
  eachSegment(work, work.deal(), "follows", start, ({ steps }, before) => {
    const place = before.turn.and(1);
    when(before.turn.ge(places), () => {
      taken.at(place).wait();
    });
    const slot = loop({ to: steps, carry: before.slot }, (step, at) => {
      full.at(at).wait();
      const [left, right] = [
        wholeRowsOfTile(sides.rows, leftTiles, at),
        columnsOfTile(sides.columns, rightTiles, at),
      ];
      tcgen05Mma(sums.at(place), left, right, { adds: step.gt(0) });
      tcgen05Commit(empty.at(at));
      return following(at, stages);
    });
    tcgen05Commit(summed.at(place));
    return { slot, turn: before.turn.add(1) };
  });
}

/** Stores tile after tile, and gives its place back once it is in registers. */
export function storeSums(work: Work): void {
  const { sums, summed, taken } = sumsOf(work);
  const { shapes, result } = work;
  const zero: Integer = constant(dtypes.i32, 0);
  eachSegment(work, work.deal(), "follows", zero, ({ tile }, turn) => {
    const place = turn.and(1);
    summed.at(place).wait();
    const last = shapes.columns - shapes.piece;
    const piece = (column: number): ReturnType<Ref["load"]> => {
      const loaded = sums.at(place, all, slice(column, shapes.piece)).load();
      if (column === last) taken.at(place).arrive();
      return loaded;
    };
    storeTile(work, piece, work.place(tile), zero);
    return turn.add(1);
  });
  if (result !== undefined) waitGroup(0, { read: true });
}
