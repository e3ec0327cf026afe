/**
 * Operations on rows by blocks that stay: each goes through many rows, holds one in registers, and has the next one in flight
 * while it works on this. Long rows are shared by the blocks of a cluster, which exchange their statistics; what belongs to
 * columns is loaded once where registers have room for it.
 *
 *   worker 0    load row 0 · load row 3 · row 0: statistics, results · load row 6 · row 3: statistics, results · …
 *   worker 1    load row 1 · load row 4 · row 1: …
 *
 * An operation may also sum something over all rows, column by column: a worker holds its sums in registers, too, stores them
 * when it is through, and a second launch adds up those of all workers.
 *
 * The number of processors decides which rows a worker has, and everything is merged in one order: results repeat bit for
 * bit on GPUs with as many processors.
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
  lanes,
  powerOfTwoFrom,
  widestAccess,
} from "../support/sizes.ts";
import { StridedForm, formText, storeWhole } from "../support/strided.ts";
import type { StridedAxis } from "../support/strided.ts";
import type { RowOp, RowTiles } from "./row-op.ts";
import { exchanged, rowPiece } from "./row-statistics.ts";

export interface StreamedRowsConfiguration {
  /** Rows that a worker takes at a time, and columns of each of its blocks; together they hold whole rows. */
  readonly rows: number;
  /** Columns of a block. */
  readonly columns: number;
  /** Blocks of a cluster that share a row. */
  readonly blocks: number;
  /** Pieces of a row that a block holds: all of it. */
  readonly pieces: 1;
  /** How many times as many rows are in flight. */
  readonly ahead: number;
  /** Whether what belongs to columns stays in registers. */
  readonly keepsColumns: boolean;
  /** Workers that share the rows. */
  readonly workers: number;
}

/** What is summed over rows, by name: numbers of the format that is computed in, one for every element. */
export interface ColumnSums {
  readonly names: readonly string[];
  readonly terms: (tiles: RowTiles) => RowTiles;
}

/** Nothing is summed over rows. */
export const noSums: ColumnSums = { names: [], terms: () => ({}) };

/** Warps of a block: so many that one block keeps a processor busy. */
const warps = 16;
/** Registers of a lane for rows and those in flight; for these and what stays: sums, and what belongs to columns. */
const [rowRegisters, allRegisters] = [96, 84];
/** Elements of a lane up to which no more blocks share a row. */
const singleElements = 32;
/** Processors that clusters of many blocks are sure to find side by side, a multiple of this many. */
const groupedProcessors = 8;

