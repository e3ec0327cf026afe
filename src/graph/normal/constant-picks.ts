/**
 * Gathers and scatters by constant indices, as what they are: slices, permutations, or gathers by one table; scatters as gathers by the inverse of
 * theirs, so that each element of a result is made once and nothing is sorted.
 *
 *   x[:, i, j] of a triangle           reshape(x: [b, 27 · 27]), gathered by 351 numbers
 *   zeros[:, i, j] += u                select(hit, gather(u, inverse), 0)       inverse: which update a slot has
 *   x[0::2], x[::-1]                   slice, reverse
 *   x.at[3].add(u)                     dynamic_update_slice(x, slice(x) + u, 3)
 *
 * Bits stay: a slot with several updates combines them in their order, an index vector out of bounds is clamped by a gather and drops an update.
 */
import type { GraphBuilder } from "../infer/builder.ts";
import { combinerKind } from "../ops/combiner.ts";
import { literal } from "../ops/literal.ts";
import { graphValue } from "../ops/node.ts";
import type { GraphOp, GraphRegion, GraphValue } from "../ops/node.ts";
import { rebuildOp } from "../ops/rebuild.ts";
import { sizeOf, tensorType } from "../ops/types.ts";
import {
  broadcastInDim,
  reshape,
  select,
  splatOf,
  transpose,
  typeOfValue,
} from "../transform/arithmetic.ts";
import { range } from "../transform/product-transpose-rules.ts";
import { constantNumbers, digitsOf } from "./constant-indices.ts";
import type { Rewrite } from "./rewriting.ts";

type Scatter = GraphOp<"stablehlo.scatter">;

/** A larger table is not worth its memory. */
const mostSlots = 2 ** 20;
/** With more updates of one slot it is better to sort them. */
const mostHits = 4;

/** Axes in the order in which a matrix of rows has them: before the picked ones, picked, behind them. */
interface PickedAxes {
  readonly before: readonly number[];
  readonly picked: readonly number[];
  readonly behind: readonly number[];
}

/** The picked axes side by side, where the first of them lies. */
function pickedAxes(rank: number, picked: readonly number[]): PickedAxes {
  const sorted = [...picked].sort((left, right) => left - right);
  const [first = 0] = sorted;
  const others = range(0, rank).filter((axis) => !sorted.includes(axis));
  return {
    before: others.filter((axis) => axis < first),
    picked: sorted,
    behind: others.filter((axis) => axis > first),
  };
}

function extentOf(value: GraphValue, axes: readonly number[]): number {
  const { shape } = typeOfValue(value);
  return sizeOf(axes.map((axis) => shape[axis] ?? 1));
}

/** A value as [before, picked, behind]. */
function asPicks(builder: GraphBuilder, value: GraphValue, axes: PickedAxes): GraphValue {
  const { before, picked, behind } = axes;
  const moved = transpose(builder, value, [...before, ...picked, ...behind]);
  return reshaped(
    builder,
    moved,
    [before, picked, behind].map((each) => extentOf(value, each)),
  );
}

/** The value of such a shape with the axes where they were. */
function fromPicks(
  builder: GraphBuilder,
  value: GraphValue,
  { before, picked, behind }: PickedAxes,
  shape: readonly number[],
): GraphValue {
  const order = [...before, ...picked, ...behind];
  const moved = reshaped(
    builder,
    value,
    order.map((axis) => shape[axis] ?? 1),
  );
  return transpose(
    builder,
    moved,
    range(0, shape.length).map((axis) => order.indexOf(axis)),
  );
}

function reshaped(builder: GraphBuilder, value: GraphValue, shape: readonly number[]): GraphValue {
  return typeOfValue(value).shape.join() === shape.join() ? value : reshape(builder, value, shape);
}

function sliced(
  builder: GraphBuilder,
  operand: GraphValue,
  start: readonly number[],
  limit: readonly number[],
  strides: readonly number[] = start.map(() => 1),
): GraphValue {
  const { shape } = typeOfValue(operand);
  const isWhole = start.every((from, axis) => from === 0 && limit[axis] === shape[axis]);
  if (isWhole && strides.every((stride) => stride === 1)) return operand;
  return builder.one(
    "stablehlo.slice",
    { operand },
    { start_indices: start, limit_indices: limit, strides },
  );
}

