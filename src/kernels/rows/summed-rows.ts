/**
 * An operation on rows that also sums something over all of them, column by column, in one pass over memory: few blocks, each
 * of which goes through many rows, holds its sums in registers, and has the next rows in flight while it works on these.
 *
 *   worker 0    rows 0, 3, 6 ──▶ their results, and one row of sums ──┐
 *   worker 1    rows 1, 4, 7 ──▶ …                                    ├──▶ a second launch adds up the workers' sums
 *   worker 2    rows 2, 5, 8 ──▶ …                                  ──┘
 *
 * The number of processors decides which rows a worker has, and all sums are added in one order: results repeat bit for bit on
 * GPUs with as many processors.
 */
import { dtypes } from "../../formats/dtype.ts";
import type { DType } from "../../formats/dtype.ts";
import type { Planned, PlannedLaunch } from "../../device/operation.ts";
import { array, cdiv, constant, full, iota, kernel, loop, slice } from "../../lang/index.ts";
import type { ArraySpec, Index, KernelDefinition, Ref, Scalar, Tile } from "../../lang/index.ts";
import type { Target } from "../../targets/target.ts";
import { alignedDimension, alignment, lanes, powerOfTwoFrom } from "../support/sizes.ts";
import { StridedForm, formText, storeWhole } from "../support/strided.ts";
import type { StridedAxis } from "../support/strided.ts";
import type { Piece, RowOp, RowTiles } from "./row-op.ts";

export interface SummedRowsConfiguration {
  /** Rows that a worker takes at a time, and the columns of a tile, which hold whole rows. */
  readonly rows: number;
  readonly columns: number;
  /** How many times as many rows are in flight. */
  readonly ahead: number;
  readonly workers: number;
}

/** What is summed over rows, by name: numbers of the format that is computed in, one for every element. */
export interface ColumnSums {
  readonly names: readonly string[];
  readonly terms: (tiles: RowTiles) => RowTiles;
}

/** Elements that a lane has of a row, where those of its inputs have 32 bits together: with sums and the next row they fill the registers. */
const elementsPerLane = 16;
/** Warps of a block: so many that one block, which has all registers, keeps a processor busy. */
const warps = 16;

/** Undefined where rows are too long for this, or do not lie one after the other. */
export function chooseSummedRows(
  { arrays, compute }: RowOp,
  axes: readonly StridedAxis[],
  { processors }: Target,
): SummedRowsConfiguration | undefined {
  const [lead, column] = axes;
  if (axes.length !== 2 || lead === undefined || column === undefined) return undefined;
  const isByRows = arrays.every(
    ({ per }, position) => per !== "element" || column.strides[position] === 1,
  );
  if (!isByRows || lead.extent === 0 || column.extent === 0) return undefined;
  const bits = arrays
    .filter(({ per, role }) => per === "element" && role === "input")
    .reduce((sum, { dtype }) => sum + dtype.bits, 0);
  const each = Math.max(1, (elementsPerLane * 32) / Math.max(powerOfTwoFrom(bits), compute.bits));
  const columns = powerOfTwoFrom(column.extent);
  const most = 32 * warps * each;
  if (columns > most) return undefined;
  // No more rows at a time than leave something for every processor.
  const share = powerOfTwoFrom(Math.ceil(lead.extent / processors));
  // Statistics of several rows take registers, too.
  const rows = Math.min(Math.max(1, most / 2 / columns), share);
  const ahead = most / (rows * columns) > 1 ? 2 : 1;
  const workers = Math.min(processors, Math.ceil(lead.extent / rows));
  return { rows, columns, ahead, workers };
}

/** The name of the workers' sums. */
const partName = (name: string): string => `parts_${name}`;

export function planSummedRows(
  op: RowOp,
  sums: ColumnSums,
  axes: readonly StridedAxis[],
  configuration: SummedRowsConfiguration,
  kernels: Map<string, KernelDefinition>,
): Planned<SummedRowsConfiguration> {
  const { workers } = configuration;
  const columns = axes.at(-1)?.extent ?? 1;
  const isWhole = columns === configuration.columns;
  const form = new StridedForm(axes, isWhole ? [axes.length - 1] : []);
  const made = (text: string, make: () => KernelDefinition): KernelDefinition => {
    const known = kernels.get(text) ?? make();
    kernels.set(text, known);
    return known;
  };
  const parts = { shape: [workers, columns] };
  const launches = (): readonly PlannedLaunch[] => [
    {
      kernel: made(JSON.stringify([configuration, isWhole]) + formText(axes), () =>
        summedRowsKernel(op, sums, form, configuration),
      ),
      arguments: {
        ...Object.fromEntries(op.arrays.map(({ name }) => [name, { argument: name, flat: true }])),
        ...Object.fromEntries(
          sums.names.map((name) => [partName(name), { argument: partName(name), ...parts }]),
        ),
      },
      dimensions: form.dimensions(),
    },
    {
      kernel: made(JSON.stringify(["parts", workers, alignment(columns)]), () =>
        addPartsKernel(`${op.name}_sums`, sums, op.compute, workers, columns),
      ),
      arguments: Object.fromEntries(
        sums.names.flatMap((name) => [
          [partName(name), { argument: partName(name), ...parts }],
          [name, { argument: name }],
        ]),
      ),
    },
  ];
  const scratch = Object.fromEntries(
    sums.names.map((name) => [partName(name), { dtype: op.compute, ...parts }]),
  );
  return { configuration, source: "heuristic", scratch, launches };
}

