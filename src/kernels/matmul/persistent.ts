/**
 * The product on wgmma and the copy engine. A block stays on its processor and takes tile after tile; one thread
 * copies, through a ring of pairs of tiles, and one or two multiply, 64 rows each:
 *
 *   copy        fill 0  fill 1  fill 2  wait empty 0, fill 0 …        goes on with the next tile at once
 *   multiply    wait full 0, wgmma …  arrive empty 0 …  store         while the copies of the next tile arrive
 *
 * The pieces of a finished tile go through two buffers in turn, so that one is written while the other leaves. Where
 * the tiles of the last round are split (`lang/pipeline/segments.ts`), sums of their parts go from block to block through memory.
 *
 * Blocks are started while the kernel before still ends, and wait for it before they touch memory. They are numbered
 * from the last one: a block waits for sums of blocks with higher numbers alone, which are those that started before it.
 */
import {
  accumulator,
  array,
  barrier,
  cdiv,
  commitGroup,
  commitShared,
  constant,
  copyAsync,
  dim,
  gmem,
  kernel,
  launchNextKernel,
  loop,
  semaphore,
  setRegisters,
  slice,
  smem,
  waitForPreviousKernel,
  waitGroup,
  warps,
  wgmma,
  when,
  withoutNans,
  zeros,
} from "../../lang/index.ts";
import type {
  Accumulator,
  Barrier,
  KernelDefinition,
  Ref,
  Scalar,
  Semaphore,
  Tile,
} from "../../lang/index.ts";
import { handSums, splitTiles, workerOf } from "../../lang/pipeline/segments.ts";
import type { Handing, Segment, Segments } from "../../lang/pipeline/segments.ts";
import { dtypes } from "../../formats/dtype.ts";
import type { DType } from "../../formats/dtype.ts";
import type { Dimension } from "../../ir/size.ts";
import type { Location } from "../../support/location.ts";
import { rowBytes, threadRows } from "./configuration.ts";
import type { PersistentConfiguration, ProductSizes } from "./configuration.ts";
import { alignedDimensions } from "./dimensions.ts";
import type { ProductDimensions } from "./dimensions.ts";
import { finished, inputSpecs } from "./epilogue.ts";
import type { Piece } from "./epilogue.ts";
import { tileOrder, wholeTiles } from "./order.ts";
import type { DealtRows, TileGrid, TilePlace } from "./order.ts";
import type { Prepared } from "./prepare.ts";
import type { MatmulProblem } from "./problem.ts";
import type { Recipe } from "./recipe.ts";
import { columnsOfTile, rowsOfTile, sidesOf, sideSpec, sideWindow, tileShape } from "./sides.ts";
import type { Sides } from "./sides.ts";

export interface PersistentForm {
  readonly problem: MatmulProblem;
  readonly recipe: Recipe;
  readonly prepared: Prepared;
  readonly configuration: PersistentConfiguration;
  readonly sizes: ProductSizes;
  /** Whether the copy engine can write the result, whose rows must begin at multiples of 16 bytes. */
  readonly copiesOut: boolean;
  readonly location: Location;
  /** Where rows belong to groups, each with a matrix of its own: which tile has which of them. */
  readonly dealt?: DealtRows;
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
  readonly sides: Sides;
  /** The operands along rows and columns, and their tiles. */
  readonly left: Ref;
  readonly right: Ref;
  readonly out: Ref;
  readonly leftTiles: Ref;
  readonly rightTiles: Ref;
  /** Undefined where lanes store the result themselves. */
  readonly result: Ref | undefined;
  readonly full: Barrier;
  readonly empty: Barrier;
  readonly inputs: { readonly [name: string]: Ref };
  /** Sums of parts of tiles that blocks hand to each other; undefined where there are none. */
  readonly handed: Handing | undefined;
  readonly worker: Scalar<"i32">;
  /** What this block works on. */
  readonly segments: Segments;
  readonly place: (tile: Scalar<"i32">) => TilePlace;
}

/** Sizes of tiles and pieces. */
interface Shapes {
  readonly rows: number;
  readonly columns: number;
  readonly depth: number;
  readonly piece: number;
}