function tableOf(builder: GraphBuilder, numbers: readonly number[], shape: readonly number[]) {
  const value = literal(tensorType("i32", shape), Int32Array.from(numbers));
  return builder.one("stablehlo.constant", {}, { value });
}

/** Rows of [before, n, behind] by a table of their numbers. */
function pickRows(builder: GraphBuilder, value: GraphValue, table: readonly number[]): GraphValue {
  const [before = 1, count = 1, behind = 1] = typeOfValue(value).shape;
  const digits = digitsOf(table);
  const [first = 0] = table;
  const [digit] = digits ?? [];
  if (digits !== undefined && digits.length <= 1) {
    const stride = digit?.stride ?? 1;
    const last = first + stride * (table.length - 1);
    const [from, to] = [Math.min(first, last), Math.max(first, last)];
    const step = Math.max(1, Math.abs(stride));
    const part = sliced(builder, value, [0, from, 0], [before, to + 1, behind], [1, step, 1]);
    if (stride === 0)
      return broadcastInDim(builder, part, [before, table.length, behind], [0, 1, 2]);
    if (stride > 0) return part;
    return builder.one("stablehlo.reverse", { operand: part }, { dimensions: [1] });
  }
  const permuted =
    digits === undefined || first !== 0 || table.length !== count
      ? undefined
      : permutedRows(builder, value, digits);
  if (permuted !== undefined) return permuted;
  return builder.one(
    "stablehlo.gather",
    { operand: value, start_indices: tableOf(builder, table, [table.length, 1]) },
    {
      dimension_numbers: {
        offset_dims: [0, 2],
        collapsed_slice_dims: [1],
        operand_batching_dims: [],
        start_indices_batching_dims: [],
        start_index_map: [1],
        index_vector_dim: 1,
      },
      slice_sizes: [before, 1, behind],
      indices_are_sorted: false,
    },
  );
}

/** All rows in an order that is one of digits: a transpose of them. */
function permutedRows(
  builder: GraphBuilder,
  value: GraphValue,
  digits: readonly { readonly count: number; readonly stride: number }[],
): GraphValue | undefined {
  const [before = 1, count = 1, behind = 1] = typeOfValue(value).shape;
  const byStride = digits.toSorted((left, right) => right.stride - left.stride);
  let size = 1;
  for (const digit of byStride.toReversed()) {
    if (digit.stride !== size) return undefined;
    size *= digit.count;
  }
  if (size !== count) return undefined;
  const split = reshape(builder, value, [before, ...byStride.map((each) => each.count), behind]);
  const order = digits.map((digit) => byStride.indexOf(digit) + 1);
  const moved = transpose(builder, split, [0, ...order, digits.length + 1]);
  return reshape(builder, moved, [before, count, behind]);
}

/** The index vectors of constant indices, each a list of its components. */
function indexVectors(
  numbers: readonly number[],
  shape: readonly number[],
  vector: number,
): readonly (readonly number[])[] {
  const components = vector < shape.length ? (shape[vector] ?? 1) : 1;
  const inner = sizeOf(shape.slice(vector + 1));
  return range(0, numbers.length / components).map((at) => {
    const [outer, rest] = [Math.floor(at / inner), at % inner];
    return range(0, components).map(
      (component) => numbers[(outer * components + component) * inner + rest] ?? 0,
    );
  });
}

function clamped(index: number, last: number): number {
  return Math.min(Math.max(index, 0), last);
}

/** The number of an index along several axes. */
function rowNumber(
  vector: readonly number[],
  map: readonly number[],
  { picked }: PickedAxes,
  shape: readonly number[],
): number {
  return picked.reduce(
    (sum, axis) => sum * (shape[axis] ?? 1) + (vector[map.indexOf(axis)] ?? 0),
    0,
  );
}

