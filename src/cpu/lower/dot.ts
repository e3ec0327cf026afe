/**
 * Matrix products of tiles: micro-kernels (`src/cpu/products`) on factors where they lie, or on packed panels of them.
 *
 *   a tile or a window whose columns stay in the cache, or are read once       as it is
 *   any other tile                                                            packed
 *   any other window on memory, or its load     packed from there, where it lies inside of its array; elsewhere its tile is
 *
 * Packing converts narrow formats, and takes transposes as other strides.
 */
import { f32, f64, i32 as int32 } from "../../formats/dtype.ts";
import type { DType } from "../../formats/dtype.ts";
import type { Op, Value } from "../../ir/node.ts";
import { i32, op as operation } from "../loops/builder.ts";
import type { Callee, Expression } from "../loops/ir.ts";
import { numberBytes } from "../products/micro-kernel.ts";
import type { ProductNumbers } from "../products/micro-kernel.ts";
import { packingSlack } from "../products/packing.ts";
import { defineOperandPacking, productNumbers } from "../products/product.ts";
import { blockShape, defineTileProduct } from "../products/tile-product.ts";
import type { BlockShape, TileProduct } from "../products/tile-product.ts";
import { windowLanes } from "./access.ts";
import { windowBase } from "./window-access.ts";
import { both, expressionOf, mulExtents } from "./held.ts";
import type { Bounds, Extent, HeldRef, HeldTile } from "./held.ts";
import { slotBytes } from "./lanes.ts";
import { axisGroups, overElements } from "./loops-of-tiles.ts";
import { tileAddress } from "./lowering.ts";
import { definedOnce } from "./module-functions.ts";
import type { Lowering } from "./lowering.ts";
import { storeIntoTile, tileOf } from "./tiles.ts";

export interface Factor {
  readonly value: Value;
  readonly dtype: DType;
  readonly shape: readonly number[];
}

const sumFormats: { readonly [N in ProductNumbers]: DType } = {
  f32,
  f64,
  i32: int32,
  pairs: int32,
};

/** The format in which products are summed; undefined where vectors do not have it. */
export function productDtype(left: DType, right: DType, accumulator: DType): DType | undefined {
  const numbers = productNumbers({ a: left, b: right });
  // Sums of f64 are fused multiply-adds, one after the other, which vectors do not promise.
  if (numbers === undefined || numbers === "f64") return undefined;
  const sums = sumFormats[numbers];
  if (sums === accumulator) return sums;
  return sums === f32 && accumulator.kind === "float" && accumulator.bits === 16 ? f32 : undefined;
}

/** Where elements of a factor lie: the address of the first, and the bytes between rows and between columns. */
interface Source {
  readonly dtype: DType;
  readonly address: Expression;
  readonly row: Extent;
  readonly column: Extent;
  /** An i32 that says whether all elements lie there; undefined where they do. */
  readonly isInside?: Expression | undefined;
}

function tileSource(lowering: Lowering, tile: HeldTile): Source {
  const { dtype, shape } = tile;
  const [, columns = 1] = shape;
  const bytes = slotBytes(dtype);
  const address = tileAddress(lowering.b, tile);
  return { dtype, address, row: columns * bytes, column: bytes };
}

/** Whether all indices of an axis are in bounds; undefined where that is known, or false where it never is. */
function insideOf(
  { b }: Lowering,
  bounds: Bounds | undefined,
  extent: number,
): Expression | undefined {
  if (bounds === undefined) return undefined;
  const { lower, upper } = bounds;
  if (typeof lower === "number" && typeof upper === "number" && lower <= 0 && upper >= extent)
    return undefined;
  const above = operation("i32.le_s", expressionOf(lower), i32.of(0));
  const below = operation("i32.ge_s", expressionOf(upper), i32.of(extent));
  return b.keep(operation("i32.and", above, below), "inside");
}

function windowSource(lowering: Lowering, ref: HeldRef): Source | undefined {
  const [row, column] = ref.strides;
  const { b } = lowering;
  if (row === undefined || column === undefined || ref.strides.length !== 2) return undefined;
  if (ref.packed || ref.fault !== undefined) return undefined;
  const bytes = slotBytes(ref.dtype);
  const inside = ref.bounds.map((bounds, axis) => {
    const size = ref.sizes[axis];
    return typeof size === "number" ? insideOf(lowering, bounds, size) : undefined;
  });
  if (ref.sizes.some((size) => typeof size !== "number")) return undefined;
  return {
    dtype: ref.dtype,
    address: windowBase(b, ref),
    row: mulExtents(b, row, bytes),
    column: mulExtents(b, column, bytes),
    isInside: both(b, inside[0], inside[1]),
  };
}