/** What a worker works with. */
interface Work {
  readonly op: RowOp;
  readonly form: StridedForm;
  readonly configuration: SummedRowsConfiguration;
  readonly argument: { readonly [name: string]: unknown };
}

/** What a worker has summed, and the rows in flight, the next one first. */
interface Carried {
  readonly [name: string]: RowTiles | readonly RowTiles[];
  readonly sums: RowTiles;
  readonly tiles: readonly RowTiles[];
}

function summedRowsKernel(
  op: RowOp,
  sums: ColumnSums,
  form: StridedForm,
  configuration: SummedRowsConfiguration,
): KernelDefinition {
  const { rows, columns, ahead, workers } = configuration;
  const [extent, width] = [form.extents[0] ?? 1, form.extents[1] ?? 1];
  const named = (role: "input" | "output") =>
    Object.fromEntries(
      op.arrays.flatMap(({ name, dtype, role: own }, position) =>
        own === role ? [[name, form.spec(position, dtype)]] : [],
      ),
    );
  const parts = sums.names.map((name): readonly [string, ArraySpec] => [
    partName(name),
    array(op.compute, [workers, width]),
  ]);
  return kernel(
    {
      name: op.name,
      grid: { worker: workers },
      warps,
      inputs: named("input"),
      outputs: { ...named("output"), ...Object.fromEntries(parts) },
    },
    (given) => {
      const argument = given as unknown as { readonly [name: string]: unknown };
      const worker = argument["worker"] as Scalar<"i32">;
      const work: Work = { op, form, configuration, argument };
      const count = constant(dtypes.i32, 0).add(cdiv(extent, rows) as never);
      const nothing = sums.names.map((name): readonly [string, Tile] => [
        name,
        full(op.compute, [rows, columns], 0),
      ]);
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
      const first = Array.from({ length: ahead }, (_, step) => elements(step, worker));
      const carry: Carried = { sums: Object.fromEntries(nothing), tiles: first };
      const end = loop({ from: worker, to: count, step: workers, carry }, (index, carried) => {
        const start = index.mul(rows);
        // What belongs to columns comes from the cache every time: registers are dearer.
        const fixed = { ...loaded(work, "row", start), ...loaded(work, "column", 0) };
        const own = { ...fixed, ...carried.tiles[0] };
        const following = elements(ahead, index);
        const statistics = op.measure(own, pieceOf(work));
        const terms = sums.terms(own);
        storeElements(work, start, op.results(own, statistics, pieceOf(work)));
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
          .store(all.sum(0, { keep: true }));
      }
    },
  ) as unknown as KernelDefinition;
}

function loaded(
  { op, form, configuration, argument }: Work,
  per: "element" | "row" | "column",
  start: Index,
): RowTiles {
  const sizes = [configuration.rows, configuration.columns];
  return Object.fromEntries(
    op.arrays.flatMap(({ name, role, per: own }, position) => {
      if (role === "output" || own !== per) return [];
      const window = form.window(argument[name] as Ref, position, [start, 0], sizes);
      return [[name, window.load().reshape(form.tileShape(position, sizes, [0, 1]))]];
    }),
  );
}

function storeElements(
  { op, form, configuration, argument }: Work,
  start: Index,
  results: RowTiles,
): void {
  const sizes = [configuration.rows, configuration.columns];
  for (const [position, { name, role }] of op.arrays.entries()) {
    const result = results[name];
    if (role !== "output" || result === undefined) continue;
    const window = form.window(argument[name] as Ref, position, [start, 0], sizes);
    storeWhole(window, result, form.tileShape(position, sizes, [0, 1]));
  }
}

/** Rows are whole: what lies beyond their end was loaded as 0. */
function pieceOf({ op, form, configuration: { columns } }: Work): Piece {
  const extent = form.extents[1] ?? 1;
  const positions = (): Tile<"i32"> => iota(dtypes.i32, [1, columns], 1);
  const total = constant(op.compute, extent as never);
  return {
    within: (tile, value) =>
      extent === columns
        ? tile
        : positions()
            .lt(extent as never)
            .select(tile, full(tile.dtype, [1, 1], value)),
    count: total,
    total,
    columns: positions,
  };
}

/** Elements of a lane of the launch that adds up. */
const addedPerLane = 64;

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
  const columns = Math.max(1, Math.min((lanes * addedPerLane) / rows, powerOfTwoFrom(extent)));
  return kernel(
    {
      name,
      grid: { i: cdiv(width, columns) },
      inputs: Object.fromEntries(
        sums.names.map((own) => [partName(own), array(compute, [workers, width])]),
      ),
      outputs: Object.fromEntries(sums.names.map((own) => [own, array(compute, [width])])),
    },
    (given) => {
      const argument = given as unknown as { readonly [name: string]: unknown };
      const here = slice((argument["i"] as Scalar<"i32">).mul(columns), columns);
      for (const own of sums.names) {
        const parts = (argument[partName(own)] as Ref).at(slice(0, rows), here).load();
        (argument[own] as Ref).at(here).store((parts as Tile<"f32">).sum(0));
      }
    },
  ) as unknown as KernelDefinition;
}
