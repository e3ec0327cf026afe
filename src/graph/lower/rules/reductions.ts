/**
 * Reductions, one result a lane: each lane folds the elements of its result in row-major order, by the op's region,
 * whatever it computes.
 */
import type { Tile } from "../../../lang/index.ts";
import { combinerKind } from "../../ops/combiner.ts";
import { isNarrowFloat } from "../../ops/elements.ts";
import type { GraphOp, GraphRegion, GraphValue } from "../../ops/node.ts";
import type { GraphOpKind } from "../../ops/table.ts";
import { sizeOf } from "../../ops/types.ts";
import { windowsOf } from "../../ops/windows.ts";
import type { PointContext } from "../context.ts";
import { fold } from "../lowering.ts";
import type { Lowerings } from "../lowering.ts";
import { Points, axesOfPosition } from "../points/points.ts";
import { tensorTypeOf } from "../storage.ts";
import { select } from "../tiles/bits.ts";
import { converted } from "../tiles/convert.ts";
import { isPromoting, promoteReduction, promoteSelection } from "../expand/promote.ts";
import { expandCumulative, isCumulative } from "../expand/cumulative.ts";
import {
  expandLargeWindows,
  expandSideBySide,
  isLarge,
  isReduction,
} from "../expand/large-windows.ts";
import { expandRuns, hasRuns } from "../expand/reduction-runs.ts";
import { isInParts, reducedInline, reduceInParts, tiledReduce } from "../tiled/reduce.ts";
import { rowsOfPoints } from "../tiled/rows-of-points.ts";
import type { TiledKernel } from "../tiled/tiled.ts";
import { windowTap } from "./windows.ts";
import { combined, foldTurns, initialTiles } from "./fold.ts";
import { selectAndScatterInline, selectAndScatterSteps } from "./select-and-scatter.ts";
import { sortLowering } from "../sort/lowering.ts";

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

function tiledWindows(op: GraphOp<"stablehlo.reduce_window">): TiledKernel | undefined {
  const [result] = op.results;
  return result === undefined
    ? undefined
    : rowsOfPoints(tensorTypeOf(result).shape, (points, context) =>
        reduceWindowAt(op, points, context),
      );
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
          : isReduction(op)
            ? { form: "expand", to: expandSideBySide }
            : isLarge(op)
              ? { form: "expand", to: expandLargeWindows }
              : fold(reduceWindowAt, tiledWindows),
  },
  "stablehlo.select_and_scatter": {
    form: "choose",
    by: (op) =>
      isPromoting(op)
        ? { form: "expand", to: promoteSelection }
        : { form: "steps", steps: selectAndScatterSteps, inline: selectAndScatterInline },
  },
  "stablehlo.sort": sortLowering,
} satisfies Partial<Lowerings<GraphOpKind>>;
