/** Lowering of ops that rearrange tiles or combine elements of a tile. */
import type { Axis } from "../../formats/arithmetic/index.ts";
import { f32 } from "../../formats/dtype.ts";
import type { DType } from "../../formats/dtype.ts";
import type { AnyOp, Op, Value } from "../../ir/node.ts";
import type { tileOps } from "../../ir/ops/tiles.ts";
import { i32, op as operation } from "../loops/builder.ts";
import { castRule } from "./arithmetic.ts";
import { emitProduct, factorTile, productDtype } from "./dot.ts";
import type { Factor } from "./dot.ts";
import { rowStrides } from "./elements.ts";
import type { HeldTile } from "./held.ts";
import { slotBytes } from "./lanes.ts";
import { dtypeOf, shapeOf } from "./lazy.ts";
import { overElements } from "./loops-of-tiles.ts";
import { tileAddress } from "./lowering.ts";
import type { Lowering } from "./lowering.ts";
import { emitReduce, reduceRule } from "./reduce.ts";
import type { LoweringRules, RegionLowering } from "./regions.ts";
import { asRows, fromRows } from "./row-tiles.ts";
import { emitArgReduce, emitScan, emitSort } from "./rows.ts";
import { computeInto, copyTile, storeIntoTile, tileBytes, tileOf, tileScalar } from "./tiles.ts";
import { pass } from "./value-rules.ts";

/** The axes, which must be neighbours, as one axis of elements in three dimensions. */
export function axisOf(shape: readonly number[], axes: readonly number[]): Axis {
  const product = (list: readonly number[]): number =>
    list.reduce((total, extent) => total * extent, 1);
  const first = Math.min(...axes);
  const last = Math.max(...axes);
  return {
    outer: product(shape.slice(0, first)),
    length: product(shape.slice(first, last + 1)),
    inner: product(shape.slice(last + 1)),
  };
}

function resultOf(op: AnyOp): Value {
  const [result] = op.results;
  if (result === undefined) throw new Error(`${op.kind} has no result`);
  return result;
}

/** Memory for a result: a tile of its own, or a place from which a scalar is read by `finish`. */
function target(lowering: Lowering, result: Value): HeldTile {
  const dtype = dtypeOf(result);
  return result.type.kind === "tile"
    ? lowering.allocateTile(result, dtype, shapeOf(result))
    : lowering.temporaryTile(dtype, []);
}

function finish(lowering: Lowering, result: Value, tile: HeldTile): void {
  if (result.type.kind === "scalar") lowering.holdScalar(result, tileScalar(lowering, tile));
}

function reduce(op: Op<"reduce">, lowering: Lowering): void {
  const { source } = op.operands;
  const { fn, axes } = op.attributes;
  const result = resultOf(op);
  const dtype = dtypeOf(source);
  const rule = reduceRule(fn, dtype);
  if (source.type.kind === "scalar") return pass(lowering, source, result);
  const tile = target(lowering, result);
  if (rule !== undefined) emitReduce(lowering, op, tile, rule);
  else {
    const sorted = [...axes].sort((a, b) => a - b);
    const isRun = sorted.every((axis, i) => i === 0 || axis === (sorted[i - 1] ?? 0) + 1);
    if (!isRun) lowering.refuse(op, `a ${fn} of ${dtype.name} over axes that are no neighbours`);
    const axis = axisOf(shapeOf(source), sorted);
    const from = tileAddress(lowering.b, tileOf(lowering, source));
    lowering.callHost({ op: "reduce", fn, dtype: dtype.name, axis }, [
      from,
      tileAddress(lowering.b, tile),
    ]);
  }
  finish(lowering, result, tile);
}

function concatenate(op: Op<"concatenate">, lowering: Lowering): void {
  const result = resultOf(op);
  const { axis } = op.attributes;
  const shape = shapeOf(result);
  const dtype = dtypeOf(result);
  const tile = lowering.allocateTile(result, dtype, shape);
  const strides = rowStrides(shape);
  let start = 0;
  // Parts in order, so that what one writes behind its rows is written over by the next; of the last, by nobody's.
  for (const part of op.operands.parts) {
    const own = shapeOf(part);
    const source = tileOf(lowering, part);
    const { outer } = axisOf(own, [axis]);
    const bytes = (tileBytes(source) / Math.max(1, outer)) | 0;
    const stride = axis === 0 ? 0 : (strides[axis - 1] ?? 0) * slotBytes(dtype);
    const at = start * (strides[axis] ?? 1) * slotBytes(dtype);
    const { b } = lowering;
    b.countedLoop(i32.of(0), i32.of(outer), 1, (row) =>
      b.run(
        operation(
          "memory.copy",
          i32.add(i32.add(tile.base, i32.of(tile.offset + at)), i32.mul(row, i32.of(stride))),
          i32.add(i32.add(source.base, i32.of(source.offset)), i32.mul(row, i32.of(bytes))),
          i32.of(bytes),
        ),
      ),
    );
    start += own[axis] ?? 1;
  }
}

