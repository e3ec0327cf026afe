/**
 * The product on wgmma and TMA. A block stays on its processor and takes tile after tile; one thread
 * copies, through a ring of pairs of tiles, and the others multiply, 64 rows each:
 *
 *   copy        fill 0  fill 1  fill 2  wait empty 0, fill 0 …        goes on with the next tile at once
 *   multiply    wait full 0, wgmma …  arrive empty 0 …  store         while the copies of the next tile arrive
 *
 * The pieces of a finished tile go through two buffers in turn, so that one is written while the other leaves; where there are no more tiles than
 * processors, a block has one by its place in the grid, whose pieces leave through slots of the ring. Where
 * the tiles of the last round are split (`lang/pipeline/stream-k.ts`), sums of their parts go from block to block through memory, unless these are halves
 * of columns.
 *
 * Two blocks of a cluster have tiles one below the other. Each fetches its own rows, and half of the columns for both, so
 * that the cache is read less; a slot is free once all threads of both have used it.
 *
 * Blocks are started while the kernel before still ends, and wait for it before they touch memory. They are numbered
 * from the last one: a block waits for sums of blocks with higher numbers alone, which are those that started before it.
 */
import {
  tensor,
  barrier,
  cdiv,
  clusterRank,
  clusterSync,
  clusterWait,
  constant,
  dim,
  gmem,
  kernel,
  semaphore,
  smem,
  threadIndex,
  when,
} from "../../lang/index.ts";
import type {
  Barrier,
  KernelDefinition,
  Ref,
  Scalar,
  Semaphore,
  TensorSpec,
} from "../../lang/index.ts";
import { Mailbox, mailboxScratch } from "../../lang/pipeline/dynamic-tile-counter.ts";
import { splitTiles, workerOf } from "../../lang/pipeline/stream-k.ts";
import type { Handing, Segments } from "../../lang/pipeline/stream-k.ts";
import { dtypes } from "../../formats/dtype.ts";
import type { Dimension, Size } from "../../ir/size.ts";
import { atLocation, captureLocation } from "../../support/location.ts";
import { threadRows } from "./configuration.ts";
import { followPrevious } from "../support/programmatic-dependent-launch.ts";
import { askAhead, asksAhead } from "./mainloop/prefetch.ts";
import { copyTiles } from "./mainloop/producer.ts";
import { blockScaleInputs, blocksTogether, scaleSlots, scalesTravel } from "./block-scales.ts";
import { alignedDimensions } from "./dimensions.ts";
import type { ProductDimensions } from "./dimensions.ts";
import type { PersistentForm, Shapes, Work } from "./kernel-context.ts";
import { inputSpecs } from "./epilogue/epilogue.ts";
import { parameterName, tilesName } from "./user-array-names.ts";
import { handedShape } from "./epilogue/stream-k-partials.ts";
import { leaveCluster, consumeTiles } from "./mainloop/consumer.ts";
import {
  startProducts,
  storeSums,
  tensorScratch,
  tensorThreads,
} from "./mainloop/tensor-memory.ts";
import { groupOf, oneTile, tileOrder, wholeTiles } from "./scheduler/tile-scheduler.ts";
import type { TileGrid } from "./scheduler/tile-scheduler.ts";
import { outputSpecs } from "./epilogue/outputs.ts";
import { prologueOf } from "./problem.ts";
import { copiedInputs, prologueSpecs } from "./prologue/prologue.ts";
import { sidesOf, sideSpec, tileShape } from "./mainloop/operands.ts";
import {
  depthOf,
  endsInOrder,
  halvesColumns,
  hasOneTile,
  pieceOf,
  resultBuffers,
  storesAlongRows,
  storesInSlots,
} from "./tile-shapes.ts";
import { viewSpec } from "./views.ts";
import type { Sides } from "./mainloop/operands.ts";
import type { Counting } from "./kernel-context.ts";
import { metadataName, metadataSpec, metadataTile } from "./weights/sparse-weights.ts";

/** Parts of a tile of the last round at most where only the device knows how many tiles there are, which may be much smaller than others. */
const dealtParts = 8;

const consumerNames = ["first", "second", "third", "fourth"] as const;

