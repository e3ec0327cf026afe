/**
 * Reductions by any region, and of several operands at once, over tiles: a block combines windows of rows or columns by the region, in their
 * order, as an argmin has it.
 *
 *   values [500000, 128], places      by min of pairs, the first of equal ones      a row a result, 1024 / 128 rows a tile
 *
 * A region and its initial values are a monoid, so that places beyond the reduced ones hold the initial values.
 */
import { i32 } from "../../../formats/dtype.ts";
import { cdiv, full, iota, loop, reduceWith, slice } from "../../../lang/index.ts";
import type { Scalar, Tile } from "../../../lang/index.ts";
import type { GraphOp } from "../../ops/node.ts";
import type { PointContext } from "../context.ts";
import { Points } from "../points/points.ts";
import { isStorageOnly, narrowBits, tensorTypeOf } from "../storage.ts";
import { select } from "../tiles/bits.ts";
import { viewOf } from "./reduction-view.ts";
import type { ReductionView } from "./reduction-view.ts";
import type { TiledKernel } from "./tiled.ts";

type Reduce = GraphOp<"stablehlo.reduce">;

/** More values at once would not fit a block's registers. */
const mostOperands = 4;

export function tiledReduceWith(op: Reduce): TiledKernel | undefined {
  const { inputs } = op.operands;
  const [first] = inputs;
  if (first === undefined || inputs.length > mostOperands) return undefined;
  const elements = inputs.map((value) => tensorTypeOf(value).element);
  const isPlain = elements.every(
    (element, i) =>
      !isStorageOnly(element) &&
      narrowBits(element) === undefined &&
      op.results[i] !== undefined &&
      tensorTypeOf(op.results[i]).element === element,
  );
  const view = viewOf(tensorTypeOf(first).shape, op.attributes.dimensions);
  return isPlain && view !== undefined ? kernelOf(op, view) : undefined;
}

function kernelOf(op: Reduce, view: ReductionView): TiledKernel {
  const { inputs, init_values: inits } = op.operands;
  const { outer, reduced, inner, along, depth, width } = view;
  const [first] = inputs;
  const shape = first === undefined ? [] : tensorTypeOf(first).shape;
  const isRows = along === 1;
  const tile = isRows ? [width, depth] : [depth, width];
  const kept = isRows ? [width, 1] : [1, width];
  const matrix = isRows
    ? { rows: outer, columns: reduced }
    : { rows: outer * reduced, columns: inner };
  return {
    title: isRows ? "rows_with" : "columns_with",
    grid: isRows ? { part: cdiv(outer, width) } : { outer, part: cdiv(inner, width) },
    loadsWindows: false,
    body: ({ context, outputs, at }) => {
      const begin = at("part").mul(width);
      const neutral = inits.map((init) => context.scalar(init, Points.run([1], 0, 1)));
      const start = neutral.map((value) => value.broadcastTo(kept));
      const sums = loop({ to: cdiv(reduced, depth), carry: start }, (step, carry) => {
        const offset = step.mul(depth);
        const place = isRows
          ? { row: begin, column: offset }
          : { row: at("outer").mul(reduced).add(offset), column: begin };
        const points = Points.window(shape, tile, { ...matrix, ...place });
        const own = context.inner();
        const values = neutral.map((nothing, i) => {
          const input = inputs[i];
          const value = input === undefined ? nothing : own.element(input, points);
          return within(value.broadcastTo(tile), nothing, view, offset).broadcastTo(tile);
        });
        const found = reduceWith(values, (left, right) => regionOf(op, left, right, own), {
          axis: along,
          identity: values.map(({ dtype }) => (dtype.kind === "bool" ? false : 0)),
          keepDims: true,
        });
        return regionOf(op, carry, found, own).map((value) => value.broadcastTo(kept));
      });
      for (const [i, sum] of sums.entries()) {
        const target = outputs[i];
        const window = isRows
          ? target?.at(slice(begin, width))
          : target?.reshape([outer, inner]).at(at("outer"), slice(begin, width));
        window?.store(sum.reshape([width]));
      }
    },
  };
}

/** The region at tiles of equal shape. */
function regionOf(
  op: Reduce,
  left: readonly Tile[],
  right: readonly Tile[],
  context: PointContext,
): Tile[] {
  const shape = left[0]?.shape ?? [];
  const points = Points.at([], shape, []);
  return context
    .region(op.regions.body, [...left, ...right], points)
    .map((value) => value.broadcastTo(shape));
}

function within(
  value: Tile,
  neutral: Tile,
  { reduced, depth, along }: ReductionView,
  offset: Scalar<"i32">,
): Tile {
  if (reduced % depth === 0) return value;
  const place = iota(i32, along === 1 ? [1, depth] : [depth, 1], { axis: along }).add(offset);
  return select(place.lt(full(i32, [1], reduced)), value, neutral);
}