function shapesOf({ problem, recipe, configuration }: PersistentForm): Shapes {
  const { multipliers, columns, turned } = configuration;
  return {
    rows: multipliers * threadRows,
    columns,
    depth: depthOf(recipe.a),
    piece: turned ? columns : pieceColumns(problem.out.dtype, columns),
  };
}

export function persistentKernel(form: PersistentForm): KernelDefinition {
  const { problem, recipe, prepared, configuration, copiesOut, location } = form;
  const { multipliers, stages, schedule, turned } = configuration;
  const shapes = shapesOf(form);
  const { rows, columns, depth, piece } = shapes;
  const dimensions = alignedDimensions(form.sizes);
  const { batch, m, n, k } = dimensions;
  const sides = sidesOf(problem, recipe, prepared, dimensions, turned);
  const workers = dim("workers");
  const splits = schedule === "split";
  const output = problem.out.dtype;
  const inputs = { ...inputSpecs(problem, dimensions, location), ...form.dealt?.inputs };
  return kernel(
    {
      name: "matmul",
      grid: { index: workers },
      threads: multipliers === 2 ? ["copy", "first", "second"] : ["copy", "first"],
      inputs: {
        [sides.rows.name]: sideSpec(sides.rows, batch, k),
        [sides.columns.name]: sideSpec(sides.columns, batch, k),
        ...inputs,
      },
      outputs: {
        out: array(output, [...(problem.sizes.batch === undefined ? [] : [batch]), m, n]),
      },
      scratch: {
        leftTiles: smem(sides.rows.dtype, [stages, ...tileShape(sides.rows, rows, depth)]),
        rightTiles: smem(sides.columns.dtype, [
          stages,
          ...tileShape(sides.columns, columns, depth),
        ]),
        ...(copiesOut && { result: smem(output, [multipliers, 2, threadRows, piece]) }),
        full: barrier({ count: stages, arrivals: 2 }),
        empty: barrier({ count: stages, arrivals: multipliers }),
        ...(splits && {
          handed: gmem(problem.accumulator, [workers, multipliers, threadRows, columns]),
          told: semaphore([workers, multipliers]),
        }),
      },
    },
    (argument) => {
      waitForPreviousKernel();
      launchNextKernel();
      runThreads(workOf(form, { shapes, sides, dimensions, workers }, argument), argument);
    },
  );
}

/** What both the declaration of the kernel and its body are made of. */
interface Setting {
  readonly shapes: Shapes;
  readonly sides: Sides;
  readonly dimensions: ProductDimensions;
  readonly workers: Dimension;
}

/** What every kernel of this form is given; others by their names. */
interface Arguments {
  readonly index: Scalar<"i32">;
  readonly out: Ref;
  readonly leftTiles: Ref;
  readonly rightTiles: Ref;
  readonly full: Barrier;
  readonly empty: Barrier;
}

function workOf(
  form: PersistentForm,
  { shapes, sides, dimensions, workers }: Setting,
  argument: Arguments,
): Work {
  const { problem, configuration, copiesOut } = form;
  const { index, out, leftTiles, rightTiles, full, empty } = argument;
  const named = argument as unknown as { readonly [name: string]: Ref };
  const grid: TileGrid = {
    batch: problem.sizes.batch === undefined ? 1 : dimensions.batch,
    ...{ rows: shapes.rows, columns: shapes.columns },
    height: sides.rows.extent,
    width: sides.columns.extent,
  };
  const { tiles, place } = form.dealt?.order(grid, configuration.turned, named) ?? tileOrder(grid);
  const zero = constant(dtypes.i32, 0);
  const worker = workerOf(index, zero.add(workers));
  const splits = configuration.schedule === "split";
  const segmentsOf = splits ? splitTiles : wholeTiles;
  const inputs = Object.keys(problem.inputs);
  return {
    ...{ form, shapes, sides, out, leftTiles, rightTiles, full, empty, place, worker },
    left: requireRef(named, sides.rows.name),
    right: requireRef(named, sides.columns.name),
    result: copiesOut ? named["result"] : undefined,
    inputs: Object.fromEntries(inputs.map((name) => [name, requireRef(named, name)] as const)),
    handed: splits ? handedOf(argument) : undefined,
    segments: segmentsOf({
      ...{ worker, tiles },
      workers: zero.add(workers),
      steps: zero.add(cdiv(dimensions.k, shapes.depth)),
    }),
  };
}