function scan(op: Op<"scan">, lowering: Lowering): void {
  const { source } = op.operands;
  const { fn, axis, reverse } = op.attributes;
  const result = resultOf(op);
  const from = tileOf(lowering, source);
  const tile = target(lowering, result);
  const dtype = dtypeOf(source).name;
  const along = axisOf(shapeOf(source), [axis]);
  if (!emitScan(lowering, { fn, reverse }, from, along, tile)) {
    const call = { op: "scan", fn, dtype, axis: along, reverse } as const;
    lowering.callHost(
      call,
      [from, tile].map((each) => tileAddress(lowering.b, each)),
    );
  }
  finish(lowering, result, tile);
}

function argReduce(op: Op<"arg_reduce">, lowering: Lowering): void {
  const { source } = op.operands;
  const { fn, axis } = op.attributes;
  const result = resultOf(op);
  const from = tileOf(lowering, source);
  const tile = target(lowering, result);
  const along = axisOf(shapeOf(source), [axis]);
  if (!emitArgReduce(lowering, fn, from, along, tile))
    lowering.callHost(
      { op: "arg", fn, dtype: dtypeOf(source).name, axis: along },
      [from, tile].map((each) => tileAddress(lowering.b, each)),
    );
  finish(lowering, result, tile);
}

function sort(op: Op<"sort">, lowering: Lowering): void {
  const { keys, payloads } = op.operands;
  const { axis, descending, first } = op.attributes;
  const sources = [keys, ...payloads];
  const shape = shapeOf(keys);
  const along = axisOf(shape, [axis]);
  if ((first ?? along.length) === along.length) return sortRows(op, lowering, along);
  const tiles = op.results.map((result, index) => {
    const tile = target(lowering, result);
    const source = sources[index];
    if (source !== undefined) copyTile(lowering.b, tileOf(lowering, source), tile);
    else fillPlaces(lowering, tile, along);
    return tile;
  });
  lowering.callHost(
    {
      op: "sort",
      dtypes: op.results.map((result) => dtypeOf(result).name),
      axis: along,
      descending,
      first,
    },
    tiles.map((tile) => tileAddress(lowering.b, tile)),
  );
}

/** Of rows: the keys where their result lies, and payloads from where they lie to theirs; along other axes, in copies. */
function sortRows(op: Op<"sort">, lowering: Lowering, axis: Axis): void {
  const { keys, payloads } = op.operands;
  const { descending } = op.attributes;
  const isTurned = axis.inner > 1;
  const sources = payloads.map((payload) => {
    const tile = tileOf(lowering, payload);
    return isTurned ? asRows(lowering, tile, axis) : tile;
  });
  const results = op.results.map((result) => target(lowering, result));
  const [sorted, ...others] = isTurned
    ? results.map(({ dtype, shape }) => lowering.temporaryTile(dtype, shape))
    : results;
  if (sorted === undefined) throw new Error("a sort has sorted keys");
  const from = tileOf(lowering, keys);
  copyTile(lowering.b, isTurned ? asRows(lowering, from, axis) : from, sorted);
  const moved = others.map((to, index) => ({ from: sources[index], to }));
  const { outer, length, inner } = axis;
  const rows = { outer: outer * inner, length, inner: 1 };
  emitSort(lowering, { keys: sorted, payloads: moved, axis: rows, descending });
  if (isTurned)
    [sorted, ...others].forEach((tile, index) => {
      const to = results[index];
      if (to === undefined) return;
      fromRows(lowering, { ...tile, shape: [outer, inner, length] }, axis, to);
    });
}

/** Where along the axis each element is. */
function fillPlaces(lowering: Lowering, tile: HeldTile, { outer, length, inner }: Axis): void {
  const { b } = lowering;
  b.countedLoop(i32.of(0), i32.of(outer * length * inner), 1, (at) => {
    const index = operation("i32.rem_u", operation("i32.div_u", at, i32.of(inner)), i32.of(length));
    const address = i32.add(tile.base, i32.mul(at, i32.of(4)));
    b.store("i32.store", address, index, tile.offset);
  });
}

/* ---- products ---- */

export function factorOf(value: Value): Factor {
  const { type } = value;
  if (type.kind === "ref") return { value, dtype: type.dtype, shape: type.shape.map(Number) };
  return { value, dtype: dtypeOf(value), shape: shapeOf(value) };
}

