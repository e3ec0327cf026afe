/**
 * Formats with scales as an operation: elements and scales in one launch that reads x once.
 *
 *   x [m, n] bf16   ──▶   out [m, n] f4e2m1fn, scale [m, ⌈n / 32⌉] f8e8m0fnu          mxfp4, along the last axis
 *
 * A block of threads has a tile of whole blocks of the format; x as [batch, rows, columns] is so divided along the axis of the scales that the tile's other axes
 * are as long as they can be. What is computed is that of `nn.quantizeBlocks`, bit for bit.
 *
 *   tile [rows, columns] ──▶ [rows / 1, 1, columns / 32, 32]   largest along the second and the last axis ──▶ scales ──▶ elements
 */
import { operation } from "../../device/operation.ts";
import type { Operation, Planned } from "../../device/operation.ts";
import { dtypes } from "../../formats/dtype.ts";
import type { DType, DTypeName, FloatName } from "../../formats/dtype.ts";
import { blockExtents } from "../../formats/scaled/formats.ts";
import type {
  ElementNameOf,
  ScaledFormat,
  ScaledFormatName,
  ScaleNameOf,
} from "../../formats/scaled/formats.ts";
import type { ScaleRounding } from "../../formats/scaled/scale-rounding.ts";
import { ceilDivSize, shapeText } from "../../ir/size.ts";
import type { Dimension, Size } from "../../ir/size.ts";
import { cdiv, constant, dim, kernel, slice, tensor } from "../../lang/index.ts";
import type { Empty, KernelDefinition, Ref, Scalar, TensorSpec, Tile } from "../../lang/index.ts";
import { lanesPerWarp } from "../../targets/target.ts";
import { captureLocation } from "../../support/location.ts";
import type { Location } from "../../support/location.ts";
import { tracedResults } from "../elementwise/traced-results.ts";
import {
  givenArray,
  givenAxis,
  refused,
  requireFields,
  requireFloat,
} from "../support/arguments.ts";
import type { GivenArray } from "../support/arguments.ts";
import { alignedDimension, laidOut, powerOfTwoFrom } from "../support/sizes.ts";
import {
  blocksOf,
  requiredFormat,
  requiredRounding,
  requiredStorage,
} from "./block-quantization.ts";

/** x and the further arrays, of a tile, in f32. */
export type PrologueTiles<I> = { readonly x: Tile<"f32"> } & {
  readonly [N in keyof I]: Tile<"f32">;
};

/** What `quantizeBlocks` is made for. */
export interface QuantizeBlocksSpec<
  X extends FloatName,
  N extends ScaledFormatName,
  I extends { readonly [name: string]: TensorSpec } = Empty,
> {
  /** What is quantised, by rows. A format is an array of [m, n]. */
  readonly x: GivenArray<X>;
  /** The format of the results, such as `mxfp4`. */
  readonly format: ScaledFormat<N>;
  /** The axis along which blocks share a scale; the last one by default. */
  readonly axis?: number;
  /** How scales that are powers of two are rounded; "roundUp" by default. */
  readonly scaleRounding?: ScaleRounding;
  /** A code a byte, as programs keep them, instead of elements of the format. */
  readonly out?: DType<"u8">;
  /** Further arrays of x's shape, or with a number for each place of its last axis, for the prologue. */
  readonly inputs?: I;
  /** What is quantised instead of x: an activation of it, or what a norm makes of it. Element by element. */
  readonly prologue?: (tiles: PrologueTiles<I>) => Tile;
}

type GlobalScale<N extends ScaledFormatName> = N extends "nvfp4"
  ? { readonly globalScale: TensorSpec<"f32"> }
  : Empty;

/** Rows and columns of a tile, and the warps of a block of threads. */
export interface QuantizeBlocksConfiguration {
  /** Rows of a tile. */
  readonly rows: number;
  /** Columns of a tile. */
  readonly columns: number;
  /** Warps that share a tile. */
  readonly warps: number;
}

/** The operation that `quantizeBlocks` makes. */
export type QuantizeBlocksOperation<
  X extends FloatName,
  N extends ScaledFormatName,
  I extends { readonly [name: string]: TensorSpec } = Empty,
> = Operation<
  { readonly x: TensorSpec<X> } & GlobalScale<N> & I,
  { readonly out: TensorSpec<ElementNameOf<N>>; readonly scale: TensorSpec<ScaleNameOf<N>> },
  Empty,
  QuantizeBlocksConfiguration