/** Undefined where rows are too long for this, or do not lie one after the other. */
export function chooseStreamedRows(
  { arrays, compute }: RowOp,
  { names }: Pick<ColumnSums, "names">,
  axes: readonly StridedAxis[],
  target: Target,
): StreamedRowsConfiguration | undefined {
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
  // As it is computed, and as it is in flight.
  const each = inputs.length * wide + registers(inputs) + names.length * wide;
  const room = names.length > 0 ? allRegisters : rowRegisters;
  // What belongs to columns is in registers for a while, too.
  const passing = registers(bitsOf("column")) / 2;
  const most = powerOfTwoFrom(Math.floor(room / (each + (names.length > 0 ? 0 : passing))) + 1) / 2;
  const span = 32 * warps;
  const isShared = target.features.includes("cluster") && names.length === 0;
  const isHeld = (blocks: number, elements: number): boolean =>
    column.extent <= blocks * span * elements;
  let blocks = 1;
  // Few rows are shared by more blocks, so that all processors have work.
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

/** Elements of a lane up to which there are registers for two more rows in flight. */
const fewElements = 16;
/** Elements of a lane from which few rows are shared by more blocks. */
const leastElements = 8;

/** Where rows are summed one block has a processor, and short rows are taken several at a time. */
function summedRows(count: number, columns: number, most: number, { processors }: Target) {
  // No more rows at a time than leave something for every processor; statistics of several take registers, too.
  const share = powerOfTwoFrom(Math.ceil(count / processors));
  const fitting = powerOfTwoFrom(Math.floor(most / 2 / columns) + 1) / 2;
  const rows = Math.max(1, Math.min(fitting, share));
  const ahead = rows * columns * 2 <= most ? 2 : 1;
  return { rows, ahead, workers: Math.min(processors, Math.ceil(count / rows)) };
}

/** The name of the workers' sums. */
const partName = (name: string): string => `parts_${name}`;

export function planStreamedRows(
  op: RowOp,
  sums: ColumnSums,
  axes: readonly StridedAxis[],
  configuration: StreamedRowsConfiguration,
  kernels: Map<string, KernelDefinition>,
): Planned<StreamedRowsConfiguration> {
  const { workers, blocks } = configuration;
  const columns = axes.at(-1)?.extent ?? 1;
  const isWhole = columns === blocks * configuration.columns;
  const form = new StridedForm(axes, isWhole ? [axes.length - 1] : []);
  const made = (text: string, make: () => KernelDefinition): KernelDefinition => {
    const known = kernels.get(text) ?? make();
    kernels.set(text, known);
    return known;
  };
  const parts = { shape: [workers, columns] };
  const partArguments = sums.names.map((name) => [
    partName(name),
    { argument: partName(name), ...parts },
  ]);
  const rows = (): PlannedLaunch => ({
    kernel: made(JSON.stringify([configuration, isWhole]) + formText(axes), () =>
      streamedRowsKernel(op, sums, form, configuration),
    ),
    arguments: Object.fromEntries([
      ...op.arrays.map(({ name }) => [name, { argument: name, flat: true }]),
      ...partArguments,
    ]) as PlannedLaunch["arguments"],
    dimensions: form.dimensions(),
  });
  const added = (): PlannedLaunch => ({
    kernel: made(
      JSON.stringify(["parts", workers, addedColumns(workers, columns), alignment(columns)]),
      () => addPartsKernel(`${op.name}_sums`, sums, op.compute, workers, columns),
    ),
    arguments: Object.fromEntries([
      ...partArguments,
      ...sums.names.map((name) => [name, { argument: name }]),
    ]) as PlannedLaunch["arguments"],
  });
  const scratch = Object.fromEntries(
    sums.names.map((name) => [partName(name), { dtype: op.compute, ...parts }]),
  );
  const launches = () => [rows(), ...(sums.names.length > 0 ? [added()] : [])];
  return { configuration, source: "heuristic", scratch, launches };
}

/** What a block works with. */
interface Work {
  readonly op: RowOp;
  readonly form: StridedForm;
  readonly configuration: StreamedRowsConfiguration;
  readonly argument: { readonly [name: string]: unknown };
  readonly part: Scalar<"i32">;
}

/** What a worker has summed, and the rows in flight, the next one first. */
interface Carried {
  readonly [name: string]: RowTiles | readonly RowTiles[];
  readonly sums: RowTiles;
  readonly tiles: readonly RowTiles[];
}

function streamedRowsKernel(
  op: RowOp,
  sums: ColumnSums,
  form: StridedForm,
  configuration: StreamedRowsConfiguration,
): KernelDefinition {
  const { blocks, workers } = configuration;
  const width = form.extents[1] ?? 1;
  const named = (role: "input" | "output") =>
    Object.fromEntries(
      op.arrays.flatMap(({ name, dtype, role: own }, position) =>
        own === role ? [[name, form.spec(position, dtype)]] : [],
      ),
    );
  const parts = sums.names.map((name): readonly [string, TensorSpec] => [
    partName(name),
    tensor(op.compute, [workers, width]),
  ]);
  return kernel(
    {
      name: op.name,
      grid: { worker: workers, part: blocks },
      ...(blocks > 1 && { cluster: { part: blocks } }),
      warps,
      inputs: named("input"),
      outputs: { ...named("output"), ...Object.fromEntries(parts) },
      // Statistics of this row and of the last: those of the last may still be read.
      scratch: blocks > 1 ? { shared: smem(op.compute, [2, op.statistics.length, 1, 1]) } : {},
    },
    (given) => {
      const argument = given as unknown as { readonly [name: string]: unknown };
      const part = argument["part"] as Scalar<"i32">;
      runWorker({ op, form, configuration, argument, part }, sums);
    },
  ) as unknown as KernelDefinition;
}

function runWorker(work: Work, sums: ColumnSums): void {
  const { op, form, configuration, argument, part } = work;
  const { rows, columns, blocks, ahead, keepsColumns, workers } = configuration;
  const worker = argument["worker"] as Scalar<"i32">;
  const count = constant(dtypes.i32, 0).add(cdiv(form.extents[0] ?? 1, rows) as never);
  // Past the last rows there is nothing, which is loaded as quickly.
  const elements = (step: number, index: Scalar<"i32">): RowTiles =>
    loaded(
      work,
      "element",
      index
        .add(step * workers)
        .minimum(count)
        .mul(rows),
    );
  const kept = keepsColumns ? loaded(work, "column", 0) : undefined;
  const nothing = sums.names.map((name): readonly [string, Tile] => [
    name,
    full(op.compute, [rows, columns], 0),
  ]);
  const first = Array.from({ length: ahead }, (_, step) => elements(step, worker));
  const carry: Carried = { sums: Object.fromEntries(nothing), tiles: first };
  const end = loop({ from: worker, to: count, step: workers, carry }, (index, carried) => {
    const start = index.mul(rows);
    const ofRows = loaded(work, "row", start);
    const own = { ...ofRows, ...(kept ?? loaded(work, "column", 0)), ...carried.tiles[0] };
    const following = elements(ahead, index);
    const piece = rowPiece(op, form, configuration, part.mul(columns));
    const measured = op.measure(own, piece);
    const turn = index.div(workers).rem(2);
    const statistics =
      blocks > 1 ? exchanged(op, measured, (argument["shared"] as Ref).at(turn), blocks) : measured;
    store(work, "element", start, op.results(own, statistics, piece));
    storeRows(work, start, () => op.rowResults?.(ofRows, statistics, piece.total));
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
    (argument[partName(name)] as Ref)
      .at(slice(worker, 1), slice(0, columns))
      .store(all.sum({ axis: 0, keepDims: true }));
  }
  // A block stays while others read its statistics.
  if (blocks > 1) clusterSync();
}

function loaded(
  { op, form, configuration, argument, part }: Work,
  per: "element" | "row" | "column",
  start: Index,
): RowTiles {
  const sizes = [configuration.rows, configuration.columns];
  const place = [start, per === "row" ? 0 : part.mul(configuration.columns)];
  return Object.fromEntries(
    op.arrays.flatMap(({ name, role, per: own }, position) => {
      if (role === "output" || own !== per) return [];
      const window = form.window(argument[name] as Ref, position, place, sizes);
      return [[name, window.load().reshape(form.tileShape(position, sizes, [0, 1]))]];
    }),
  );
}

function store(
  { op, form, configuration, argument, part }: Work,
  per: "element" | "row",
  start: Index,
  results: RowTiles,
): void {
  const sizes = [configuration.rows, configuration.columns];
  const place = [start, per === "row" ? 0 : part.mul(configuration.columns)];
  for (const [position, { name, role, per: own }] of op.arrays.entries()) {
    const result = results[name];
    if (role !== "output" || own !== per || result === undefined) continue;
    const window = form.window(argument[name] as Ref, position, place, sizes);
    storeWhole(window, result, form.tileShape(position, sizes, [0, 1]));
  }
}

/** What belongs to rows; the first block of a cluster stores it. */
function storeRows(work: Work, start: Index, make: () => RowTiles | undefined): void {
  if (work.op.rowResults === undefined) return;
  const both = (): void => {
    store(work, "row", start, make() ?? {});
  };
  if (work.configuration.blocks === 1) both();
  else when(work.part.eq(0), both);
}

/** Elements of a lane of the launch that adds up. */
const addedPerLane = 64;

/** Columns of a block of that launch. */
function addedColumns(workers: number, extent: number): number {
  const most = (lanes * addedPerLane) / powerOfTwoFrom(workers);
  return Math.max(1, Math.min(most, powerOfTwoFrom(extent)));
}

/** The sums of all workers together, a few columns a block. */
function addPartsKernel(
  name: string,
  sums: ColumnSums,
  compute: DType,
  workers: number,
  extent: number,
): KernelDefinition {
  const width = alignedDimension("width", extent);
  const rows = powerOfTwoFrom(workers);
  const columns = addedColumns(workers, extent);
  return kernel(
    {
      name,
      grid: { i: cdiv(width, columns) },
      inputs: Object.fromEntries(
        sums.names.map((own) => [partName(own), tensor(compute, [workers, width])]),
      ),
      outputs: Object.fromEntries(sums.names.map((own) => [own, tensor(compute, [width])])),
    },
    (given) => {
      const argument = given as unknown as { readonly [name: string]: unknown };
      const here = slice((argument["i"] as Scalar<"i32">).mul(columns), columns);
      for (const own of sums.names) {
        const parts = (argument[partName(own)] as Ref).at(slice(0, rows), here).load();
        (argument[own] as Ref).at(here).store((parts as Tile<"f32">).sum({ axis: 0 }));
      }
    },
  ) as unknown as KernelDefinition;
}
