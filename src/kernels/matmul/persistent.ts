/**
 * The product on wgmma and the copy engine. A block stays on its processor and takes tile after tile; one thread
 * copies, through a ring of pairs of tiles, and one or two multiply, 64 rows each:
 *
 *   copy        fill 0  fill 1  fill 2  wait empty 0, fill 0 …        goes on with the next tile at once
 *   multiply    wait full 0, wgmma …  arrive empty 0 …  store         while the copies of the next tile arrive
 *
 * The pieces of a finished tile go through two buffers in turn, so that one is written while the other leaves.
 */
import {
  accumulator,
  all,
  array,
  barrier,
  cdiv,
  commitGroup,
  commitShared,
  constant,
  copyAsync,
  dim,
  kernel,
  loop,
  setRegisters,
  slice,
  smem,
  waitGroup,
  warps,
  wgmma,
  when,
} from "../../lang/index.ts";
import type { Barrier, KernelDefinition, Ref, Scalar, Tile } from "../../lang/index.ts";
import { dtypes } from "../../formats/dtype.ts";
import type { DType } from "../../formats/dtype.ts";
import type { Location } from "../../support/location.ts";
import { rowBytes, threadRows } from "./configuration.ts";
import type { PersistentConfiguration, ProductSizes } from "./configuration.ts";
import { alignedDimensions } from "./dimensions.ts";
import { finished, inputSpecs } from "./epilogue.ts";
import { tileOrder } from "./order.ts";
import type { TilePlace } from "./order.ts";
import type { MatmulProblem } from "./problem.ts";

export interface PersistentForm {
  readonly problem: MatmulProblem;
  readonly configuration: PersistentConfiguration;
  readonly sizes: ProductSizes;
  /** Whether the copy engine can write the result, whose rows must begin at multiples of 16 bytes. */
  readonly copiesOut: boolean;
  readonly location: Location;
}

/** Elements of k in a tile. */
export function depthOf({ bits }: DType): number {
  return (rowBytes * 8) / bits;
}

/** Columns of a piece of the result: a row of 128 bytes. */
function pieceColumns({ bits }: DType, columns: number): number {
  return Math.min(columns, (rowBytes * 8) / bits);
}

/** What the threads of the kernel work on. */
interface Work {
  readonly form: PersistentForm;
  readonly shapes: Shapes;
  readonly a: Ref;
  readonly b: Ref;
  readonly out: Ref;
  readonly tileA: Ref;
  readonly tileB: Ref;
  /** Undefined where lanes store the result themselves. */
  readonly result: Ref | undefined;
  readonly full: Barrier;
  readonly empty: Barrier;
  readonly inputs: { readonly [name: string]: Ref };
  /** The tiles of this block. */
  readonly own: {
    readonly from: Scalar<"i32">;
    readonly to: Scalar<"i32">;
    readonly step: Scalar<"i32">;
  };
  readonly place: (tile: Scalar<"i32">) => TilePlace;
  /** The steps of a part of k. */
  readonly range: (part: Scalar<"i32">) => Steps;
}

interface Steps {
  readonly from: Scalar<"i32">;
  readonly steps: Scalar<"i32">;
}

/** Sizes of tiles and pieces. */
interface Shapes {
  readonly rows: number;
  readonly columns: number;
  readonly depth: number;
  readonly piece: number;
  /** Whether the result is several matrices: batches, or parts of k. */
  readonly layered: boolean;
}

function shapesOf({ problem, configuration }: PersistentForm): Shapes {
  const { multipliers, columns, split } = configuration;
  return {
    rows: multipliers * threadRows,
    columns,
    depth: depthOf(problem.a.dtype),
    piece: pieceColumns(outputOf(problem, split), columns),
    layered: problem.sizes.batch !== undefined || split > 1,
  };
}

function outputOf({ out, accumulator: sums }: MatmulProblem, split: number): DType {
  return split === 1 ? out.dtype : sums;
}

