/**
 * select_and_scatter in two kernels, as the gradient of max pooling. The first finds which tap each window selects; in the second every element
 * of the operand asks the windows over it whether they selected it, and combines their sources in the order of the windows.
 *
 *   operand   1 5 2 4 3      windows of 3, stride 2:  5 at tap 1, 4 at tap 1
 *   sources   a b            result   0 a 0 b 0       element 3 asks windows 0 (its tap would be 3: none) and 1 (tap 1: yes)
 *
 * Along an axis ceil(size / stride) windows are over an element, one where windows lie side by side.
 */
import { dtypes } from "../../../formats/dtype.ts";
import { full, zeros } from "../../../lang/index.ts";
import type { Tile } from "../../../lang/index.ts";
import { capturesOf } from "../../ops/captures.ts";
import type { ElementType } from "../../ops/elements.ts";
import { graphValue } from "../../ops/node.ts";
import type { GraphOp, GraphValue } from "../../ops/node.ts";
import { sizeOf, tensorType } from "../../ops/types.ts";
import { windowsOf } from "../../ops/windows.ts";
import type { Window } from "../../ops/windows.ts";
import type { PointContext } from "../context.ts";
import type { KernelStep } from "../lowering.ts";
import {
  addIndex,
  divideIndex,
  indexOfTile,
  isWithin,
  scaleIndex,
  subtractIndex,
  tileOfIndex,
} from "../points/indices.ts";
import type { Index } from "../points/indices.ts";
import { Points, axesOfPosition, stridesOf, sumOfProducts } from "../points/points.ts";
import { dtypeOf, tensorTypeOf } from "../storage.ts";
import { select } from "../tiles/bits.ts";
import { converted } from "../tiles/convert.ts";
import { rowsOfPoints } from "../tiled/rows-of-points.ts";
import { combined, foldTurns, initialTiles } from "./fold.ts";
import { allHold, windowTap } from "./windows.ts";

type SelectAndScatter = GraphOp<"stablehlo.select_and_scatter">;

function windowsOver(op: SelectAndScatter): readonly Window[] {
  const { shape } = tensorTypeOf(op.operands.operand);
  return windowsOf(op.attributes.window_dimensions ?? shape.map(() => 1), op.attributes);
}

function tapsOf(windows: readonly Window[]): readonly number[] {
  return windows.map(({ size }) => size);
}

/** What holds the tap of a window, and a number beyond all taps for windows without elements. */
function tapElement(count: number): ElementType {
  if (count < 2 ** 8) return "ui8";
  return count < 2 ** 16 ? "ui16" : "i32";
}

/** The tap that each window selects: the first that `select` keeps against all others. */
function tapsAt(
  op: SelectAndScatter,
  element: ElementType,
  points: Points,
  context: PointContext,
): readonly Tile[] {
  const { operand } = op.operands;
  const windows = windowsOver(op);
  const { shape } = tensorTypeOf(operand);
  const count = sizeOf(tapsOf(windows));
  const none = full(dtypes.i32, [1], count);
  const zero = zeros(dtypeOf(operand), [1]);
  const [kept = none] = foldTurns(count, [none, zero], points, context, (turn, carry, inner) => {
    const [best = none, value = zero] = carry;
    const { place, isThere } = windowTap(shape, windows, points.axes, turn, points.tile);
    const found = inner.element(operand, place);
    const [isKept = none] = inner.region(op.regions.select, [value, found], points);
    const isBetter = best.eq(count).or((isKept as Tile<"bool">).not());
    const takes =
      isThere === true
        ? isBetter
        : isBetter.and(isThere === false ? full(dtypes.bool, [1], false) : isThere);
    return [select(takes, tileOfIndex(turn), best), select(takes, found, value)];
  });
  return [converted(kept, "i32", element)];
}

/** The windows over an element along an axis, the first of them first, and its tap in each. */
function windowOver(
  index: Index,
  turn: Index,
  { size, stride, low }: Window,
  count: number,
): { readonly window: Index; readonly tap: Index; readonly isThere: boolean | Tile<"bool"> } {
  const over = Math.ceil(size / stride);
  // Counted from a window that lies before all elements, so that nothing is divided that is below 0.
  const before = Math.max(0, Math.ceil(-low / stride));
  const moved = addIndex(index, low + before * stride);
  const window = addIndex(
    subtractIndex(divideIndex(moved, stride), subtractIndex(over - 1, turn)),
    -before,
  );
  const tap = subtractIndex(addIndex(index, low), scaleIndex(window, stride));
  const isThere = allHold([isWithin(window, 0, count), isWithin(tap, 0, size)]);
  return { window, tap, isThere };
}

function scatteredAt(
  op: SelectAndScatter,
  taps: GraphValue,
  points: Points,
  context: PointContext,
): readonly Tile[] {
  const { source, init_value: init } = op.operands;
  const windows = windowsOver(op);
  const { shape } = tensorTypeOf(source);
  const over = windows.map(({ size, stride }) => Math.ceil(size / stride));
  const strides = stridesOf(tapsOf(windows));
  const start = initialTiles([init], points, context);
  return foldTurns(sizeOf(over), start, points, context, (turn, carry, inner) => {
    const turns = axesOfPosition(turn, over);
    const axes = windows.map((window, axis) =>
      windowOver(points.axis(axis), turns[axis] ?? 0, window, shape[axis] ?? 0),
    );
    const place = Points.at(
      shape,
      points.tile,
      axes.map(({ window }) => window),
    );
    const own = sumOfProducts(
      axes.map(({ tap }) => tap),
      strides,
    );
    const isSelected = indexOfTile(inner.element(taps, place)).eq(tileOfIndex(own));
    const where = allHold([isSelected, ...axes.map(({ isThere }) => isThere)]);
    const value = inner.element(source, place);
    return combined(op.regions.scatter, carry, [value], points, inner, where);
  });
}

/** What both kernels compute where they use it. */
export function selectAndScatterInline({
  operands,
  regions,
}: SelectAndScatter): readonly GraphValue[] {
  const captures = [regions.select, regions.scatter].flatMap(capturesOf);
  return [operands.init_value, ...captures];
}

export function selectAndScatterSteps(op: SelectAndScatter): readonly KernelStep[] {
  const { operands, regions } = op;
  const { operand, source } = operands;
  const { shape } = tensorTypeOf(source);
  const element = tapElement(sizeOf(tapsOf(windowsOver(op))));
  const taps = graphValue(tensorType(element, shape));
  const step = (
    title: string,
    inputs: readonly GraphValue[],
    results: readonly GraphValue[],
    uses: readonly GraphValue[],
    of: readonly number[],
    rule: NonNullable<KernelStep["rule"]>,
  ): KernelStep => {
    const tiled = rowsOfPoints(of, rule);
    const own = { title, inputs, results, uses, key: title, rule };
    return tiled === undefined ? own : { ...own, tiled };
  };
  return [
    step("taps", [operand], [taps], capturesOf(regions.select), shape, (points, context) =>
      tapsAt(op, element, points, context),
    ),
    step(
      "sources",
      [source, taps],
      op.results,
      selectAndScatterInline(op),
      tensorTypeOf(operand).shape,
      (points, context) => scatteredAt(op, taps, points, context),
    ),
  ];
}