>;

interface Problem {
  readonly x: TensorSpec;
  readonly record: ScaledFormat;
  /** The format of the elements' memory. */
  readonly stored: DType;
  readonly axis: number;
  readonly rounding: ScaleRounding;
  readonly inputs: { readonly [name: string]: TensorSpec };
  readonly prologue: ((tiles: { readonly [name: string]: Tile }) => Tile) | undefined;
  readonly kernels: Map<string, KernelDefinition>;
}

/** Refuses inputs of other shapes than x or its rows, with strides, or with a name that is taken. */
function requireInputs(
  of: string,
  x: TensorSpec,
  inputs: { readonly [name: string]: TensorSpec },
  location: Location,
): void {
  for (const [name, { shape, strides }] of Object.entries(inputs)) {
    const wanted = shape.length === 1 ? x.shape.slice(-1) : x.shape;
    if (shapeText(shape) !== shapeText(wanted) || strides !== undefined || reserved.includes(name))
      throw refused(
        "TW9902",
        `${name} is no input of ${of}`,
        `an array by rows of ${shapeText(x.shape)} or ${shapeText(x.shape.slice(-1))}, with a name of its own`,
        shapeText(shape),
        location,
      );
  }
}

/** x in a format with scales: its elements, and the scales of its blocks in the plain layout. */
export function quantizeBlocks<
  X extends FloatName,
  N extends ScaledFormatName,
  const I extends { readonly [name: string]: TensorSpec } = Empty,
>(spec: QuantizeBlocksSpec<X, N, I>): QuantizeBlocksOperation<X, N, I> {
  const location = captureLocation();
  const of = "quantizeBlocks";
  requireFields(
    of,
    spec,
    {
      x: "array",
      format: "settings",
      axis: "number",
      out: "format",
      scaleRounding: "choice",
      inputs: "named",
      prologue: "function",
    },
    location,
  );
  const x = givenArray("x", of, spec.x, [dim("m"), dim("n")], location);
  requireFloat("x", of, x, location);
  const record = requiredFormat(of, spec.format, location);
  const rank = x.shape.length;
  const axis = givenAxis(of, spec.axis ?? rank - 1, rank, location);
  const rounding = requiredRounding(of, spec.scaleRounding, location);
  if (x.strides !== undefined)
    throw refused(
      "TW9902",
      `x of ${of} has strides`,
      "an array by rows",
      shapeText(x.shape),
      location,
    );
  const { prologue } = spec;
  const inputs: { readonly [name: string]: TensorSpec } = spec.inputs ?? {};
  requireInputs(of, x, inputs, location);
  if (prologue !== undefined)
    tracedResults(
      of,
      Object.fromEntries(
        Object.entries({ x, ...inputs }).map(([name, { shape }]) => [
          name,
          tensor(dtypes.f32, shape),
        ]),
      ),
      {},
      (tiles) => ({ x: prologue(tiles as never) }),
      location,
    );
  const extents = blockExtents(record, rank, axis);
  const counts = x.shape.map((size, each) => ceilDivSize(size, extents[each] ?? 1));
  const stored = requiredStorage(of, spec.out, record, location);
  const problem = {
    ...{ x, record, stored, axis, rounding, inputs },
    prologue: prologue as unknown as Problem["prologue"],
    kernels: new Map<string, KernelDefinition>(),
  };
  return operation({
    name: "quantize_blocks",
    inputs: {
      x,
      ...inputs,
      ...(record.hasGlobalScale && { globalScale: tensor(dtypes.f32, [1]) }),
    },
    outputs: { out: tensor(stored, x.shape), scale: tensor(record.scale, counts) },
    plan: (dimensions) => planBlocks(problem, dimensions),
  }) as unknown as QuantizeBlocksOperation<X, N, I>;
}

const reserved: readonly string[] = ["x", "out", "scale", "globalScale", "batch", "row", "column"];

/** An array as [batch, rows, columns], of which blocks extend along the last two. */
interface Folded {
  readonly shape: readonly [batch: number, rows: number, columns: number];
  readonly block: readonly [rows: number, columns: number];
}