function shapesOf({ problem, recipe, configuration, sums }: PersistentForm): Shapes {
  const { consumers, columns, swapAB } = configuration;
  const piece = pieceOf(problem, configuration, sums);
  return {
    rows: consumers * threadRows,
    columns,
    depth: depthOf(problem, recipe),
    piece: swapAB ? piece.rows : piece.columns,
    own: swapAB ? piece.columns : piece.rows,
  };
}

/** Blocks of k, where scales travel: their rows begin at multiples of 16 bytes. */
const blocksOfScales = dim("blocks", { multipleOf: blocksTogether });

function scaleSlotsOf(
  { problem, configuration: { stages, swapAB } }: PersistentForm,
  { rows, columns }: Shapes,
): ReturnType<typeof scaleSlots> {
  return scaleSlots(problem, stages, swapAB ? { a: columns, b: rows } : { a: rows, b: columns });
}

/** Each of its ops is there for the one call that asked for the kernel. */
export function persistentKernel(form: PersistentForm): KernelDefinition {
  return atLocation(captureLocation(), () => traced(form));
}

function traced(form: PersistentForm): KernelDefinition {
  const { problem, recipe, prepared, configuration, location } = form;
  const { consumers, stages, schedule, cluster } = configuration;
  const shapes = shapesOf(form);
  const { rows, columns, depth } = shapes;
  const dimensions = alignedDimensions(form.sizes);
  const { batch, n, k } = dimensions;
  const tiles = { ...configuration, sums: form.sums };
  const sides = sidesOf(problem, recipe, prepared, dimensions, tiles);
  const multiplying = multiplyingThreads(form, shapes);
  const workers = dim("workers");
  const counter = form.dealt?.counter;
  const ordered = endsInOrder(form);
  const isOnce = hasOneTile(form);
  const inputs = { ...inputSpecs(problem, dimensions, location), ...form.dealt?.inputs };
  const prologue = prologueOf(problem);
  const ofPrologue = prologue === undefined ? [] : copiedInputs(prologue);
  const travels = scalesTravel(problem, form.sizes.k);
  const further = ofPrologue.length + (problem.sparse ? 1 : 0) + (travels ? 2 : 0);
  return kernel(
    {
      name: "matmul",
      grid: {
        ...(isOnce ? gridOfTiles(form, shapes, sides) : { index: workers }),
        ...(cluster > 1 && { rank: cluster }),
      },
      ...(cluster > 1 && { cluster: { rank: cluster } }),
      threads: ["copy", ...multiplying.threads],
      inputs: {
        [sides.rows.name]: sideSpec(sides.rows, batch, k),
        [sides.columns.name]: sideSpec(sides.columns, batch, k),
        ...inputs,
        ...(prologue && prologueSpecs(prologue, dimensions)),
        ...blockScaleInputs(problem, dimensions, travels ? blocksOfScales : undefined),
        ...(problem.sparse && { [metadataName]: metadataSpec(k, n) }),
      },
      outputs: {
        out: outputOf(form, dimensions),
        ...outputSpecs(problem, dimensions, pieceOf(problem, configuration, form.sums)),
      },
      ...(counter !== undefined && { inouts: { [counter]: tensor(dtypes.i32, [2]) } }),
      scratch: {
        leftTiles: smem(sides.rows.dtype, [stages, ...tileShape(sides.rows, rows, depth)]),
        rightTiles: smem(sides.columns.dtype, [
          stages,
          ...tileShape(sides.columns, columns, depth),
        ]),
        ...resultBuffersOf(form, shapes),
        ...(problem.sparse && {
          [tilesName(metadataName)]: smem(dtypes.u16, [stages, ...metadataTile(rows, depth)]),
        }),
        ...(travels && scaleSlotsOf(form, shapes)),
        ...Object.fromEntries(
          ofPrologue.map(({ name, dtype, perUnit }) => [
            tilesName(name),
            smem(dtype, [stages, rows * perUnit]),
          ]),
        ),
        full: barrier({ count: stages, arrivals: 1 + cluster + further }),
        empty: barrier({ count: stages, arrivals: multiplying.arrivals }),
        ...multiplying.scratch,
        ...(ordered && { ahead: barrier() }),
        ...(counter !== undefined && mailboxScratch(consumers)),
        ...(schedule === "stream-k" && handedScratch(form, shapes, workers)),
      },
    },
    (argument) => {
      runThreads(workOf(form, { shapes, sides, dimensions, workers }, argument));
      // A block stays until nobody copies to it or tells it anything.
      if (cluster > 1) {
        if (isOnce) clusterWait();
        else clusterSync();
      }
    },
  );
}