/** A gather by one index vector that is constant: a slice. */
const gatherOfOneWindow: Rewrite = (op, place) => {
  if (op.kind !== "stablehlo.gather") return undefined;
  const { operand, start_indices: indices } = op.operands;
  const { dimension_numbers: numbers, slice_sizes: sizes } = op.attributes;
  const [result] = op.results;
  const { shape } = typeOfValue(operand);
  const starts = sizeOf(typeOfValue(indices).shape) === numbers.start_index_map.length;
  if (result === undefined || !starts || sizeOf(sizes) === 0) return undefined;
  const found = constantNumbers(indices, place);
  if (found === undefined) return undefined;
  const start = shape.map((extent, axis) => {
    const component = numbers.start_index_map.indexOf(axis);
    return component < 0 ? 0 : clamped(found[component] ?? 0, extent - (sizes[axis] ?? 0));
  });
  const limit = start.map((from, axis) => from + (sizes[axis] ?? 0));
  const { shape: out } = typeOfValue(result);
  return reshaped(place.builder, sliced(place.builder, operand, start, limit), out);
};

/** A gather by constant index vectors of whole rows. */
const gatherByTable: Rewrite = (op, place) => {
  if (op.kind !== "stablehlo.gather") return undefined;
  const { operand, start_indices: indices } = op.operands;
  const { dimension_numbers: numbers, slice_sizes: sizes } = op.attributes;
  const [result] = op.results;
  const { shape } = typeOfValue(operand);
  const { offset_dims: offsets, start_index_map: map, collapsed_slice_dims: collapsed } = numbers;
  if (result === undefined || numbers.operand_batching_dims.length > 0) return undefined;
  const { shape: out } = typeOfValue(result);
  const axes = pickedAxes(shape.length, map);
  const isOfRows =
    map.length > 0 &&
    axes.picked.join() === [...collapsed].sort((left, right) => left - right).join() &&
    sizes.every((size, axis) => collapsed.includes(axis) || size === shape[axis]);
  const batch = range(0, out.length).filter((axis) => !offsets.includes(axis));
  const [first = axes.before.length] = batch;
  const isTogether = batch.every((axis, i) => axis === first + i) && first === axes.before.length;
  if (!isOfRows || !isTogether || sizeOf(out) === 0 || sizeOf(shape) === 0) return undefined;
  const isPlain = place.definition(indices)?.kind === "stablehlo.constant" && map.length === 1;
  const found = constantNumbers(indices, place);
  if (found === undefined) return undefined;
  const table = indexVectors(found, typeOfValue(indices).shape, numbers.index_vector_dim).map(
    (vector) =>
      rowNumber(
        vector.map((index, i) => clamped(index, (shape[map[i] ?? 0] ?? 1) - 1)),
        map,
        axes,
        shape,
      ),
  );
  // What is a gather by a constant already stays one.
  if (isPlain && digitsOf(table) === undefined) return undefined;
  const { builder } = place;
  return reshaped(builder, pickRows(builder, asPicks(builder, operand, axes), table), out);
};

/** Old and new tensors combined element by element. */
type Combination = (builder: GraphBuilder, old: GraphValue, value: GraphValue) => GraphValue;

/** How a region combines tensors; undefined where it is not known to do so element by element. */
function elementwiseOf(region: GraphRegion): Combination | undefined {
  const { parameters, ops, results } = region;
  if (parameters.length !== 2 || results.length !== 1) return undefined;
  if (results[0] === parameters[1]) return (_, __, value) => value;
  if (combinerKind(region) === undefined || ops.length !== 1) return undefined;
  // One op of two operands works on tensors as on scalars.
  const [op] = ops;
  const [left, right] = parameters;
  if (op === undefined || left === undefined || right === undefined) return undefined;
  return (builder, old, value) => {
    const operands = new Map([
      [left, old],
      [right, value],
    ]);
    const combined = graphValue(typeOfValue(old));
    const operand = (each: GraphValue): GraphValue => operands.get(each) ?? each;
    builder.append(rebuildOp(op, { operand, results: [combined] }));
    return combined;
  };
}

