/**
 * Persistent rows: each block goes through many rows, holds one in registers and has the next one in flight. Long rows are shared by the
 * blocks of a cluster, which exchange statistics. Per-column inputs are loaded once where registers can hold them.
 *
 *   worker 0    load row 0 · load row 3 · row 0: statistics, results · load row 6 · row 3: statistics, results · …
 *   worker 1    load row 1 · load row 4 · row 1: …
 *
 * An operation may also sum over all rows, column by column (the gradient of a scale): a worker keeps partial sums in registers and
 * stores them at the end, and a second launch adds up the partial sums of all workers.
 *
 * The number of processors decides which rows a worker has, and all merges have a fixed order: results repeat bit for bit on GPUs with as
 * many processors.
 */
import { dtypes } from "../../formats/dtype.ts";
import type { DType } from "../../formats/dtype.ts";
import type { Planned, PlannedLaunch } from "../../device/operation.ts";
import {
  tensor,
  cdiv,
  clusterSync,
  constant,
  full,
  kernel,
  loop,
  slice,
  smem,
  when,
} from "../../lang/index.ts";
import type { TensorSpec, Index, KernelDefinition, Ref, Scalar, Tile } from "../../lang/index.ts";
import type { Target } from "../../targets/target.ts";
import {
  alignedDimension,
  alignment,
  threadsPerBlock,
  powerOfTwoFrom,
  widestAccess,
} from "../support/sizes.ts";
import { StridedForm, formText, storeWhole } from "../support/strided.ts";
import type { StridedAxis } from "../support/strided.ts";
import type { RowOp, RowTiles } from "./row-op.ts";
import { exchangeInCluster, rowPiece } from "./row-statistics.ts";

export interface PersistentRowsConfiguration {
  /** Rows that a worker takes at a time. */
  readonly rows: number;
  /** Columns of a block; the blocks of a worker hold whole rows. */
  readonly columns: number;
  /** Blocks of a cluster that share a row. */
  readonly blocks: number;
  /** Pieces of a row that a block holds: all of it. */
  readonly pieces: 1;
  /** Prefetch distance: iterations whose rows are in flight. */
  readonly ahead: number;
  /** Whether per-column inputs stay in registers. */
  readonly keepsColumns: boolean;
  /** Workers that share the rows. */
  readonly workers: number;
}

/** Sums over rows, by name: their terms for every element, in the compute format. */
export interface ColumnSums {
  readonly names: readonly string[];
  readonly terms: (tiles: RowTiles) => RowTiles;
}

/** Nothing is summed over rows. */
export const noSums: ColumnSums = { names: [], terms: () => ({}) };

/** Warps of a block, of which one keeps a processor busy. */
const warps = 16;
/** Registers of a thread for rows and those in flight; for these, partial sums and per-column inputs. */
const [rowRegisters, allRegisters] = [96, 84];
/** Elements of a thread up to which no more blocks share a row. */
const singleElements = 32;
/** Clusters of more than two blocks fill a multiple of this many processors. */
const groupedProcessors = 8;