/** Sums that blocks hand to each other, and what tells that they are there. */
function handedScratch(
  { problem, configuration: { cluster, consumers } }: PersistentForm,
  { columns }: Shapes,
  workers: Dimension,
): { readonly handed: ReturnType<typeof gmem>; readonly told: ReturnType<typeof semaphore> } {
  const sharers = [workers, cluster * consumers];
  return {
    handed: gmem(problem.accumulator, [...sharers, ...handedShape(columns)]),
    told: semaphore(sharers, { restored: true }),
  };
}

/** The threads beside the one that copies, how many arrivals give a slot back, and what they need besides. */
function multiplyingThreads(
  form: PersistentForm,
  shapes: Shapes,
): {
  readonly threads: readonly string[];
  readonly arrivals: number;
  readonly scratch: Partial<ReturnType<typeof tensorScratch>>;
} {
  const { consumers, cluster } = form.configuration;
  return form.sums === "tensor"
    ? { threads: tensorThreads, arrivals: 1, scratch: tensorScratch(form, shapes) }
    : {
        threads: consumerNames.slice(0, consumers),
        arrivals: consumers * cluster,
        scratch: {},
      };
}

/** Buffers that pieces of the result go through, whoever writes it; none where they leave through slots or straight from registers. */
function resultBuffersOf(
  form: PersistentForm,
  { rows, columns, piece, own }: Shapes,
): { readonly result?: ReturnType<typeof smem> } {
  const { problem, configuration, copiesOut } = form;
  const isThere = copiesOut ? !storesInSlots(form) : storesAlongRows(form);
  if (!isThere) return {};
  const shape = configuration.swapAB ? [piece, own] : [own, piece];
  const count = [rows / own, resultBuffers(columns / piece)];
  return { result: smem(problem.out.dtype, [...count, ...shape]) };
}

/** The result, or the sums of a part of k, as they lie in memory. */
function outputOf(
  { problem: { out, sizes, views } }: PersistentForm,
  { batch, m, n }: ProductDimensions,
): TensorSpec {
  if (views?.out !== undefined) return viewSpec(out.dtype, "out", views.out, m, n);
  return tensor(out.dtype, [...(sizes.batch === undefined ? [] : [batch]), m, n]);
}

/** Matrices of the result; those of views are known when the kernel is made. */
function batchOf(
  { problem: { sizes, views }, parts }: PersistentForm,
  { batch }: ProductDimensions,
): Size {
  if (sizes.batch === undefined) return 1;
  return views === undefined || parts > 1 ? batch : views.batch.outer * views.batch.inner;
}

/** Tiles along both sides. */
function gridOfTiles(
  { configuration: { cluster } }: PersistentForm,
  { rows, columns }: Shapes,
  sides: Sides,
): { readonly [axis: string]: Size } {
  return {
    across: cdiv(sides.columns.extent, columns),
    down: cdiv(sides.rows.extent, rows * cluster),
  };
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
  readonly out: Ref;
  readonly leftTiles: Ref;
  readonly rightTiles: Ref;
  readonly full: Barrier;
  readonly empty: Barrier;
  readonly sums?: Ref | undefined;
  readonly summed?: Barrier | undefined;
  readonly taken?: Barrier | undefined;
}

