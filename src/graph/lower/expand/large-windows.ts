/**
 * Large windows in steps, axis by axis: combinations of 8 neighbours, of 8 of those, and so on, of which a window is a few. Elements stay in
 * their order, so that any region will do, and sums lose nothing to differences.
 *
 *   50 = 6·8 + 2      x ─▶ eights of neighbours ─▶ e[i], e[i + 8] … e[i + 40], x[i + 48], x[i + 49]
 *
 * Padding and holes are initial values that take part, as everywhere, and the initial values themselves come first. Windows that lie side by
 * side and fill the operand are a reduction.
 */
import { closedRegion, identityOf } from "./monoid.ts";
import type { GraphBuilder } from "../../infer/builder.ts";
import { combinerKind, isCombiner } from "../../ops/combiner.ts";
import { isNarrowFloat } from "../../ops/elements.ts";
import { graphRegion } from "../../ops/node.ts";
import type { GraphOp, GraphRegion, GraphValue } from "../../ops/node.ts";
import { copyRegion } from "../../ops/rebuild.ts";
import { sizeOf } from "../../ops/types.ts";
import { windowsOf } from "../../ops/windows.ts";
import {
  binary,
  broadcastInDim,
  combiner,
  convert,
  reshape,
  typeOfValue,
} from "../../transform/arithmetic.ts";

type ReduceWindow = GraphOp<"stablehlo.reduce_window">;
type Values = readonly GraphValue[];

/** So many taps take no longer one by one than in steps through memory. */
const fewTaps = 24;
const step = 8;

function shapeOfFirst([first]: Values): readonly number[] {
  return first === undefined ? [] : typeOfValue(first).shape;
}

function isPlainPadding(op: ReduceWindow): boolean {
  const { padding = [], base_dilations: dilations = [] } = op.attributes;
  return padding.flat().every((each) => each === 0) && dilations.every((each) => each === 1);
}

/** Whether windows lie side by side and fill the operand. */
export function isReduction(op: ReduceWindow): boolean {
  const shape = shapeOfFirst(op.operands.inputs);
  const windows = windowsOf(op.attributes.window_dimensions, op.attributes);
  return (
    isPlainPadding(op) &&
    windows.some(({ size }) => size > 1) &&
    windows.every(
      ({ size, stride, windowDilation }, axis) =>
        (shape[axis] ?? 1) % size === 0 &&
        (stride === size || shape[axis] === size) &&
        (size === 1 || windowDilation === 1),
    )
  );
}

/** As a reduction, where the initial values may take part more than once. */
export function expandSideBySide(op: ReduceWindow, builder: GraphBuilder): Values {
  const { inputs, init_values: inits } = op.operands;
  const isKnown = inputs.length === 1 && isCombiner(combinerKind(op.regions.body));
  const body = closedRegion(builder, op.regions.body);
  const isNeutral = body !== undefined && identityOf(builder, body, inits) !== undefined;
  if (!isKnown && !isNeutral) return expandLargeWindows(op, builder);
  const { window_dimensions: sizes } = op.attributes;
  const cut = shapeOfFirst(inputs).flatMap((extent, axis) => {
    const size = sizes[axis] ?? 1;
    return [extent / size, size];
  });
  return builder.add(
    "stablehlo.reduce",
    { inputs: inputs.map((value) => reshape(builder, value, cut)), init_values: inits },
    { dimensions: sizes.map((_, axis) => 2 * axis + 1) },
    { regions: op.regions },
  );
}

/** Whether windows overlap so much that steps pay. */
export function isLarge(op: ReduceWindow): boolean {
  const { window_dimensions: sizes } = op.attributes;
  const [result] = op.results;
  const isEmpty = result === undefined || sizeOf(typeOfValue(result).shape) === 0;
  return !isEmpty && sizeOf(sizes) > fewTaps;
}

export function expandLargeWindows(op: ReduceWindow, builder: GraphBuilder): Values {
  const { body } = op.regions;
  const { inputs, init_values: inits } = op.operands;
  const kind = combinerKind(body);
  const [element] = inputs.map((value) => typeOfValue(value).element);
  const isWidened =
    inputs.length === 1 &&
    element !== undefined &&
    isNarrowFloat(element) &&
    (kind === "stablehlo.add" || kind === "stablehlo.multiply");
  const computation = isWidened && element !== undefined ? combiner(builder, "f32", kind) : body;
  const widened = (values: Values): Values =>
    isWidened ? values.map((value) => convert(builder, value, "f32")) : values;
  const starts = widened(inits);
  const combine = (left: Values, right: Values): Values =>
    mapped(builder, computation, left, right);
  const windows = windowsOf(op.attributes.window_dimensions, op.attributes);
  let values: Values = widened(inputs).map((value, i) =>
    padded(builder, op, value, starts[i] ?? value),
  );
  // From the innermost axis on, elements of a window are combined in their order.
  for (const [axis, { size, stride, windowDilation }] of [...windows.entries()].reverse())
    values = alongAxis(builder, values, combine, { axis, size, stride, spacing: windowDilation });
  const shape = shapeOfFirst(values);
  const begun = combine(
    starts.map((start) => broadcastInDim(builder, start, shape, [])),
    values,
  );
  return begun.map((value, i) =>
    convert(builder, value, typeOfValue(op.results[i] ?? value).element),
  );
}