function runThreads(work: Work, argument: object): void {
  const threads = argument as { readonly [name: string]: (body: () => void) => void };
  threads["copy"]?.(() => {
    copyTiles(work);
  });
  ["first", "second"].slice(0, work.form.configuration.multipliers).forEach((name, index) => {
    threads[name]?.(() => {
      multiplyTiles(work, index);
    });
  });
}

function requireRef(named: { readonly [name: string]: Ref }, name: string): Ref {
  const found = named[name];
  if (found === undefined) throw new Error(`the kernel has no argument ${name}`);
  return found;
}

function handedOf(argument: object): Handing {
  const { handed, told } = argument as { readonly handed: Ref; readonly told: Semaphore };
  return { sums: handed, told };
}

/** The slot after this one. */
function following(slot: Scalar<"i32">, stages: number): Scalar<"i32"> {
  const next = slot.add(1);
  return next.eq(stages).select(0, next);
}

/** One warp keeps the ring full, tile after tile. */
function copyTiles(work: Work): void {
  const {
    form,
    shapes,
    sides,
    left: ofRows,
    right: ofColumns,
    full,
    empty,
    segments,
    place,
  } = work;
  const { stages, multipliers } = form.configuration;
  const { rows, columns, depth } = shapes;
  const zero = constant(dtypes.i32, 0);
  if (multipliers === 2) setRegisters(40);
  warps((warp) => {
    when(warp.eq(0), () => {
      loop({ to: segments.count, carry: { slot: zero, count: zero } }, (index, before) => {
        const { tile, from, steps } = segments.at(index);
        const { batch, top, left } = place(tile);
        const [down, across] = [slice(top, rows), slice(left, columns)];
        return loop({ to: steps, carry: before }, (step, carried) => {
          const along = slice(from.add(step).mul(depth), depth);
          let { slot, count } = carried;
          for (const [ofA, ofB] of form.recipe.terms) {
            when(count.ge(stages), () => {
              empty.at(slot).wait();
            });
            const landed = { barrier: full.at(slot) };
            const [part, other] = sides.rows.name === "a" ? [ofA, ofB] : [ofB, ofA];
            const source = sideWindow(sides.rows, ofRows, part, batch, down, along);
            const otherSource = sideWindow(sides.columns, ofColumns, other, batch, across, along);
            copyAsync(source, work.leftTiles.at(slot), landed);
            copyAsync(otherSource, work.rightTiles.at(slot), landed);
            slot = following(slot, stages);
            count = count.add(1);
          }
          return { slot, count };
        });
      });
    });
  });
}

/** A thread multiplies its 64 rows of each tile, and stores what comes out. */
function multiplyTiles(work: Work, index: number): void {
  const { form, segments, result } = work;
  const zero = constant(dtypes.i32, 0);
  if (form.configuration.multipliers === 2) setRegisters(232);
  loop({ to: segments.count, carry: zero }, (position, before) => {
    const segment = segments.at(position);
    const sumsOf = form.recipe.promoted ? promotedSums : plainSums;
    const { product, slot } = sumsOf(work, segment.steps, before, index);
    finishSegment(work, product, segment, index);
    return slot;
  });
  if (result !== undefined) waitGroup(0, { read: true });
}

/** What the steps of a segment come to, and the slot after the last one. */
interface Sums {
  readonly product: Tile;
  readonly slot: Scalar<"i32">;
}

/** Adds the product of the tiles in a slot, once they are there. */
function multiplySlot(
  { sides, leftTiles, rightTiles, full }: Work,
  sum: Accumulator<"f32">,
  slot: Scalar<"i32">,
  index: number,
): Accumulator<"f32"> {
  full.at(slot).wait();
  const mine = slice(index * threadRows, threadRows);
  return wgmma(
    sum,
    rowsOfTile(sides.rows, leftTiles, slot, mine),
    columnsOfTile(sides.columns, rightTiles, slot),
  );
}

function emptySums({ form, shapes }: Work): Accumulator<"f32"> {
  const dtype = form.problem.accumulator as DType<"f32">;
  return accumulator(dtype, [threadRows, shapes.columns]);
}