function isPlainLoad({ operands }: Op<"load">): boolean {
  return operands.indices.length === 0 && operands.where === undefined;
}

/** Where the factor lies in memory already; undefined where it has to be computed or converted element by element. */
function sourceOf(lowering: Lowering, value: Value): Source | undefined {
  const held = lowering.held(value);
  if (held.kind === "tile") return held.shape.length === 2 ? tileSource(lowering, held) : undefined;
  if (held.kind === "ref") return windowSource(lowering, held);
  if (held.kind !== "lazy") return undefined;
  const { op } = held;
  if (op.kind === "load")
    // Where the load stands it was found that its window may be accessed.
    return isPlainLoad(op)
      ? windowSource(lowering, { ...lowering.ref(op.operands.ref), fault: undefined })
      : undefined;
  if (op.kind !== "transpose" || op.attributes.permutation.join() !== "1,0") return undefined;
  const turned = sourceOf(lowering, op.operands.source);
  return turned && { ...turned, row: turned.column, column: turned.row };
}

/** A factor as a tile in its own format, also of a window. */
export function factorTile(lowering: Lowering, { value, dtype, shape }: Factor): HeldTile {
  const held = lowering.held(value);
  if (held.kind !== "ref") return tileOf(lowering, value);
  const tile = lowering.temporaryTile(dtype, shape);
  const count = shape.reduce((product, extent) => product * extent, 1);
  lowering.root("window", count, (b) =>
    overElements(
      lowering,
      b,
      shape,
      axisGroups(shape, () => false),
      (elements, position) =>
        storeIntoTile(elements, tile, position, windowLanes(elements, held, position)),
    ),
  );
  return tile;
}

/** Adds the product of the factors to the sums. */
export function emitProduct(lowering: Lowering, left: Factor, right: Factor, sums: HeldTile): void {
  const numbers = productNumbers({ a: left.dtype, b: right.dtype });
  if (numbers === undefined) throw new Error(`no product of ${left.dtype.name}`);
  const [m = 1, k = 1] = left.shape;
  const [, n = 1] = right.shape;
  const bytes = numberBytes[numbers];
  const steps = numbers === "pairs" ? Math.ceil(k / 2) : k;
  const shape = shapeFor(numbers, m, lowering.blockRows);
  const known = { numbers, steps, shape };
  const a = located(lowering, left, { ...known, side: "left", lines: m, others: n });
  const b = located(lowering, right, { ...known, side: "right", lines: n, others: m });
  const multiply = (x: Panels, y: Panels): void => {
    const product = productOf(lowering, {
      numbers,
      m,
      n,
      steps,
      aRow: x.line,
      aStep: x.step,
      aBlockRow: x.blockLine,
      bStep: y.step,
      bBlockColumn: y.blockLine,
      cRow: n * bytes,
      accumulates: true,
      relaxed: lowering.relaxed,
      shape,
    });
    lowering.b.call(product, x.address, y.address, tileAddress(lowering.b, sums));
  };
  const packed = (): void => multiply(panelsOf(lowering, a), panelsOf(lowering, b));
  const [x, y] = [inPlace(a), inPlace(b)];
  const isInside = both(lowering.b, a.source.isInside, b.source.isInside);
  if (x === undefined || y === undefined) packed();
  else if (isInside === undefined) multiply(x, y);
  else lowering.b.if(isInside, () => multiply(x, y), packed);
}

/** Few rows take more columns at once: a sum goes on with the next step only when it has ended this one. */
function shapeFor(numbers: ProductNumbers, m: number, rows: 4 | 6): BlockShape {
  const usual = blockShape(numbers, rows);
  if (m > 2 || numbers === "pairs") return usual;
  return { rows: m, columns: (m === 1 ? 4 : 2) * usual.columns };
}

interface PanelRequest {
  readonly numbers: ProductNumbers;
  readonly steps: number;
  readonly shape: BlockShape;
  readonly side: "left" | "right";
  /** Rows of the left factor, or columns of the right one; and those of the other factor. */
  readonly lines: number;
  readonly others: number;
}