function padded(
  builder: GraphBuilder,
  op: ReduceWindow,
  operand: GraphValue,
  start: GraphValue,
): GraphValue {
  if (isPlainPadding(op)) return operand;
  const { shape } = typeOfValue(operand);
  const { padding, base_dilations: dilations } = op.attributes;
  const edge = (side: 0 | 1): readonly number[] =>
    shape.map((_, axis) => padding?.[axis]?.[side] ?? 0);
  return builder.one(
    "stablehlo.pad",
    { operand, padding_value: start },
    {
      edge_padding_low: edge(0),
      edge_padding_high: edge(1),
      interior_padding: shape.map((_, axis) => (dilations?.[axis] ?? 1) - 1),
    },
  );
}

/** A region over scalars at every element. */
function mapped(
  builder: GraphBuilder,
  computation: GraphRegion,
  left: Values,
  right: Values,
): Values {
  const kind = combinerKind(computation);
  const [lhs, rhs] = [left[0], right[0]];
  if (left.length === 1 && lhs !== undefined && rhs !== undefined && isCombiner(kind))
    return [binary(builder, kind, lhs, rhs)];
  const dimensions = shapeOfFirst(left).map((_, axis) => axis);
  // A map has one result: of several, each is computed by a region that returns it alone.
  return left.map((_, i) => {
    const own = copyRegion(computation, new Map());
    const alone = graphRegion(own.parameters, own.ops, own.results.slice(i, i + 1));
    const regions = { computation: alone };
    return builder.one(
      "stablehlo.map",
      { inputs: [...left, ...right] },
      { dimensions },
      { regions },
    );
  });
}

interface Along {
  readonly axis: number;
  readonly size: number;
  readonly stride: number;
  readonly spacing: number;
}

/** Neighbours from an offset on, as many as windows of a reach have, each `stride` apart. */
function shifted(
  builder: GraphBuilder,
  values: Values,
  axis: number,
  {
    offset,
    count,
    stride,
  }: { readonly offset: number; readonly count: number; readonly stride: number },
): Values {
  const shape = shapeOfFirst(values);
  const limit = offset + (count - 1) * stride + 1;
  if (offset === 0 && stride === 1 && count === shape[axis]) return values;
  const only = (at: number, others: (axis: number) => number): readonly number[] =>
    shape.map((_, each) => (each === axis ? at : others(each)));
  return values.map((operand) =>
    builder.one(
      "stablehlo.slice",
      { operand },
      {
        start_indices: only(offset, () => 0),
        limit_indices: only(limit, (each) => shape[each] ?? 0),
        strides: only(stride, () => 1),
      },
    ),
  );
}

function alongAxis(
  builder: GraphBuilder,
  values: Values,
  combine: (left: Values, right: Values) => Values,
  { axis, size, stride, spacing }: Along,
): Values {
  const extent = shapeOfFirst(values)[axis] ?? 0;
  const count = Math.floor((extent - (size - 1) * spacing - 1) / stride) + 1;
  if (size === 1 && stride === 1) return values;
  // levels[j] has combinations of step ** j neighbours.
  const levels: Values[] = [values];
  for (let span = step; span <= size; span *= step) {
    const below = levels.at(-1) ?? values;
    const apart = (span / step) * spacing;
    const own = (shapeOfFirst(below)[axis] ?? 0) - (step - 1) * apart;
    const taps = Array.from({ length: step }, (_, tap) =>
      shifted(builder, below, axis, { offset: tap * apart, count: own, stride: 1 }),
    );
    levels.push(taps.reduce(combine));
  }
  const pieces: Values[] = [];
  let offset = 0;
  for (const [level, own] of [...levels.entries()].reverse()) {
    const span = step ** level;
    for (; size - offset >= span; offset += span)
      pieces.push(shifted(builder, own, axis, { offset: offset * spacing, count, stride }));
  }
  return pieces.reduce(combine);
}
