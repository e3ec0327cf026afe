/** Ops that move elements: each asks for its operands at other points. */
import { libraryTranspose } from "../library.ts";
import { i32, u16, u8 } from "../../../formats/dtype.ts";
import type { Tile } from "../../../lang/index.ts";
import type { GraphOp, GraphValue } from "../../ops/node.ts";
import type { GraphOpKind } from "../../ops/table.ts";
import type { PointContext } from "../context.ts";
import { view, map, refuse } from "../lowering.ts";
import type { Lowerings } from "../lowering.ts";
import {
  addIndex,
  clampIndex,
  divideIndex,
  indexOfTile,
  isWithin,
  remainderIndex,
  scaleIndex,
  subtractIndex,
  tileOfIndex,
} from "../points/indices.ts";
import type { Index } from "../points/indices.ts";
import { Points } from "../points/points.ts";
import { dtypeOf, tensorTypeOf } from "../storage.ts";
import { constantTile, ofCodeBits, select } from "../tiles/bits.ts";
import { converted } from "../tiles/convert.ts";
import { gatherAt, torchGatherNumbers } from "./gather.ts";

function shapeOf(value: GraphValue): readonly number[] {
  return tensorTypeOf(value).shape;
}

/** The points of an operand with other axes. */
function elsewhere(value: GraphValue, points: Points, axes: readonly Index[]): Points {
  const shape = shapeOf(value);
  return shape.length === 0 ? points.scalar() : Points.at(shape, points.tile, axes);
}

/** The operand of a broadcast whose axis `i` becomes axis `dimensions[i]`. */
function broadcastAt(
  operand: GraphValue,
  dimensions: readonly number[],
  points: Points,
  context: PointContext,
): readonly Tile[] {
  const shape = shapeOf(operand);
  const isSame =
    shape.length === points.shape.length && shape.every((e, i) => e === points.shape[i]);
  if (isSame && dimensions.every((axis, i) => axis === i))
    return [context.element(operand, points)];
  const axes = shape.map((extent, i) => (extent === 1 ? 0 : points.axis(dimensions[i] ?? 0)));
  return [context.element(operand, elsewhere(operand, points, axes))];
}

/** What may or may not hold, made when it is asked for. */
type Condition = () => boolean | Tile<"bool">;

/**
 * All conditions together: true, false, or a bool for each lane. Those about known indices go first: where one of them
 * does not hold, no lane is asked for the others.
 */
function allOf(conditions: readonly { readonly about: Index; readonly test: Condition }[]) {
  const isKnown = ({ about }: { readonly about: Index }): boolean => typeof about === "number";
  const known = conditions.filter(isKnown);
  if (known.some(({ test }) => test() === false)) return false;
  return conditions
    .filter((each) => !isKnown(each))
    .reduce<boolean | Tile<"bool">>((both, { test }) => {
      const each = test();
      if (both === true) return each;
      if (both === false || each === true) return both;
      return each === false ? false : both.and(each);
    }, true);
}

/** One of two tiles, where the condition may be known; only what is needed is made. */
export function choose(
  condition: boolean | Tile<"bool">,
  ifTrue: () => Tile,
  ifFalse: () => Tile,
): Tile {
  if (typeof condition === "boolean") return condition ? ifTrue() : ifFalse();
  return select(condition, ifTrue(), ifFalse());
}

/** Where pad puts an element along one axis: which one, and whether there is one. */
function paddedAxis(
  index: Index,
  extent: number,
  low: number | Index,
  interior: number,
): { readonly index: Index; readonly about: Index; readonly test: Condition } {
  const moved = subtractIndex(index, low);
  const step = interior + 1;
  const place = divideIndex(moved, step);
  const inside = (): boolean | Tile<"bool"> => isWithin(moved, 0, (extent - 1) * step + 1);
  if (step === 1) return { index: place, about: moved, test: inside };
  const onElement = (): boolean | Tile<"bool"> => {
    const rest = remainderIndex(moved, step);
    return typeof rest === "number" ? rest === 0 : ((rest as Tile<"i32">).eq(0) as Tile<"bool">);
  };
  const both = [inside, onElement].map((test) => ({ about: moved, test }));
  return { index: place, about: moved, test: () => allOf(both) };
}

function padAt(
  operand: GraphValue,
  value: GraphValue,
  low: readonly (number | Index)[],
  interior: readonly number[],
  points: Points,
  context: PointContext,
): readonly Tile[] {
  const axes = shapeOf(operand).map((extent, axis) =>
    paddedAxis(points.axis(axis), extent, low[axis] ?? 0, interior[axis] ?? 0),
  );
  const inside = elsewhere(
    operand,
    points,
    axes.map(({ index }) => index),
  );
  return [
    choose(
      allOf(axes),
      () => context.element(operand, inside),
      () => context.scalar(value, points),
    ),
  ];
}

