/**
 * Reductions, one result a lane: each lane folds the elements of its result in row-major order, by the op's region,
 * whatever it computes.
 */
import { full, zeros } from "../../../lang/index.ts";
import type { Scalar, Tile } from "../../../lang/index.ts";
import { bool, i32 } from "../../../formats/dtype.ts";
import { combinerKind } from "../../ops/combiner.ts";
import { isNarrowFloat } from "../../ops/elements.ts";
import type { GraphOp, GraphRegion, GraphValue } from "../../ops/node.ts";
import type { GraphOpKind } from "../../ops/table.ts";
import { sizeOf } from "../../ops/types.ts";
import { windowsOf } from "../../ops/windows.ts";
import type { Window } from "../../ops/windows.ts";
import type { PointContext } from "../context.ts";
import { fold } from "../lowering.ts";
import type { Lowerings } from "../lowering.ts";
import {
  addIndex,
  divideIndex,
  isWithin,
  remainderIndex,
  scaleIndex,
  subtractIndex,
  tileOfIndex,
} from "../points/indices.ts";
import type { Index } from "../points/indices.ts";
import { Points, axesOfPosition } from "../points/points.ts";
import { dtypeOf, tensorTypeOf } from "../storage.ts";
import { select } from "../tiles/bits.ts";
import { converted } from "../tiles/convert.ts";
import { isPromoting, promoteReduction, promoteSelection } from "../expand/promote.ts";
import { expandCumulative, isCumulative } from "../expand/cumulative.ts";
import { expandRuns, hasRuns } from "../expand/reduction-runs.ts";
import { isInParts, reducedInline, reduceInParts, tiledReduce } from "../tiled/reduce.ts";
import { combined, foldTurns, initialTiles } from "./fold.ts";
import { sortLowering } from "../sort/lowering.ts";

/** All of several conditions. */
export function allHold(conditions: readonly (boolean | Tile<"bool">)[]): boolean | Tile<"bool"> {
  if (conditions.includes(false)) return false;
  const open = conditions.filter((each) => each !== true) as readonly Tile<"bool">[];
  const [first, ...rest] = open;
  return first === undefined
    ? true
    : rest.reduce((all, each) => all.and(each) as Tile<"bool">, first);
}

/** How a fold takes in elements: by the region in the format of the elements, or a sum or product of narrow floats in f32, rounded once. */
interface Folding {
  readonly lift: (tile: Tile) => Tile;
  readonly combine: (
    carry: readonly Tile[],
    values: readonly Tile[],
    points: Points,
    context: PointContext,
  ) => readonly Tile[];
  readonly finish: (tile: Tile) => Tile;
}

const wideCombiners: { readonly [K in GraphOpKind]?: (left: Tile, right: Tile) => Tile } = {
  "stablehlo.add": (left, right) => left.add(right),
  "stablehlo.multiply": (left, right) => left.mul(right),
};

export function foldingOf(body: GraphRegion, inputs: readonly GraphValue[]): Folding {
  const [only, ...others] = inputs;
  const kind = combinerKind(body);
  const element = only === undefined ? "i1" : tensorTypeOf(only).element;
  const wide = kind === undefined || others.length > 0 ? undefined : wideCombiners[kind];
  if (wide === undefined || !isNarrowFloat(element))
    return {
      lift: (tile) => tile,
      combine: (carry, values, points, context) => combined(body, carry, values, points, context),
      finish: (tile) => tile,
    };
  return {
    lift: (tile) => converted(tile, element, "f32"),
    combine: (carry, values) => carry.map((left, i) => wide(left, values[i] as Tile)),
    finish: (tile) => converted(tile, "f32", element),
  };
}

function reduceAt(
  { operands, attributes, regions }: GraphOp<"stablehlo.reduce">,
  points: Points,
  context: PointContext,
): readonly Tile[] {
  const [first] = operands.inputs;
  if (first === undefined) return [];
  const { shape } = tensorTypeOf(first);
  const { dimensions } = attributes;
  const reduced = shape.filter((_, axis) => dimensions.includes(axis));
  const { lift, combine, finish } = foldingOf(regions.body, operands.inputs);
  const start = initialTiles(operands.init_values, points, context).map(lift);
  return foldTurns(sizeOf(reduced), start, points, context, (turn, carry, inner) => {
    const within = axesOfPosition(turn, reduced);
    let kept = 0;
    let folded = 0;
    const axes = shape.map((_, axis) =>
      dimensions.includes(axis) ? (within[folded++] ?? 0) : points.axis(kept++),
    );
    const place = Points.at(shape, points.tile, axes);
    const values = operands.inputs.map((value) => lift(inner.element(value, place)));
    return combine(carry, values, points, inner);
  }).map(finish);
}

/** The element that a tap of a window covers along an axis, and whether it is one. */
export function tapAt(
  position: Index,
  tap: Index,
  extent: number,
  { stride, baseDilation, windowDilation, low }: Omit<Window, "size">,
): { readonly index: Index; readonly isThere: boolean | Tile<"bool"> } {
  const dilated = addIndex(
    addIndex(scaleIndex(position, stride), scaleIndex(tap, windowDilation)),
    -low,
  );
  const inside = isWithin(dilated, 0, (extent - 1) * baseDilation + 1);
  if (baseDilation === 1) return { index: dilated, isThere: inside };
  const rest = remainderIndex(dilated, baseDilation);
  const onElement =
    typeof rest === "number" ? rest === 0 : (tileOfIndex(rest).eq(0) as Tile<"bool">);
  return { index: divideIndex(dilated, baseDilation), isThere: allHold([inside, onElement]) };
}