/** What both rules for scatters need; undefined where indices are not constant, or the update is not of one operand. */
function constantScatter(op: Scatter, place: Parameters<Rewrite>[1]) {
  const [operand, ...others] = op.operands.inputs;
  const [update] = op.operands.updates;
  const [result] = op.results;
  const combine = elementwiseOf(op.regions.update_computation);
  const numbers = op.attributes.scatter_dimension_numbers;
  if (operand === undefined || update === undefined || result === undefined) return undefined;
  const isOne = others.length === 0 && combine !== undefined;
  const sameTypes = typeOfValue(result).element === typeOfValue(operand).element;
  if (!isOne || !sameTypes || numbers.input_batching_dims.length > 0) return undefined;
  if (sizeOf(typeOfValue(update).shape) === 0 || sizeOf(typeOfValue(operand).shape) === 0)
    return undefined;
  const indices = op.operands.scatter_indices;
  const found = constantNumbers(indices, place);
  if (found === undefined) return undefined;
  const vectors = indexVectors(found, typeOfValue(indices).shape, numbers.index_vector_dim);
  return { operand, update, combine, numbers, vectors, shape: typeOfValue(operand).shape };
}

/** A scatter of one window at a constant place. */
const scatterOfOneWindow: Rewrite = (op, place) => {
  if (op.kind !== "stablehlo.scatter") return undefined;
  const of = constantScatter(op, place);
  if (of?.vectors.length !== 1) return undefined;
  const { operand, update, numbers, shape, combine } = of;
  const { builder } = place;
  const { shape: own } = typeOfValue(update);
  const windowAxes = range(0, shape.length).filter(
    (axis) => !numbers.inserted_window_dims.includes(axis),
  );
  const sizes = shape.map((_, axis) => {
    const at = windowAxes.indexOf(axis);
    return at < 0 ? 1 : (own[numbers.update_window_dims[at] ?? 0] ?? 1);
  });
  const [vector = []] = of.vectors;
  const start = shape.map(
    (_, axis) => vector[numbers.scatter_dims_to_operand_dims.indexOf(axis)] ?? 0,
  );
  const limit = start.map((from, axis) => from + (sizes[axis] ?? 1));
  const fits = start.every((from, axis) => from >= 0 && (limit[axis] ?? 0) <= (shape[axis] ?? 0));
  if (!fits) return operand;
  const value = combine(
    builder,
    sliced(builder, operand, start, limit),
    reshaped(builder, update, sizes),
  );
  return builder.one(
    "stablehlo.dynamic_update_slice",
    {
      operand,
      update: value,
      start_indices: start.map((from) => splatOf(builder, tensorType("i32", []), from)),
    },
    {},
  );
};

/** The updates of each slot, in their order. */
function hitsOf(table: readonly (number | undefined)[], slots: number, keepsLast: boolean) {
  const hits = Array.from({ length: slots }, (): number[] => []);
  for (const [update, slot] of table.entries()) {
    if (slot === undefined) continue;
    if (keepsLast) hits[slot] = [update];
    else hits[slot]?.push(update);
  }
  return hits;
}

/** How far each place of a table is from the one before, where that is the same for all and forwards. */
function strideOf(table: readonly (number | undefined)[]): number | undefined {
  const places = table.flatMap((each) => each ?? []);
  const digits = places.length === table.length ? digitsOf(places) : undefined;
  if (digits === undefined || digits.length > 1) return undefined;
  const stride = digits[0]?.stride ?? 1;
  return stride > 0 ? stride : undefined;
}

/** Rows combined with every so many rows of [before, slots, behind], by padding them with holes; undefined where they lie otherwise. */
function spreadRows(
  builder: GraphBuilder,
  value: GraphValue,
  rows: GraphValue,
  table: readonly (number | undefined)[],
  combine: Combination,
): GraphValue | undefined {
  const stride = strideOf(table);
  const [first = 0] = table;
  const { shape } = typeOfValue(value);
  const [, slots = 1] = shape;
  if (stride === undefined) return undefined;
  const high = slots - first - (stride * (table.length - 1) + 1);
  const padded = (operand: GraphValue, number: number): GraphValue =>
    builder.one(
      "stablehlo.pad",
      {
        operand,
        padding_value: splatOf(builder, tensorType(typeOfValue(operand).element, []), number),
      },
      {
        edge_padding_low: [0, first, 0],
        edge_padding_high: [0, high, 0],
        interior_padding: [0, stride - 1, 0],
      },
    );
  if (table.length === slots) return combine(builder, value, rows);
  const isHit = padded(splatOf(builder, { ...typeOfValue(rows), element: "i1" }, 1), 0);
  return select(builder, isHit, combine(builder, value, padded(rows, 0)), value);
}

