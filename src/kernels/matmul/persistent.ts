/**
 * The product on wgmma and the copy engine. A block stays on its processor and takes tile after tile; one thread
 * copies, through a ring of pairs of tiles, and the others multiply, 64 rows each:
 *
 *   copy        fill 0  fill 1  fill 2  wait empty 0, fill 0 …        goes on with the next tile at once
 *   multiply    wait full 0, wgmma …  arrive empty 0 …  store         while the copies of the next tile arrive
 *
 * The pieces of a finished tile go through two buffers in turn, so that one is written while the other leaves. Where
 * the tiles of the last round are split (`lang/pipeline/segments.ts`), sums of their parts go from block to block through memory.
 *
 * Two blocks of a cluster have tiles one below the other. Each fetches its own rows, and half of the columns for both, so
 * that the cache is read less; a slot is free once all threads of both have used it.
 *
 * Blocks are started while the kernel before still ends, and wait for it before they touch memory. They are numbered
 * from the last one: a block waits for sums of blocks with higher numbers alone, which are those that started before it.
 */
import {
  accumulator,
  array,
  barrier,
  cdiv,
  clusterRank,
  clusterSync,
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
  threadIndex,
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
  Slice,
  Tile,
} from "../../lang/index.ts";
import { handSums, splitTiles, workerOf } from "../../lang/pipeline/segments.ts";
import type { Handing, Segment, Segments } from "../../lang/pipeline/segments.ts";
import { dtypes } from "../../formats/dtype.ts";
import type { DType } from "../../formats/dtype.ts";
import type { Dimension } from "../../ir/size.ts";
import type { Location } from "../../support/location.ts";
import { threadRows } from "./configuration.ts";
import type { PersistentConfiguration, ProductSizes } from "./configuration.ts";
import { computedRows } from "./computed-rows.ts";
import { alignedDimensions } from "./dimensions.ts";
import type { ProductDimensions } from "./dimensions.ts";
import { inputSpecs } from "./epilogue.ts";
import { tileOrder, wholeTiles } from "./order.ts";
import type { DealtRows, TileGrid, TilePlace } from "./order.ts";
import { outputSpecs } from "./outputs.ts";
import type { Prepared } from "./prepare.ts";
import { prologueOf } from "./problem.ts";
import type { MatmulProblem } from "./problem.ts";
import { copiedInputs, inputWindow, prologueSpecs } from "./prologue.ts";
import type { PrologueInput } from "./prologue.ts";
import type { Recipe } from "./recipe.ts";
import {
  columnsOfTile,
  heldDepth,
  rowsOfTile,
  sidesOf,
  sideSpec,
  sideWindow,
  tileShape,
} from "./sides.ts";
import { depthOf, pieceColumns, pieceOf } from "./tile-shapes.ts";
import type { Sides } from "./sides.ts";
import {
  block,
  metadataName,
  metadataSpec,
  metadataTile,
  metadataWindow,
  unpackedMetadata,
} from "./sparse-weights.ts";
import { storeTile } from "./store-tile.ts";

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

const multiplierNames = ["first", "second", "third", "fourth"] as const;

/** What the threads of the kernel work on. */
export interface Work {
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
  /** Further inputs and outputs of the epilogue. */
  readonly inputs: { readonly [name: string]: Ref };
  readonly dimensions: ProductDimensions;
  /** What the prologue takes besides its operand, in memory and in slots of the ring. */
  readonly prologueInputs: readonly PrologueSource[];
  /** Of sparse weights, likewise. */
  readonly metadata: { readonly all: Ref; readonly tiles: Ref } | undefined;
  /** Sums of parts of tiles that blocks hand to each other; undefined where there are none. */
  readonly handed: Handing | undefined;
  readonly worker: Scalar<"i32">;
  /** Elements along k. */
  readonly depth: Scalar<"i32">;
  /** This block's number in its cluster. */
  readonly rank: Scalar<"i32">;
  /** What this block works on. */
  readonly segments: Segments;
  readonly place: (tile: Scalar<"i32">) => TilePlace;
}