function windowTap(
  shape: readonly number[],
  windows: readonly Window[],
  position: readonly Index[],
  turn: number | Scalar<"i32">,
  tile: readonly number[],
): { readonly place: Points; readonly isThere: boolean | Tile<"bool"> } {
  const taps = axesOfPosition(
    turn,
    windows.map(({ size }) => size),
  );
  const axes = windows.map((window, axis) =>
    tapAt(position[axis] ?? 0, taps[axis] ?? 0, shape[axis] ?? 0, window),
  );
  const place = Points.at(
    shape,
    tile,
    axes.map(({ index }) => index),
  );
  return { place, isThere: allHold(axes.map(({ isThere }) => isThere)) };
}

function reduceWindowAt(
  { operands, attributes, regions }: GraphOp<"stablehlo.reduce_window">,
  points: Points,
  context: PointContext,
): readonly Tile[] {
  const [first] = operands.inputs;
  if (first === undefined) return [];
  const { shape } = tensorTypeOf(first);
  const windows = windowsOf(attributes.window_dimensions, attributes);
  const { lift, combine, finish } = foldingOf(regions.body, operands.inputs);
  const start = initialTiles(operands.init_values, points, context).map(lift);
  const count = sizeOf(attributes.window_dimensions);
  return foldTurns(count, start, points, context, (turn, carry, inner) => {
    const { place, isThere } = windowTap(shape, windows, points.axes, turn, points.tile);
    // Padding and holes are initial values that take part.
    const values = operands.inputs.map((value, i) => {
      if (isThere === false) return start[i] as Tile;
      const element = lift(inner.element(value, place));
      return isThere === true ? element : select(isThere, element, start[i] as Tile);
    });
    return combine(carry, values, points, inner);
  }).map(finish);
}

/** The position of the element that a window selects: the first for which `select` keeps it against all others. */
function selectedPosition(
  operand: GraphValue,
  windows: readonly Window[],
  region: GraphRegion,
  position: readonly Index[],
  points: Points,
  context: PointContext,
): Tile<"i32"> {
  const { shape } = tensorTypeOf(operand);
  const count = sizeOf(windows.map(({ size }) => size));
  const none = full(i32, [1], -1) as Tile;
  const zero = zeros(dtypeOf(operand), [1]) as Tile;
  const [kept] = foldTurns(count, [none, zero], points, context, (turn, carry, inner) => {
    const [best, value] = carry as [Tile<"i32">, Tile];
    const { place, isThere } = windowTap(shape, windows, position, turn, points.tile);
    const found = inner.element(operand, place);
    const [isKept] = inner.region(region, [value, found], points);
    const isBetter = best.lt(0).or((isKept as Tile<"bool">).not()) as Tile<"bool">;
    const takes =
      isThere === true
        ? isBetter
        : isBetter.and(isThere === false ? full(bool, [1], false) : isThere);
    return [select(takes, tileOfIndex(place.position), best), select(takes, found, value)];
  });
  return kept as Tile<"i32">;
}

/** Each lane is an element of the operand: it combines the sources of those windows around it that select it. */
function selectAndScatterAt(
  { operands, attributes, regions }: GraphOp<"stablehlo.select_and_scatter">,
  points: Points,
  context: PointContext,
): readonly Tile[] {
  const { operand, source, init_value: init } = operands;
  const sizes = attributes.window_dimensions ?? points.shape.map(() => 1);
  const windows = windowsOf(sizes, attributes);
  const sourceShape = tensorTypeOf(source).shape;
  const own = tileOfIndex(points.position);
  const start = initialTiles([init], points, context);
  return foldTurns(sizeOf(sizes), start, points, context, (turn, carry, inner) => {
    // Later taps belong to earlier windows; sources are taken in their order.
    const last = sizeOf(sizes) - 1;
    const taps = axesOfPosition(subtractIndex(last, turn), sizes);
    const axes = windows.map(({ stride, low }, axis) => {
      const moved = addIndex(subtractIndex(points.axis(axis), taps[axis] ?? 0), low);
      const inside = isWithin(moved, 0, ((sourceShape[axis] ?? 0) - 1) * stride + 1);
      const rest = remainderIndex(moved, stride);
      const onWindow =
        typeof rest === "number" ? rest === 0 : (tileOfIndex(rest).eq(0) as Tile<"bool">);
      return { index: divideIndex(moved, stride), isThere: allHold([inside, onWindow]) };
    });
    const position = axes.map(({ index }) => index);
    const selected = selectedPosition(operand, windows, regions.select, position, points, inner);
    const isOwn = selected.eq(own) as Tile<"bool">;
    const where = allHold([isOwn, ...axes.map(({ isThere }) => isThere)]);
    const value = inner.element(source, Points.at(sourceShape, points.tile, position));
    return combined(regions.scatter, carry, [value], points, inner, where);
  });
}

export const reductionLowerings = {
  "stablehlo.reduce": {
    form: "choose",
    by: (op) =>
      isPromoting(op)
        ? { form: "expand", to: promoteReduction }
        : hasRuns(op)
          ? { form: "expand", to: expandRuns }
          : isInParts(op)
            ? { form: "steps", steps: reduceInParts, inline: reducedInline }
            : fold(reduceAt, tiledReduce),
  },
  "stablehlo.reduce_window": {
    form: "choose",
    by: (op) =>
      isPromoting(op)
        ? { form: "expand", to: promoteReduction }
        : isCumulative(op)
          ? { form: "expand", to: expandCumulative }
          : fold(reduceWindowAt),
  },
  "stablehlo.select_and_scatter": {
    form: "choose",
    by: (op) =>
      isPromoting(op) ? { form: "expand", to: promoteSelection } : fold(selectAndScatterAt),
  },
  "stablehlo.sort": sortLowering,
} satisfies Partial<Lowerings<GraphOpKind>>;