export function persistentKernel(form: PersistentForm): KernelDefinition {
  const { problem, configuration, copiesOut, location } = form;
  const { multipliers, stages, split } = configuration;
  const shapes = shapesOf(form);
  const { rows, columns, depth, piece } = shapes;
  const dimensions = alignedDimensions(form.sizes);
  const { batch, m, n, k } = dimensions;
  const { major, batched } = problem;
  const workers = dim("workers");
  const output = outputOf(problem, split);
  const inputs = split === 1 ? inputSpecs(problem, dimensions, location) : {};
  return kernel(
    {
      name: "matmul",
      grid: { worker: workers },
      threads: multipliers === 2 ? ["copy", "first", "second"] : ["copy", "first"],
      inputs: {
        a: array(problem.a.dtype, [
          ...(batched.a ? [batch] : []),
          ...(major.a === "k" ? [m, k] : [k, m]),
        ]),
        b: array(problem.b.dtype, [
          ...(batched.b ? [batch] : []),
          ...(major.b === "n" ? [k, n] : [n, k]),
        ]),
        ...inputs,
      },
      outputs: { out: array(output, [...(shapes.layered ? [dim("layers")] : []), m, n]) },
      scratch: {
        tileA: smem(problem.a.dtype, [
          stages,
          ...(major.a === "k" ? [rows, depth] : [depth, rows]),
        ]),
        tileB: smem(problem.b.dtype, [
          stages,
          ...(major.b === "n" ? [depth, columns] : [columns, depth]),
        ]),
        ...(copiesOut && { result: smem(output, [multipliers, 2, threadRows, piece]) }),
        full: barrier({ count: stages, arrivals: 2 }),
        empty: barrier({ count: stages, arrivals: multipliers }),
      },
    },
    (argument) => {
      const { worker, a, b, out, tileA, tileB, full, empty } = argument;
      const named = argument as unknown as { readonly [name: string]: Ref };
      const threads = argument as unknown as {
        readonly [name: string]: (body: () => void) => void;
      };
      const layers = problem.sizes.batch === undefined ? 1 : batch;
      const { tiles, place } = tileOrder({ batch: layers, split, m, n, rows, columns });
      const zero = constant(dtypes.i32, 0);
      const work: Work = {
        ...{ form, shapes, a, b, out, tileA, tileB, full, empty, place },
        result: copiesOut ? named["result"] : undefined,
        inputs: Object.fromEntries(
          Object.keys(inputs).flatMap((name) => {
            const ref = named[name];
            return ref === undefined ? [] : [[name, ref] as const];
          }),
        ),
        own: { from: worker, to: tiles, step: zero.add(workers) },
        range: stepsOf(zero.add(cdiv(k, depth)), split),
      };
      threads["copy"]?.(() => {
        copyTiles(work);
      });
      ["first", "second"].slice(0, multipliers).forEach((name, index) => {
        threads[name]?.(() => {
          multiplyTiles(work, index);
        });
      });
    },
  );
}

/** The steps of each part of k: as many as any other, but for the last ones. */
function stepsOf(all: Scalar<"i32">, split: number): (part: Scalar<"i32">) => Steps {
  const zero = constant(dtypes.i32, 0);
  if (split === 1) return () => ({ from: zero, steps: all });
  const each = all.add(split - 1).div(split);
  return (part) => {
    const from = part.mul(each).minimum(all);
    return { from, steps: each.minimum(all.sub(from)) };
  };
}

/** The slot after this one. */
function following(slot: Scalar<"i32">, stages: number): Scalar<"i32"> {
  const next = slot.add(1);
  return next.eq(stages).select(0, next);
}