function fold(
  shape: readonly number[],
  record: ScaledFormat,
  axis: number,
  isAlone: boolean,
): Folded {
  const [across] = record.block;
  const extents = blockExtents(record, shape.length, axis);
  const product = (list: readonly number[]): number => list.reduce((all, each) => all * each, 1);
  const last = shape.length - 1;
  const columns = shape[last] ?? 1;
  const [all, length] = [product(shape), extents[last] ?? 1];
  // Blocks that rows are divided by follow each other as if there were one row.
  const isOneRow = axis === last && across === 1 && columns % length === 0;
  if (isOneRow && isAlone && all < 2 ** 31) return { shape: [1, 1, all], block: [1, length] };
  // Rows of a block: the axis itself, or the one beside it; where a row has its own scales, all rows are alike.
  if (axis === last && across === 1)
    return { shape: [1, product(shape.slice(0, -1)), columns], block: [1, extents[last] ?? 1] };
  const along = axis === last ? last - 1 : axis;
  const inner = across === 1 ? product(shape.slice(along + 1)) : columns;
  const rows = shape[along] ?? 1;
  const between = across === 1 ? 1 : product(shape.slice(along + 1, -1));
  if (between > 1) throw new Error("blocks of two axes that are no neighbours");
  return {
    shape: [product(shape.slice(0, Math.max(0, along))), rows, inner],
    block: [extents[along] ?? 1, across === 1 ? 1 : (extents[last] ?? 1)],
  };
}

/** Whether the operation is made for blocks along this axis: two axes that blocks extend along have to be the last ones. */
export function isFoldable(
  { block: [across] }: Pick<ScaledFormat, "block">,
  rank: number,
  axis: number,
): boolean {
  return across === 1 || axis >= rank - 2;
}

/**
 * Blocks that a processor is to hold at once, so that while some wait for memory others compute: those that have registers for the numbers of their lanes, and for what is computed of
 * eight at a time.
 */
function residentBlocks({ bits }: DType, elements: number, warps: number): number {
  const lanes = warps * lanesPerWarp;
  const registers = (elements * bits) / 32 / lanes + 48;
  return Math.max(1, Math.floor(2 ** 16 / (registers * lanes)));
}

/** Elements of a tile, for as many loads in flight as memory needs. */
const tileElements = 4096;

function configure({
  shape: [, rows, columns],
  block: [down, across],
}: Folded): QuantizeBlocksConfiguration {
  const least = powerOfTwoFrom(down) * powerOfTwoFrom(across);
  const room = Math.max(tileElements, least);
  const wide = Math.max(across, Math.min(powerOfTwoFrom(columns), room / down));
  const high = Math.max(down, Math.min(powerOfTwoFrom(rows), room / wide));
  return { rows: high, columns: wide, warps: high * wide > tileElements ? 8 : 4 };
}

function planBlocks(
  problem: Problem,
  dimensions: { readonly [name: string]: number },
): Planned<QuantizeBlocksConfiguration> {
  const { x, record, axis, inputs, kernels } = problem;
  const { shape } = laidOut(x, dimensions);
  const isAlone = Object.values(inputs).every((input) => input.shape.length > 1);
  const folded = fold(shape, record, axis, isAlone);
  const configuration = configure(folded);
  const [batch, rows, columns] = folded.shape;
  if (batch * rows * columns === 0) return { configuration, source: "heuristic", launches: [] };
  const counts = [batch, Math.ceil(rows / folded.block[0]), Math.ceil(columns / folded.block[1])];
  const last = shape.at(-1) ?? 1;
  const launches = () => {
    const sizes = [
      alignedDimension("rows", rows),
      columnsOf(columns, configuration.columns),
      [last === columns, batch * rows === 1],
    ];
    const text = JSON.stringify([configuration, folded.block, sizes]);
    const known = kernels.get(text) ?? blockKernel(problem, folded, configuration);
    kernels.set(text, known);
    const whole = (name: string) => [name, { argument: name, shape: folded.shape }] as const;
    return [
      {
        kernel: known,
        arguments: {
          ...Object.fromEntries(
            ["x", "out", ...Object.keys(inputs)].map((name) =>
              inputs[name]?.shape.length === 1 ? [name, { argument: name }] : whole(name),
            ),
          ),
          scale: { argument: "scale", shape: counts },
          ...(record.hasGlobalScale && { globalScale: { argument: "globalScale" } }),
        },
      },
    ];
  };
  return { configuration, source: "heuristic", launches };
}

/** Columns, of which it is said what power of two divides them, up to those of a tile: whole tiles have no edges that lanes would look at. */
function columnsOf(count: number, ofTile: number): Dimension {
  let multipleOf = ofTile;
  while (count % multipleOf !== 0) multipleOf /= 2;
  return dim("columns", { multipleOf });
}