/** An index that the program computed: the only element of a tensor. */
function givenIndex(value: GraphValue, points: Points, context: PointContext): Tile<"i32"> {
  return indexOfTile(context.scalar(value, points));
}

/** Element `at` of a list of indices that the program computed. */
function listedIndex(
  list: GraphValue,
  at: number,
  points: Points,
  context: PointContext,
): Tile<"i32"> {
  return indexOfTile(context.element(list, Points.at(shapeOf(list), points.tile, [at])));
}

function concatenateAt(
  { operands, attributes }: GraphOp<"stablehlo.concatenate">,
  points: Points,
  context: PointContext,
): readonly Tile[] {
  const { dimension } = attributes;
  const place = points.axis(dimension);
  const parts: { readonly value: GraphValue; readonly offset: number; readonly end: number }[] = [];
  let offset = 0;
  for (const value of operands.inputs) {
    const extent = shapeOf(value)[dimension] ?? 0;
    if (extent > 0) parts.push({ value, offset, end: offset + extent });
    offset += extent;
  }
  const part = (at: number): Tile => {
    const { value, offset: start, end } = parts[at] as (typeof parts)[number];
    const axes = points.axes.map((index, axis) =>
      axis === dimension ? subtractIndex(index, start) : index,
    );
    const own = (): Tile => context.element(value, elsewhere(value, points, axes));
    if (at === parts.length - 1) return own();
    return choose(isWithin(place, 0, end), own, () => part(at + 1));
  };
  return [part(0)];
}

function updateAt(
  op: GraphOp<"stablehlo.dynamic_update_slice">,
  points: Points,
  context: PointContext,
): readonly Tile[] {
  const { operand, update } = op.operands;
  const sizes = shapeOf(update);
  if (sizes.length === 0) return [context.element(update, points.scalar())];
  const starts = updateStarts(op, points, context);
  const moved = points.axes.map((index, axis) => subtractIndex(index, starts[axis] ?? 0));
  const inside = allOf(
    moved.map((index, axis) => ({
      about: index,
      test: () => isWithin(index, 0, sizes[axis] ?? 0),
    })),
  );
  return [
    choose(
      inside,
      () => context.element(update, elsewhere(update, points, moved)),
      () => context.element(operand, points),
    ),
  ];
}

/** Where the window of an update begins: so that it lies within the operand. */
function updateStarts(
  { operands }: GraphOp<"stablehlo.dynamic_update_slice">,
  points: Points,
  context: PointContext,
): readonly Index[] {
  const sizes = shapeOf(operands.update);
  return shapeOf(operands.operand).map((extent, axis) => {
    const last = extent - (sizes[axis] ?? 0);
    const start = operands.start_indices[axis];
    if (last === 0 || start === undefined) return 0;
    return clampIndex(givenIndex(start, points, context), last);
  });
}