/** A scatter of rows to constant places, few to each. */
const scatterByTable: Rewrite = (op, place) => {
  if (op.kind !== "stablehlo.scatter") return undefined;
  const of = constantScatter(op, place);
  if (of === undefined) return undefined;
  const { operand, update, numbers, vectors, shape, combine } = of;
  const map = numbers.scatter_dims_to_operand_dims;
  const axes = pickedAxes(shape.length, map);
  const windowAxes = [...axes.before, ...axes.behind];
  const { shape: own } = typeOfValue(update);
  const isOfRows =
    map.length > 0 &&
    axes.picked.join() === numbers.inserted_window_dims.join() &&
    windowAxes.every((axis, i) => own[numbers.update_window_dims[i] ?? 0] === shape[axis]);
  const slots = extentOf(operand, axes.picked);
  if (!isOfRows) return undefined;
  const isInside = (vector: readonly number[]): boolean =>
    vector.every((index, i) => index >= 0 && index < (shape[map[i] ?? 0] ?? 0));
  const table = vectors.map((vector) =>
    isInside(vector) ? rowNumber(vector, map, axes, shape) : undefined,
  );
  const { builder } = place;
  const outer = range(0, own.length).filter((axis) => !numbers.update_window_dims.includes(axis));
  const { parameters, results } = op.regions.update_computation;
  const isSpread = strideOf(table) !== undefined;
  const hits =
    isSpread || slots > mostSlots ? [] : hitsOf(table, slots, results[0] === parameters[1]);
  const most = hits.reduce((count, each) => Math.max(count, each.length), 0);
  if ((!isSpread && slots > mostSlots) || most > mostHits) return undefined;
  const rows = asPicks(builder, update, {
    before: numbers.update_window_dims.slice(0, axes.before.length),
    picked: outer,
    behind: numbers.update_window_dims.slice(axes.before.length),
  });
  let value = asPicks(builder, operand, axes);
  const spread = spreadRows(builder, value, rows, table, combine);
  if (spread !== undefined) return fromPicks(builder, spread, axes, shape);
  const { shape: whole } = typeOfValue(value);
  for (let hit = 0; hit < most; hit += 1) {
    const found = hits.map((each) => each[hit]);
    const isHit = found.map((each) => each !== undefined);
    const next = combine(
      builder,
      value,
      pickRows(
        builder,
        rows,
        found.map((each) => each ?? 0),
      ),
    );
    value = isHit.every(Boolean)
      ? next
      : select(builder, broadcastInDim(builder, truthsOf(builder, isHit), whole, [1]), next, value);
  }
  return fromPicks(builder, value, axes, shape);
};

function truthsOf(builder: GraphBuilder, truths: readonly boolean[]): GraphValue {
  const data = Uint8Array.from(truths, Number);
  const value = literal(tensorType("i1", [truths.length]), data);
  return builder.one("stablehlo.constant", {}, { value });
}

/** A choice that is the same everywhere, whatever it is computed from: as of indices that are within bounds. */
const selectOfConstant: Rewrite = (op, place) => {
  if (op.kind !== "stablehlo.select") return undefined;
  const { pred, on_true: onTrue, on_false: onFalse } = op.operands;
  const spread = place.definition(pred);
  const asked = spread?.kind === "stablehlo.broadcast_in_dim" ? spread.operands.operand : pred;
  if (sizeOf(typeOfValue(asked).shape) === 0) return undefined;
  const found = constantNumbers(asked, place);
  if (found === undefined) return undefined;
  if (found.every((each) => each !== 0)) return onTrue;
  return found.every((each) => each === 0) ? onFalse : undefined;
};

export const constantPicks = {
  "select of a constant": selectOfConstant,
  "gather of one constant window": gatherOfOneWindow,
  "gather by a constant table": gatherByTable,
  "scatter of one constant window": scatterOfOneWindow,
  "scatter by a constant table": scatterByTable,
};