/** The arrays of the kernel, and the windows of them that a block's tile has. */
interface Arrays {
  readonly found: <D extends DTypeName>(name: string) => Ref<D>;
  readonly window: (name: string, height: number, width: number) => Ref;
  /** The tile of x or of a further array. */
  readonly loaded: (name: string) => Tile;
}

function arraysOf(
  given: object,
  isOneRow: boolean,
  inputs: Problem["inputs"],
  { rows, columns }: Pick<QuantizeBlocksConfiguration, "rows" | "columns">,
): Arrays {
  const axes = given as { readonly [name: string]: Scalar<"i32"> | undefined };
  const none = constant(dtypes.i32, 0);
  const axis = (name: string): Scalar<"i32"> => (isOneRow ? none : (axes[name] ?? none));
  const [batch, row, column] = [axis("batch"), axis("row"), axes["column"] ?? none];
  const found = <D extends DTypeName>(name: string): Ref<D> => {
    const ref = (given as { readonly [name: string]: Ref<D> | undefined })[name];
    if (ref === undefined) throw new Error(`the kernel has no ${name}`);
    return ref;
  };
  const window = (name: string, height: number, width: number): Ref =>
    found(name).at(batch, slice(row.mul(height), height), slice(column.mul(width), width));
  const loaded = (name: string): Tile => {
    if (inputs[name]?.shape.length !== 1) return window(name, rows, columns).load();
    const ofColumns: Tile = found(name)
      .at(slice(column.mul(columns), columns))
      .load();
    return ofColumns.reshape([1, columns]);
  };
  return { found, window, loaded };
}

/** What is quantised: x, or what a prologue makes of it and of further arrays. */
function quantised(
  { loaded }: Arrays,
  prologue: Problem["prologue"],
  further: readonly string[],
): Tile {
  if (prologue === undefined) return loaded("x");
  const tiles = ["x", ...further].map((name) => [name, loaded(name).cast(dtypes.f32)] as const);
  return prologue(Object.fromEntries(tiles)).cast(dtypes.f32);
}

function blockKernel(
  { x, record, stored, rounding, inputs, prologue }: Problem,
  { shape: [batchCount, rowCount, columnCount], block: [down, across] }: Folded,
  { rows, columns, warps }: QuantizeBlocksConfiguration,
): KernelDefinition {
  const isOneRow = batchCount === 1 && rowCount === 1;
  const high: Size = isOneRow ? 1 : alignedDimension("rows", rowCount);
  const wide = columnsOf(columnCount, columns);
  const sizes: readonly Size[] = [isOneRow ? 1 : dim("batch_size"), high, wide];
  const counts = [...sizes.slice(0, 1), cdiv(high, down), cdiv(wide, across)];
  const own = Object.entries(inputs).map(
    ([name, { dtype, shape }]) =>
      [name, tensor(dtype, shape.length === 1 ? [wide] : sizes)] as const,
  );
  return kernel(
    {
      name: `quantize_${record.name}`,
      grid: {
        column: cdiv(wide, columns),
        ...(!isOneRow && { row: cdiv(high, rows), batch: dim("batch_size") }),
      },
      warps,
      ...(prologue === undefined && {
        minBlocksPerMultiprocessor: residentBlocks(x.dtype, rows * columns, warps),
      }),
      inputs: {
        x: tensor(x.dtype, sizes),
        ...Object.fromEntries(own),
        ...(record.hasGlobalScale && { globalScale: tensor(dtypes.f32, [1]) }),
      },
      outputs: { out: tensor(stored, sizes), scale: tensor(record.scale, counts) },
    },
    (given) => {
      const arrays = arraysOf(given, isOneRow, inputs, { rows, columns });
      const isShort = x.dtype.bits === 16 && prologue === undefined;
      const { codes, elements } = blocksOf(
        quantised(arrays, prologue, Object.keys(inputs)).reshape([
          rows / down,
          down,
          columns / across,
          across,
        ]),
        { record, rounding, stored },
        isShort,
        record.hasGlobalScale ? arrays.found<"f32">("globalScale") : undefined,
      );
      arrays
        .window("scale", rows / down, columns / across)
        .store(codes.reshape([rows / down, columns / across]));
      arrays.window("out", rows, columns).store(elements().reshape([rows, columns]));
    },
  ) as unknown as KernelDefinition;
}
