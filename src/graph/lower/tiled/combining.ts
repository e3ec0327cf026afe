/**
 * How blocks combine tiles of elements: by a known op, whatever stands where, or by any region, in the order of the elements.
 *
 *   known op      carry [8, 128] + tile + tile + …         then along the folded axis, once
 *   any region    each tile along the folded axis, in order, then with the carry [8, 1]
 *
 * A region and its initial values are a monoid, so that places beyond the reduced ones hold the initial values. Floats of 16 bits and fewer
 * are summed and multiplied in f32 and rounded once; FP8 is carried as f32, which holds it.
 */
import { reduceWith } from "../../../lang/index.ts";
import type { Tile } from "../../../lang/index.ts";
import { combinerKind, neutralNumbers } from "../../ops/combiner.ts";
import { elements, isNarrowFloat } from "../../ops/elements.ts";
import type { ElementType } from "../../ops/elements.ts";
import type { GraphOp, GraphRegion } from "../../ops/node.ts";
import type { GraphOpKind } from "../../ops/table.ts";
import type { PointContext } from "../context.ts";
import { Points } from "../points/points.ts";
import { isStorageOnly, storageOf, tensorTypeOf } from "../storage.ts";
import { constantTile } from "../tiles/bits.ts";
import { converted, wrapped } from "../tiles/convert.ts";

type Reduce = GraphOp<"stablehlo.reduce">;
type Tiles = readonly Tile[];

/** One value is combined for each operand, all of them together. */
export interface Combining {
  /** What is carried, and kept between the parts of a reduction. */
  readonly working: readonly ElementType[];
  /** Whether the carry has the shape of a whole tile. */
  readonly isWhole: boolean;
  /** What changes nothing. */
  neutral(context: PointContext): Tiles;
  /** The carry with a tile of elements, in the formats that are carried. */
  add(carry: Tiles, values: Tiles, axis: 0 | 1, context: PointContext): Tiles;
  /** The carry along the folded axis, which keeps extent 1. */
  along(carry: Tiles, axis: 0 | 1): Tiles;
  /** What has been combined, with the initial values. */
  finish(carry: Tiles, context: PointContext): Tiles;
}

/** An op that elements can be combined by in any order, over tiles. */
interface KnownOp {
  neutral(element: ElementType): number | bigint | boolean;
  combine(left: Tile, right: Tile): Tile;
  along(tile: Tile, axis: number): Tile;
}

const knownOps: { readonly [K in GraphOpKind]?: KnownOp } = {
  "stablehlo.add": {
    neutral: neutralNumbers["stablehlo.add"],
    combine: (left, right) => left.add(right),
    along: (tile, axis) => tile.sum({ axis, keepDims: true }),
  },
  "stablehlo.multiply": {
    neutral: neutralNumbers["stablehlo.multiply"],
    combine: (left, right) => left.mul(right),
    along: (tile, axis) => tile.prod({ axis, keepDims: true }),
  },
  "stablehlo.maximum": {
    neutral: neutralNumbers["stablehlo.maximum"],
    combine: (left, right) => left.maximum(right),
    along: (tile, axis) => tile.max({ axis, keepDims: true }),
  },
  "stablehlo.minimum": {
    neutral: neutralNumbers["stablehlo.minimum"],
    combine: (left, right) => left.minimum(right),
    along: (tile, axis) => tile.min({ axis, keepDims: true }),
  },
};

/** The same of truth values, where sums are or, products and. */
const anyTrue: KnownOp = {
  neutral: () => false,
  combine: (left, right) => left.or(right),
  along: (tile, axis) => (tile as Tile<"bool">).any({ axis, keepDims: true }),
};
const allTrue: KnownOp = {
  neutral: () => true,
  combine: (left, right) => left.and(right),
  along: (tile, axis) => (tile as Tile<"bool">).all({ axis, keepDims: true }),
};
const truthOps: { readonly [K in GraphOpKind]?: KnownOp } = {
  "stablehlo.add": anyTrue,
  "stablehlo.maximum": anyTrue,
  "stablehlo.or": anyTrue,
  "stablehlo.multiply": allTrue,
  "stablehlo.minimum": allTrue,
  "stablehlo.and": allTrue,
};