/** One sum, in the registers of the tensor cores. */
function plainSums(work: Work, steps: Scalar<"i32">, first: Scalar<"i32">, index: number): Sums {
  const { empty } = work;
  const { stages } = work.form.configuration;
  const { sum, slot, last } = loop(
    { to: steps, carry: { sum: emptySums(work), slot: first, last: first } },
    (step, carried) => {
      const running = multiplySlot(work, carried.sum, carried.slot, index).waitPending(1);
      // The product of the step before is over, so its tiles may be replaced.
      when(step.gt(0), () => {
        empty.at(carried.last).arrive();
      });
      return { sum: running, slot: following(carried.slot, stages), last: carried.slot };
    },
  );
  const product = sum.wait();
  empty.at(last).arrive();
  return { product, slot };
}

/** The products of small parts, which the greatest one is added to. */
function corrections({ shapes }: Work, sum: Accumulator<"f32">): Accumulator<"f32"> {
  return accumulator(dtypes.f32, [threadRows, shapes.columns], withoutNans(sum.wait()));
}

/** A sum for each step, which is added to others in f32. */
function promotedSums(work: Work, steps: Scalar<"i32">, first: Scalar<"i32">, index: number): Sums {
  const { empty, form, shapes } = work;
  const { stages } = form.configuration;
  const none: Tile<"f32"> = zeros(dtypes.f32, [threadRows, shapes.columns]);
  return loop({ to: steps, carry: { product: none, slot: first } }, (_, carried) => {
    let { slot } = carried;
    let sum = emptySums(work);
    let before: Scalar<"i32"> | undefined;
    for (const [ofA, ofB] of form.recipe.terms) {
      if (before !== undefined && ofA === 0 && ofB === 0) sum = corrections(work, sum);
      sum = multiplySlot(work, sum, slot, index).waitPending(1);
      if (before !== undefined) empty.at(before).arrive();
      before = slot;
      slot = following(slot, stages);
    }
    const product = sum.wait();
    if (before !== undefined) empty.at(before).arrive();
    return { product: carried.product.add(product), slot };
  });
}

/** Hands the sums to the block that began the tile, or adds those of others to them and stores the tile. */
function finishSegment(work: Work, product: Tile, segment: Segment, index: number): void {
  const { handed, worker } = work;
  if (handed === undefined) {
    storeTile(work, product, segment, index);
    return;
  }
  handSums(handed, segment, { worker, part: index }, product, (whole) => {
    storeTile(work, whole, segment, index);
  });
}

/** Stores a thread's rows of a tile, piece by piece. */
function storeTile(work: Work, product: Tile, segment: Segment, index: number): void {
  const { form, shapes, out, result, inputs } = work;
  const { problem, location } = form;
  const { turned } = form.configuration;
  const { columns, piece } = shapes;
  const place = work.place(segment.tile);
  const target = problem.sizes.batch === undefined ? out : out.at(place.batch);
  const top = place.top.add(index * threadRows);
  for (let column = 0; column < columns; column += piece) {
    const left = place.left.add(column);
    const sums = product.slice([0, column], [threadRows, piece]);
    const at = turned
      ? { batch: place.batch, top: left, left: top, rows: piece, columns: threadRows }
      : { batch: place.batch, top, left, rows: threadRows, columns: piece };
    const done = finished(turned ? sums.transpose() : sums, at, problem, inputs, location);
    storePiece(target, { ...at, end: place.end }, done, result, index, column / piece);
  }
}

/** By the copy engine through one of two buffers, or by the lanes themselves. */
function storePiece(
  target: Ref,
  { top, left, rows, columns, end }: Piece & Pick<TilePlace, "end">,
  piece: Tile,
  result: Ref | undefined,
  index: number,
  turn: number,
): void {
  const across = slice(left, columns);
  const byLanes = (): void => {
    target.at(slice(top, rows, end === undefined ? {} : { end }), across).store(piece);
  };
  if (result === undefined) {
    byLanes();
    return;
  }
  const copied = (): void => {
    // The piece before the last has left its buffer.
    waitGroup(1, { read: true });
    const buffer = result.at(index, turn % 2);
    buffer.store(piece);
    commitShared();
    copyAsync(buffer, target.at(slice(top, rows), across));
    commitGroup();
  };
  // The copy engine knows the end of the array alone.
  if (end === undefined) copied();
  else when(top.add(rows).le(end), copied, byLanes);
}