/** Where a product's sums begin: in the accumulator's memory, where nobody reads it any more. */
export function sumsOf(
  lowering: Lowering,
  region: RegionLowering,
  result: Value,
  accumulator: Value | undefined,
  dtype: DType,
): HeldTile {
  const shape = shapeOf(result);
  const held = accumulator === undefined ? undefined : lowering.held(accumulator);
  if (accumulator !== undefined && held?.kind === "tile" && region.isLastUse(accumulator)) {
    lowering.alias(result, held, dtype, shape);
    return held;
  }
  const tile = lowering.allocateTile(result, dtype, shape);
  if (accumulator === undefined) zeroTile(lowering, tile);
  else if (held?.kind === "lazy") computeInto(lowering, accumulator, tile);
  else copyTile(lowering.b, tileOf(lowering, accumulator), tile);
  return tile;
}

export function zeroTile({ b }: Lowering, tile: HeldTile): void {
  b.run(operation("memory.fill", tileAddress(b, tile), i32.of(0), i32.of(tileBytes(tile))));
}

function dot(op: Op<"dot">, lowering: Lowering, region: RegionLowering): void {
  const { left, right, accumulator } = op.operands;
  const { dtype, precision, accumulation = "promoted" } = op.attributes;
  const result = resultOf(op);
  const factors = [factorOf(left), factorOf(right)] as const;
  const [a, b] = factors;
  const native = precision === "tf32" ? undefined : productDtype(a.dtype, b.dtype, dtype);
  if (native === dtype) {
    emitProduct(lowering, a, b, sumsOf(lowering, region, result, accumulator, dtype));
    return;
  }
  const sums = sumsOf(lowering, region, result, accumulator, dtype);
  if (native !== undefined && widenedSums(lowering, a, b, sums, native)) return;
  const [m = 1, k = 1] = a.shape;
  const [, n = 1] = b.shape;
  const [x, y] = [factorTile(lowering, a), factorTile(lowering, b)];
  lowering.callHost(
    {
      op: "dot",
      metadata: 0,
      shape: {
        m,
        n,
        k,
        operand: a.dtype.name,
        operandB: b.dtype.name,
        accumulator: dtype.name,
        precision: precision === "native" ? undefined : precision,
        accumulation,
      },
    },
    [x, y, sums].map((tile) => tileAddress(lowering.b, tile)),
  );
}

/** Sums of a narrow format are made in f32 and rounded once. */
function widenedSums(
  lowering: Lowering,
  a: Factor,
  b: Factor,
  sums: HeldTile,
  native: DType,
): boolean {
  const [widen, narrow] = [castRule(sums.dtype, native), castRule(native, sums.dtype)];
  if (widen === undefined || narrow === undefined || native !== f32) return false;
  const wide = lowering.temporaryTile(native, sums.shape);
  const count = sums.shape.reduce((product, extent) => product * extent, 1);
  const convert = (from: HeldTile, to: HeldTile, rule: typeof widen): void =>
    lowering.root("convert", count, (builder) =>
      overElements(lowering, builder, [count], [[0]], (elements, position) => {
        const flat = { ...from, shape: [count] };
        const lanes = elements.tileLanes(flat, position);
        const code = { builder: elements.builderAt(position), relaxed: false };
        storeIntoTile(elements, { ...to, shape: [count] }, position, rule(code, lanes));
      }),
    );
  convert(sums, wide, widen);
  emitProduct(lowering, a, b, wide);
  convert(wide, sums, narrow);
  return true;
}

/** Another shape of the same elements, also of a scalar. */
function reshape(op: Op<"reshape">, lowering: Lowering): void {
  const { source } = op.operands;
  const result = resultOf(op);
  if (result.type.kind === "scalar" && source.type.kind === "tile") {
    lowering.holdScalar(result, tileScalar(lowering, tileOf(lowering, source)));
    return;
  }
  if (source.type.kind === "scalar" && result.type.kind === "tile") {
    const tile = tileOf(lowering, source);
    lowering.keepTemporary(tile);
    lowering.alias(result, tile, tile.dtype, shapeOf(result));
    return;
  }
  pass(lowering, source, result);
}

/** Tiles are computed where they are used; what comes here is a scalar. */
function same(
  op: Op<"layout_cast"> | Op<"broadcast"> | Op<"slice"> | Op<"transpose">,
  lowering: Lowering,
): void {
  pass(lowering, op.operands.source, resultOf(op));
}

export const tileRules: Pick<LoweringRules, keyof typeof tileOps> = {
  broadcast: same,
  reshape,
  transpose: same,
  layout_cast: same,
  slice: same,
  concatenate,
  reduce,
  scan,
  arg_reduce: argReduce,
  sort,
  dot,
  scaled_dot(op, lowering) {
    lowering.refuse(op, "products with scales by tensor cores");
  },
};