interface PrologueSource {
  readonly input: PrologueInput;
  readonly all: Ref;
  /** Undefined where it is read from memory. */
  readonly tiles: Ref | undefined;
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
    depth: depthOf(problem, recipe),
    piece: turned && !problem.sparse ? columns : pieceColumns(problem.out.dtype, columns),
  };
}

export function persistentKernel(form: PersistentForm): KernelDefinition {
  const { problem, recipe, prepared, configuration, copiesOut, location } = form;
  const { multipliers, stages, schedule, turned, cluster } = configuration;
  const shapes = shapesOf(form);
  const { rows, columns, depth, piece } = shapes;
  const dimensions = alignedDimensions(form.sizes);
  const { batch, m, n, k } = dimensions;
  const sides = sidesOf(problem, recipe, prepared, dimensions, turned);
  const workers = dim("workers");
  const splits = schedule === "split";
  const output = problem.out.dtype;
  const inputs = { ...inputSpecs(problem, dimensions, location), ...form.dealt?.inputs };
  const prologue = prologueOf(problem);
  const ofPrologue = prologue === undefined ? [] : copiedInputs(prologue);
  const further = ofPrologue.length + (problem.sparse ? 1 : 0);
  return kernel(
    {
      name: "matmul",
      grid: { index: workers, ...(cluster > 1 && { rank: cluster }) },
      ...(cluster > 1 && { cluster: { rank: cluster } }),
      threads: ["copy", ...multiplierNames.slice(0, multipliers)],
      inputs: {
        [sides.rows.name]: sideSpec(sides.rows, batch, k),
        [sides.columns.name]: sideSpec(sides.columns, batch, k),
        ...inputs,
        ...(prologue && prologueSpecs(prologue, dimensions)),
        ...(problem.sparse && { [metadataName]: metadataSpec(k, n) }),
      },
      outputs: {
        out: array(output, [...(problem.sizes.batch === undefined ? [] : [batch]), m, n]),
        ...outputSpecs(problem, dimensions, pieceOf(problem, configuration)),
      },
      scratch: {
        leftTiles: smem(sides.rows.dtype, [stages, ...tileShape(sides.rows, rows, depth)]),
        rightTiles: smem(sides.columns.dtype, [
          stages,
          ...tileShape(sides.columns, columns, depth),
        ]),
        ...(copiesOut && {
          result: smem(output, [
            ...[multipliers, 2],
            ...(turned ? [piece, threadRows] : [threadRows, piece]),
          ]),
        }),
        ...(problem.sparse && {
          [tilesName(metadataName)]: smem(dtypes.u16, [stages, ...metadataTile(rows, depth)]),
        }),
        ...Object.fromEntries(
          ofPrologue.map(({ name, dtype }) => [tilesName(name), smem(dtype, [stages, rows])]),
        ),
        full: barrier({ count: stages, arrivals: 1 + cluster + further }),
        empty: barrier({ count: stages, arrivals: multipliers * cluster }),
        ...(splits && {
          handed: gmem(problem.accumulator, [workers, cluster * multipliers, threadRows, columns]),
          told: semaphore([workers, cluster * multipliers]),
        }),
      },
    },
    (argument) => {
      waitForPreviousKernel();
      launchNextKernel();
      runThreads(workOf(form, { shapes, sides, dimensions, workers }, argument));
      // A block stays until nobody copies to it or tells it anything.
      if (cluster > 1) clusterSync();
    },
  );
}