export const shapeLowerings = {
  "stablehlo.constant": view((op) => {
    const { value } = op.attributes;
    const [result] = op.results;
    if ("kind" in value || !value.splat || result === undefined)
      throw new Error("a constant of several values is loaded");
    const element = value.data[0] ?? 0;
    const dtype = dtypeOf(result);
    if (value.type.element === "i1") return [constantTile(dtype, element !== 0)];
    return [codedConstant(dtype, element)];
  }),
  "stablehlo.iota": view((op, points) => iotaAt(op, points)),
  "stablehlo.dynamic_iota": view((op, points) => iotaAt(op, points)),
  "stablehlo.broadcast_in_dim": view(({ operands, attributes }, points, context) =>
    broadcastAt(operands.operand, attributes.broadcast_dimensions, points, context),
  ),
  "stablehlo.dynamic_broadcast_in_dim": view(({ operands, attributes }, points, context) =>
    broadcastAt(operands.operand, attributes.broadcast_dimensions, points, context),
  ),
  "stablehlo.broadcast": view(({ operands, attributes }, points, context) => {
    const added = attributes.broadcast_sizes.length;
    const dimensions = shapeOf(operands.operand).map((_, axis) => axis + added);
    return broadcastAt(operands.operand, dimensions, points, context);
  }),
  "stablehlo.reshape": {
    ...view(({ operands }, points, context) => [
      context.element(operands.operand, points.reshape(shapeOf(operands.operand))),
    ]),
    sameBytes: ({ operands }) => operands.operand,
  },
  "stablehlo.dynamic_reshape": view(({ operands }, points, context) => [
    context.element(operands.operand, points.reshape(shapeOf(operands.operand))),
  ]),
  "stablehlo.transpose": {
    ...view<"stablehlo.transpose">(({ operands, attributes }, points, context) => {
      const { permutation } = attributes;
      if (permutation.every((axis, i) => axis === i))
        return [context.element(operands.operand, points)];
      const axes = permutation.map((_, axis) => points.axis(permutation.indexOf(axis)));
      return [context.element(operands.operand, elsewhere(operands.operand, points, axes))];
    }),
    library: libraryTranspose,
  },
  "stablehlo.reverse": view(({ operands, attributes }, points, context) => {
    const axes = points.axes.map((index, axis) =>
      attributes.dimensions.includes(axis)
        ? subtractIndex((points.shape[axis] ?? 1) - 1, index)
        : index,
    );
    return [context.element(operands.operand, elsewhere(operands.operand, points, axes))];
  }),
  "stablehlo.concatenate": view(concatenateAt),
  "stablehlo.slice": view(({ operands, attributes }, points, context) => {
    const axes = points.axes.map((index, axis) =>
      addIndex(
        scaleIndex(index, attributes.strides[axis] ?? 1),
        attributes.start_indices[axis] ?? 0,
      ),
    );
    return [context.element(operands.operand, elsewhere(operands.operand, points, axes))];
  }),
  "stablehlo.real_dynamic_slice": view(({ operands }, points, context) => {
    const axes = points.axes.map((index, axis) => {
      const start = listedIndex(operands.start_indices, axis, points, context);
      const stride = listedIndex(operands.strides, axis, points, context);
      return start.add(stride.mul(tileOfIndex(index)));
    });
    return [context.element(operands.operand, elsewhere(operands.operand, points, axes))];
  }),
  "stablehlo.pad": view(({ operands, attributes }, points, context) =>
    padAt(
      operands.operand,
      operands.padding_value,
      attributes.edge_padding_low,
      attributes.interior_padding,
      points,
      context,
    ),
  ),
  "stablehlo.dynamic_pad": refuse("its padding is known only when it runs"),
  "stablehlo.dynamic_slice": view(({ operands, attributes }, points, context) => {
    const shape = shapeOf(operands.operand);
    const axes = points.axes.map((index, axis) => {
      const last = (shape[axis] ?? 0) - (attributes.slice_sizes[axis] ?? 0);
      const start = operands.start_indices[axis];
      if (last === 0 || start === undefined) return index;
      return addIndex(clampIndex(givenIndex(start, points, context), last), index);
    });
    return [context.element(operands.operand, elsewhere(operands.operand, points, axes))];
  }),
  "stablehlo.dynamic_update_slice": {
    form: "map",
    isFree: false,
    rule: updateAt,
    update: (op) => ({
      operand: op.operands.operand,
      shape: shapeOf(op.operands.update),
      rule: (points, context) => {
        const starts = updateStarts(op, points, context);
        return {
          axes: starts.map((start, axis) => addIndex(points.axis(axis), start)),
          value: context.broadcast(op.operands.update, points),
          where: true,
        };
      },
    }),
  },
  "stablehlo.gather": map(({ operands, attributes }, points, context) => [
    gatherAt(
      operands.operand,
      operands.start_indices,
      attributes.dimension_numbers,
      attributes.slice_sizes,
      points,
      context,
    ),
  ]),
  "stablehlo.dynamic_gather": refuse("its sizes are known only when it runs"),
  "stablehlo.torch_index_select": map(({ operands, attributes }, points, context) => {
    const { numbers, sizes } = torchGatherNumbers(
      shapeOf(operands.operand),
      shapeOf(operands.index).length,
      attributes.dim,
      attributes.batch_dims,
    );
    return [gatherAt(operands.operand, operands.index, numbers, sizes, points, context)];
  }),
  "stablehlo.get_dimension_size": view(({ operands, attributes }) => [
    constantTile(i32, shapeOf(operands.operand)[attributes.dimension] ?? 0),
  ]),
  "stablehlo.set_dimension_size": refuse("its shape is known only when it runs"),
} satisfies Partial<Lowerings<GraphOpKind>>;

function iotaAt(
  op: GraphOp<"stablehlo.iota"> | GraphOp<"stablehlo.dynamic_iota">,
  points: Points,
): readonly Tile[] {
  const index = points.axis(op.attributes.iota_dimension);
  const [result] = op.results;
  if (result === undefined) throw new Error("an iota has a result");
  // Counts beyond the element's numbers wrap or overflow as a conversion does.
  return [converted(tileOfIndex(index), "i32", tensorTypeOf(result).element)];
}

/** A constant from its lane, which of floats below 32 bits is the bit pattern. */
function codedConstant(dtype: Tile["dtype"], lane: number | bigint): Tile {
  if (dtype.kind !== "float" || dtype.bits >= 32) return constantTile(dtype, lane);
  const codes = dtype.bits === 16 ? u16 : u8;
  return ofCodeBits(constantTile(codes, lane), dtype);
}
