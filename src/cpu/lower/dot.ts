/**
 * Matrix products of tiles: micro-kernels (`src/cpu/products`) on factors where they lie, or on packed panels of them.
 *
 *   a tile whose columns stay in the cache       as it is
 *   any other tile                               packed
 *   a window on memory, or its load              packed from there, where it lies inside of its array; elsewhere its tile is
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
import type { TileProduct } from "../products/tile-product.ts";
import { windowBase, windowLanes } from "./access.ts";
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
    return isPlainLoad(op) ? windowSource(lowering, lowering.ref(op.operands.ref)) : undefined;
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
  const shape = blockShape(numbers);
  const a = panelsOf(lowering, left, { numbers, steps, lines: m, width: shape.rows, side: "left" });
  const b = panelsOf(lowering, right, {
    numbers,
    steps,
    lines: n,
    width: shape.columns,
    side: "right",
  });
  const product = productOf(lowering, {
    numbers,
    m,
    n,
    steps,
    aRow: a.line,
    aStep: a.step,
    aBlockRow: a.blockLine,
    bStep: b.step,
    bBlockColumn: b.blockLine,
    cRow: n * bytes,
    accumulates: true,
    relaxed: lowering.relaxed,
  });
  lowering.b.call(product, a.address, b.address, tileAddress(lowering.b, sums));
}

interface PanelRequest {
  readonly numbers: ProductNumbers;
  readonly steps: number;
  /** Rows of the left factor, columns of the right one, and how many of them a block has. */
  readonly lines: number;
  readonly width: number;
  readonly side: "left" | "right";
}

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

function panelsOf(lowering: Lowering, factor: Factor, request: PanelRequest): Panels {
  const { numbers, steps, lines, width, side } = request;
  const bytes = numberBytes[numbers];
  const held = lowering.held(factor.value);
  const isPlain = factor.dtype === sumFormats[numbers] && numbers !== "pairs";
  const known = sourceOf(lowering, factor.value);
  // Elements that have to be computed are so first; a window is read where it lies.
  const tile =
    known === undefined || held.kind === "tile" ? factorTile(lowering, factor) : undefined;
  if (tile !== undefined && isPlain) {
    const { address, row, column } = tileSource(lowering, tile);
    if (typeof row === "number" && typeof column === "number") {
      if (side === "left") return { address, line: row, step: column, blockLine: row };
      if (staysInCache(row, steps)) return { address, line: column, step: row, blockLine: column };
    }
  }
  const panelLines = Math.ceil(lines / width) * width;
  const slack = packingSlack(width, bytes);
  const storage = lowering.scratch.take(panelLines * steps * bytes + slack);
  lowering.temporaries.push(storage);
  const target = lowering.b.keep(
    i32.add(lowering.scratchAddress, i32.of(storage.offset)),
    "panels",
  );
  const pack = (source: Source): void => packInto(lowering, factor, request, source, target);
  if (tile !== undefined) pack(tileSource(lowering, tile));
  else if (known?.isInside === undefined) {
    if (known !== undefined) pack(known);
  } else
    lowering.b.if(
      known.isInside,
      () => pack(known),
      () => pack(tileSource(lowering, factorTile(lowering, factor))),
    );
  return { address: target, line: bytes, step: width * bytes, blockLine: steps * bytes };
}

function packInto(
  lowering: Lowering,
  { shape }: Factor,
  { numbers, lines, width, side }: PanelRequest,
  { dtype, address, row, column }: Source,
  target: Expression,
): void {
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