/** Where slots of an input of the prologue are. */
function tilesName(input: string): string {
  return `${input}Tiles`;
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
  const { schedule, cluster } = configuration;
  const named = argument as unknown as { readonly [name: string]: Ref };
  const zero = constant(dtypes.i32, 0);
  const rank = cluster > 1 ? clusterRank("rank") : zero;
  const grid: TileGrid = {
    batch: problem.sizes.batch === undefined ? 1 : dimensions.batch,
    ...{ rows: shapes.rows, columns: shapes.columns, cluster, rank },
    height: sides.rows.extent,
    width: sides.columns.extent,
  };
  const { tiles, place } = form.dealt?.order(grid, configuration.turned, named) ?? tileOrder(grid);
  const worker = workerOf(index, zero.add(workers));
  const splits = schedule === "split";
  const segmentsOf = splits ? splitTiles : wholeTiles;
  const inputs = [...Object.keys(problem.inputs), ...problem.outputs.map(({ name }) => name)];
  return {
    ...{
      form,
      shapes,
      sides,
      dimensions,
      out,
      leftTiles,
      rightTiles,
      full,
      empty,
      worker,
      rank,
      place,
    },
    depth: zero.add(dimensions.k),
    left: requireRef(named, sides.rows.name),
    right: requireRef(named, sides.columns.name),
    result: copiesOut ? named["result"] : undefined,
    inputs: Object.fromEntries(inputs.map((name) => [name, requireRef(named, name)] as const)),
    prologueInputs: (prologueOf(problem)?.inputs ?? []).map((input) => ({
      input,
      all: requireRef(named, input.name),
      tiles: input.span === 1 ? requireRef(named, tilesName(input.name)) : undefined,
    })),
    metadata: problem.sparse
      ? {
          all: requireRef(named, metadataName),
          tiles: requireRef(named, tilesName(metadataName)),
        }
      : undefined,
    handed: splits ? handedOf(argument) : undefined,
    segments: segmentsOf({
      ...{ worker, tiles },
      workers: zero.add(workers),
      steps: zero.add(cdiv(dimensions.k, shapes.depth)),
    }),
  };
}

/** The first thread copies. What the others do is written once, for whichever of them it is. */
function runThreads(work: Work): void {
  const { multipliers } = work.form.configuration;
  when(
    threadIndex().eq(0),
    () => {
      copyTiles(work);
    },
    () => {
      // At least 0 as facts see it, too, so that nobody asks in the loop.
      const index = multipliers === 1 ? constant(dtypes.i32, 0) : threadIndex().sub(1).maximum(0);
      multiplyTiles(work, index);
    },
  );
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
  const { form, shapes, sides, left: ofRows, full, empty, segments, place } = work;
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
          const position = from.add(step);
          const along = slice(position.mul(depth), depth);
          const held = heldDepth(sides.rows, depth);
          let { slot, count } = carried;
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
                  inputWindow(input, all, position.mul(depth), top, rows),
                  tiles.at(slot),
                  landed,
                );
            slot = following(slot, stages);
            count = count.add(1);
          }
          return { slot, count };
        });
      });
    });
  });
}