/** One warp keeps the ring full, tile after tile. */
function copyTiles({
  form,
  shapes,
  a,
  b,
  tileA,
  tileB,
  full,
  empty,
  own,
  place,
  range,
}: Work): void {
  const { stages, multipliers } = form.configuration;
  const { major, batched } = form.problem;
  const { rows, columns, depth } = shapes;
  const zero = constant(dtypes.i32, 0);
  if (multipliers === 2) setRegisters(40);
  warps((warp) => {
    when(warp.eq(0), () => {
      loop({ ...own, carry: { slot: zero, count: zero } }, (tile, before) => {
        const { batch, part, top, left } = place(tile);
        const { from, steps } = range(part);
        const ofA = batched.a ? a.at(batch) : a;
        const ofB = batched.b ? b.at(batch) : b;
        const [down, across] = [slice(top, rows), slice(left, columns)];
        return loop({ to: steps, carry: before }, (step, { slot, count }) => {
          when(count.ge(stages), () => {
            empty.at(slot).wait();
          });
          const along = slice(from.add(step).mul(depth), depth);
          const landed = { barrier: full.at(slot) };
          copyAsync(
            major.a === "k" ? ofA.at(down, along) : ofA.at(along, down),
            tileA.at(slot),
            landed,
          );
          copyAsync(
            major.b === "n" ? ofB.at(along, across) : ofB.at(across, along),
            tileB.at(slot),
            landed,
          );
          return { slot: following(slot, stages), count: count.add(1) };
        });
      });
    });
  });
}

/** A thread multiplies its 64 rows of each tile, and stores what comes out. */
function multiplyTiles(work: Work, index: number): void {
  const { form, shapes, tileA, tileB, full, empty, own, place, range, result } = work;
  const { stages, multipliers } = form.configuration;
  const { major, accumulator: sums } = form.problem;
  const zero = constant(dtypes.i32, 0);
  const mine = slice(index * threadRows, threadRows);
  const rowsOf = (slot: Scalar<"i32">): Ref =>
    major.a === "k" ? tileA.at(slot, mine) : tileA.at(slot, all, mine).transpose();
  const columnsOf = (slot: Scalar<"i32">): Ref =>
    major.b === "n" ? tileB.at(slot) : tileB.at(slot).transpose();
  if (multipliers === 2) setRegisters(232);
  loop({ ...own, carry: { slot: zero, last: zero } }, (tile, before) => {
    const where = place(tile);
    const { steps } = range(where.part);
    const start = accumulator(sums as DType<"f32">, [threadRows, shapes.columns]);
    const { sum, slot, last } = loop(
      { to: steps, carry: { sum: start, ...before } },
      (step, carried) => {
        full.at(carried.slot).wait();
        const product = wgmma(carried.sum, rowsOf(carried.slot), columnsOf(carried.slot));
        const running = product.waitPending(1);
        // The product of the step before is over, so its tiles may be replaced.
        when(step.gt(0), () => {
          empty.at(carried.last).arrive();
        });
        return { sum: running, slot: following(carried.slot, stages), last: carried.slot };
      },
    );
    const product = sum.wait();
    when(steps.gt(0), () => {
      empty.at(last).arrive();
    });
    storeTile(work, product, where, index);
    return { slot, last };
  });
  if (result !== undefined) waitGroup(0, { read: true });
}

/** Stores a thread's rows of a tile, piece by piece. */
function storeTile(
  { form, shapes, out, result, inputs }: Work,
  product: Tile,
  place: TilePlace,
  index: number,
): void {
  const { problem, configuration, location } = form;
  const { split } = configuration;
  const { columns, piece, layered } = shapes;
  const layer = split === 1 ? place.batch : place.batch.mul(split).add(place.part);
  const target = layered ? out.at(layer) : out;
  const top = place.top.add(index * threadRows);
  for (let column = 0; column < columns; column += piece) {
    const left = place.left.add(column);
    const sums = product.slice([0, column], [threadRows, piece]);
    const at = { batch: place.batch, top, left, rows: threadRows, columns: piece };
    const done = split === 1 ? finished(sums, at, problem, inputs, location) : sums;
    storePiece(
      target.at(slice(top, threadRows), slice(left, piece)),
      done,
      result,
      index,
      column / piece,
    );
  }
}

/** By the copy engine through one of two buffers, or by the lanes themselves. */
function storePiece(
  window: Ref,
  piece: Tile,
  result: Ref | undefined,
  index: number,
  turn: number,
): void {
  if (result === undefined) {
    window.store(piece);
    return;
  }
  // The piece before the last has left its buffer.
  waitGroup(1, { read: true });
  const buffer = result.at(index, turn % 2);
  buffer.store(piece);
  commitShared();
  copyAsync(buffer, window);
  commitGroup();
}