/** Undefined where rows are too long, or not contiguous. */
export function choosePersistentRows(
  { arrays, compute }: RowOp,
  { names }: Pick<ColumnSums, "names">,
  axes: readonly StridedAxis[],
  target: Target,
): PersistentRowsConfiguration | undefined {
  const [lead, column] = axes;
  if (axes.length !== 2 || lead === undefined || column === undefined) return undefined;
  const isByRows = arrays.every(
    ({ per }, position) => per !== "element" || column.strides[position] === 1,
  );
  if (!isByRows || lead.extent === 0 || column.extent === 0) return undefined;
  const bitsOf = (per: "element" | "column"): readonly number[] =>
    arrays
      .filter((each) => each.per === per && each.role === "input")
      .map(({ dtype }) => dtype.bits);
  const registers = (bits: readonly number[]): number =>
    bits.reduce((sum, each) => sum + each / 32, 0);
  const inputs = bitsOf("element");
  const wide = compute.bits / 32;
  // An element as it is computed with, and as it is in flight.
  const each = inputs.length * wide + registers(inputs) + names.length * wide;
  const registerLimit = names.length > 0 ? allRegisters : rowRegisters;
  // Per-column inputs are in registers for a while, too.
  const passing = registers(bitsOf("column")) / 2;
  const most =
    powerOfTwoFrom(Math.floor(registerLimit / (each + (names.length > 0 ? 0 : passing))) + 1) / 2;
  const span = 32 * warps;
  const isShared = target.features.includes("cluster") && names.length === 0;
  const isHeld = (blocks: number, elements: number): boolean =>
    column.extent <= blocks * span * elements;
  let blocks = 1;
  // Few rows are shared by more blocks, so that all processors have context.
  while (
    blocks < (isShared ? target.clusterSize : 1) &&
    (!isHeld(blocks, Math.min(most, singleElements)) ||
      (lead.extent * blocks * 2 <= target.processors && !isHeld(blocks, leastElements)))
  )
    blocks *= 2;
  if (!isHeld(blocks, most)) return undefined;
  const unit = span * ((8 * widestAccess) / Math.min(...inputs));
  const share = Math.ceil(column.extent / blocks);
  const columns = share <= unit ? powerOfTwoFrom(share) : Math.ceil(share / unit) * unit;
  const held = Math.ceil(columns / span);
  const keepsColumns = held * (each + registers(bitsOf("column"))) <= allRegisters;
  const fixed = { columns, blocks, pieces: 1, keepsColumns } as const;
  if (names.length > 0)
    return { ...fixed, ...summedRows(lead.extent, columns, span * most, target) };
  const ahead = held <= fewElements ? 2 : 1;
  const { processors } = target;
  const found = blocks > 2 ? processors - (processors % groupedProcessors) : processors;
  const workers = Math.min(Math.max(1, Math.floor(found / blocks)), lead.extent);
  return { ...fixed, rows: 1, ahead, workers };
}

/** Elements of a thread up to which registers hold two more rows in flight. */
const fewElements = 16;
/** Elements of a thread from which few rows are shared by more blocks. */
const leastElements = 8;

/** With sums over rows a processor has one block, which takes several short rows at a time. */
function summedRows(count: number, columns: number, most: number, { processors }: Target) {
  // No more rows at a time than leave work for every processor; statistics of several take registers, too.
  const share = powerOfTwoFrom(Math.ceil(count / processors));
  const fitting = powerOfTwoFrom(Math.floor(most / 2 / columns) + 1) / 2;
  const rows = Math.max(1, Math.min(fitting, share));
  const ahead = rows * columns * 2 <= most ? 2 : 1;
  return { rows, ahead, workers: Math.min(processors, Math.ceil(count / rows)) };
}

/** The name of the partial sums of all workers. */
const partialsName = (name: string): string => `partials_${name}`;

export function planPersistentRows(
  op: RowOp,
  sums: ColumnSums,
  axes: readonly StridedAxis[],
  configuration: PersistentRowsConfiguration,
  kernels: Map<string, KernelDefinition>,
): Planned<PersistentRowsConfiguration> {
  const { workers, blocks } = configuration;
  const columns = axes.at(-1)?.extent ?? 1;
  const isWhole = columns === blocks * configuration.columns;
  const form = new StridedForm(axes, isWhole ? [axes.length - 1] : []);
  const made = (text: string, make: () => KernelDefinition): KernelDefinition => {
    const known = kernels.get(text) ?? make();
    kernels.set(text, known);
    return known;
  };
  const partials = { shape: [workers, columns] };
  const partialArguments = sums.names.map((name) => [
    partialsName(name),
    { argument: partialsName(name), ...partials },
  ]);
  const rows = (): PlannedLaunch => ({
    kernel: made(JSON.stringify([configuration, isWhole]) + formText(axes), () =>
      persistentRowsKernel(op, sums, form, configuration),
    ),
    arguments: Object.fromEntries([
      ...op.arrays.map(({ name }) => [name, { argument: name, flat: true }]),
      ...partialArguments,
    ]) as PlannedLaunch["arguments"],
    dimensions: form.dimensions(),
  });
  const reduction = (): PlannedLaunch => ({
    kernel: made(
      JSON.stringify(["partials", workers, partialColumns(workers, columns), alignment(columns)]),
      () => sumPartialsKernel(`${op.name}_sums`, sums, op.compute, workers, columns),
    ),
    arguments: Object.fromEntries([
      ...partialArguments,
      ...sums.names.map((name) => [name, { argument: name }]),
    ]) as PlannedLaunch["arguments"],
  });
  const scratch = Object.fromEntries(
    sums.names.map((name) => [partialsName(name), { dtype: op.compute, ...partials }]),
  );
  const launches = () => [rows(), ...(sums.names.length > 0 ? [reduction()] : [])];
  return { configuration, source: "heuristic", scratch, launches };
}