/** The columns of a step, by which operand, and where they go. */
interface ColumnsOfStep {
  readonly part: number;
  readonly batch: Scalar<"i32">;
  readonly across: Slice;
  readonly along: Slice;
  readonly slot: Scalar<"i32">;
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

/** Tells every block that fills it that a slot has been read. */
function release({ empty, form, metadata }: Work, slot: Scalar<"i32">): void {
  const { cluster } = form.configuration;
  // The copy engine overwrites metadata that lanes have read.
  if (metadata !== undefined) commitShared();
  if (cluster === 1) empty.at(slot).arrive();
  else for (let peer = 0; peer < cluster; peer += 1) empty.at(slot).arrive({ peer });
}

/** A thread multiplies its 64 rows of each tile, and stores what comes out. */
function multiplyTiles(work: Work, index: Scalar<"i32">): void {
  const { form, segments, result } = work;
  const zero = constant(dtypes.i32, 0);
  if (form.configuration.multipliers === 2) setRegisters(232);
  loop({ to: segments.count, carry: zero }, (position, before) => {
    const segment = segments.at(position);
    const sumsOf = form.recipe.promoted ? promotedSums : plainSums;
    const { product, slot } = sumsOf(work, segment, before, index);
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

/** Which thread multiplies rows of which tile, and the number of the step in the whole of k. */
interface Turn {
  readonly index: Scalar<"i32">;
  readonly tile: Scalar<"i32">;
  readonly step: Scalar<"i32">;
}

/** Adds the product of the tiles in a slot, once they are there. */
function multiplySlot(
  work: Work,
  sum: Accumulator<"f32">,
  slot: Scalar<"i32">,
  { index, tile, step }: Turn,
): Accumulator<"f32"> {
  const { sides, leftTiles, rightTiles, full } = work;
  full.at(slot).wait();
  const mine = slice(index.mul(threadRows), threadRows);
  const rows = rowsOfTile(sides.rows, leftTiles, slot, mine);
  const { prologue } = sides.rows;
  return wgmma(
    sum,
    prologue === undefined
      ? rows
      : computedRows(work, prologue, rows, {
          ...{ slot, mine, along: step.mul(work.shapes.depth) },
          top: work.place(tile).top.add(index.mul(threadRows)),
        }),
    columnsOfTile(sides.columns, rightTiles, slot),
    { ...(work.metadata && { sparse: rowsMetadata(work, work.metadata.tiles.at(slot, index)) }) },
  );
}

/** The metadata of a thread's rows, which go with what is multiplied. */
function rowsMetadata({ form }: Work, stored: Ref): Tile<"u16"> {
  return unpackedMetadata(stored.load() as Tile<"u16">, form.recipe.b.bits);
}

function emptySums({ form, shapes }: Work): Accumulator<"f32"> {
  const dtype = form.problem.accumulator as DType<"f32">;
  return accumulator(dtype, [threadRows, shapes.columns]);
}

/** One sum, in the registers of the tensor cores. */
function plainSums(
  work: Work,
  { tile, from, steps }: Segment,
  first: Scalar<"i32">,
  index: Scalar<"i32">,
): Sums {
  const { stages } = work.form.configuration;
  const { sum, slot, last } = loop(
    { to: steps, carry: { sum: emptySums(work), slot: first, last: first } },
    (step, carried) => {
      const turn = { index, tile, step: from.add(step) };
      const running = multiplySlot(work, carried.sum, carried.slot, turn).waitPending(1);
      // The product of the step before is over, so its tiles may be replaced.
      when(step.gt(0), () => {
        release(work, carried.last);
      });
      return { sum: running, slot: following(carried.slot, stages), last: carried.slot };
    },
  );
  const product = sum.wait();
  release(work, last);
  return { product, slot };
}

/** The products of small parts, which the greatest one is added to. */
function corrections({ shapes }: Work, sum: Accumulator<"f32">): Accumulator<"f32"> {
  return accumulator(dtypes.f32, [threadRows, shapes.columns], withoutNans(sum.wait()));
}

/** A sum for each step, which is added to others in f32. */
function promotedSums(
  work: Work,
  { tile, from, steps }: Segment,
  first: Scalar<"i32">,
  index: Scalar<"i32">,
): Sums {
  const { form, shapes } = work;
  const { stages } = form.configuration;
  const none: Tile<"f32"> = zeros(dtypes.f32, [threadRows, shapes.columns]);
  return loop({ to: steps, carry: { product: none, slot: first } }, (step, carried) => {
    const turn = { index, tile, step: from.add(step) };
    let { slot } = carried;
    let sum = emptySums(work);
    let before: Scalar<"i32"> | undefined;
    for (const [ofA, ofB] of form.recipe.terms) {
      if (before !== undefined && ofA === 0 && ofB === 0) sum = corrections(work, sum);
      sum = multiplySlot(work, sum, slot, turn).waitPending(1);
      if (before !== undefined) release(work, before);
      before = slot;
      slot = following(slot, stages);
    }
    const product = sum.wait();
    if (before !== undefined) release(work, before);
    return { product: carried.product.add(product), slot };
  });
}

/** Hands the sums to the block that began the tile, or adds those of others to them and stores the tile. */
function finishSegment(work: Work, product: Tile, segment: Segment, index: Scalar<"i32">): void {
  const { handed, worker, rank } = work;
  if (handed === undefined) {
    storeTile(work, product, segment, index);
    return;
  }
  const { cluster, multipliers } = work.form.configuration;
  const part = cluster === 1 ? index : rank.mul(multipliers).add(index);
  handSums(handed, segment, { worker, part }, product, (whole) => {
    storeTile(work, whole, segment, index);
  });
}
