/** The linear maps of windows: sums, and picking the place that a maximum or minimum is at. */
import type { GraphBuilder } from "../infer/builder.ts";
import { completeWindow } from "../infer/index.ts";
import type { Window } from "../infer/index.ts";
import type { GraphRegion, GraphValue } from "../ops/node.ts";
import type { GraphAttributes } from "../ops/table.ts";
import { tensorType } from "../ops/types.ts";
import type { TensorType } from "../ops/types.ts";
import { combiner, compare, select, typeOfValue, zerosOf } from "./arithmetic.ts";
import type { LinearMap } from "./linear.ts";
import { required, single } from "./maps.ts";

type WindowAttributes = GraphAttributes<"stablehlo.reduce_window">;

export function windowOf(rank: number, attributes: WindowAttributes): Window {
  return completeWindow(rank, {
    sizes: attributes.window_dimensions,
    strides: attributes.window_strides,
    padding: attributes.padding,
    baseDilations: attributes.base_dilations,
    windowDilations: attributes.window_dilations,
  });
}

function windowSum(
  builder: GraphBuilder,
  operand: GraphValue,
  attributes: WindowAttributes,
): GraphValue {
  const { element } = typeOfValue(operand);
  return builder.one(
    "stablehlo.reduce_window",
    { inputs: [operand], init_values: [zerosOf(builder, tensorType(element, []))] },
    attributes,
    { regions: { body: combiner(builder, element, "stablehlo.add") } },
  );
}

/** Sums of windows go back as sums of windows over the cotangent, spread out by the strides. */
export function windowSumming(
  from: TensorType,
  to: TensorType,
  attributes: WindowAttributes,
): LinearMap {
  const window = windowOf(from.shape.length, attributes);
  const at = (list: readonly number[], axis: number): number => list[axis] ?? 1;
  const padding = from.shape.map((extent, axis) => {
    const width = (at(window.sizes, axis) - 1) * at(window.windowDilations, axis);
    const low = width - (window.padding[axis]?.[0] ?? 0);
    const spread = ((to.shape[axis] ?? 0) - 1) * at(window.strides, axis) + 1;
    return [low, (extent - 1) * at(window.baseDilations, axis) + width + 1 - low - spread];
  });
  const back: WindowAttributes = {
    window_dimensions: window.sizes,
    window_strides: window.baseDilations,
    base_dilations: window.strides,
    window_dilations: window.windowDilations,
    padding,
  };
  return single(
    to,
    (builder, tangent) => windowSum(builder, tangent, attributes),
    (builder, cotangent) => windowSum(builder, cotangent, back),
  );
}

/** Keeps the pair whose first member wins. */
function pickRegion(
  builder: GraphBuilder,
  element: TensorType["element"],
  direction: "GE" | "LE",
): GraphRegion {
  const scalar = tensorType(element, []);
  return builder.region([scalar, scalar, scalar, scalar], (inner, parameters) => {
    const [left, kept, right, other] = parameters.map(required);
    const wins = compare(inner, direction, required(left), required(right));
    return [
      select(inner, wins, required(left), required(right)),
      select(inner, wins, required(kept), required(other)),
    ];
  });
}

export interface PickPlace {
  readonly operand: GraphValue;
  /** What windows hold beyond the operand. */
  readonly init: GraphValue;
  readonly result: TensorType;
  readonly attributes: WindowAttributes;
  readonly direction: "GE" | "LE";
}

/** Of each window, the element that stands where the operand's largest or smallest does. */
function picked(builder: GraphBuilder, place: PickPlace, values: GraphValue): GraphValue {
  const { operand, init, attributes, direction } = place;
  const { element } = typeOfValue(operand);
  const zero = zerosOf(builder, tensorType(element, []));
  const [, result] = builder.add(
    "stablehlo.reduce_window",
    { inputs: [operand, values], init_values: [init, zero] },
    attributes,
    { regions: { body: pickRegion(builder, element, direction) } },
  );
  return required(result);
}

/** Each window's element added where the operand's largest or smallest stands. */
function placed(builder: GraphBuilder, place: PickPlace, source: GraphValue): GraphValue {
  const { operand, attributes, direction } = place;
  const { element } = typeOfValue(operand);
  const scalar = tensorType(element, []);
  const { window_dimensions, window_strides, padding } = attributes;
  return builder.one(
    "stablehlo.select_and_scatter",
    { operand, source, init_value: zerosOf(builder, scalar) },
    { window_dimensions, window_strides, padding },
    {
      regions: {
        select: builder.region([scalar, scalar], (inner, [left, right]) => [
          compare(inner, direction, required(left), required(right)),
        ]),
        scatter: combiner(builder, element, "stablehlo.add"),
      },
    },
  );
}

/** The tangent of a maximum or minimum of windows. */
export function picking(place: PickPlace): LinearMap {
  return single(
    place.result,
    (builder, tangent) => picked(builder, place, tangent),
    (builder, cotangent) => placed(builder, place, cotangent),
  );
}

/** The tangent of what select_and_scatter puts there. */
export function placing(place: PickPlace): LinearMap {
  return single(
    typeOfValue(place.operand),
    (builder, tangent) => placed(builder, place, tangent),
    (builder, cotangent) => picked(builder, place, cotangent),
  );
}