/** What the functions of a block share. */
interface BlockContext {
  readonly op: RowOp;
  readonly form: StridedForm;
  readonly configuration: PersistentRowsConfiguration;
  readonly argument: { readonly [name: string]: unknown };
  readonly rank: Scalar<"i32">;
}

/** The partial sums of a worker, and the rows in flight, the next one first. */
interface Carried {
  readonly [name: string]: RowTiles | readonly RowTiles[];
  readonly sums: RowTiles;
  readonly tiles: readonly RowTiles[];
}

function persistentRowsKernel(
  op: RowOp,
  sums: ColumnSums,
  form: StridedForm,
  configuration: PersistentRowsConfiguration,
): KernelDefinition {
  const { blocks, workers } = configuration;
  const width = form.extents[1] ?? 1;
  const named = (role: "input" | "output") =>
    Object.fromEntries(
      op.arrays.flatMap(({ name, dtype, role: own }, position) =>
        own === role ? [[name, form.spec(position, dtype)]] : [],
      ),
    );
  const partials = sums.names.map((name): readonly [string, TensorSpec] => [
    partialsName(name),
    tensor(op.compute, [workers, width]),
  ]);
  return kernel(
    {
      name: op.name,
      grid: { worker: workers, rank: blocks },
      ...(blocks > 1 && { cluster: { rank: blocks } }),
      warps,
      inputs: named("input"),
      outputs: { ...named("output"), ...Object.fromEntries(partials) },
      // Double-buffered: the statistics of the last row may still be read.
      scratch: blocks > 1 ? { shared: smem(op.compute, [2, op.statistics.length, 1, 1]) } : {},
    },
    (given) => {
      const argument = given as unknown as { readonly [name: string]: unknown };
      const rank = argument["rank"] as Scalar<"i32">;
      runWorker({ op, form, configuration, argument, rank }, sums);
    },
  ) as unknown as KernelDefinition;
}

function runWorker(context: BlockContext, sums: ColumnSums): void {
  const { op, form, configuration, argument, rank } = context;
  const { rows, columns, blocks, ahead, keepsColumns, workers } = configuration;
  const worker = argument["worker"] as Scalar<"i32">;
  const count = constant(dtypes.i32, 0).add(cdiv(form.extents[0] ?? 1, rows) as never);
  // Past the last row nothing is loaded: the bounds exclude it.
  const elements = (step: number, index: Scalar<"i32">): RowTiles =>
    loaded(
      context,
      "element",
      index
        .add(step * workers)
        .minimum(count)
        .mul(rows),
    );
  const kept = keepsColumns ? loaded(context, "column", 0) : undefined;
  const nothing = sums.names.map((name): readonly [string, Tile] => [
    name,
    full(op.compute, [rows, columns], 0),
  ]);
  const first = Array.from({ length: ahead }, (_, step) => elements(step, worker));
  const carry: Carried = { sums: Object.fromEntries(nothing), tiles: first };
  const end = loop({ from: worker, to: count, step: workers, carry }, (index, carried) => {
    const start = index.mul(rows);
    const ofRows = loaded(context, "row", start);
    const own = { ...ofRows, ...(kept ?? loaded(context, "column", 0)), ...carried.tiles[0] };
    const following = elements(ahead, index);
    const piece = rowPiece(op, form, configuration, rank.mul(columns));
    const measured = op.measure(own, piece);
    const buffer = index.div(workers).rem(2);
    const statistics =
      blocks > 1
        ? exchangeInCluster(op, measured, (argument["shared"] as Ref).at(buffer), blocks)
        : measured;
    store(context, "element", start, op.results(own, statistics, piece));
    storeRows(context, start, () => op.rowResults?.(ofRows, statistics, piece.total));
    const terms = sums.terms(own);
    const added = sums.names.map((name): readonly [string, Tile] => [
      name,
      (carried.sums[name] as Tile<"f32">).add(terms[name] as Tile<"f32">),
    ]);
    return {
      sums: Object.fromEntries(added),
      tiles: [...carried.tiles.slice(1), following],
    };
  });
  for (const name of sums.names) {
    const all = end.sums[name] as Tile<"f32">;
    (argument[partialsName(name)] as Ref)
      .at(slice(worker, 1), slice(0, columns))
      .store(all.sum({ axis: 0, keepDims: true }));
  }
  // A block must not exit while others read its statistics.
  if (blocks > 1) clusterSync();
}

