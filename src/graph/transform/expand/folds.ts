/**
 * Reductions with any combination as ops that have derivatives: neighbours are combined in pairs, by the region over
 * whole arrays, until one element is left. Order is kept, so the region need not commute.
 *
 *   [a b c d e]  ->  [ab cd e]  ->  [abcd e]  ->  [abcde]
 */
import type { GraphBuilder } from "../../infer/builder.ts";
import { completeWindow, windowExtent } from "../../infer/window.ts";
import type { GraphOp, GraphRegion, GraphValue } from "../../ops/node.ts";
import { inlineRegion } from "../../ops/rebuild.ts";
import { sizeOf } from "../../ops/types.ts";
import { broadcastInDim, reshape, transpose, typeOfValue } from "../arithmetic.ts";
import { range } from "../product-transpose-rules.ts";
import { vmap } from "../vmap.ts";

function shapeOf(value: GraphValue): readonly number[] {
  return typeOfValue(value).shape;
}

/** The region over arrays of one shape, element by element. */
function combine(
  builder: GraphBuilder,
  region: GraphRegion,
  lefts: readonly GraphValue[],
  rights: readonly GraphValue[],
): readonly GraphValue[] {
  const [first] = lefts;
  if (first === undefined) return [];
  const shape = shapeOf(first);
  const size = sizeOf(shape);
  const inputs = [...lefts, ...rights].map((value) => reshape(builder, value, [size]));
  const graph = vmap(
    region,
    size,
    inputs.map(() => true),
  );
  return inlineRegion(builder, graph, inputs).map((value) => reshape(builder, value, shape));
}

/** Columns from `start` on, every `stride`-th, before `limit`. */
function columns(
  builder: GraphBuilder,
  value: GraphValue,
  start: number,
  limit: number,
  stride: number,
): GraphValue {
  const [rows = 0] = shapeOf(value);
  return builder.one(
    "stablehlo.slice",
    { operand: value },
    { start_indices: [0, start], limit_indices: [rows, limit], strides: [1, stride] },
  );
}

export function expandReduce(
  op: GraphOp<"stablehlo.reduce">,
  builder: GraphBuilder,
): readonly GraphValue[] {
  const { inputs, init_values: inits } = op.operands;
  const { dimensions } = op.attributes;
  const [first] = inputs;
  const shape = first === undefined ? [] : shapeOf(first);
  const kept = range(0, shape.length).filter((axis) => !dimensions.includes(axis));
  const extents = kept.map((axis) => shape[axis] ?? 1);
  const rows = sizeOf(extents);
  let count = sizeOf(dimensions.map((axis) => shape[axis] ?? 1));
  let values: readonly GraphValue[] = inputs.map((value) =>
    reshape(builder, transpose(builder, value, [...kept, ...dimensions]), [rows, count]),
  );
  const cut = (start: number, limit: number, stride: number): readonly GraphValue[] =>
    values.map((value) => columns(builder, value, start, limit, stride));
  while (count > 1) {
    const even = count - (count % 2);
    const pairs = combine(builder, op.regions.body, cut(0, even, 2), cut(1, even, 2));
    const last = even === count ? [] : cut(even, count, 1);
    values = pairs.map((pair, i) => {
      const rest = last[i];
      if (rest === undefined) return pair;
      return builder.one("stablehlo.concatenate", { inputs: [pair, rest] }, { dimension: 1 });
    });
    count = Math.ceil(count / 2);
  }
  const starts = inits.map((value) => broadcastInDim(builder, value, [rows, 1], []));
  const all = count === 0 ? starts : combine(builder, op.regions.body, starts, values);
  return all.map((value) => reshape(builder, value, extents));
}

/** Each place of the window as a slice of the padded operand; the slices are combined one after another. */
export function expandReduceWindow(
  op: GraphOp<"stablehlo.reduce_window">,
  builder: GraphBuilder,
): readonly GraphValue[] {
  const { inputs, init_values: inits } = op.operands;
  const { attributes } = op;
  const [first] = inputs;
  const shape = first === undefined ? [] : shapeOf(first);
  const window = completeWindow(shape.length, {
    sizes: attributes.window_dimensions,
    strides: attributes.window_strides,
    padding: attributes.padding,
    baseDilations: attributes.base_dilations,
    windowDilations: attributes.window_dilations,
  });
  const extents = shape.map((extent, axis) => windowExtent(window, axis, extent));
  const padded = inputs.map((operand, i) =>
    builder.one(
      "stablehlo.pad",
      { operand, padding_value: inits[i] as GraphValue },
      {
        edge_padding_low: window.padding.map(([low = 0]) => low),
        edge_padding_high: window.padding.map(([, high = 0]) => high),
        interior_padding: window.baseDilations.map((each) => each - 1),
      },
    ),
  );
  let values: readonly GraphValue[] = inits.map((value) =>
    broadcastInDim(builder, value, extents, []),
  );
  for (const place of placesOf(window.sizes)) {
    const starts = place.map((at, axis) => at * (window.windowDilations[axis] ?? 1));
    const limits = starts.map(
      (start, axis) =>
        start + Math.max(0, (extents[axis] ?? 0) - 1) * (window.strides[axis] ?? 1) + 1,
    );
    const slices = padded.map((operand) =>
      builder.one(
        "stablehlo.slice",
        { operand },
        { start_indices: starts, limit_indices: limits, strides: window.strides },
      ),
    );
    values = combine(builder, op.regions.body, values, slices);
  }
  return values;
}

/** Every place of a window, the last axis fastest. */
function placesOf(sizes: readonly number[]): readonly (readonly number[])[] {
  return sizes.reduce<readonly (readonly number[])[]>(
    (places, extent) => places.flatMap((place) => range(0, extent).map((at) => [...place, at])),
    [[]],
  );
}

/** The region of a map over whole arrays. */
export function expandMap(
  op: GraphOp<"stablehlo.map">,
  builder: GraphBuilder,
): readonly GraphValue[] {
  return combine(builder, op.regions.computation, op.operands.inputs, []);
}
