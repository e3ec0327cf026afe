/**
 * Reductions by a known op, over tiles. The reduced axes have to be neighbours, so that in memory the operand is
 * [outer, reduced, inner]; a block folds windows of a matrix into a tile and then the tile along one axis.
 *
 *   inner = 1    matrix [outer, reduced]             windows of some rows, along the columns
 *   inner > 1    matrix [outer · reduced, inner]     windows of some columns of one outer index, along the rows
 *
 * f16 and bf16 are summed in f32 and rounded once.
 */
import { f32, i32 } from "../../../formats/dtype.ts";
import type { DType } from "../../../formats/dtype.ts";
import { cdiv, full, iota, loop, slice } from "../../../lang/index.ts";
import type { Scalar, Tile } from "../../../lang/index.ts";
import { combinerKind, neutralNumbers } from "../../ops/combiner.ts";
import type { ElementType } from "../../ops/elements.ts";
import type { GraphOp, GraphValue } from "../../ops/node.ts";
import type { GraphOpKind } from "../../ops/table.ts";
import { Points } from "../points/points.ts";
import { dtypeOf, isStorageOnly, tensorTypeOf } from "../storage.ts";
import { constantTile, select } from "../tiles/bits.ts";
import { wrapped } from "../tiles/convert.ts";
import { tiledReduceWith } from "./reduce-with.ts";
import { viewOf } from "./reduction-view.ts";
import type { ReductionView } from "./reduction-view.ts";
import type { TiledKernel } from "./tiled.ts";

/** An op that elements can be combined by in any order, over tiles. */
interface Combiner {
  /** What changes nothing. */
  neutral(element: ElementType): number | bigint | boolean;
  combine(left: Tile, right: Tile): Tile;
  /** All elements along an axis. */
  along(tile: Tile, axis: number): Tile;
}

const combiners: { readonly [K in GraphOpKind]?: Combiner } = {
  "stablehlo.add": {
    neutral: neutralNumbers["stablehlo.add"],
    combine: (left, right) => left.add(right),
    along: (tile, axis) => tile.sum({ axis }),
  },
  "stablehlo.multiply": {
    neutral: neutralNumbers["stablehlo.multiply"],
    combine: (left, right) => left.mul(right),
    along: (tile, axis) => tile.prod({ axis }),
  },
  "stablehlo.maximum": {
    neutral: neutralNumbers["stablehlo.maximum"],
    combine: (left, right) => left.maximum(right),
    along: (tile, axis) => tile.max({ axis }),
  },
  "stablehlo.minimum": {
    neutral: neutralNumbers["stablehlo.minimum"],
    combine: (left, right) => left.minimum(right),
    along: (tile, axis) => tile.min({ axis }),
  },
};

/** The same of truth values, where sums are or, products and. */
const anyTrue: Combiner = {
  neutral: () => false,
  combine: (left, right) => left.or(right),
  along: (tile, axis) => (tile as Tile<"bool">).any({ axis }),
};
const allTrue: Combiner = {
  neutral: () => true,
  combine: (left, right) => left.and(right),
  along: (tile, axis) => (tile as Tile<"bool">).all({ axis }),
};
const truthCombiners: { readonly [K in GraphOpKind]?: Combiner } = {
  "stablehlo.add": anyTrue,
  "stablehlo.maximum": anyTrue,
  "stablehlo.or": anyTrue,
  "stablehlo.multiply": allTrue,
  "stablehlo.minimum": allTrue,
  "stablehlo.and": allTrue,
};

function combinerOf({ regions }: GraphOp<"stablehlo.reduce">, element: ElementType) {
  const kind = combinerKind(regions.body);
  if (kind === undefined || isStorageOnly(element)) return undefined;
  return (element === "i1" ? truthCombiners : combiners)[kind];
}

/** What a block does: its tile, and the matrix whose windows it folds. */
interface Reduction extends ReductionView {
  readonly operand: GraphValue;
  readonly init: GraphValue;
  readonly combiner: Combiner;
}

export function tiledReduce(op: GraphOp<"stablehlo.reduce">): TiledKernel | undefined {
  const reduction = reductionOf(op);
  return reduction === undefined ? tiledReduceWith(op) : reduceKernel(reduction);
}

function reductionOf(op: GraphOp<"stablehlo.reduce">): Reduction | undefined {
  const [operand, ...others] = op.operands.inputs;
  const [init] = op.operands.init_values;
  const [result] = op.results;
  if (operand === undefined || init === undefined || result === undefined || others.length > 0)
    return undefined;
  const { shape, element } = tensorTypeOf(operand);
  const combiner = combinerOf(op, element);
  const view = viewOf(shape, op.attributes.dimensions);
  if (combiner === undefined || view === undefined || tensorTypeOf(result).element !== element)
    return undefined;
  return { operand, init, combiner, ...view };
}

function reduceKernel(reduction: Reduction): TiledKernel {
  const { operand, init, combiner, outer, reduced, inner, along, depth, width } = reduction;
  const { shape, element } = tensorTypeOf(operand);
  const isRows = along === 1;
  const tile = isRows ? [width, depth] : [depth, width];
  const matrix = isRows
    ? { rows: outer, columns: reduced }
    : { rows: outer * reduced, columns: inner };
  const dtype = dtypeOf(operand);
  const working: DType = dtype.kind === "float" && dtype.bits === 16 ? f32 : dtype;
  const inWorking = (value: Tile): Tile => (value.dtype === working ? value : value.cast(working));
  const neutral = (): Tile => neutralTile(working, combiner.neutral(element));
  return {
    title: isRows ? "rows" : "columns",
    grid: isRows ? { part: cdiv(outer, width) } : { outer, part: cdiv(inner, width) },
    loadsWindows: false,
    body: ({ context, outputs, at }) => {
      const first = at("part").mul(width);
      const start = neutral().broadcastTo(tile);
      const total = loop({ to: cdiv(reduced, depth), carry: start }, (step, sum) => {
        const offset = step.mul(depth);
        const place = isRows
          ? { row: first, column: offset }
          : { row: at("outer").mul(reduced).add(offset), column: first };
        const points = Points.window(shape, tile, { ...matrix, ...place });
        const value = inWorking(context.inner().element(operand, points));
        return combiner.combine(sum, inside(value, reduction, offset, neutral)).broadcastTo(tile);
      });
      const begin = inWorking(context.scalar(init, Points.run([1], 0, 1)));
      const combined = combiner.combine(begin, combiner.along(total, along));
      const value = wrapped(combined.dtype === dtype ? combined : combined.cast(dtype), element);
      const [target] = outputs;
      const window = isRows
        ? target?.at(slice(first, width))
        : target?.reshape([outer, inner]).at(at("outer"), slice(first, width));
      window?.store(value.broadcastTo([width]));
    },
  };
}

function neutralTile(dtype: DType, value: number | bigint | boolean): Tile {
  const isNarrow = typeof value === "bigint" && dtype.bits < 64;
  return constantTile(dtype, isNarrow ? Number(value) : value);
}

/** Elements beyond the reduced ones change nothing. */
function inside(
  value: Tile,
  { reduced, depth, along }: Reduction,
  offset: Scalar<"i32">,
  neutral: () => Tile,
): Tile {
  if (reduced % depth === 0) return value;
  const place = iota(i32, along === 1 ? [1, depth] : [depth, 1], { axis: along }).add(offset);
  return select(place.lt(full(i32, [1], reduced)), value, neutral());
}