function loaded(
  { op, form, configuration, argument, rank }: BlockContext,
  per: "element" | "row" | "column",
  start: Index,
): RowTiles {
  const sizes = [configuration.rows, configuration.columns];
  const place = [start, per === "row" ? 0 : rank.mul(configuration.columns)];
  return Object.fromEntries(
    op.arrays.flatMap(({ name, role, per: own }, position) => {
      if (role === "output" || own !== per) return [];
      const window = form.window(argument[name] as Ref, position, place, sizes);
      return [[name, window.load().reshape(form.tileShape(position, sizes, [0, 1]))]];
    }),
  );
}

function store(
  { op, form, configuration, argument, rank }: BlockContext,
  per: "element" | "row",
  start: Index,
  results: RowTiles,
): void {
  const sizes = [configuration.rows, configuration.columns];
  const place = [start, per === "row" ? 0 : rank.mul(configuration.columns)];
  for (const [position, { name, role, per: own }] of op.arrays.entries()) {
    const result = results[name];
    if (role !== "output" || own !== per || result === undefined) continue;
    const window = form.window(argument[name] as Ref, position, place, sizes);
    storeWhole(window, result, form.tileShape(position, sizes, [0, 1]));
  }
}

/** Stores per-row results: the first block of a cluster does. */
function storeRows(context: BlockContext, start: Index, make: () => RowTiles | undefined): void {
  if (context.op.rowResults === undefined) return;
  const both = (): void => {
    store(context, "row", start, make() ?? {});
  };
  if (context.configuration.blocks === 1) both();
  else when(context.rank.eq(0), both);
}

/** Partial sums of a thread of the second launch. */
const partialsPerThread = 64;

/** Columns of a block of the second launch. */
function partialColumns(workers: number, extent: number): number {
  const most = (threadsPerBlock * partialsPerThread) / powerOfTwoFrom(workers);
  return Math.max(1, Math.min(most, powerOfTwoFrom(extent)));
}

/** Adds up the partial sums of all workers, a few columns a block. */
function sumPartialsKernel(
  name: string,
  sums: ColumnSums,
  compute: DType,
  workers: number,
  extent: number,
): KernelDefinition {
  const width = alignedDimension("width", extent);
  const rows = powerOfTwoFrom(workers);
  const columns = partialColumns(workers, extent);
  return kernel(
    {
      name,
      grid: { i: cdiv(width, columns) },
      inputs: Object.fromEntries(
        sums.names.map((own) => [partialsName(own), tensor(compute, [workers, width])]),
      ),
      outputs: Object.fromEntries(sums.names.map((own) => [own, tensor(compute, [width])])),
    },
    (given) => {
      const argument = given as unknown as { readonly [name: string]: unknown };
      const here = slice((argument["i"] as Scalar<"i32">).mul(columns), columns);
      for (const own of sums.names) {
        const partials = (argument[partialsName(own)] as Ref).at(slice(0, rows), here).load();
        (argument[own] as Ref).at(here).store((partials as Tile<"f32">).sum({ axis: 0 }));
      }
    },
  ) as unknown as KernelDefinition;
}