const widthOf = ({ side, shape }: PanelRequest): number =>
  side === "left" ? shape.rows : shape.columns;

interface Panels {
  readonly address: Expression;
  /** Bytes between lines of a block, between steps, and between lines on the way to another block. */
  readonly line: number;
  readonly step: number;
  readonly blockLine: number;
}

/** Whether a strip of a block's columns, a cache line a step, stays in half of the first cache: 64 sets of 8 lines. */
function staysInCache(rowBytes: number, steps: number): boolean {
  const apart = rowBytes & -rowBytes;
  const sets = Math.max(1, 64 / Math.max(1, Math.min(64, apart / 64)));
  return steps <= 4 * sets;
}

/** Columns of the result for which a left factor in memory is not worth a copy: so often its rows are read again. */
const fewColumns = 64;

/** A factor and where its elements lie: those that have to be computed are so first, a window is read where it is. */
interface Located {
  readonly factor: Factor;
  readonly request: PanelRequest;
  readonly source: Source;
  readonly isTile: boolean;
}

function located(lowering: Lowering, factor: Factor, request: PanelRequest): Located {
  const known = sourceOf(lowering, factor.value);
  const isTile = known === undefined || lowering.held(factor.value).kind === "tile";
  const source = isTile ? tileSource(lowering, factorTile(lowering, factor)) : known;
  return { factor, request, source, isTile };
}

/** The factor as it lies, if micro-kernels read it there as fast as in panels; where its window is inside of its array. */
function inPlace({ factor, request, source, isTile }: Located): Panels | undefined {
  const { address, row, column } = source;
  const { numbers, steps, side, others, shape } = request;
  const isPlain = factor.dtype === sumFormats[numbers] && numbers !== "pairs";
  if (!isPlain || typeof row !== "number" || typeof column !== "number") return undefined;
  if (side === "left")
    return isTile || others <= fewColumns
      ? { address, line: row, step: column, blockLine: row }
      : undefined;
  const areNeighbours = column === numberBytes[numbers];
  return areNeighbours && (others <= shape.rows || staysInCache(row, steps))
    ? { address, line: column, step: row, blockLine: column }
    : undefined;
}

function panelsOf(lowering: Lowering, place: Located): Panels {
  const { factor, request, source } = place;
  const { numbers, steps, lines } = request;
  const direct = source.isInside === undefined ? inPlace(place) : undefined;
  if (direct !== undefined) return direct;
  const width = widthOf(request);
  const bytes = numberBytes[numbers];
  const panelLines = Math.ceil(lines / width) * width;
  const slack = packingSlack(width, bytes);
  const storage = lowering.scratch.take(panelLines * steps * bytes + slack);
  lowering.temporaries.push(storage);
  const target = lowering.b.keep(
    i32.add(lowering.scratchAddress, i32.of(storage.offset)),
    "panels",
  );
  const pack = (from: Source): void => packInto(lowering, factor, request, from, target);
  if (source.isInside === undefined) pack(source);
  else
    lowering.b.if(
      source.isInside,
      () => pack(source),
      () => pack(tileSource(lowering, factorTile(lowering, factor))),
    );
  return { address: target, line: bytes, step: width * bytes, blockLine: steps * bytes };
}

function packInto(
  lowering: Lowering,
  { shape }: Factor,
  request: PanelRequest,
  { dtype, address, row, column }: Source,
  target: Expression,
): void {
  const { numbers, lines, side } = request;
  const width = widthOf(request);
  const [first = 1, second = 1] = shape;
  const steps = side === "left" ? second : first;
  const [line, step] = side === "left" ? [row, column] : [column, row];
  const pack = definedOnce(lowering, `pack ${numbers} ${dtype.name} ${width}`, () =>
    defineOperandPacking(lowering.module, numbers, { from: dtype, lines: width }),
  );
  lowering.b.call(
    pack,
    address,
    target,
    i32.of(lines),
    i32.of(steps),
    expressionOf(line),
    expressionOf(step),
  );
}

function productOf(lowering: Lowering, product: TileProduct): Callee {
  return definedOnce(lowering, `product ${JSON.stringify(product)}`, () =>
    defineTileProduct(lowering.module, product),
  );
}