function workOf(
  form: PersistentForm,
  { shapes, sides, dimensions, workers }: Setting,
  argument: Arguments,
): Work {
  const { problem, configuration, copiesOut } = form;
  const { out, leftTiles, rightTiles, full, empty } = argument;
  const { schedule, cluster } = configuration;
  const named = argument as unknown as { readonly [name: string]: Ref };
  const zero = constant(dtypes.i32, 0);
  const rank = cluster > 1 ? clusterRank("rank") : zero;
  const grid: TileGrid = {
    batch: batchOf(form, dimensions),
    ...{ rows: shapes.rows, columns: shapes.columns, cluster, rank },
    group: groupOf(shapes.rows * cluster, shapes.columns, form.processors / cluster),
    height: sides.rows.extent,
    width: sides.columns.extent,
  };
  const isOnce = hasOneTile(form);
  const { tiles, place } = isOnce
    ? oneTile(grid, axisOf(argument, "down"), axisOf(argument, "across"))
    : (form.dealt?.order(grid, configuration.swapAB, named) ?? tileOrder(grid));
  const worker = isOnce ? zero : workerOf(axisOf(argument, "index"), zero.add(workers));
  const splits = schedule === "stream-k";
  const segmentsOf = splits ? splitTiles : wholeTiles;
  const allSteps = zero.add(cdiv(dimensions.k, shapes.depth));
  const steps = form.parts === 1 ? allSteps : allSteps.add(form.parts - 1).div(form.parts);
  const found = (): Segments =>
    segmentsOf({
      ...{ worker, tiles, steps, workers: isOnce ? zero.add(1) : zero.add(workers) },
      ...(form.dealt && { mostParts: dealtParts }),
      halves: halvesColumns(form.configuration),
    });
  const known = form.recipe.issuer === "warp" ? found() : undefined;
  const counter = form.dealt?.counter;
  const further = [...Object.keys(problem.inputs), ...problem.outputs.map(({ name }) => name)];
  const inputs = further.map(parameterName);
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
      steps,
      isOnce,
    },
    depth: zero.add(dimensions.k),
    left: requireRef(named, sides.rows.name),
    right: requireRef(named, sides.columns.name),
    result: copiesOut && !storesInSlots(form) ? named["result"] : undefined,
    rowPieces: storesAlongRows(form) ? named["result"] : undefined,
    inputs: Object.fromEntries(inputs.map((name) => [name, requireRef(named, name)] as const)),
    prologueInputs: (prologueOf(problem)?.inputs ?? []).map((input) => ({
      input,
      all: requireRef(named, parameterName(input.name)),
      tiles: input.span === 1 ? requireRef(named, tilesName(input.name)) : undefined,
    })),
    named,
    metadata: problem.sparse
      ? {
          all: requireRef(named, metadataName),
          tiles: requireRef(named, tilesName(metadataName)),
        }
      : undefined,
    handed: splits ? handedOf(argument) : undefined,
    tensor: form.sums === "tensor" ? tensorOf(argument) : undefined,
    ahead: endsInOrder(form) ? aheadOf(argument) : undefined,
    deal: () => known ?? found(),
    counting: counter === undefined ? undefined : countingOf(named, counter, zero.add(workers)),
  };
}

function tensorOf({ sums, summed, taken }: Arguments): Work["tensor"] {
  return sums && summed && taken && { sums, summed, taken };
}

/** The first thread copies. What the others do is written once, for whichever of them it is. */
function runThreads(work: Work): void {
  const { consumers } = work.form.configuration;
  when(
    threadIndex().eq(0),
    () => {
      copyTiles(work);
      leaveCluster(work);
    },
    () => {
      if (work.tensor !== undefined) {
        runTensorThreads(work);
        return;
      }
      // At least 0 as facts see it, too, so that nobody asks in the loop.
      const index = consumers === 1 ? constant(dtypes.i32, 0) : threadIndex().sub(1).maximum(0);
      if (asksAhead(work.form)) askAhead(work, index);
      followPrevious();
      consumeTiles(work, index);
    },
  );
}

/** One thread starts products, and one stores what they come to. */
function runTensorThreads(work: Work): void {
  when(
    threadIndex().eq(1),
    () => {
      startProducts(work);
    },
    () => {
      followPrevious();
      storeSums(work);
    },
  );
}

function requireRef(named: { readonly [name: string]: Ref }, name: string): Ref {
  const found = named[name];
  if (found === undefined) throw new Error(`the kernel has no argument ${name}`);
  return found;
}

/** This block's number along an axis of the grid. */
function axisOf(argument: object, axis: string): Scalar<"i32"> {
  const axes = argument as { readonly [name: string]: Scalar<"i32"> };
  const found = axes[axis];
  if (found === undefined) throw new Error(`the grid has no axis ${axis}`);
  return found;
}

function aheadOf(argument: object): Barrier {
  const { ahead } = argument as { readonly ahead: Barrier };
  return ahead;
}

function countingOf(
  named: { readonly [name: string]: Ref },
  name: string,
  blocks: Scalar<"i32">,
): Counting {
  const counter = requireRef(named, name) as Ref<"i32">;
  return { counter, mailbox: new Mailbox(named), blocks, rounds: counter.at(1).loadScalar() };
}

function handedOf(argument: object): Handing {
  const { handed, told } = argument as { readonly handed: Ref; readonly told: Semaphore };
  return { sums: handed, flags: told };
}