/** Extremes of short floats are exact in their own format. */
function workingOf(kind: GraphOpKind, element: ElementType): ElementType {
  const isRounded = kind === "stablehlo.add" || kind === "stablehlo.multiply";
  return (isRounded && isNarrowFloat(element)) || isStorageOnly(element) ? "f32" : element;
}

function byKnownOp(
  known: KnownOp,
  op: Reduce,
  element: ElementType,
  working: ElementType,
): Combining {
  const [init] = op.operands.init_values;
  const dtype = storageOf(working);
  if (init === undefined || dtype === undefined) throw new Error("the reduction has one operand");
  const first = ([tile]: Tiles): Tile => {
    if (tile === undefined) throw new Error("one value is combined");
    return tile;
  };
  return {
    working: [working],
    isWhole: true,
    neutral: () => {
      const value = known.neutral(working);
      return [
        constantTile(dtype, typeof value === "bigint" && dtype.bits < 64 ? Number(value) : value),
      ];
    },
    add: (carry, values) => [known.combine(first(carry), first(values))],
    along: (carry, axis) => [known.along(first(carry), axis)],
    finish: (carry, context) => {
      const begin = converted(scalarOf(init, context), element, working);
      return [converted(wrapped(known.combine(begin, first(carry)), element), working, element)];
    },
  };
}

function scalarOf(value: Reduce["operands"]["init_values"][number], context: PointContext): Tile {
  return context.scalar(value, Points.run([1], 0, 1));
}

function byRegion(op: Reduce, own: readonly ElementType[]): Combining {
  const working = own.map((element) => (isStorageOnly(element) ? "f32" : element));
  const between = (tiles: Tiles, isIn: boolean): Tiles =>
    tiles.map((tile, i) => {
      const [from = "f32", to = "f32"] = isIn ? [working[i], own[i]] : [own[i], working[i]];
      return converted(tile, from, to);
    });
  const combined = (left: Tiles, right: Tiles, context: PointContext): Tile[] => {
    const shape = left[0]?.shape ?? [];
    const found = regionAt(
      op.regions.body,
      [...between(left, true), ...between(right, true)],
      shape,
      context,
    );
    return between(found, false).map((tile) => tile.broadcastTo(shape));
  };
  return {
    working,
    isWhole: false,
    neutral: (context) =>
      between(
        op.operands.init_values.map((init) => scalarOf(init, context)),
        false,
      ),
    add: (carry, values, axis, context) => {
      const found = reduceWith(values, (left, right) => combined(left, right, context), {
        axis,
        identity: values.map(({ dtype }) => (dtype.kind === "bool" ? false : 0)),
        keepDims: true,
      });
      return combined(carry, found, context);
    },
    along: (carry) => carry,
    finish: (carry) => between(carry, true),
  };
}

/** A region over scalars, at tiles of a shape. */
function regionAt(
  region: GraphRegion,
  tiles: Tiles,
  shape: readonly number[],
  context: PointContext,
): Tiles {
  return context.region(region, tiles, Points.at([], shape, []));
}

/** More values at once would not fit a block's registers. */
const mostWords = 8;

/** How tiles of a reduction are combined; undefined of those that lanes make. */
export function combiningOf(op: Reduce): Combining | undefined {
  const own = op.operands.inputs.map((value) => tensorTypeOf(value).element);
  const [first, ...others] = own;
  const isPlain = own.every(
    (element, i) => op.results[i] !== undefined && tensorTypeOf(op.results[i]).element === element,
  );
  if (first === undefined || !isPlain) return undefined;
  const kind = combinerKind(op.regions.body);
  const known = kind === undefined ? undefined : (first === "i1" ? truthOps : knownOps)[kind];
  if (kind !== undefined && known !== undefined && others.length === 0)
    return byKnownOp(known, op, first, workingOf(kind, first));
  const words = own.reduce((sum, element) => sum + Math.ceil(elements[element].bits / 32), 0);
  return words > mostWords ? undefined : byRegion(op, own);
}
